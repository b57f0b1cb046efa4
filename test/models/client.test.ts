import { connect, type AddressInfo } from 'node:net';
import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';
import { inspect } from 'node:util';
import { createAnthropicModel } from '../../src/models/anthropic/client.js';
import {
  type Model,
  type ModelDelta,
  type ModelFailure,
  ModelInterrupted,
  type ModelRequest,
  type ModelResponse,
  type StreamOptions,
} from '../../src/models/model.js';
import { createOpenAIModel } from '../../src/models/openai/client.js';
import * as faults from '../support/provider-apis/faults.js';
import { startMessagesApi, type MessagesApi } from '../support/provider-apis/messages-api.js';
import { callTool, callTools, gate, text, type Reply } from '../support/provider-apis/reply.js';
import { request } from './builders.js';

const KEY = 'sk-ant-api03-very_secret-key';
const tools = [{ name: 'write_file', description: 'Writes.', inputSchema: { type: 'object', properties: {} } }];

let api: MessagesApi;
let model: Model;

beforeEach(async () => {
  api = await startMessagesApi();
  model = createAnthropicModel({ apiKey: KEY, baseURL: api.url });
});

afterEach(async () => {
  await api.close();
});

async function ask(reply: Reply, options: Partial<StreamOptions> = {}, parts: Partial<ModelRequest> = {}): Promise<ModelResponse> {
  api.play({ reply });
  const { signal } = new AbortController();
  return model.stream(request({ tools, ...parts }), { signal, onDelta: () => {}, ...options });
}

async function failing(promise: Promise<unknown>): Promise<ModelFailure> {
  const failure = await promise.then(
    (value) => Promise.reject(new Error(`it did not fail but said ${JSON.stringify(value)}`)),
    (error: unknown) => error as ModelFailure,
  );
  expect(failure.name).toBe('ModelFailure');
  expect(inspect(failure, { depth: 10 })).not.toContain(KEY);
  return failure;
}

const kindAfter = async (reply: Reply, options: Partial<StreamOptions> = {}): Promise<string> => {
  const { kind } = await failing(ask(reply, options));
  expect(api.hits.length).toBe(1);
  return kind;
};

describe('an answer', () => {
  test('arrives in pieces and then whole', async () => {
    const deltas: ModelDelta[] = [];
    const reply: Reply = {
      thinking: { text: 'hm', signature: 'sig' },
      text: ['Hello, 😀 world', 'and more'],
      toolCalls: [{ id: 'toolu_1', name: 'write_file', input: { path: 'a.txt' } }],
      usage: { input_tokens: 10, cache_creation_input_tokens: 20, cache_read_input_tokens: 70, output_tokens: 5 },
    };
    const response = await ask(reply, { onDelta: (delta) => deltas.push(delta) });
    expect(response).toEqual({
      blocks: [
        { kind: 'thinking', text: 'hm', signature: 'sig', provider: 'anthropic' },
        { kind: 'text', text: 'Hello, 😀 world' },
        { kind: 'text', text: 'and more' },
        { kind: 'tool-call', callId: 'toolu_1', name: 'write_file', input: { path: 'a.txt' } },
      ],
      stop: 'tool-calls',
      usage: { inputTokens: 100, cachedTokens: 70, cacheWriteTokens: 20, outputTokens: 5 },
    });
    const said = (kind: string): string => deltas.map((delta) => (delta.kind === kind && 'text' in delta ? delta.text : '')).join('');
    expect(said('text')).toBe('Hello, 😀 worldand more');
    expect(said('thinking')).toBe('hm');
    expect(deltas.at(-1)).toEqual({ kind: 'tool-call', name: 'write_file' });
    expect(api.problems).toEqual([]);
  });

  test.each<[string, Reply, Partial<ModelResponse>]>([
    ['end_turn', text('Hi'), { stop: 'end', blocks: [{ kind: 'text', text: 'Hi' }] }],
    ['end_turn without content', faults.emptyAnswer(), { stop: 'end', blocks: [] }],
    ['stop_sequence', { text: 'Hi', stopReason: 'stop_sequence' }, { stop: 'end' }],
    ['max_tokens', { text: 'Hal', stopReason: 'max_tokens' }, { stop: 'max-tokens', blocks: [{ kind: 'text', text: 'Hal' }] }],
    ['pause_turn', faults.pauseTurn('Wait'), { stop: 'pause' }],
    ['model_context_window_exceeded', faults.contextWindowExceeded('Too'), { stop: 'context-full' }],
    [
      'refusal, which explains itself',
      faults.refusal('No, because.'),
      { stop: 'refusal', blocks: [{ kind: 'text', text: 'No, because.' }] },
    ],
    ['refusal after words', faults.refusal('No.', 'I can'), { stop: 'refusal', blocks: [{ kind: 'text', text: 'I can' }] }],
    [
      'an unknown word, with text',
      faults.unknownStop('gone_fishing', 'Hi'),
      {
        stop: 'max-tokens',
        blocks: [
          { kind: 'text', text: 'Hi' },
          { kind: 'text', text: expect.stringContaining('"gone_fishing"') as string },
        ],
      },
    ],
    ['tool_use without a tool', { text: 'Hi', stopReason: 'tool_use' }, { stop: 'end' }],
  ])('stops by %s', async (_, reply, expected) => {
    expect(await ask(reply)).toMatchObject(expected);
  });

  test('an unknown stop without text is no answer', async () => {
    expect(await kindAfter(faults.unknownStop())).toBe('broken-stream');
  });

  test.each(['max_tokens', 'end_turn', 'gone_fishing', 'refusal', 'pause_turn'])('tools are not called after %s', async (stopReason) => {
    const response = await ask({ ...callTool('write_file', { path: 'a' }), text: 'I will', stopReason });
    expect(response.blocks[0]).toEqual({ kind: 'text', text: 'I will' });
    expect(response.blocks.filter(({ kind }) => kind === 'tool-call')).toEqual([]);
  });

  test.each(['{"path":"a.txt","content":"line 1"', '{"path":"a.txt","con', '["/tmp/a","/tmp', '{"path":"a.txt"}'])(
    'a tool input cut off by max_tokens is not a call: %s',
    async (inputJson) => {
      expect(await ask(faults.truncatedTool('write_file', inputJson))).toMatchObject({ stop: 'max-tokens', blocks: [] });
    },
  );

  test('an input that is no JSON though the answer ended well is what the model wrote: it is told so', async () => {
    const { stop, blocks } = await ask(callTools({ name: 'write_file', inputJson: '{"path":"a' }));
    expect([stop, blocks]).toEqual(['tool-calls', [expect.objectContaining({ input: { _invalid: expect.stringContaining('not JSON') } })]]);
  });

  test.each<[string, string, unknown]>([
    ['nothing', '', {}],
    ['a list', '[1]', { _invalid: 'not a JSON object' }],
    ['null', 'null', { _invalid: 'not a JSON object' }],
    ['keys that reach prototypes', '{"__proto__":{"a":1},"b":[{"constructor":1,"prototype":2,"c":3}]}', { b: [{ c: 3 }] }],
    ['half a character', '{"a":"\\ud83d"}', { a: '\ufffd' }],
    ['64 levels', `${'{"a":'.repeat(63)}{}${'}'.repeat(63)}`, expect.not.objectContaining({ _invalid: expect.anything() })],
    ['65 levels', `${'{"a":'.repeat(64)}{}${'}'.repeat(64)}`, { _invalid: 'nested deeper than 64 levels' }],
    ['100,000 levels', `${'{"a":'.repeat(100_000)}{}${'}'.repeat(100_000)}`, { _invalid: 'nested deeper than 64 levels' }],
  ])('a tool input is an object that can be stored: %s', async (_, inputJson, input) => {
    const reply: Reply = { ...callTools({ name: 'write_file', input: {}, inputJson }), chunks: 2 };
    const response = await ask(reply);
    expect(response).toMatchObject({ blocks: [{ kind: 'tool-call', input }] });
    expect(JSON.stringify(response)).not.toMatch(/__proto__|constructor|prototype/);
  });

  test('events that nobody knows do no harm', async () => {
    expect(await ask(faults.unknownEvent(0))).toMatchObject({ stop: 'end' });
    expect(await ask(faults.unknownEvent(3))).toMatchObject({ stop: 'end' });
  });
});

describe('a refused request is classified, and made once', () => {
  const table: [string, Reply, Partial<ModelFailure> & { status?: number }][] = [
    ['400', faults.httpError(400, { message: 'messages.1: wrong' }), { kind: 'invalid-request' }],
    ['400, no credit', faults.httpError(400), { kind: 'billing' }],
    ['400, prompt too long', faults.promptTooLong(), { kind: 'context-full' }],
    [
      '400, input and max_tokens too long together',
      faults.httpError(400, { message: 'input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000' }),
      { kind: 'context-full' },
    ],
    ['401', faults.httpError(401), { kind: 'auth' }],
    ['402', faults.httpError(402), { kind: 'billing' }],
    ['403', faults.httpError(403), { kind: 'forbidden' }],
    ['404', faults.httpError(404), { kind: 'not-found' }],
    ['409', faults.httpError(409), { kind: 'server' }],
    ['413', faults.httpError(413), { kind: 'too-large' }],
    ['429', faults.rateLimited(), { kind: 'rate-limit' }],
    ['500', faults.httpError(500), { kind: 'server' }],
    ['502 with a web page', faults.badGateway(), { kind: 'server' }],
    ['503', faults.httpError(503), { kind: 'server' }],
    ['504', faults.httpError(504), { kind: 'timeout' }],
    ['529', faults.overloaded(), { kind: 'overloaded' }],
    [
      '429 that is a spend limit',
      faults.fault({
        kind: 'status',
        status: 429,
        body: '{"type":"error","error":{"type":"rate_limit_error","message":"x","details":{"error_code":"enforced_spend_limit_reached"}}}',
      }),
      { kind: 'billing' },
    ],
    ['a proxy that wants it tried again', faults.overloaded({ shouldRetry: true }), { kind: 'overloaded' }],
    [
      '418 in other words',
      faults.fault({ kind: 'status', status: 418, body: 'teapot', contentType: 'text/plain' }),
      { kind: 'invalid-request' },
    ],
    [
      '413 by a proxy',
      faults.fault({ kind: 'status', status: 413, body: faults.htmlPage('413'), contentType: 'text/html' }),
      { kind: 'too-large' },
    ],
  ];
  test.each(table)('%s', async (name, reply, { kind }) => {
    const failure = await failing(ask(reply));
    expect({ kind: failure.kind, status: failure.options.status }).toEqual({ kind, status: Number(/^\d+/.exec(name)?.[0] ?? 529) });
    expect(failure.message).toMatch(/^cannot get an answer from anthropic\/claude-sonnet-5-5: \d{3} /);
    expect(api.hits.length).toBe(1);
  });

  test('the message says what to do', async () => {
    expect((await failing(ask(faults.httpError(401)))).message).toBe(
      'cannot get an answer from anthropic/claude-sonnet-5-5: 401 invalid x-api-key. Check the key in ANTHROPIC_API_KEY.',
    );
    expect((await failing(ask(faults.badGateway()))).message).toBe(
      'cannot get an answer from anthropic/claude-sonnet-5-5: 502 (a web page: 502 Bad Gateway). The fault is on the other side; it usually passes.',
    );
  });

  test('the key is in no message, though the server repeats it', async () => {
    const failure = await failing(ask(faults.httpError(401, { message: `bad key ${KEY}, like sk-ant-other` })));
    expect(failure.message).toContain('bad key [key], like [key]');
  });

  test('nor is one that looks like no key', async () => {
    model = createAnthropicModel({ apiKey: 'the token of a proxy', baseURL: api.url });
    const failure = await failing(ask(faults.httpError(401, { message: 'unknown: the token of a proxy' })));
    expect(inspect(failure, { depth: 10 })).not.toContain('the token of a proxy');
  });
});

describe('how long to wait', () => {
  const DAY = 86_400_000;
  test.each<[string, faults.RetryHeaders, number | undefined]>([
    ['nothing said', {}, undefined],
    ['seconds', { retryAfter: 2 }, 2_000],
    ['an hour', { retryAfter: 3600 }, 3_600_000],
    ['a fraction', { retryAfter: '0.25' }, 250],
    ['now', { retryAfter: 0 }, 0],
    ['milliseconds, which go first', { retryAfterMs: 1_500, retryAfter: 60 }, 1_500],
    ['broken milliseconds', { retryAfterMs: 'soon', retryAfter: 3 }, 3_000],
    ['before now', { retryAfter: -1 }, undefined],
    ['a date that has passed', { retryAfter: new Date(0) }, undefined],
    ['no sense', { retryAfter: 'tomorrow' }, undefined],
    ['a year, as Date.parse reads it', { retryAfter: 'in 2999' }, undefined],
    ['hexadecimal', { retryAfter: '0x10' }, undefined],
    ['a hundred years', { retryAfter: 3_153_600_000 }, DAY],
    ['more than a number can be', { retryAfter: '9'.repeat(400) }, DAY],
    ['a date in a hundred years', { retryAfter: new Date(Date.now() + 100 * 365 * DAY) }, DAY],
  ])('%s', async (_, headers, expected) => {
    const failure = await failing(ask(faults.rateLimited(headers)));
    expect([failure.kind, failure.options.retryAfterMs]).toEqual(['rate-limit', expected]);
    expect(api.hits.length).toBe(1);
  });

  test('a date', async () => {
    const { options } = await failing(ask(faults.overloaded({ retryAfter: new Date(Date.now() + 10_000) })));
    expect(options.retryAfterMs).toBeGreaterThan(7_000);
    expect(options.retryAfterMs).toBeLessThanOrEqual(10_000);
  });
});

describe('a stream that does not end well is no answer', () => {
  test.each<[string, Reply, string]>([
    ['an overload in the middle', faults.errorEvent(4), 'overloaded'],
    ['a fault of the API in the middle', faults.errorEvent(4, 'api_error'), 'server'],
    ['closed at once', faults.halfClose(0), 'broken-stream'],
    ['closed before the end of a block', faults.halfClose('before-block-stop'), 'broken-stream'],
    ['closed before the stop reason', faults.halfClose('before-message-delta'), 'broken-stream'],
    ['closed before the last word', faults.halfClose('before-message-stop'), 'broken-stream'],
    [
      'closed before the last word of a tool call',
      faults.halfClose('before-message-stop', callTool('write_file', { a: 1 })),
      'broken-stream',
    ],
    ['cut in an event', faults.fin('in-event'), 'broken-stream'],
    ['cut before the last word', faults.fin('before-message-stop'), 'broken-stream'],
    ['reset', faults.reset(4), 'broken-stream'],
    ['reset before headers', faults.reset('before-headers'), 'connection'],
    ['an event that is no JSON', faults.malformedJson(), 'broken-stream'],
    ['a web page', faults.htmlInsteadOfSse(), 'broken-stream'],
    ['an event out of nowhere', { ...text('x'), fault: { kind: 'malformed-json', at: 0 } }, 'broken-stream'],
  ])('%s', async (_, reply, kind) => {
    expect(await kindAfter(reply)).toBe(kind);
  });

  test('a web page is named', async () => {
    expect((await failing(ask(faults.htmlInsteadOfSse()))).message).toContain('no event stream but text/html');
  });
});

describe('stopping a call', () => {
  test('in the middle keeps what was whole, and what it cost', async () => {
    const stop = new AbortController();
    const there = gate({ chars: 25 });
    const reply: Reply = {
      text: ['First of all', 'and second'],
      toolCalls: [{ name: 'write_file', input: { a: 1 } }],
      usage: { input_tokens: 50 },
      hold: there,
    };
    const asked = ask(reply, { signal: stop.signal });
    void there.reached.then(() => setTimeout(() => stop.abort(), 50));
    const error: unknown = await asked.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ModelInterrupted);
    expect(error).toMatchObject({
      blocks: [
        { kind: 'text', text: 'First of all' },
        { kind: 'text', text: 'and second' },
      ],
      usage: { inputTokens: 50, cachedTokens: 0, outputTokens: 1 },
    });
    await api.hits[0]?.ended;
    expect(api.hits[0]?.aborted).toBe(true);
  });

  test.each<[string, Reply]>([
    ['while headers are awaited', faults.silence('before-headers')],
    ['in the middle of a block', faults.silence(4)],
    ['while pings drip', faults.drip('ping', 10)],
  ])('%s', async (_, reply) => {
    const stop = new AbortController();
    const asked = ask(reply, { signal: stop.signal });
    await api.waitForHit(1);
    setTimeout(() => stop.abort(), 30);
    await expect(asked).rejects.toMatchObject({ name: 'ModelInterrupted', blocks: [] });
  });

  test('before it began asks nobody', async () => {
    await expect(ask(text('Hi'), { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: 'ModelInterrupted',
      usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0 },
    });
    expect(api.hits.length).toBe(0);
  });

  test('after the last word changes nothing', async () => {
    const stop = new AbortController();
    const response = await ask(text('Hi'), { signal: stop.signal });
    stop.abort();
    expect(response.stop).toBe('end');
  });
});

test('without a key nobody is asked, and the variable is named', async () => {
  const keyless = createAnthropicModel({ apiKey: ' ', baseURL: api.url });
  const asked = keyless.stream(request(), { signal: new AbortController().signal, onDelta: () => {} });
  expect(await failing(asked)).toMatchObject({ kind: 'missing-key', message: expect.stringContaining('ANTHROPIC_API_KEY') });
  expect(api.hits.length).toBe(0);
});

test('a key that no header can carry is not printed either', async () => {
  model = createAnthropicModel({ apiKey: `${KEY}\n${KEY}`, baseURL: api.url });
  await failing(ask(text('Hi')));
});

test('nobody there: connection, with the reason', async () => {
  const { url } = api;
  await api.close();
  await refused(url);
  const failure = await failing(ask(text('Hi')));
  expect(failure).toMatchObject({ kind: 'connection', message: expect.stringContaining('ECONNREFUSED') });
});

test('the environment is not read: that is the configuration’s', async () => {
  const before = { ...process.env };
  Object.assign(process.env, {
    ANTHROPIC_API_KEY: 'sk-ant-env',
    ANTHROPIC_AUTH_TOKEN: 'env-token',
    ANTHROPIC_BASE_URL: 'http://127.0.0.1:1',
  });
  try {
    model = createAnthropicModel({ apiKey: KEY, baseURL: api.url });
    await ask(text('Hi'));
    expect(JSON.stringify(api.hits[0]?.headers)).toContain(KEY);
    expect(JSON.stringify(api.hits[0]?.headers)).not.toMatch(/sk-ant-env|env-token/);
    const asked: string[] = [];
    model = createAnthropicModel({ apiKey: KEY, fetch: (input) => (asked.push(String(input)), Promise.reject(new Error('offline'))) });
    await failing(ask(text('Hi')));
    expect(asked).toEqual(['https://api.anthropic.com/v1/messages']);
  } finally {
    process.env = before;
  }
});

test('connections are used again', async () => {
  const ports = new Set<number>();
  const server = createServer((incoming, response) => {
    ports.add(incoming.socket.remotePort ?? 0);
    incoming.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of answerEvents) response.write(`data: ${JSON.stringify(event)}\n\n`);
    response.end();
  });
  await listening(server, async (url) => {
    model = createAnthropicModel({ apiKey: KEY, baseURL: url });
    for (let n = 0; n < 8; n++) expect(await ask(text(''))).toMatchObject({ stop: 'end', blocks: [{ text: 'Hi' }] });
  });
  // fetch takes a second one at times, also without us.
  expect(ports.size).toBeLessThanOrEqual(2);
});

test('a bomb is stopped while it is small', async () => {
  const bomb = gzipSync(Buffer.alloc(200 * 1024 * 1024, 'data: '));
  const server = createServer((incoming, response) => {
    incoming.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' });
    response.end(bomb);
  });
  await listening(server, async (url) => {
    model = createAnthropicModel({ apiKey: KEY, baseURL: url });
    expect(await failing(ask(text('')))).toMatchObject({ kind: 'broken-stream', message: expect.stringContaining('32 MiB') });
  });
});

const answerEvents = [
  { type: 'message_start', message: { usage: { input_tokens: 1, output_tokens: 1 } } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
  { type: 'message_stop' },
];

async function listening(server: ReturnType<typeof createServer>, act: (url: string) => Promise<void>): Promise<void> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await act(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

/** Waits until the port is really closed. */
function refused(url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    connect(Number(port), hostname)
      .on('error', () => resolve())
      .on('connect', () => reject(new Error(`${url} still answers`)));
  });
}

describe('the first byte', () => {
  afterEach(() => jest.useRealTimers());

  const answered = 'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
  const after = (ms: number): typeof fetch =>
    (async (_address, init) =>
      await new Promise((resolve, reject) => {
        init?.signal?.addEventListener('abort', () => reject(new Error('aborted')));
        setTimeout(() => resolve(new Response(answered, { headers: { 'content-type': 'text/event-stream' } })), ms);
      })) as typeof fetch;

  test.each([
    ['a server of one’s own may read a prompt for minutes', 'http://127.0.0.1:1/v1', 150_000, 'end'],
    ['only the time of the whole call bounds it', 'http://127.0.0.1:1/v1', 650_000, '600 s'],
    ['the public API has a minute', undefined, 75_000, 'nothing came for 60 s'],
  ])('%s', async (_what, baseURL, ms, outcome) => {
    jest.useFakeTimers();
    const own = createOpenAIModel({ apiKey: KEY, fetch: after(ms), ...(baseURL !== undefined && { baseURL }) });
    const { signal } = new AbortController();
    const asking = own.stream(request({}), { signal, onDelta: () => {} }).then(
      ({ stop }) => stop,
      (error: unknown) => (error as Error).message,
    );
    await jest.advanceTimersByTimeAsync(700_000);
    expect(await asking).toContain(outcome);
  });
});
