/**
 * What OpenAI's clients read: errors, a turn as a chat completion, and a turn as a response. Pure.
 *
 * @rule openai/whole-response-last: The last event has the whole response, as it is recorded. (test: test/gateway/texts-of-a-turn.test.ts)
 */
import type { Context } from 'hono';
import { type AnswerSnapshot, type FinalAnswer, joinTexts, shortfall } from '../core/answer.js';
import { publicCallId, type ClientCall } from '../core/client-calls.js';
import type { ResponseSettings } from './settings.js';
import type { TurnResult } from '../../conversation/protocol/contract.js';
import { isUntaken, toProblem, type FailedTurn, type Problem } from '../core/errors.js';

interface OpenaiError {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
  readonly perdura?: FailedTurn;
}

const CODES: Readonly<Record<string, string>> = {
  unauthorized: 'invalid_api_key',
  'too-many-requests': 'rate_limit_exceeded',
  'queue-full': 'rate_limit_exceeded',
  'model-not-found': 'model_not_found',
  unsupported: 'unsupported_parameter',
};

function toOpenaiError({ status, type, message, param, failed }: Problem): OpenaiError {
  const kind = status === 429 ? 'rate_limit_error' : status >= 500 ? 'server_error' : 'invalid_request_error';
  const code = CODES[type] ?? type.replaceAll('-', '_');
  return { message, type: kind, param: param ?? null, code, ...(failed && { perdura: failed }) };
}

export function answerOpenaiProblem(context: Context, problem: Problem): Response {
  if (!isUntaken(problem)) context.header('x-should-retry', 'false');
  return context.json({ error: toOpenaiError(problem) }, problem.status);
}

export function explainError(error: unknown): OpenaiError {
  return toOpenaiError(toProblem(error));
}

export interface Completion {
  readonly id: string;
  /** Epoch seconds. */
  readonly created: number;
  readonly model: string;
  readonly conversation: string;
}

type FinishReason = 'stop' | 'length' | 'content_filter' | 'tool_calls';

export function finishReason({ result, calls }: FinalAnswer): FinishReason {
  if (calls.length > 0) return 'tool_calls';
  const short = shortfall(result);
  return short === 'length' ? 'length' : short === 'refusal' ? 'content_filter' : 'stop';
}

export function completion(of: Completion, answer: FinalAnswer): object {
  const { id, created, model } = of;
  const { result, texts } = answer;
  const calls = toolCalls(of, answer);
  const content = calls.length > 0 && texts.length === 0 ? null : joinTexts(texts);
  const message = { role: 'assistant', content, refusal: null, annotations: [], ...(calls.length > 0 && { tool_calls: calls }) };
  return {
    id,
    object: 'chat.completion',
    created,
    model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(answer) }],
    usage: toUsage(result),
    ...SERVED,
  };
}

/** The same for every answer: agents have no versions of a system that a seed would hold for, and no tiers. */
const SERVED = { service_tier: 'default', system_fingerprint: null };

interface ToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

function toolCalls({ conversation }: Completion, { calls }: FinalAnswer): readonly ToolCall[] {
  return calls.map(({ callId, name, input }) => ({
    id: publicCallId(conversation, callId),
    type: 'function',
    function: { name, arguments: JSON.stringify(input) },
  }));
}

/** Each call begins with its name, and its arguments follow. */
export function callDeltas(of: Completion, answer: FinalAnswer): readonly object[] {
  return toolCalls(of, answer).flatMap(({ id, type, function: { name, arguments: given } }, index) => [
    { tool_calls: [{ index, id, type, function: { name, arguments: '' } }] },
    { tool_calls: [{ index, function: { arguments: given } }] },
  ]);
}

export function chunk(of: Completion, delta: object, finish: FinishReason | null = null, extra: object = {}): object {
  return {
    id: of.id,
    object: 'chat.completion.chunk',
    created: of.created,
    model: of.model,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...SERVED,
    ...extra,
  };
}

export function usageChunk(of: Completion, result: TurnResult): object {
  return { ...chunk(of, {}), choices: [], usage: toUsage(result) };
}

function toUsage({ usage }: TurnResult): object {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens, cache_write_tokens: usage.cacheWriteTokens ?? 0, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoningTokens ?? 0,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}

export interface ResponseHead {
  readonly id: string;
  readonly created_at: number;
  readonly model: string;
  readonly conversation: string;
  /** What the request has set, where that is known. */
  readonly settings: ResponseSettings;
}

type ResponseStatus = 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled';

const STATUS = { length: 'incomplete', refusal: 'incomplete', failure: 'failed', stop: 'cancelled' } as const;

function toStatus(result: TurnResult): ResponseStatus {
  const short = shortfall(result);
  return short === undefined ? 'completed' : STATUS[short];
}

/** `retake`: how many items of a stream in its place were taken back. Clients refuse a second item of one id. */
function itemId({ id }: ResponseHead, at: number, retake = 0): string {
  return `msg_${id.slice('resp_'.length)}_${at + 1}${retake === 0 ? '' : `_${retake + 1}`}`;
}

function textPart(text: string): object {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

function messageItem(head: ResponseHead, at: number, text: string | undefined, status: string, retake = 0): object {
  return { id: itemId(head, at, retake), type: 'message', status, role: 'assistant', content: text === undefined ? [] : [textPart(text)] };
}

/** Words that are no part of the answer: clients read every message as a part of it. `text` is absent where it is still to come. */
function asideItem({ id }: ResponseHead, at: number, text?: string): object {
  const summary = text === undefined ? [] : [{ type: 'summary_text', text }];
  return {
    id: `rs_${id.slice('resp_'.length)}_${at + 1}`,
    type: 'reasoning',
    summary,
    status: text === undefined ? 'in_progress' : 'completed',
  };
}

function callItem(head: ResponseHead, at: number, { callId, name, input }: ClientCall, status: 'in_progress' | 'completed'): object {
  const given = status === 'completed' ? JSON.stringify(input) : '';
  const call = { call_id: publicCallId(head.conversation, callId), name, arguments: given, status };
  return { id: callItemId(head, at), type: 'function_call', ...call };
}

function callItemId({ id }: ResponseHead, at: number): string {
  return `fc_${id.slice('resp_'.length)}_${at + 1}`;
}

/** One that has not ended. */
export function runningResponse(head: ResponseHead, status: ResponseStatus = 'in_progress'): object {
  return { ...fields(head), status, completed_at: null, error: null, incomplete_details: null, output: [], usage: null };
}

/** The specification has the code alone; the AI SDK refuses a whole response whose error has no type. */
function responseFault(isLimited: boolean): { type: string; code: string } {
  return isLimited ? { type: 'rate_limit_error', code: 'rate_limit_exceeded' } : { type: 'server_error', code: 'server_error' };
}

/** `endedAt`: epoch seconds. */
export function endedResponse(
  head: ResponseHead,
  { result, texts, calls, asides = [] }: FinalAnswer,
  { endedAt, retakes = [] }: { readonly endedAt: number; readonly retakes?: readonly number[] },
): object {
  const status = toStatus(result);
  const { usage, error } = result;
  return {
    ...fields(head),
    status,
    completed_at: status === 'completed' ? endedAt : null,
    error: status === 'failed' ? { ...responseFault(error?.type === 'rate-limit'), message: error?.message ?? '' } : null,
    incomplete_details:
      status === 'incomplete' ? { reason: shortfall(result) === 'refusal' ? 'content_filter' : 'max_output_tokens' } : null,
    output: [
      ...asides.map((text, at) => asideItem(head, at, text)),
      ...texts.map((text, at) =>
        messageItem(head, at, text, status === 'completed' || at < texts.length - 1 ? 'completed' : 'incomplete', retakes[at]),
      ),
      ...calls.map((call, at) => callItem(head, at, call, 'completed')),
    ],
    usage: {
      input_tokens: usage.inputTokens,
      input_tokens_details: { cached_tokens: usage.cachedTokens, cache_write_tokens: usage.cacheWriteTokens ?? 0 },
      output_tokens: usage.outputTokens,
      output_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
      total_tokens: usage.inputTokens + usage.outputTokens,
    },
  };
}

function fields({ id, created_at, model, conversation, settings }: ResponseHead): object {
  return { id, object: 'response', created_at, model, conversation: { id: conversation }, ...settings };
}

interface ResponseEvent {
  readonly type: string;
  readonly sequence_number: number;
}

interface ResponseEvents {
  begin(): readonly ResponseEvent[];
  take(snapshot: AnswerSnapshot): readonly ResponseEvent[];
}

interface Item {
  readonly output: number;
  readonly at: number;
  text: string;
}

/**
 * The same live events give the same numbers, in any gateway, and so a client that comes back goes on after the number that it has.
 *
 * The text of a failed attempt is taken back: its item ends without content, and the next attempt has an item with a new id. If
 * live events were lost, the stream shows nothing more until the last event.
 */
export function createResponseEvents(head: ResponseHead, now: () => number = Date.now): ResponseEvents {
  let number = 0;
  let outputs = 0;
  let asides = 0;
  /** Texts of valid items that have ended. */
  const texts: string[] = [];
  /** By place, how many items were taken back. */
  const retakes: number[] = [];
  let open: Item | undefined;

  const event = (type: string, more: object): ResponseEvent => ({ type, ...more, sequence_number: number++ });
  const where = ({ output, at }: Item): object => ({ item_id: itemId(head, at, retakes[at]), output_index: output, content_index: 0 });

  const begin = (): ResponseEvent[] => {
    open = { output: outputs++, at: texts.length, text: '' };
    return [
      event('response.output_item.added', {
        output_index: open.output,
        item: messageItem(head, open.at, undefined, 'in_progress', retakes[open.at]),
      }),
      event('response.content_part.added', { ...where(open), part: textPart('') }),
    ];
  };

  const grow = (text: string): ResponseEvent[] => {
    const before = open === undefined ? begin() : [];
    if (open === undefined || text === '') return before;
    open.text += text;
    return [...before, event('response.output_text.delta', { ...where(open), delta: text, logprobs: [] })];
  };

  const close = (): ResponseEvent[] => {
    if (open === undefined) return [];
    const { output, at, text } = open;
    const ended = [
      event('response.output_text.done', { ...where(open), text, logprobs: [] }),
      event('response.content_part.done', { ...where(open), part: textPart(text) }),
      event('response.output_item.done', { output_index: output, item: messageItem(head, at, text, 'completed', retakes[at]) }),
    ];
    texts.push(text);
    open = undefined;
    return ended;
  };

  const takeBack = (): ResponseEvent[] => {
    if (open === undefined) return [];
    const { output, at } = open;
    const item = messageItem(head, at, undefined, 'incomplete', retakes[at]);
    open = undefined;
    retakes[at] = (retakes[at] ?? 0) + 1;
    return [event('response.output_item.done', { output_index: output, item })];
  };

  const show = (now: readonly string[], isOpen: boolean): ResponseEvent[] => {
    const events: ResponseEvent[] = [];
    for (;;) {
      const text = now[texts.length];
      if (open !== undefined && text?.startsWith(open.text) !== true) events.push(...takeBack());
      if (text === undefined) return events;
      events.push(...grow(text.slice(open?.text.length ?? 0)));
      if (isOpen && texts.length === now.length - 1) return events;
      events.push(...close());
    }
  };

  const showAsides = (all: readonly string[] = []): ResponseEvent[] =>
    all.slice(asides).flatMap((text) => {
      const at = asides++;
      const output_index = outputs++;
      const item = asideItem(head, at, text);
      const where = { item_id: (item as { readonly id: string }).id, output_index, summary_index: 0 };
      return [
        event('response.output_item.added', { output_index, item: asideItem(head, at) }),
        event('response.reasoning_summary_part.added', { ...where, part: { type: 'summary_text', text: '' } }),
        event('response.reasoning_summary_text.delta', { ...where, delta: text }),
        event('response.reasoning_summary_text.done', { ...where, text }),
        event('response.reasoning_summary_part.done', { ...where, part: { type: 'summary_text', text } }),
        event('response.output_item.done', { output_index, item }),
      ];
    });

  /** A text that was shown as none of the answer stays that, also where no other has come. */
  const asShown = (ended: FinalAnswer): FinalAnswer => {
    const { asides: before = [], texts: answer } = ended;
    const more = asides - before.length;
    return more <= 0 ? ended : { ...ended, asides: [...before, ...answer.slice(0, more)], texts: answer.slice(more) };
  };

  const called = ({ calls }: FinalAnswer): ResponseEvent[] =>
    calls.flatMap((call, at) => {
      const place = { item_id: callItemId(head, at), output_index: outputs++ };
      const given = JSON.stringify(call.input);
      return [
        event('response.output_item.added', { output_index: place.output_index, item: callItem(head, at, call, 'in_progress') }),
        event('response.function_call_arguments.delta', { ...place, delta: given }),
        event('response.function_call_arguments.done', { ...place, name: call.name, arguments: given }),
        event('response.output_item.done', { output_index: place.output_index, item: callItem(head, at, call, 'completed') }),
      ];
    });

  /** Text that streaming missed comes as separate items (openai/whole-response-last). */
  const finish = (given: FinalAnswer): ResponseEvent[] => {
    const ended = asShown(given);
    const { result, texts: whole } = ended;
    const beside = showAsides(ended.asides);
    const shown = [...texts, ...(open ? [open.text] : [])];
    const isBeginning = shown.every((text, at) => whole[at]?.startsWith(text) === true && (at === shown.length - 1 || whole[at] === text));
    const rest = [...beside, ...(isBeginning ? show(whole, false) : takeBack()), ...called(ended)];
    const status = toStatus(result);
    const type = status === 'completed' || status === 'failed' ? status : 'incomplete';
    return [...rest, event(`response.${type}`, { response: endedResponse(head, ended, { endedAt: Math.floor(now() / 1000), retakes }) })];
  };

  return {
    begin: () => [
      event('response.created', { response: runningResponse(head) }),
      event('response.in_progress', { response: runningResponse(head) }),
    ],
    take: (snapshot) =>
      snapshot.kind === 'final' ? finish(snapshot) : [...showAsides(snapshot.asides), ...show(snapshot.texts, snapshot.isOpen)],
  };
}
