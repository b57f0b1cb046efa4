/** Anthropic's Messages API, for its clients: an agent is a model; the history of each request finds its conversation. */
import { uncachedTokens } from '../../records/message.js';
import { z } from 'zod';
import type { Context } from 'hono';
import { estimateTokens } from '../../records/token-estimate.js';
import { requestSignal, type GatewayApp, type GatewayVariables } from '../context.js';
import { toProblem, isUntaken, type Problem, GatewayError, unsupported } from '../core/errors.js';
import { submitSupplied, answerNamed, firstMessage } from '../core/supplied-history.js';
import {
  createTextDeltas,
  answerSnapshots,
  waitForAnswer,
  type AnswerSnapshot,
  joinTexts,
  refuseFailed,
  shortfall,
  type FinalAnswer,
} from '../core/answer.js';
import { readAgent, idempotencyKey, optional, readBody, idOfRequest } from '../core/read-body.js';
import { sendEvents, type ServerEvent } from '../sse.js';
import { prompt, readPrompt } from './request.js';
import { ID_PATTERN, type TurnResult } from '../../conversation/protocol/contract.js';
import type { Conversations } from '../core/conversations.js';
import type { AnswerSource } from '../core/answer-calls.js';
import { publicCallId, type ClientCall } from '../core/client-calls.js';

// Message threads (`message-threads-2026-08-12`), as far as the tool runner of Anthropic's client goes: answers of tools come without the
// history, after the message that made the calls. Any other request needs the history, which finds the conversation.

const thread = z.looseObject({ type: z.string(), previous_message_id: z.string().max(500).optional() });

const THREAD_NOT_FOUND = 'thread-not-found';

const NAME = /^msg_(.{1,64})-(turn_\d{4,15})(?:-c\d{1,6})?$/;

/** Undefined: the request has the whole history. */
async function continueThread(
  core: Conversations,
  given: z.output<typeof thread> | undefined,
  answering: Parameters<typeof answerNamed>[2],
): Promise<AnswerSource | undefined> {
  if (given === undefined || given.type === 'create') return undefined;
  if (given.type !== 'continue') throw unsupported(`a thread of the type ${JSON.stringify(given.type.slice(0, 40))}`, 'thread.type');
  const [, conversation = '', turn = ''] = NAME.exec(given.previous_message_id ?? '') ?? [];
  if (!answering.supplied.answers || !ID_PATTERN.test(conversation)) throw notFound();
  return answerNamed(core, conversation, answering, turn).catch((error: unknown) => {
    const { type } = toProblem(error);
    throw type === 'not-waiting' || type === 'not-found' ? notFound() : error;
  });
}

function notFound(): GatewayError {
  return new GatewayError({
    status: 404,
    type: THREAD_NOT_FOUND,
    message: 'thread.previous_message_id: there is nothing to continue from it; send all messages',
    param: 'thread',
  });
}

// Errors as Anthropic's clients read them.

const TYPES: Partial<Record<Problem['status'], string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  500: 'api_error',
  503: 'overloaded_error',
};

function toAnthropicError({ status, type, message, failed }: Problem): object {
  const details = type === THREAD_NOT_FOUND && { details: { error_code: 'thread_not_found' } };
  return {
    type: 'error',
    error: { type: TYPES[status] ?? 'invalid_request_error', message, ...details, ...(failed && { perdura: failed }) },
  };
}

export function answerAnthropicProblem(context: Context<GatewayVariables>, problem: Problem): Response {
  if (!isUntaken(problem)) context.header('x-should-retry', 'false');
  return context.json({ ...toAnthropicError(problem), request_id: context.get('requestId') }, problem.status);
}

/** Its clients read the id of a request from another header too. */
export function isAnthropic(path: string): boolean {
  return /^\/v1\/messages(\/|$)/.test(path);
}

const request = z.looseObject({
  ...prompt,
  max_tokens: z.number().int().min(1),
  stream: z.boolean().optional(),
  thread: optional(thread),
  metadata: optional(z.looseObject({ user_id: optional(z.string().max(512)) })),
});

export function addAnthropicRoutes(app: GatewayApp): void {
  app.post('/v1/messages', async (context) => {
    const body = await readBody(context, request);
    const core = context.get('conversations');
    const signal = requestSignal(context);
    const { wishes: beside, ...supplied } = readPrompt(body);
    const key = idempotencyKey(context);
    const continued = await continueThread(core, body.thread, { supplied, key, beside, signal });
    const source =
      continued ??
      (await submitSupplied(core, {
        principal: context.get('principal').name,
        user: body.metadata?.user_id ?? '',
        agent: await readAgent(context, body.model),
        supplied,
        key,
        fresh: await idOfRequest(context),
        beside,
        signal,
      }));
    const { conversation, turn, after } = source;
    const id = `msg_${conversation}-${turn ?? 'reset'}${after?.replace(/^.*\//, '-') ?? ''}`;
    const head = { id, model: body.model, conversation };
    const mayPause = after !== undefined || (beside.tools ?? []).length > 0;
    // Of a turn that goes on, its first message has set what the answer has to fit.
    const wantsData = after === undefined ? beside.output !== undefined : undefined;
    const tellsStop = beside.stop?.at !== undefined;
    const snapshots = (gone: AbortSignal, reading = core): AsyncGenerator<AnswerSnapshot> =>
      answerSnapshots(core, { ...source, mayPause, wantsData, tellsStop }, source.follow(reading, gone));
    if (body.stream === true) {
      const failed = (error: unknown): ServerEvent => ({
        event: 'error',
        data: JSON.stringify({ ...toAnthropicError(toProblem(error)), request_id: context.get('requestId') }),
      });
      return sendEvents(context, (gone) => events(head, snapshots(gone)), failed);
    }
    const answer = await waitForAnswer(snapshots(signal, core.whileWorked), signal);
    refuseFailed(conversation, answer);
    return context.json(message(head, answer));
  });

  app.post('/v1/messages/count_tokens', async (context) => {
    const { wishes, ...supplied } = readPrompt(await readBody(context, z.looseObject(prompt)));
    const described = wishes.tools?.length ? JSON.stringify(wishes.tools) : '';
    return context.json({ input_tokens: estimateTokens(firstMessage(supplied) + described) });
  });
}

async function* events(head: MessageHead, snapshots: AsyncIterable<AnswerSnapshot>): AsyncGenerator<ServerEvent> {
  const sse = (event: MessageEvent): ServerEvent => ({ event: event.type, data: JSON.stringify(event) });
  const nextText = createTextDeltas();
  let isOpen = false;
  yield sse(messageStart(head));
  for await (const snapshot of snapshots) {
    const text = nextText(snapshot);
    if (text !== '') {
      if (!isOpen) yield sse(blockStart);
      isOpen = true;
      yield sse(textDelta(text));
    }
    if (snapshot.kind !== 'final') continue;
    refuseFailed(head.conversation, snapshot);
    if (isOpen) yield sse(blockStop);
    for (const event of messageEnd(head, snapshot, isOpen)) yield sse(event);
  }
}

// Messages: a turn as a message, and as its events. Pure.

interface MessageHead {
  readonly id: string;
  readonly model: string;
  readonly conversation: string;
}

const STOP = { length: 'max_tokens', refusal: 'refusal', failure: 'end_turn', stop: 'end_turn' } as const;

/** A refusal has no category that the model's provider would pass on. */
function stopped({ result, calls, stoppedAt }: FinalAnswer): object {
  const short = calls.length > 0 ? undefined : shortfall(result);
  const whole = stoppedAt === undefined ? 'end_turn' : 'stop_sequence';
  const reason = calls.length > 0 ? 'tool_use' : short === undefined ? whole : STOP[short];
  const details = short === 'refusal' ? { type: 'refusal', category: null, explanation: result.error?.message ?? null } : null;
  return { stop_reason: reason, stop_details: details, stop_sequence: reason === 'stop_sequence' ? stoppedAt : null };
}

function toUsage({ usage }: TurnResult): object {
  const { cachedTokens, cacheWriteTokens = 0, outputTokens, reasoningTokens } = usage;
  return {
    input_tokens: uncachedTokens(usage),
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedTokens,
    output_tokens: outputTokens,
    ...NOT_COUNTED,
    ...(reasoningTokens !== undefined && { output_tokens_details: { thinking_tokens: reasoningTokens } }),
  };
}

/** What Anthropic counts beside tokens, and here is not known. */
const NOT_COUNTED = {
  cache_creation: null,
  inference_geo: null,
  output_tokens_details: null,
  server_tool_use: null,
  service_tier: null,
  speed: null,
};

function message(head: MessageHead, answer: FinalAnswer): object {
  const { id, model } = head;
  const text = joinTexts(answer.texts);
  return {
    id,
    type: 'message',
    role: 'assistant',
    model,
    content: [
      ...(text === '' ? [] : [{ type: 'text', text }]),
      ...answer.calls.map((call) => ({ ...toolUse(head, call), input: call.input })),
    ],
    ...stopped(answer),
    container: null,
    diagnostics: null,
    usage: toUsage(answer.result),
  };
}

function toolUse({ conversation }: MessageHead, { callId, name }: ClientCall): object {
  return { type: 'tool_use', id: publicCallId(conversation, callId, 'toolu_'), name, caller: { type: 'direct' } };
}

interface MessageEvent {
  readonly type: string;
}

function messageStart({ id, model }: MessageHead): MessageEvent {
  const usage = { input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0, ...NOT_COUNTED };
  const head = { id, type: 'message', role: 'assistant', model, content: [], container: null, diagnostics: null };
  const begun = { ...head, stop_reason: null, stop_details: null, stop_sequence: null, usage };
  return { type: 'message_start', ...{ message: begun } };
}

const AT = { index: 0 };
const blockStart: MessageEvent = {
  type: 'content_block_start',
  ...AT,
  ...{ content_block: { type: 'text', text: '' } },
};
const blockStop: MessageEvent = { type: 'content_block_stop', ...AT };

function textDelta(text: string): MessageEvent {
  return { type: 'content_block_delta', ...AT, ...{ delta: { type: 'text_delta', text } } };
}

/** Calls after the text, one block each; `first`: the number of the first. */
function callBlocks(head: MessageHead, { calls }: FinalAnswer, first: number): readonly MessageEvent[] {
  return calls.flatMap((call, at) => {
    const index = first + at;
    const delta = { type: 'input_json_delta', partial_json: JSON.stringify(call.input) };
    return [
      { type: 'content_block_start', ...{ index, content_block: { ...toolUse(head, call), input: {} } } },
      { type: 'content_block_delta', ...{ index, delta } },
      { type: 'content_block_stop', ...{ index } },
    ];
  });
}

/** `hasText`: a text block came before. */
function messageEnd(head: MessageHead, answer: FinalAnswer, hasText: boolean): readonly MessageEvent[] {
  const delta = { ...stopped(answer), container: null };
  return [
    ...callBlocks(head, answer, hasText ? 1 : 0),
    { type: 'message_delta', ...{ delta, usage: toUsage(answer.result) } },
    { type: 'message_stop' },
  ];
}
