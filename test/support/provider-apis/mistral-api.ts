/**
 * The scripted API of Mistral, as `@ai-sdk/mistral` asks it. What it refuses is in its words, as people report them: the order of roles
 * (zed-industries/zed#37021, BerriAI/litellm#17761, 0xPlaygrounds/rig#1130), ids of calls (anomalyco/opencode#1680, nearai/ironclaw#1241),
 * unequal calls and results, and fields that it does not know (a 422 with a list under `detail`).
 */
import type { ApiError } from './api-error.js';
import { chat, type ChatRequest } from './chat-api.js';
import { isRecord } from './check-fields.js';
import { checkFunction } from './check-openai-tools.js';
import { checkOpenAIHeaders } from './openai-error.js';
import { frame, toSse, type Frame, type Protocol } from './protocol.js';
import type { Reply } from './reply.js';
import { startScriptedApi, type ScriptedApi, type ScriptedApiOptions } from './scripted-api.js';
import { allInput, freshId, inputJsonOf, pieces, stopWordOf, textsOf, usageOf } from './words-of.js';

/** Its `url`, with `/v1`, is the package's `baseURL`. */
export function startMistralApi(options: ScriptedApiOptions<ChatRequest> = {}): Promise<ScriptedApi<ChatRequest>> {
  return startScriptedApi(mistral, options);
}

const finishWords = { end_turn: 'stop', stop_sequence: 'stop', tool_use: 'tool_calls', max_tokens: 'length', refusal: 'content_filter' };

const mistral: Protocol<ChatRequest> = {
  ...chat,
  name: 'Mistral API',
  route: ({ method, path }) =>
    method === 'POST' && path === '/v1/chat/completions' ? 'answer' : mistralError(404, 'no Route matched with those values'),
  checkHeaders: ({ headers }, apiKey) => checkOpenAIHeaders(headers, apiKey) && mistralError(401, 'Unauthorized'),
  checkRequest: ({ body }) => checkMistral(body),
  toFrames,
  error: mistralError,
  errorBody: ({ status, message, type, code }) =>
    status === 422
      ? { detail: [{ type: 'extra_forbidden', loc: ['body', message], msg: 'Extra inputs are not permitted', input: 1 }] }
      : { object: 'error', message, type, param: null, code: code ?? null },
};

const OVERLOADED = 'Service unavailable: the model is overloaded, try again later.';

function mistralError(
  status: number,
  message = status === 529 ? OVERLOADED : `HTTP ${status}`,
  type = status === 400 ? 'invalid_request_error' : 'error',
): ApiError {
  return { status: status === 529 ? 503 : status, type, message };
}

const known = [
  ...[
    'model',
    'messages',
    'temperature',
    'top_p',
    'max_tokens',
    'stream',
    'stop',
    'random_seed',
    'response_format',
    'tools',
    'tool_choice',
  ],
  ...['presence_penalty', 'frequency_penalty', 'n', 'prediction', 'parallel_tool_calls', 'prompt_mode', 'reasoning_effort', 'safe_prompt'],
  ...['metadata', 'document_image_limit', 'document_page_limit'],
];

function checkMistral(body: unknown): ApiError | undefined {
  if (!isRecord(body) || !Array.isArray(body.messages)) return mistralError(400, 'body is not valid');
  const extra = Object.keys(body).find((field) => !known.includes(field));
  if (extra !== undefined) return mistralError(422, extra);
  const tools = Array.isArray(body.tools) ? (body.tools as Record<string, unknown>[]) : [];
  const wrong = tools
    .map(({ function: called }, at) => checkFunction(called as Record<string, unknown>, `tools[${at}].function`))
    .find(Boolean);
  if (wrong !== undefined) return mistralError(400, wrong);
  const format: unknown = body.response_format;
  if (isRecord(format) && format.type !== 'text' && tools.length > 0) return mistralError(400, 'Cannot use json response type with tools');
  return checkOrder(body.messages as readonly Record<string, unknown>[]);
}

const order = (message: string, code = '3230'): ApiError => ({ status: 400, type: 'invalid_request_message_order', message, code });

function checkOrder(messages: readonly Record<string, unknown>[]): ApiError | undefined {
  let open: string[] = [];
  for (const [at, { role, tool_calls: calls, tool_call_id: id, content }] of messages.entries()) {
    const before = messages[at - 1]?.role;
    if (role === 'user' && before === 'tool') return order("Unexpected role 'user' after role 'tool'");
    if (role === 'tool' && before !== 'tool' && before !== 'assistant')
      return order(`Unexpected role 'tool' after role '${String(before)}'`);
    if (role === 'system' && at > 0 && before !== 'system') return order(`Unexpected role 'system' after role '${String(before)}'`);
    if (role === 'assistant' && before === 'assistant')
      return order('Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant');
    if (role !== 'tool' && open.length > 0) return order('Not the same number of function calls and responses');
    if (role === 'assistant') {
      open = Array.isArray(calls) ? calls.map((call: { id: string }) => call.id) : [];
      const odd = open.find((one) => !/^[a-zA-Z0-9]{9}$/.test(one));
      if (odd !== undefined) {
        const message = `Tool call id was ${odd} but must be a-z, A-Z, 0-9, with a length of 9.`;
        return { status: 400, type: 'invalid_function_call', message, code: '3280' };
      }
      const isEmpty = content === '' || content === undefined || (Array.isArray(content) && content.length === 0);
      if (isEmpty && open.length === 0) return order('Assistant message must have either content or tool_calls, but not none.', '3240');
    }
    if (role === 'tool') {
      if (!open.includes(String(id))) return order('Unexpected tool call id ' + String(id) + ' in tool results');
      open = open.filter((one) => one !== id);
    }
  }
  if (open.length > 0) return order('Not the same number of function calls and responses');
  const last = String(messages.at(-1)?.role);
  return last === 'user' || last === 'tool'
    ? undefined
    : order(`Expected last role User or Tool (or Assistant with prefix True) for serving but got ${last}`);
}

/** Thoughts are parts of a list; a call comes whole, in one piece; usage is in the last chunk. */
function toFrames(reply: Reply, request: ChatRequest): Frame[] {
  const id = freshId('cmpl');
  const chunk = (delta: object, finish: string | null = null, content = ''): Frame => {
    const usage = finish === null ? {} : { usage: toUsage(reply, request) };
    const choices = [{ index: 0, delta, finish_reason: finish }];
    const data = toSse({ id, object: 'chat.completion.chunk', created: 1, model: request.model, choices, ...usage });
    const landmarks =
      finish === null ? (content === '' ? [] : (['content'] as const)) : (['block-stop', 'message-delta', 'message-stop'] as const);
    return frame(data, content.length, ...landmarks);
  };
  const calls = (reply.toolCalls ?? []).map((call, index) => ({
    id: call.id ?? freshId('').slice(-9),
    function: { name: call.name, arguments: inputJsonOf(call) },
    index,
  }));
  return [
    chunk({ role: 'assistant', content: '' }),
    ...pieces(reply.thinking?.text ?? '', reply).map((text) =>
      chunk({ content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] }, null, text),
    ),
    ...textsOf(reply).flatMap((text) => pieces(text, reply).map((piece) => chunk({ content: piece }, null, piece))),
    ...calls.map((call) => chunk({ tool_calls: [call] }, null, call.function.arguments)),
    chunk({ content: '' }, stopWordOf(reply, finishWords)),
    frame(toSse('[DONE]')),
  ];
}

function toUsage(reply: Reply, { messages, tools }: ChatRequest): object {
  const usage = usageOf(reply, [messages, tools]);
  const input = allInput(usage);
  return {
    prompt_tokens: input,
    completion_tokens: usage.output_tokens,
    total_tokens: input + usage.output_tokens,
    prompt_tokens_details: { cached_tokens: usage.cache_read_input_tokens },
  };
}
