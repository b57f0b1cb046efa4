/** The scripted Chat Completions API of OpenAI, and of the servers that speak as it does. */
import { checkChat } from './check-chat.js';
import { openAIErrorBody } from './openai-error.js';
import { openAIProtocol } from './openai-protocol.js';
import { frame, toSse, type Frame, type Landmark, type OddFrame, type Protocol } from './protocol.js';
import type { Reply } from './reply.js';
import { startScriptedApi, type ScriptedApi, type ScriptedApiOptions } from './scripted-api.js';
import { allInput, freshId, inputJsonOf, pieces, stopWordOf, textsOf, usageOf } from './words-of.js';

/** As it stands on the wire, as far as tests read it. */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
  readonly [field: string]: unknown;
}

/** Its `url`, with `/v1`, is the SDK's `baseURL`. */
export function startChatApi(options: ScriptedApiOptions<ChatRequest> = {}): Promise<ScriptedApi<ChatRequest>> {
  return startScriptedApi(chat, options);
}

const finishWords = { end_turn: 'stop', stop_sequence: 'stop', tool_use: 'tool_calls', max_tokens: 'length', refusal: 'content_filter' };

export const chat: Protocol<ChatRequest> = {
  name: 'Chat Completions API',
  ...openAIProtocol<ChatRequest>({
    path: '/v1/chat/completions',
    notAllowed: 'Not allowed to GET on /v1/chat/completions.',
    check: checkChat,
  }),
  toFrames,
  toWhole,
  toOddFrame,
};

function toFrames(reply: Reply, request: ChatRequest): Frame[] {
  const { id, created } = newAnswer();
  const withUsage = request.stream_options?.include_usage === true;
  const chunk = (delta: object, finish: string | null, content = '', ...landmarks: readonly Landmark[]): Frame =>
    frame(
      toSse({
        id,
        object: 'chat.completion.chunk',
        created,
        model: request.model,
        choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
        ...(withUsage && { usage: null }),
      }),
      content.length,
      ...(content === '' ? landmarks : (['content'] as const)),
    );
  const { refusal, finish } = endOf(reply);
  return [
    chunk({ role: 'assistant', content: '' }, null),
    ...pieces(reply.thinking?.text ?? '', reply).map((piece) => chunk({ reasoning_content: piece }, null, piece)),
    ...textsOf(reply).flatMap((text) => pieces(text, reply).map((piece) => chunk({ content: piece }, null, piece))),
    ...pieces(refusal, reply).map((piece) => chunk({ refusal: piece }, null, piece)),
    ...(reply.toolCalls ?? []).flatMap((call, index) => [
      chunk(
        { tool_calls: [{ index, id: call.id ?? freshId('call'), type: 'function', function: { name: call.name, arguments: '' } }] },
        null,
      ),
      ...pieces(inputJsonOf(call), reply).map((json) => chunk({ tool_calls: [{ index, function: { arguments: json } }] }, null, json)),
    ]),
    chunk({}, finish, '', 'block-stop', 'message-delta'),
    ...(withUsage
      ? [frame(toSse({ id, object: 'chat.completion.chunk', created, model: request.model, choices: [], usage: toUsage(reply, request) }))]
      : []),
    frame(toSse('[DONE]'), 0, 'message-stop'),
  ];
}

function toWhole(reply: Reply, request: ChatRequest): unknown {
  const calls = (reply.toolCalls ?? []).map((call) => ({
    id: call.id ?? freshId('call'),
    type: 'function',
    function: { name: call.name, arguments: inputJsonOf(call) },
  }));
  const { refusal, finish } = endOf(reply);
  const message = {
    role: 'assistant',
    content: textsOf(reply).join('') || null,
    refusal: refusal || null,
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  const choices = [{ index: 0, message, logprobs: null, finish_reason: finish }];
  return { ...newAnswer(), object: 'chat.completion', model: request.model, choices, usage: toUsage(reply, request) };
}

/** A refusal that explains itself ends as any other answer does. */
function endOf(reply: Reply): { readonly refusal: string; readonly finish: string } {
  const refusal = reply.stopReason === 'refusal' ? (reply.stopDetails?.explanation ?? '') : '';
  return { refusal, finish: refusal === '' ? stopWordOf(reply, finishWords) : 'stop' };
}

function newAnswer(): { readonly id: string; readonly created: number } {
  return { id: freshId('chatcmpl'), created: Math.floor(Date.now() / 1000) };
}

function toUsage(reply: Reply, { messages, tools }: ChatRequest): object {
  const usage = usageOf(reply, [messages, tools]);
  const input = allInput(usage);
  return {
    prompt_tokens: input,
    completion_tokens: usage.output_tokens,
    total_tokens: input + usage.output_tokens,
    prompt_tokens_details: { cached_tokens: usage.cache_read_input_tokens, cache_write_tokens: usage.cache_creation_input_tokens },
    completion_tokens_details: { reasoning_tokens: reply.thinking ? 1 : 0 },
  };
}

function toOddFrame(odd: OddFrame): string {
  switch (odd.kind) {
    case 'error':
      return toSse(openAIErrorBody(odd.error));
    case 'malformed':
      return toSse('{"id":"chatcmpl_01","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"conte');
    case 'unknown':
      return toSse({ id: 'chatcmpl_01', object: 'chat.completion.sparkle', choices: [], sparkle: { shade: 'blue' } });
    case 'ping':
      return ': ping\n\n';
    case 'half':
      return 'data: ';
    default:
      return odd satisfies never;
  }
}
