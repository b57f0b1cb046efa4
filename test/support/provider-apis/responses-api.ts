/** The scripted Responses API of OpenAI. */
import { checkResponses } from './check-responses.js';
import { openAIProtocol } from './openai-protocol.js';
import { frame, toSse, type Frame, type Landmark, type OddFrame, type Protocol } from './protocol.js';
import type { Reply, ToolCall } from './reply.js';
import { startScriptedApi, type ScriptedApi, type ScriptedApiOptions } from './scripted-api.js';
import { allInput, freshId, inputJsonOf, pieces, stopWordOf, textsOf, usageOf } from './words-of.js';

/** As it stands on the wire, as far as tests read it. */
export interface ResponsesRequest {
  readonly model: string;
  readonly input: readonly Readonly<Record<string, unknown>>[];
  readonly stream?: boolean;
  readonly [field: string]: unknown;
}

/** Its `url`, with `/v1`, is the SDK's `baseURL`. */
export function startResponsesApi(options: ScriptedApiOptions<ResponsesRequest> = {}): Promise<ScriptedApi<ResponsesRequest>> {
  return startScriptedApi(responses, options);
}

/** Why a response is incomplete; one that is not has no such word. */
const incompleteWords = { max_tokens: 'max_output_tokens', refusal: 'content_filter' };
const completeWords: readonly string[] = ['end_turn', 'stop_sequence', 'tool_use'];

export const responses: Protocol<ResponsesRequest> = {
  name: 'Responses API',
  ...openAIProtocol<ResponsesRequest>({ path: '/v1/responses', notAllowed: 'Method not allowed.', check: checkResponses }),
  toFrames,
  toWhole,
  toOddFrame,
};

type Item = Readonly<Record<string, unknown>> & { readonly type: string; readonly id: string };
type Event = readonly [type: string, fields: object, content?: string, ...landmarks: Landmark[]];

function toFrames(reply: Reply, request: ResponsesRequest): Frame[] {
  const whole = toWhole(reply, request);
  const begun = { ...whole, status: 'in_progress', output: [], usage: null, incomplete_details: null };
  const events: Event[] = [
    ['response.created', { response: begun }],
    ['response.in_progress', { response: begun }],
    ...whole.output.flatMap((item, index) => toEvents(item, index, reply)),
    [`response.${whole.status}`, { response: whole }, '', 'message-delta', 'message-stop'],
  ];
  return events.map(([type, fields, content = '', ...landmarks], sequence) =>
    frame(
      toSse({ type, sequence_number: sequence, ...fields }, type),
      content.length,
      ...(content === '' ? landmarks : (['content'] as const)),
    ),
  );
}

function toEvents(item: Item, output_index: number, reply: Reply): Event[] {
  const at = { item_id: item.id, output_index };
  const done: Event = ['response.output_item.done', { output_index, item }, '', 'block-stop'];
  const added = (empty: object): Event => [
    'response.output_item.added',
    { output_index, item: { ...item, status: 'in_progress', ...empty } },
  ];
  switch (item.type) {
    case 'reasoning': {
      const place = { ...at, summary_index: 0 };
      const text = reply.thinking?.text ?? '';
      return [
        added({ summary: [] }),
        ['response.reasoning_summary_part.added', { ...place, part: { type: 'summary_text', text: '' } }],
        ...pieces(text, reply).map((delta): Event => ['response.reasoning_summary_text.delta', { ...place, delta }, delta]),
        ['response.reasoning_summary_text.done', { ...place, text }],
        ['response.reasoning_summary_part.done', { ...place, part: { type: 'summary_text', text } }],
        done,
      ];
    }
    case 'message': {
      const place = { ...at, content_index: 0 };
      const [part] = item.content as readonly { readonly type: string; readonly text?: string; readonly refusal?: string }[];
      const isText = part?.type === 'output_text';
      const word = isText ? 'output_text' : 'refusal';
      const text = (isText ? part.text : part?.refusal) ?? '';
      return [
        added({ content: [] }),
        ['response.content_part.added', { ...place, part: isText ? { ...part, text: '' } : { ...part, refusal: '' } }],
        ...pieces(text, reply).map((delta): Event => [`response.${word}.delta`, { ...place, delta }, delta]),
        [`response.${word}.done`, { ...place, [isText ? 'text' : 'refusal']: text }],
        ['response.content_part.done', { ...place, part }],
        done,
      ];
    }
    default:
      return [
        added({ arguments: '' }),
        ...pieces(String(item.arguments), reply).map((delta): Event => ['response.function_call_arguments.delta', { ...at, delta }, delta]),
        ['response.function_call_arguments.done', { ...at, name: item.name, arguments: item.arguments }],
        done,
      ];
  }
}

function toWhole(reply: Reply, request: ResponsesRequest) {
  const explanation = reply.stopReason === 'refusal' ? reply.stopDetails?.explanation : undefined;
  const word = stopWordOf(reply);
  const isComplete = completeWords.includes(word) || Boolean(explanation);
  return {
    id: freshId('resp'),
    object: 'response',
    created_at: Math.floor(Date.now() / 1000),
    status: isComplete ? 'completed' : 'incomplete',
    error: null,
    incomplete_details: isComplete ? null : { reason: stopWordOf(reply, incompleteWords) },
    model: request.model,
    output: [
      ...(reply.thinking ? [toReasoning(reply.thinking)] : []),
      ...textsOf(reply).map((text) => toMessage({ type: 'output_text', text, annotations: [], logprobs: [] }, reply)),
      ...(explanation ? [toMessage({ type: 'refusal', refusal: explanation }, reply)] : []),
      ...(reply.toolCalls ?? []).map(toCall),
    ],
    usage: toUsage(reply, request),
  };
}

function toReasoning({ text, signature }: NonNullable<Reply['thinking']>): Item {
  return { type: 'reasoning', id: freshId('rs'), summary: [{ type: 'summary_text', text }], encrypted_content: signature };
}

function toMessage(part: object, reply: Reply): Item {
  const phase = (reply.toolCalls ?? []).length > 0 ? 'commentary' : 'final_answer';
  return { type: 'message', id: freshId('msg'), role: 'assistant', status: 'completed', phase, content: [part] };
}

function toCall(call: ToolCall): Item {
  return {
    type: 'function_call',
    id: freshId('fc'),
    call_id: call.id ?? freshId('call'),
    name: call.name,
    arguments: inputJsonOf(call),
    status: 'completed',
  };
}

function toUsage(reply: Reply, { input, tools, instructions }: ResponsesRequest): object {
  const usage = usageOf(reply, [input, tools, instructions]);
  const all = allInput(usage);
  return {
    input_tokens: all,
    input_tokens_details: { cached_tokens: usage.cache_read_input_tokens, cache_write_tokens: usage.cache_creation_input_tokens },
    output_tokens: usage.output_tokens,
    output_tokens_details: { reasoning_tokens: reply.thinking ? 1 : 0 },
    total_tokens: all + usage.output_tokens,
  };
}

function toOddFrame(odd: OddFrame): string {
  switch (odd.kind) {
    case 'error': {
      const { code, type, message } = odd.error;
      return toSse({ type: 'error', sequence_number: 9, code: code ?? type, message, param: null }, 'error');
    }
    case 'malformed':
      return toSse('{"type":"response.output_text.delta","item_id":"msg_01","del', 'response.output_text.delta');
    case 'unknown':
      return toSse({ type: 'response.sparkle', sequence_number: 9, sparkle: { shade: 'blue' } }, 'response.sparkle');
    case 'ping':
      return toSse({ type: 'keepalive', sequence_number: 9 }, 'keepalive');
    case 'half':
      return 'data: ';
    default:
      return odd satisfies never;
  }
}
