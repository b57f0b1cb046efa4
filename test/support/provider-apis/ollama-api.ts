/** The scripted API of Ollama: a JSON value on each line. */
import { checkBody, maxBodyBytes } from './check-body.js';
import { checkOllama } from './check-ollama.js';
import { ollamaError, ollamaErrorBody } from './ollama-error.js';
import { frame, type Frame, type Landmark, type OddFrame, type Protocol } from './protocol.js';
import type { Reply } from './reply.js';
import { startScriptedApi, type ScriptedApi, type ScriptedApiOptions } from './scripted-api.js';
import { allInput, inputOf, pieces, stopWordOf, textsOf, usageOf } from './words-of.js';

/** As it stands on the wire, as far as tests read it. */
export interface OllamaRequest {
  readonly model: string;
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly stream?: boolean;
  readonly [field: string]: unknown;
}

export interface OllamaOptions extends ScriptedApiOptions<OllamaRequest> {
  /** What `/api/show` answers; default: that there is no such page, as with servers that only look like Ollama. */
  readonly shown?: object;
  /** Tokens that a prompt is cut at whatever is asked for, as by a server with less memory. */
  readonly cutsAt?: number;
}

/** Its `url` is the SDK's `host`. */
export function startOllamaApi({ shown, cutsAt, ...options }: OllamaOptions = {}): Promise<ScriptedApi<OllamaRequest>> {
  return startScriptedApi({ ...ollama, ...(shown && showing(shown)), ...(cutsAt !== undefined && { toFrames: cutting(cutsAt) }) }, options);
}

function showing(shown: object): Pick<Protocol<OllamaRequest>, 'route' | 'checkRequest' | 'count'> {
  return {
    route: (incoming) => (incoming.path === '/api/show' && incoming.method === 'POST' ? 'count' : ollama.route(incoming)),
    checkRequest: (incoming) => (incoming.path === '/api/show' ? undefined : ollama.checkRequest(incoming)),
    count: () => shown,
  };
}

function cutting(at: number): Protocol<OllamaRequest>['toFrames'] {
  return (reply, request) =>
    ollama.toFrames(reply, request).map((one) => {
      const bytes = String(one.bytes).replace(
        /"prompt_eval_count":(\d+)/,
        (_, count) => `"prompt_eval_count":${Math.min(Number(count), at)}`,
      );
      return { ...one, bytes };
    });
}

const doneWords = { end_turn: 'stop', stop_sequence: 'stop', tool_use: 'stop', max_tokens: 'length' };

const ollama: Protocol<OllamaRequest> = {
  name: 'Ollama API',
  contentType: 'application/x-ndjson',
  maxBodyBytes,
  route({ method, path }) {
    if (path !== '/api/chat') return ollamaError(404, '404 page not found');
    return method === 'POST' ? 'answer' : ollamaError(405, '405 method not allowed');
  },
  // It has no keys: what stands before it may.
  checkHeaders: ({ headers }, apiKey) => (apiKey === undefined || headers.authorization === apiKey ? undefined : ollamaError(401)),
  checkRequest: ({ text, body }) => (checkBody(text) && ollamaError(400, 'invalid character in string')) ?? checkOllama(body),
  read: ({ body }) => body as OllamaRequest | undefined,
  wantsStream: ({ stream }) => stream !== false,
  toFrames,
  toWhole: (reply, request) => ({
    ...toLine(request, {
      content: textsOf(reply).join(''),
      ...(reply.thinking && { thinking: reply.thinking.text }),
      ...(reply.toolCalls && { tool_calls: toCalls(reply) }),
    }),
    ...toEnd(reply, request),
  }),
  toOddFrame,
  error: ollamaError,
  errorBody: ollamaErrorBody,
};

function toFrames(reply: Reply, request: OllamaRequest): Frame[] {
  const send = (message: object, content: string, ...landmarks: readonly Landmark[]): Frame =>
    frame(toNdjson({ ...toLine(request, message), done: false }), content.length, ...landmarks);
  const calls = toCalls(reply);
  return [
    ...pieces(reply.thinking?.text ?? '', reply).map((thinking) => send({ content: '', thinking }, thinking, 'content')),
    ...textsOf(reply).flatMap((text) => pieces(text, reply).map((content) => send({ content }, content, 'content'))),
    ...calls.map((call) => send({ content: '', tool_calls: [call] }, JSON.stringify(call), 'content')),
    frame(toNdjson({ ...toLine(request, { content: '' }), ...toEnd(reply, request) }), 0, 'block-stop', 'message-delta', 'message-stop'),
  ];
}

function toLine({ model }: OllamaRequest, message: object): object {
  return { model, created_at: new Date().toISOString(), message: { role: 'assistant', ...message } };
}

function toCalls(reply: Reply): object[] {
  return (reply.toolCalls ?? []).map((call, index) => ({ function: { index, name: call.name, arguments: inputOf(call) } }));
}

function toEnd(reply: Reply, { messages, tools }: OllamaRequest): object {
  const usage = usageOf(reply, [messages, tools]);
  return {
    done: true,
    done_reason: stopWordOf(reply, doneWords),
    total_duration: 2_000_000,
    load_duration: 1_000_000,
    prompt_eval_count: allInput(usage),
    prompt_eval_duration: 500_000,
    eval_count: usage.output_tokens,
    eval_duration: 500_000,
  };
}

function toNdjson(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}

function toOddFrame(odd: OddFrame): string {
  switch (odd.kind) {
    case 'error':
      return toNdjson(ollamaErrorBody(odd.error));
    case 'malformed':
      return '{"model":"test","message":{"role":"assis\n';
    case 'unknown':
      return toNdjson({ sparkle: { shade: 'blue' } });
    case 'ping':
      return toNdjson({ message: { role: 'assistant', content: '' }, done: false });
    case 'half':
      return '{"model":';
    default:
      return odd satisfies never;
  }
}
