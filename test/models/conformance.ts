/** What every provider must do, said once: each runs this over HTTP with its real SDK. */
import { connect } from 'node:net';
import { inspect } from 'node:util';
import type { AssistantBlock, AssistantMessage } from '../../src/records/message.js';
import {
  type Model,
  type ModelDelta,
  type ModelFailure,
  ModelInterrupted,
  type ModelRequest,
  type ModelResponse,
  type Served,
  type StreamOptions,
} from '../../src/models/model.js';
import { normalize } from '../../src/models/normalize.js';
import * as faults from '../support/provider-apis/faults.js';
import { callTools, gate, text, type Reply } from '../support/provider-apis/reply.js';
import { request, result, user } from './builders.js';
import { KEY, type Api, type Subject } from './subjects.js';

const tools = [{ name: 'write_file', description: 'Writes.', inputSchema: { type: 'object', properties: {} } }];
const thinking = { text: 'I think.', signature: 'c2lnbmF0dXJl' };

export function describeProvider(subject: Subject): void {
  const { provider, model: name } = subject;
  const seeing = subject.isRead ? test.skip : test;
  let api: Api;
  let model: Model;
  let printed: jest.SpyInstance[];

  beforeEach(async () => {
    api = await subject.start();
    model = subject.create({ apiKey: KEY, url: api.url });
    printed = (['log', 'warn', 'error', 'info', 'debug'] as const).map((level) => jest.spyOn(console, level));
  });

  afterEach(async () => {
    await api.close();
    // SDKs like to print, and what they print may be a conversation.
    const lines = printed.flatMap((spy) => spy.mock.calls as unknown[]);
    jest.restoreAllMocks();
    expect(lines).toEqual([]);
  });

  async function ask(reply: Reply, options: Partial<StreamOptions> = {}, parts: Partial<ModelRequest> = {}): Promise<ModelResponse> {
    api.play({ reply });
    const { signal } = new AbortController();
    return model.stream(request({ model: name, tools, ...parts }), { signal, onDelta: () => {}, ...options });
  }

  async function failing(promise: Promise<unknown>): Promise<ModelFailure> {
    const failure = await promise.then(
      (value) => Promise.reject(new Error(`it did not fail but said ${JSON.stringify(value)}`)),
      (error: unknown) => error as ModelFailure,
    );
    expect(failure.name).toBe('ModelFailure');
    expect(failure.message).toMatch(new RegExp(`^cannot (get an answer from|ask) ${provider}/${name}: .+\\. [A-Z].+[.)]$`));
    expect(inspect(failure, { depth: 10 })).not.toContain(KEY);
    return failure;
  }

  const kindAfter = async (reply: Reply, options: Partial<StreamOptions> = {}, hits = 1): Promise<string> => {
    const { kind } = await failing(ask(reply, options));
    expect(api.hits.length).toBe(hits);
    return kind;
  };

  const sent = (n = 0): string => JSON.stringify(api.hits[n]?.body);

  describe('an answer', () => {
    test('arrives in pieces and then whole', async () => {
      const deltas: ModelDelta[] = [];
      const response = await ask(text('Hello, 😀 world, and good morning'), { onDelta: (delta) => deltas.push(delta) });
      expect(response.stop).toBe('end');
      expect(shown(response.blocks)).toEqual([{ kind: 'text', text: 'Hello, 😀 world, and good morning' }]);
      expect(deltas.length).toBeGreaterThan(1);
      expect(deltas.map((delta) => (delta.kind === 'text' ? delta.text : '?')).join('')).toBe('Hello, 😀 world, and good morning');
      expect(api.problems).toEqual([]);
    });

    test('says who gives it, and where, to one who asks', async () => {
      const served: Served[] = [];
      await ask(text('Hello'), { onServed: (one) => served.push(one) });
      // A package of the AI SDK sends by itself, and not each names a model.
      if (subject.isRead) return;
      expect(served[0]?.url).toMatch(api.url);
      expect(served.map(({ model: called }) => called)).toContainEqual(expect.any(String));
    });

    test('may be several tool calls, each with an id of its own', async () => {
      const deltas: ModelDelta[] = [];
      const inputs = [{ path: 'a.txt', lines: [1, 2] }, {}, { path: 'é😀' }];
      const reply = { text: 'I will.', toolCalls: inputs.map((input) => ({ name: 'write_file', input })) };
      const { blocks, stop } = await ask(reply, { onDelta: (delta) => deltas.push(delta) });
      const calls = blocks.flatMap((block) => (block.kind === 'tool-call' ? [block] : []));
      expect(stop).toBe('tool-calls');
      expect(blocks.find(({ kind }) => kind === 'text')).toEqual({ kind: 'text', text: 'I will.' });
      expect(calls.map(({ name: called, input }) => [called, input])).toEqual(inputs.map((input) => ['write_file', input]));
      expect(new Set(calls.map(({ callId }) => callId).filter((id) => id !== '')).size).toBe(3);
      expect(deltas.filter(({ kind }) => kind === 'tool-call')).toHaveLength(3);
    });

    test('thinks aloud, and the thinking goes back only where it is signed', async () => {
      const deltas: ModelDelta[] = [];
      const answer = await ask({ ...callTools({ name: 'write_file' }), thinking }, { onDelta: (delta) => deltas.push(delta) });
      expect(deltas.map((delta) => (delta.kind === 'thinking' ? delta.text : '')).join('')).toBe(thinking.text);
      expect(answer.blocks[0]).toMatchObject({ kind: 'thinking', text: thinking.text, provider });
      expect(await continued(answer)).toMatchObject({ stop: 'end' });
      expect(sent(1).includes(thinking.signature)).toBe(subject.signsThinking);
      expect(api.problems).toEqual([]);
    });

    /** Asks again, with the answer and the results of its calls in the history. */
    async function continued({ blocks, stop }: ModelResponse): Promise<ModelResponse> {
      const said: AssistantMessage = { role: 'assistant', blocks, stop, model: `${provider}/${name}` };
      const results = blocks.flatMap((block) => (block.kind === 'tool-call' ? [result(block.callId, 'done', 'ok', block.name)] : []));
      const messages = normalize([user('go'), said, ...results, ...(results.length === 0 ? [user('and?')] : [])], { provider });
      return ask(text('Done.'), {}, { messages });
    }

    test.each<[string, Reply]>([
      ['text after thinking', { thinking, text: 'Hello' }],
      ['several calls', { text: 'I will.', ...callTools({ name: 'write_file' }, { name: 'write_file' }) }],
      ['thinking and nothing else', { thinking }],
      ['cut off in a call', { thinking, ...callTools({ name: 'write_file' }), stopReason: 'max_tokens' }],
    ])('can stand in the next request: %s', async (_, reply) => {
      expect(await continued(await ask(reply))).toMatchObject({ stop: 'end' });
      expect(api.problems).toEqual([]);
    });

    test('is about pictures, by their bytes or where they are', async () => {
      const images = [
        { mediaType: 'image/png', base64: 'aGVsbG8=' },
        { mediaType: 'image/jpeg', url: 'https://example.org/a.jpg' },
        { mediaType: 'image/bmp', base64: 'Ym1w' },
      ];
      await ask(text('Nice.'), {}, { messages: [{ ...user('Look'), images }] });
      expect(api.problems).toEqual([]);
      expect(sent()).toContain('aGVsbG8=');
      const inWords = '[An image (image/jpeg) at https://example.org/a.jpg that cannot be shown here.]';
      expect(sent()).toContain(subject.fetchesImages ? '"https://example.org/a.jpg"' : inWords);
      expect(sent()).toContain('[An image (image/bmp) that cannot be shown here.]');
    });

    test('is about documents, or about their having been there', async () => {
      const documents = [{ mediaType: 'application/pdf', base64: 'JVBERi0xLjc=' }];
      await ask(text('Nice.'), {}, { messages: [{ ...user('Read'), documents }] });
      expect(api.problems).toEqual([]);
      const inWords = '[document: application/pdf, 8 bytes; this model is not known to read it]';
      expect([sent().includes('JVBERi0xLjc='), sent().includes(inWords)]).toEqual([subject.readsDocuments, !subject.readsDocuments]);
    });

    test('is about sound and video, or about their having been there', async () => {
      const audio = [
        { mediaType: 'audio/mpeg', base64: 'c291bmQ=' },
        { mediaType: 'audio/x-odd', base64: 'b2Rk' },
      ];
      const video = [{ mediaType: 'video/mp4', base64: 'ZmlsbQ==' }];
      await ask(text('Nice.'), {}, { messages: [{ ...user('Listen'), audio, video }] });
      expect(api.problems).toEqual([]);
      const { takesRecordings: taken } = subject;
      expect(['c291bmQ=', 'ZmlsbQ=='].map((bytes) => sent().includes(bytes))).toEqual([taken, taken]);
      const inWords = [
        '[audio: audio/mpeg, 5 bytes; this model does not take audio]',
        '[video: video/mp4, 4 bytes; this model does not take video]',
      ];
      expect(inWords.map((words) => sent().includes(words))).toEqual([!taken, !taken]);
      expect(sent()).toContain('[audio: audio/x-odd, 3 bytes; this model does not take ');
    });

    test('is JSON of the schema that was asked for, which goes only to a model that is known to take one', async () => {
      const properties = { verdict: { type: 'string', minLength: 1 } };
      const answerSchema = { name: 'verdict', schema: { type: 'object', properties, required: ['verdict'] } };
      const { blocks } = await ask(text('{"verdict":"yes"}'), {}, { model: subject.schemaModel, tools: [], answerSchema });
      expect(shown(blocks)).toEqual([{ kind: 'text', text: '{"verdict":"yes"}' }]);
      await ask(text('Yes.'), {}, { model: subject.plainModel ?? name, tools: [], answerSchema });
      expect([sent(0), sent(1)].map((body) => body.includes('"verdict"'))).toEqual([true, !subject.plainModel]);
      expect(api.problems).toEqual([]);
    });

    test('is a call where one must be made, and the request says so; a provider that takes no such wish has none of it', async () => {
      const { takesMustCall } = model;
      await ask(callTools({ name: 'write_file' }), {}, takesMustCall ? { mustCall: true } : {});
      const { tool_choice: choice, toolConfig, config } = api.hits[0]?.body as Record<string, unknown>;
      expect(choice ?? toolConfig ?? config).toEqual(subject.mustCall);
      expect(takesMustCall).toBe(subject.mustCall === undefined ? undefined : true);
      expect(api.problems).toEqual([]);
    });

    test('may be wished with one call and with stop texts: what a provider is told of it, it takes', async () => {
      await ask(text('Hi'), {}, { oneCall: true, stopAt: ['STOP'] });
      // Responses, which Azure speaks too, has no field for them: the worker alone ends the answer there.
      const isTold = !['openai-responses', 'azure'].includes(subject.provider);
      expect([sent(0).includes('"STOP"'), api.problems]).toEqual([isTold, []]);
    });

    test('shows what it took, what was cached counted in', async () => {
      const usage = { input_tokens: 10, cache_creation_input_tokens: 20, cache_read_input_tokens: 70, output_tokens: 5 };
      const { usage: counted } = await ask({ text: 'Hi', thinking, usage });
      expect(counted).toEqual({
        inputTokens: 100,
        cachedTokens: subject.countsCache ? 70 : 0,
        outputTokens: 5,
        ...(subject.countsCacheWrites && { cacheWriteTokens: 20 }),
        ...(subject.countsThinking && { reasoningTokens: 1 }),
      });
    });

    seeing('does not mind an event that nobody knows', async () => {
      expect(await ask(faults.unknownEvent(0))).toMatchObject({ stop: 'end' });
      expect(await ask(faults.unknownEvent(2))).toMatchObject({ stop: 'end' });
    });

    test('may be slow: each byte counts', async () => {
      const slow: Reply = { text: 'a'.repeat(60), chunks: { size: 10, delayMs: 60 } };
      expect(await ask(slow, { idleMs: 200, totalMs: 2_000 })).toMatchObject({ stop: 'end' });
    });
  });

  describe('stops', () => {
    test('at its end, with nothing said', async () => {
      expect(await ask(faults.emptyAnswer())).toMatchObject({ stop: 'end', blocks: [] });
    });

    test('at the limit of tokens', async () => {
      const { stop, blocks } = await ask({ text: 'Hal', stopReason: 'max_tokens' });
      expect({ stop, said: shown(blocks) }).toEqual({ stop: 'max-tokens', said: [{ kind: 'text', text: 'Hal' }] });
    });

    test.each(['{"path":"a.txt","con', '{"path":"a.txt"}'])('at the limit in a tool call, which is none then: %s', async (inputJson) => {
      const response = await ask(faults.truncatedTool('write_file', inputJson));
      expect(response).toMatchObject({ stop: 'max-tokens', blocks: [] });
    });

    test('by a word that nobody knows: cut after words, which says so, and no answer without', async () => {
      const { stop, blocks } = await ask(faults.unknownStop('gone_fishing', 'Hi'));
      const note = { kind: 'text', text: expect.stringMatching(/"gone_fishing"/i) as string };
      expect({ stop, said: shown(blocks) }).toEqual({ stop: 'max-tokens', said: [{ kind: 'text', text: 'Hi' }, note] });
      expect((await failing(ask(faults.unknownStop()))).kind).toBe('broken-stream');
    });

    test('for nothing that it was asked for: tools need to be called', async () => {
      expect(await ask({ text: 'Hi', stopReason: 'tool_use' })).toMatchObject({ stop: 'end' });
    });

    const refusing = subject.refusal === undefined ? test.skip : test;
    refusing.each(['No, because.', null])('by refusing: %s', async (explanation) => {
      const words = subject.refusal?.(explanation);
      const { stop, blocks } = await ask(faults.refusal(explanation));
      expect({ stop, said: shown(blocks) }).toEqual({ stop: 'refusal', said: words === undefined ? [] : [{ kind: 'text', text: words }] });
    });

    refusing('by refusing after words', async () => {
      const { stop, blocks } = await ask(faults.refusal(null, 'I can'));
      expect({ stop, said: shown(blocks) }).toEqual({ stop: 'refusal', said: [{ kind: 'text', text: 'I can' }] });
    });

    const streaming = subject.streamsInputs ? test : test.skip;
    streaming('with an input that is no JSON though the answer ended well: a call that says so', async () => {
      const { stop, blocks } = await ask(callTools({ name: 'write_file', inputJson: '{"path":"a' }));
      expect([stop, shown(blocks)]).toMatchObject([
        'tool-calls',
        [{ kind: 'tool-call', input: { _invalid: expect.stringContaining('not JSON') } }],
      ]);
    });
  });

  describe('a refused request is classified, and made once', () => {
    test.each<[number, string]>([
      [400, 'invalid-request'],
      [401, 'auth'],
      [403, 'forbidden'],
      [404, 'not-found'],
      [413, 'too-large'],
      [429, 'rate-limit'],
      [500, 'server'],
      [503, subject.kindOf503],
      [504, 'timeout'],
    ])('%i', async (status, kind) => {
      const failure = await failing(ask(faults.httpError(status, status === 400 ? { message: 'wrong' } : {})));
      expect({ kind: failure.kind, status: failure.options.status }).toEqual({ kind, status });
      expect(api.hits.length).toBe(1);
    });

    test('an overload', async () => {
      expect(await kindAfter(faults.overloaded())).toBe('overloaded');
    });

    test('a prompt that is too long', async () => {
      expect(await kindAfter(faults.httpError(400, { message: subject.tooLong }))).toBe('context-full');
    });

    test('how long to wait is passed on', async () => {
      expect((await failing(ask(faults.rateLimited({ retryAfter: 2 })))).options.retryAfterMs).toBe(2_000);
      expect((await failing(ask(faults.rateLimited({ retryAfterMs: 1_500 })))).options.retryAfterMs).toBe(1_500);
      expect((await failing(ask(faults.rateLimited()))).options.retryAfterMs).toBeUndefined();
      const { retryAfterMs = 0 } = (await failing(ask(faults.overloaded({ retryAfter: new Date(Date.now() + 10_000) })))).options;
      expect(retryAfterMs).toBeGreaterThan(7_000);
      expect(api.hits.length).toBe(4);
    });

    test('a web page of a proxy is named by its title', async () => {
      const failure = await failing(ask(faults.badGateway()));
      expect(failure).toMatchObject({ kind: 'server', message: expect.stringContaining('502 (a web page: 502 Bad Gateway)') });
    });

    const keyed = subject.keySetting === undefined ? test.skip : test;
    keyed('the key is in no message, though the server repeats it', async () => {
      const failure = await failing(ask(faults.httpError(401, { message: `bad key ${KEY}, like sk-other` })));
      expect(failure.message).toContain('bad key [key], like [key]');
    });

    keyed('a wrong key, as the server says it', async () => {
      const guarded = await subject.start({ apiKey: 'another' });
      try {
        model = subject.create({ apiKey: KEY, url: guarded.url });
        const failure = await failing(ask(text('Hi')));
        expect(failure).toMatchObject({ kind: 'auth', message: expect.stringContaining(`Check the key in ${subject.keySetting}.`) });
        expect(failure.options.status).toBe(subject.wrongKeyStatus);
      } finally {
        await guarded.close();
      }
    });

    keyed('no key at all: nobody is asked, and the variable is named', async () => {
      model = subject.create({ apiKey: ' ', url: api.url });
      const failure = await failing(ask(text('Hi')));
      expect(failure).toMatchObject({ kind: 'missing-key', message: expect.stringContaining(String(subject.keySetting)) });
      expect(api.hits.length).toBe(0);
    });
  });

  describe('a stream that does not end well is no answer', () => {
    const long = text('These words may never arrive whole, as many as they are.');
    test.each<[string, Reply, string]>([
      ['an overload in the middle', faults.errorEvent(3, 'overloaded_error', long), 'overloaded'],
      ['a fault of the API in the middle', faults.errorEvent(3, 'api_error', long), 'server'],
      ['closed at once', faults.halfClose(0, long), 'broken-stream'],
      ['closed before the last word', faults.halfClose('before-message-delta', long), 'broken-stream'],
      [
        'closed before the last word of a call',
        faults.halfClose('before-message-delta', callTools({ name: 'write_file' })),
        'broken-stream',
      ],
      ['cut in an event', faults.fin('in-event', long), 'broken-stream'],
      ['cut before the last word', faults.fin('before-message-delta', long), 'broken-stream'],
      ['reset', faults.reset(3, long), 'broken-stream'],
      ['reset before headers', faults.reset('before-headers', long), 'connection'],
      ['an event that is no JSON', faults.malformedJson(2, long), 'broken-stream'],
    ])('%s', async (what, reply, kind) => {
      // Some servers that are nearly OpenAI end a stream so instead of a refusal: they are asked once more, for the whole answer, which
      // this script does not have: its refusal is what is said.
      const isAskedAgain = what === 'closed at once' && provider === 'openai';
      expect(await kindAfter(reply, {}, isAskedAgain ? 2 : 1)).toBe(isAskedAgain ? 'invalid-request' : kind);
    });

    test('a web page instead is named', async () => {
      const failure = await failing(ask(faults.htmlInsteadOfSse()));
      expect(failure).toMatchObject({ kind: 'broken-stream', message: expect.stringContaining('no event stream but text/html') });
    });

    test('nobody there: connection, with the reason', async () => {
      const { url } = api;
      await api.close();
      await closed(url);
      const failure = await failing(ask(text('Hi')));
      expect(failure).toMatchObject({ kind: 'connection', message: expect.stringContaining('ECONNREFUSED') });
    });
  });

  describe('a call that hangs is given up', () => {
    const silent = { limits: { idleMs: 150, totalMs: 600_000 }, why: 'nothing came for 0.15 s' };
    const endless = { limits: { idleMs: 500, totalMs: 600 }, why: 'it took longer than 0.6 s' };
    test.each<[string, Reply, typeof silent]>([
      ['no headers', faults.silence('before-headers'), silent],
      ['silence after one event', faults.silence(1), silent],
      ['silence before the last word', faults.silence('before-message-delta'), silent],
      ['pings for ever', faults.drip('ping', 20), endless],
      ['bytes for ever', faults.drip('byte', 20), endless],
    ])('%s', async (_, reply, { limits, why }) => {
      const failure = await failing(ask(reply, limits));
      const silence = subject.isRead ? /nothing came for|it took longer than/ : why;
      expect(failure).toMatchObject({ kind: 'timeout', message: expect.stringMatching(silence) });
      expect(api.hits.length).toBe(1);
      await api.hits[0]?.ended;
      expect(api.hits[0]?.aborted).toBe(true);
    });
  });

  seeing('an answer whose connection stays open after the last word is not waited for, and the connection not kept', async () => {
    expect(await ask(faults.silence('after-message-stop'))).toMatchObject({ stop: 'end' });
    await api.hits[0]?.ended;
    expect(api.hits[0]?.aborted).toBe(true);
  });

  seeing('what happens to the connection after the last word does not matter', async () => {
    expect(await ask(faults.reset('after-message-stop'))).toMatchObject({ stop: 'end' });
  });

  describe('stopping a call', () => {
    test('in the middle keeps what was whole, and leaves the server', async () => {
      const stop = new AbortController();
      const there = gate({ chars: thinking.text.length + 12 });
      const reply: Reply = { thinking, text: 'Hello, this will never be said whole.', toolCalls: [{ name: 'write_file' }], hold: there };
      const asked = ask(reply, { signal: stop.signal });
      void there.reached.then(() => setTimeout(() => stop.abort(), 50));
      const error: unknown = await asked.catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ModelInterrupted);
      const { blocks } = error as ModelInterrupted;
      expect(blocks[0]).toMatchObject({ kind: 'thinking', text: thinking.text });
      expect(blocks.filter(({ kind }) => kind === 'text' || kind === 'tool-call')).toEqual([]);
      await api.hits[0]?.ended;
      expect(api.hits[0]?.aborted).toBe(true);
    });

    test.each<[string, Reply]>([
      ['while headers are awaited', faults.silence('before-headers')],
      ['in the middle of a block', faults.silence(2)],
      ['while pings drip', faults.drip('ping', 10)],
    ])('%s', async (_, reply) => {
      const stop = new AbortController();
      const asked = ask(reply, { signal: stop.signal });
      await api.waitForHit(1);
      setTimeout(() => stop.abort(), 30);
      await expect(asked).rejects.toMatchObject({ name: 'ModelInterrupted' });
    });

    test('before it began asks nobody', async () => {
      await expect(ask(text('Hi'), { signal: AbortSignal.abort() })).rejects.toMatchObject({
        name: 'ModelInterrupted',
        blocks: [],
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

  seeing('the environment is not read: that is the configuration’s', async () => {
    const before = { ...process.env };
    Object.assign(process.env, OF_OTHERS);
    try {
      model = subject.create({ apiKey: KEY, url: api.url });
      await ask(text('Hi'));
      expect(JSON.stringify(api.hits[0]?.headers)).not.toContain('of-the-environment');
      const asked: string[] = [];
      model = subject.create({ apiKey: KEY, fetch: (input) => (asked.push(String(input)), Promise.reject(new Error('offline'))) });
      await failing(ask(text('Hi')));
      expect(asked).toEqual([subject.publicUrl]);
    } finally {
      process.env = before;
    }
  });
}

/** Without what only the provider reads. */
function shown(blocks: readonly AssistantBlock[]): AssistantBlock[] {
  return blocks.filter(({ kind }) => kind !== 'opaque');
}

const OF_OTHERS = {
  ANTHROPIC_API_KEY: 'of-the-environment',
  ANTHROPIC_AUTH_TOKEN: 'of-the-environment',
  ANTHROPIC_BASE_URL: 'http://127.0.0.1:1',
  OPENAI_API_KEY: 'of-the-environment',
  OPENAI_ORG_ID: 'of-the-environment',
  OPENAI_PROJECT_ID: 'of-the-environment',
  OPENAI_BASE_URL: 'http://127.0.0.1:1',
  GEMINI_API_KEY: 'of-the-environment',
  GOOGLE_GEMINI_BASE_URL: 'http://127.0.0.1:1',
  GOOGLE_GENAI_USE_VERTEXAI: 'true',
  OLLAMA_HOST: 'http://127.0.0.1:1',
};

/** Waits until the port is really closed. */
function closed(url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    connect(Number(port), hostname)
      .on('error', () => resolve())
      .on('connect', () => reject(new Error(`${url} still answers`)));
  });
}
