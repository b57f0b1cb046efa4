/** From a scripted reply to the API's own words: the whole message, and the events it streams as. Pure. */
import type { ApiRequest } from './api-request.js';
import { frame, toSse, type Frame, type Landmark } from './protocol.js';
import type { Reply, ReplyUsage, ToolCall } from './reply.js';
import { freshId, inputJsonOf, inputOf, pieces, stopWordOf, textsOf, usageOf } from './words-of.js';

export type ContentBlock =
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'text'; readonly text: string; readonly citations: null }
  | {
      readonly type: 'tool_use';
      readonly id: string;
      readonly name: string;
      readonly input: unknown;
      readonly caller: { readonly type: 'direct' };
    };

export interface ApiMessageBody {
  readonly id: string;
  readonly type: 'message';
  readonly role: 'assistant';
  readonly model: string;
  readonly content: readonly ContentBlock[];
  readonly stop_reason: string | null;
  readonly stop_sequence: string | null;
  readonly stop_details: Reply['stopDetails'] | null;
  readonly usage: ReplyUsage;
}

export interface StreamEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** As a request without `stream` gets it. */
export function toMessage(reply: Reply, request: ApiRequest): ApiMessageBody {
  const calls = reply.toolCalls ?? [];
  return {
    id: freshId('msg'),
    type: 'message',
    role: 'assistant',
    model: request.model,
    content: [
      ...(reply.thinking ? [{ type: 'thinking' as const, thinking: reply.thinking.text, signature: reply.thinking.signature }] : []),
      ...textsOf(reply).map((text) => ({ type: 'text' as const, text, citations: null })),
      ...calls.map(toToolUse),
    ],
    stop_reason: stopWordOf(reply),
    stop_sequence: reply.stopSequence ?? null,
    stop_details: reply.stopDetails ?? null,
    usage: usageOf(reply, promptOf(request)),
  };
}

/** As a request with `stream: true` gets it, one event after the other. */
export function toEvents(reply: Reply, request: ApiRequest): readonly StreamEvent[] {
  const message = toMessage(reply, request);
  const begun = {
    ...message,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    usage: { ...message.usage, output_tokens: 1 },
  };
  const inputs = (reply.toolCalls ?? []).map(inputJsonOf);
  const firstTool = message.content.length - inputs.length;
  const blocks = message.content.map((block, index) => blockEvents(block, index, reply, inputs[index - firstTool]));
  // The API sends one ping at once, after the first block has begun.
  const [firstStart, ...firstRest] = blocks[0] ?? [];
  return [
    { type: 'message_start', message: begun },
    ...(firstStart ? [firstStart] : []),
    { type: 'ping' },
    ...firstRest,
    ...blocks.slice(1).flat(),
    {
      type: 'message_delta',
      delta: { stop_reason: message.stop_reason, stop_sequence: message.stop_sequence, stop_details: message.stop_details },
      usage: message.usage,
    },
    { type: 'message_stop' },
  ];
}

const landmarkOf: Readonly<Record<string, Landmark>> = {
  content_block_delta: 'content',
  content_block_stop: 'block-stop',
  message_delta: 'message-delta',
  message_stop: 'message-stop',
};

export function toFrames(reply: Reply, request: ApiRequest): Frame[] {
  return toEvents(reply, request).map((event) => {
    const landmark = landmarkOf[event.type];
    return frame(toSse(event, event.type), charsOf(event), ...(landmark ? [landmark] : []));
  });
}

/** How much content an event carries, in characters. */
function charsOf(event: StreamEvent): number {
  if (event.type !== 'content_block_delta') return 0;
  const delta = event.delta as { text?: string; thinking?: string; partial_json?: string };
  return (delta.text ?? delta.thinking ?? delta.partial_json ?? '').length;
}

function blockEvents(block: ContentBlock, index: number, reply: Reply, inputJson: string | undefined): StreamEvent[] {
  const delta = (fields: object): StreamEvent => ({ type: 'content_block_delta', index, delta: fields });
  const start = (content_block: object): StreamEvent => ({ type: 'content_block_start', index, content_block });
  const stop: StreamEvent = { type: 'content_block_stop', index };
  switch (block.type) {
    case 'text':
      return [start({ type: 'text', text: '' }), ...pieces(block.text, reply).map((text) => delta({ type: 'text_delta', text })), stop];
    case 'thinking':
      return [
        start({ type: 'thinking', thinking: '', signature: '' }),
        ...pieces(block.thinking, reply).map((thinking) => delta({ type: 'thinking_delta', thinking })),
        delta({ type: 'signature_delta', signature: block.signature }),
        stop,
      ];
    case 'tool_use': {
      // An empty input streams as one empty piece, not as `{}`.
      const json = inputJson === '{}' ? '' : (inputJson ?? '');
      const parts = ['', ...pieces(json, reply)];
      return [start({ ...block, input: {} }), ...parts.map((part) => delta({ type: 'input_json_delta', partial_json: part })), stop];
    }
    default:
      return block satisfies never;
  }
}

function toToolUse(call: ToolCall): ContentBlock {
  return { type: 'tool_use', id: call.id ?? freshId('toolu'), name: call.name, input: inputOf(call), caller: { type: 'direct' } };
}

function promptOf({ model: _model, max_tokens: _maxTokens, stream: _stream, ...prompt }: ApiRequest): unknown {
  return prompt;
}
