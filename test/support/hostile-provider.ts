/**
 * A server that speaks as OpenAI does, and does wrong whatever a server can: statuses, bodies, broken streams, reasons to finish, shapes of
 * calls. What it does follows from a seed. It keeps count of what it bills: the usage of each answer that it sent to the end of its usage.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Random = () => number;

/** Mulberry32. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export function pick<T>(random: Random, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)] as T;
}

/** One answer to one request. Each writes what it likes and ends or breaks the connection. */
export interface Fault {
  readonly name: string;
  /** True: it may pass, and is tried again. */
  readonly passes: boolean;
  /** True: its usage comes along. */
  readonly bills?: true;
  send(response: ServerResponse): void;
}

const STATUSES = [400, 403, 404, 405, 408, 409, 410, 413, 415, 418, 422, 424, 429, 451, 500, 501, 502, 503, 504, 520, 529] as const;
const PASSING: readonly number[] = [408, 409, 429, 500, 501, 502, 503, 504, 520, 529];

const WORDS = [
  'request was rejected',
  'Bad Request',
  'Internal Server Error',
  'context length exceeded',
  'This model does not support image input',
  'Unsupported parameter',
  'rate limited',
  '上下文长度超出限制',
  '',
] as const;

const BODIES: readonly ((words: string) => readonly [type: string, body: string | Buffer])[] = [
  (message) => ['application/json', JSON.stringify({ error: { message, type: 'invalid_request_error', code: null } })],
  (message) => ['application/json', JSON.stringify({ error: message })],
  (detail) => ['application/json', JSON.stringify({ detail })],
  (msg) => ['application/json', JSON.stringify({ detail: [{ loc: ['body', 'messages', 0], msg, type: 'value_error' }] })],
  (message) => ['application/json', JSON.stringify({ object: 'error', message, code: 40_303 })],
  (message) => ['text/plain', message],
  (message) => ['text/html', `<html><head><title>${message}</title></head><body><h1>${message}</h1></body></html>`],
  () => ['application/json', ''],
  () => ['application/json', '{"error": {"message": '],
  () => ['application/json', 'null'],
  () => ['application/json', '[[[[[[]]]]]]'],
  () => ['application/json', `${'{"error":'.repeat(2_000)}1${'}'.repeat(2_000)}`],
  (message) => ['application/octet-stream', Buffer.from([0xff, 0xfe, 0x00, ...Buffer.from(message)])],
  (message) => ['text/plain', `${message} ${'x'.repeat(300_000)}`],
];

function refusal(random: Random): Fault {
  const status = pick(random, STATUSES);
  const words = pick(random, WORDS);
  const [type, body] = pick(random, BODIES)(words);
  const passes = PASSING.includes(status);
  const wait = passes && random() < 0.2 ? { 'retry-after': pick(random, ['1', '2', '0', '-5', 'soon', '1e9']) } : {};
  return {
    name: `${status} ${type} ${JSON.stringify(words)}`,
    passes,
    send: (response) => void response.writeHead(status, { 'content-type': type, ...wait }).end(body),
  };
}

/** A chunk of Chat Completions. */
const chunk = (delta: unknown, finish: unknown = null, more: object = {}): object => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
});

export interface Billed {
  input: number;
  output: number;
}

export const USAGE = { prompt_tokens: 40, completion_tokens: 10, total_tokens: 50 };
const usageChunk = { ...chunk({}), choices: [], usage: USAGE };

function lines(events: readonly unknown[], end = 'data: [DONE]\n\n'): string {
  return events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join('') + end;
}

function begin(response: ServerResponse): ServerResponse {
  return response.writeHead(200, { 'content-type': 'text/event-stream' });
}

/** A stream that does not end as one does. */
const STREAMS: readonly Fault[] = [
  { name: 'nothing', passes: true, send: (response) => void (begin(response), response.end()) },
  { name: 'only [DONE]', passes: true, send: (response) => void (begin(response), response.end('data: [DONE]\n\n')) },
  {
    name: 'no room, as a reason to finish',
    passes: true,
    bills: true,
    send: (response) =>
      void (begin(response), response.end(lines([chunk({ content: '' }), chunk({}, 'model_context_window_exceeded'), usageChunk]))),
  },
  {
    name: 'half a sentence, then the end',
    passes: true,
    send: (response) => void (begin(response), response.end(lines([chunk({ role: 'assistant', content: 'Half a' })], ''))),
  },
  {
    name: 'half an event, then the end',
    passes: true,
    send: (response) => void (begin(response), response.end(`${lines([chunk({ content: 'Half' })], '')}data: {"id": "x", "choi`)),
  },
  {
    name: 'a connection that breaks',
    passes: true,
    send: (response) => {
      begin(response);
      response.write(lines([chunk({ content: 'Half' })], ''), () => response.destroy());
    },
  },
  { name: 'a connection that breaks before a byte', passes: true, send: (response) => void response.destroy() },
  {
    name: 'an event that is no JSON',
    passes: true,
    send: (response) => void (begin(response), response.end(lines([chunk({ content: 'a' }), '{"id": x}']))),
  },
  {
    name: 'an error in the stream',
    passes: true,
    send: (response) =>
      void (begin(response), response.end(lines([chunk({ content: 'a' }), { error: { message: 'overloaded', code: 503 } }]))),
  },
  {
    name: 'a page instead of a stream',
    passes: true,
    send: (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<html><h1>Sign in</h1></html>'),
  },
  {
    name: 'an error with a good status',
    passes: true,
    send: (response) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end('{"error":{"message":"upstream failed","code":500}}'),
  },
];

/** One that is not tried again. */
export function finalRefusal(random: Random): Fault {
  const fault = refusal(random);
  return fault.passes ? finalRefusal(random) : fault;
}

/** Any fault, by the seed. */
export function randomFault(random: Random): Fault {
  return random() < 0.6 ? refusal(random) : pick(random, STREAMS);
}

const FINISHES = [
  'stop',
  'tool_calls',
  'length',
  'content_filter',
  'sensitive',
  'network_error',
  'eos',
  '',
  null,
  7,
  'STOP',
  'error',
] as const;

const CALLS: readonly ((id: string) => readonly object[])[] = [
  (id) => [{ index: 0, id, type: 'function', function: { name: 'get_time', arguments: '{}' } }],
  (id) => [{ index: 0, id, type: 'function', function: { name: 'get_time', arguments: '{"timeZone": Europe/Berlin}' } }],
  (id) => [{ id, type: 'function', function: { name: 'get_time', arguments: null } }],
  (id) => [{ id, function: { name: 'get_time', arguments: { timeZone: 'UTC' } } }],
  (id) => [
    { index: 0, id, function: { name: 'get_time', arguments: '' } },
    { index: 0, id: `${id}b`, function: { name: 'get_time', arguments: '{}' } },
  ],
  () => [{ function: { name: 'no_such_tool', arguments: '{"a":[1,{"b":2}]}' } }],
  () => [{ function: { name: '', arguments: '{}' } }],
  (id) => [{ index: 0, id, function: { name: 'get_time', arguments: '[1,2]' } }],
  (id) => [{ index: 3, id, function: { name: 'get_time', arguments: '"{}"' } }],
  (id) => [{ index: 0, id: `${id}${'x'.repeat(3_000)}`, function: { name: 'get_time; rm -rf /', arguments: '{}' } }],
  (id) => [{ index: 0, id, function: { name: 'get_time', arguments: `${'{"a":'.repeat(3_000)}1${'}'.repeat(3_000)}` } }],
];

/** An answer that ended, of whatever shape. */
export function oddAnswer(random: Random, words: string): { readonly name: string; readonly events: readonly unknown[] } {
  const finish = pick(random, FINISHES);
  const calls = random() < 0.4 ? pick(random, CALLS)(`call_${Math.floor(random() * 1e9)}`) : [];
  const content = pick<unknown>(random, [words, '', null, [{ type: 'text', text: words }], `${words}\ud800`, ' ', { text: words }, 12]);
  const reasoning = random() < 0.3 ? { reasoning_content: pick<unknown>(random, ['Let me think.', null, ['x'], '']) } : {};
  const usage = pick<readonly unknown[]>(random, [[usageChunk], [usageChunk], [usageChunk, usageChunk]]);
  return {
    name: `${JSON.stringify(finish)} ${JSON.stringify(content)} ${calls.length} calls`,
    events: [
      ...(Object.keys(reasoning).length > 0 ? [chunk(reasoning)] : []),
      chunk({ role: 'assistant', content }),
      ...(calls.length > 0 ? [chunk({ tool_calls: calls })] : []),
      chunk({}, finish),
      ...usage,
    ],
  };
}

/** The same answer to a request that wants no stream. */
function toWhole(events: readonly unknown[]): object {
  const choices = (
    events as readonly { readonly choices: readonly { readonly delta: object; readonly finish_reason: unknown }[] }[]
  ).flatMap((event) => event.choices);
  const message = Object.assign({}, ...choices.map(({ delta }) => delta)) as object;
  return {
    ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'm', usage: USAGE },
    choices: [{ index: 0, message, finish_reason: choices.at(-1)?.finish_reason }],
  };
}

export interface HostileProvider {
  readonly url: string;
  readonly billed: Billed;
  requests: number;
  /** Decides each answer; `body` is what was sent. */
  answer: (body: string) => Fault | { readonly events: readonly unknown[] };
  close(): Promise<void>;
}

export async function startHostileProvider(): Promise<HostileProvider> {
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => void parts.push(part));
    request.on('end', () => {
      provider.requests += 1;
      const body = Buffer.concat(parts).toString();
      const answer = provider.answer(body);
      if ('send' in answer) answer.send(response);
      else if (body.includes('"stream":true')) begin(response).end(lines(answer.events));
      else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(toWhole(answer.events)));
      // In a form that was not wished for, an answer is none.
      if ('send' in answer && !(answer.bills && body.includes('"stream":true'))) return;
      provider.billed.input += USAGE.prompt_tokens;
      provider.billed.output += USAGE.completion_tokens;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const provider: HostileProvider = {
    url: `http://127.0.0.1:${port}`,
    billed: { input: 0, output: 0 },
    requests: 0,
    answer: () => ({ events: plainAnswer('Hello.') }),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return provider;
}

export function plainAnswer(text: string): readonly unknown[] {
  return [chunk({ role: 'assistant', content: text }), chunk({}, 'stop'), usageChunk];
}
