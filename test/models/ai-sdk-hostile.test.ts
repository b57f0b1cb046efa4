/** The AI SDK's interface, versions 2 to 4, as packages nobody knows may use it: well, oddly and badly. */
import type { createMistral } from '@ai-sdk/mistral';
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart, ProviderV4 } from 'ai-sdk-provider-v4' with {
  'resolution-mode': 'import',
};
import type { createMistral as createMistralOfV2 } from 'ai-sdk-mistral-v2';
import * as fc from 'fast-check';
import { inspect } from 'node:util';
import { checkExtensions } from '../../src/extensions/user-config.js';
import { aiSdk, type AiSdkProvider } from '../../src/models/ai-sdk/provider.js';
import { ModelFailure, ModelInterrupted, type ModelDelta, type ModelRequest, type StreamOptions } from '../../src/models/model.js';
import { normalize } from '../../src/models/normalize.js';
import { createModels } from '../../src/models/providers.js';
import type { AssistantMessage } from '../../src/records/message.js';
import { call, request, result, says, thinking, user } from './builders.js';

const USAGE = {
  inputTokens: { total: 100, noCache: 10, cacheRead: 70, cacheWrite: 20 },
  outputTokens: { total: 5, text: 3, reasoning: 2 },
};
const finish = (unified: string, raw?: string) => ({ type: 'finish', usage: USAGE, finishReason: { unified, raw } });
const said = (text: string, id = '0') => [
  { type: 'text-start', id },
  { type: 'text-delta', id, delta: text },
  { type: 'text-end', id },
];
const END = finish('stop', 'end_turn');
const counted = { inputTokens: 100, cachedTokens: 70, outputTokens: 5, cacheWriteTokens: 20, reasoningTokens: 2 };

interface Seen {
  options: Record<string, unknown>;
}
type Source = unknown[] | (() => unknown);

/** A package whose stream has these parts, or that does something else. */
function standIn(
  source: Source,
  { version = 'v3', seen = { options: {} } as Seen, provider = 'stand.in', urls = {} as unknown } = {},
): AiSdkProvider {
  const doStream = (options: Record<string, unknown>): unknown => {
    seen.options = options;
    return Array.isArray(source) ? Promise.resolve({ stream: ReadableStream.from(source) }) : source();
  };
  const languageModel = (modelId: string) => ({ specificationVersion: version, provider, modelId, supportedUrls: urls, doStream });
  return { languageModel } as unknown as AiSdkProvider;
}

const ask = (provider: AiSdkProvider, parts: Partial<ModelRequest> = {}, options: Partial<StreamOptions> = {}) =>
  aiSdk(provider).stream(request({ model: 'm', ...parts }), { signal: new AbortController().signal, onDelta: () => {}, ...options });

async function failing(asked: Promise<unknown>): Promise<ModelFailure> {
  const error: unknown = await asked.then(
    (value) => Promise.reject(new Error(`it did not fail but said ${inspect(value)}`)),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ModelFailure);
  return error as ModelFailure;
}

describe('what it takes', () => {
  test('providers of versions 2, 3 and 4, by their own types', () => {
    const accepted = (v2: ReturnType<typeof createMistralOfV2>, v3: ReturnType<typeof createMistral>, v4: ProviderV4) => [
      aiSdk(v2),
      aiSdk(v3),
      aiSdk(v4),
      aiSdk(v3('mistral-large-latest')),
      aiSdk((id: string) => v3.chat(id)),
    ];
    expect(accepted).toBeInstanceOf(Function);
  });

  test.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /takes a provider of the AI SDK.*and got undefined$/],
    ['a name', 'amazonBedrock', /and got string$/],
    ['an options object', { region: 'us-east-1' }, /and got an object with region$/],
  ])('not %s', (_, given, why) => {
    expect(() => aiSdk(given as AiSdkProvider)).toThrow(why);
  });

  test('no models of another version, and the failure says so', async () => {
    const failure = await failing(ask(standIn([...said('Hi'), END], { version: 'v1' })));
    expect(failure).toMatchObject({
      kind: 'not-found',
      message: expect.stringContaining('versions v2, v3 and v4, and this one is of "v1"'),
    });
    expect((await failing(ask((() => 'no model') as unknown as AiSdkProvider))).kind).toBe('not-found');
  });

  test('one model, which answers by its own name alone', async () => {
    const one = (standIn([...said('Hi'), END]) as { languageModel(id: string): never }).languageModel('m');
    expect(await ask(one)).toMatchObject({ stop: 'end' });
    expect((await failing(ask(one, { model: 'another' }))).message).toContain('was given the model "m" alone');
  });

  test('in a config: under its name there, with what is declared; a bare provider is told how', async () => {
    const providers = { mistral: aiSdk(standIn([...said('Hi'), { type: 'error', error: new Error('no') }])) };
    const declared = { 'mistral/m': { prices: { input: 1, output: 2 }, contextWindow: 64_000 } };
    expect(checkExtensions({ providers, models: declared }, 'perdura.config.ts')).toMatchObject({ models: declared });
    const models = createModels({ custom: providers, declared });
    expect(models.limits('mistral/m')).toMatchObject({ contextTokens: 64_000, price: { input: 1, output: 2 } });
    const asked = models('mistral/m').stream(request({ model: 'm' }), { signal: new AbortController().signal, onDelta: () => {} });
    expect((await failing(asked)).message).toMatch(/^cannot get an answer from mistral\/m: no\. /);
    expect(() => checkExtensions({ providers: { bare: standIn([]) } }, 'perdura.config.ts')).toThrow(/providers\.bare .* write aiSdk\(…\)/);
  });
});

describe('what is sent', () => {
  const image = { mediaType: 'image/png', base64: 'aGk=' };
  const far = { mediaType: 'image/png', url: 'https://example.org/A.png' };
  const urls = { 'image/*': [/^https:\/\/example\.org\/.*\.png$/] };

  test.each<[string, unknown, unknown]>([
    ['v2', 'aGk=', new URL(far.url)],
    ['v3', 'aGk=', new URL(far.url)],
    ['v4', { type: 'data', data: 'aGk=' }, { type: 'url', url: new URL(far.url) }],
  ])('files as %s has them', async (version, inline, fetched) => {
    const seen: Seen = { options: {} };
    await ask(standIn([...said('Nice.'), END], { version, seen, urls: Promise.resolve(urls) }), {
      messages: [{ ...user('Look'), images: [image, far] }],
    });
    const prompt = seen.options.prompt as { content: { data?: unknown }[] }[];
    expect(prompt[1]?.content.map(({ data }) => data)).toEqual([inline, fetched, undefined]);
  });

  test('no addresses that its provider does not fetch', async () => {
    const seen: Seen = { options: {} };
    await ask(standIn([...said('Nice.'), END], { seen, urls: { 'image/*': [/^https:\/\/other/] } }), {
      messages: [{ ...user('Look'), images: [far] }],
    });
    expect(JSON.stringify(seen.options.prompt)).toContain('that cannot be shown here');
  });

  test('to a Responses API nothing that it keeps, save where the config says so; options by their names', async () => {
    const seen: Seen = { options: {} };
    const options = { providerOptions: { azure: { reasoningEffort: 'low' }, other: { a: 1 } } };
    const model = aiSdk(standIn([...said('Hi'), END], { seen, provider: 'azure.responses' }), options);
    await model.stream(request({ model: 'm' }), { signal: new AbortController().signal, onDelta: () => {} });
    expect(seen.options.providerOptions).toEqual({ azure: { store: false, reasoningEffort: 'low' }, other: { a: 1 } });
  });

  test('reasoning of a Responses API only where it is encrypted, and no ids of items that are not kept', async () => {
    const seen: Seen = { options: {} };
    const reasoning = (id: string, itemId: string, encrypted: string | null) => [
      { type: 'reasoning-start', id, providerMetadata: { azure: { itemId, reasoningEncryptedContent: null } } },
      { type: 'reasoning-delta', id, delta: `thought ${id}`, providerMetadata: { azure: { itemId } } },
      { type: 'reasoning-end', id, providerMetadata: { azure: { itemId, reasoningEncryptedContent: encrypted } } },
    ];
    const parts = [
      ...[...reasoning('a:0', 'rs_a', null), ...reasoning('a:1', 'rs_a', 'sealed'), ...reasoning('b:0', 'rs_b', null)],
      ...[
        { type: 'text-start', id: 'm', providerMetadata: { azure: { itemId: 'msg_1', phase: 'commentary' } } },
        ...said('So.', 'm').slice(1),
        END,
      ],
    ];
    const provider = standIn(parts, { seen, provider: 'azure.responses' });
    const { blocks, stop } = await ask(provider);
    await ask(provider, { messages: [user('a'), { role: 'assistant', blocks, stop, model: 'ai-sdk/m' }, user('b')] });
    const prompt = JSON.stringify(seen.options.prompt);
    expect(prompt).toContain('thought a:0');
    expect(prompt).toContain('sealed');
    expect(prompt).not.toMatch(/rs_b|msg_1/);
    expect(prompt).toContain('"phase":"commentary"');
  });

  test('to version 4 its own parts again', async () => {
    const seen: Seen = { options: {} };
    const parts: LanguageModelV4StreamPart[] = [
      { type: 'stream-start', warnings: [{ type: 'deprecated', setting: 'a', message: 'b' }] },
      { type: 'custom', kind: 'stand.compaction', providerMetadata: { stand: { sealed: 'yes' } } },
      { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'data', data: 'aGk=' } },
      { type: 'text-start', id: '0' },
      { type: 'text-delta', id: '0', delta: 'Hi' },
      { type: 'text-end', id: '0' },
      { type: 'finish', usage: USAGE, finishReason: { unified: 'stop', raw: 'stop' } },
    ];
    const doStream = (options: LanguageModelV4CallOptions) => (
      (seen.options = { ...options }),
      Promise.resolve({ stream: ReadableStream.from(parts) as ReadableStream<LanguageModelV4StreamPart> })
    );
    const model: LanguageModelV4 = {
      specificationVersion: 'v4',
      provider: 'stand.in',
      modelId: 'm',
      supportedUrls: {},
      doGenerate: () => Promise.reject(new Error('it is not asked so')),
      doStream,
    };
    const { blocks, stop, usage } = await ask(() => model);
    expect({ stop, usage }).toEqual({ stop: 'end', usage: counted });
    await ask(() => model, { messages: [user('a'), { role: 'assistant', blocks, stop, model: 'ai-sdk/m' }, user('b')] });
    expect(JSON.stringify(seen.options.prompt)).toContain(
      '{"type":"custom","kind":"stand.compaction","providerOptions":{"stand":{"sealed":"yes"}}}',
    );
  });

  test('nothing that another provider has signed under the same name', async () => {
    const seen: Seen = { options: {} };
    const messages = [
      user('a'),
      says(thinking('mine', 'ai-sdk', 'a signature'), 'Yes', call('c', 'f')),
      result('c', 'done', 'ok', 'f'),
      user('b'),
    ];
    await ask(standIn([...said('Hi'), END], { seen }), { messages, tools: [{ name: 'f', description: '', inputSchema: {} }] });
    expect(JSON.stringify(seen.options.prompt)).not.toContain('a signature');
  });
});

describe('what comes', () => {
  test.each<[string, unknown, unknown]>([
    ['version 3 and 4', USAGE, counted],
    [
      'parts without a sum',
      { inputTokens: { noCache: 10, cacheRead: 70, cacheWrite: 20 }, outputTokens: { text: 3, reasoning: 2 } },
      counted,
    ],
    [
      'version 2',
      { inputTokens: 100, outputTokens: 5, totalTokens: 105, cachedInputTokens: 70 },
      { inputTokens: 100, cachedTokens: 70, outputTokens: 5 },
    ],
    [
      'version 2 of a package that counts what was cached apart',
      { inputTokens: 10, outputTokens: 5, cachedInputTokens: 70 },
      { inputTokens: 80, cachedTokens: 70, outputTokens: 5 },
    ],
    [
      'numbers that are none',
      { inputTokens: { total: NaN, cacheRead: -1 }, outputTokens: 'many' },
      { inputTokens: 0, cachedTokens: 0, outputTokens: 0 },
    ],
    ['none', undefined, { inputTokens: 0, cachedTokens: 0, outputTokens: 0 }],
  ])('is counted: %s', async (_, usage, wanted) => {
    expect((await ask(standIn([...said('Hi'), { ...END, usage }]))).usage).toEqual(wanted);
  });

  test.each<[unknown, string]>([
    ['stop', 'end'],
    ['length', 'max-tokens'],
    ['content-filter', 'refusal'],
    ['other', 'max-tokens'],
    [{ unified: 'stop', raw: undefined }, 'end'],
    [{ unified: 'other', raw: 'model_context_window_exceeded' }, 'context-full'],
    [{ unified: 'other', raw: 'gone_fishing' }, 'max-tokens'],
    [{ unified: 'length', raw: 'gone_fishing' }, 'max-tokens'],
    [{ unified: 'content-filter', raw: 'guardrail_intervened' }, 'refusal'],
    [{ unified: 'stop', raw: 'pause_turn' }, 'pause'],
  ])('ends by its meaning: %j', async (finishReason, stop) => {
    expect(await ask(standIn([...said('Hi'), { ...END, finishReason }]))).toMatchObject({ stop });
  });

  test.each<[string, unknown]>([
    ['no finish part', undefined],
    ['other, without a word of the server', { unified: 'other' }],
    ['interrupted', { unified: 'interrupted', raw: 'x' }],
    ['error', { unified: 'error', raw: 'error' }],
    ['version 2: unknown, with nothing counted', 'unknown'],
    ['no reason at all', undefined],
  ])('is no answer: %s', async (name, finishReason) => {
    const end = name === 'no finish part' ? [] : [{ type: 'finish', finishReason }];
    expect((await failing(ask(standIn([...said('Half a sen'), ...end])))).kind).toBe('broken-stream');
  });

  test('calls: of JSON, of none, of something else, begun and not ended, twice by one id; not those that the provider makes', async () => {
    const parts = [
      { type: 'tool-input-start', id: 'a', toolName: 'f' },
      { type: 'tool-input-delta', id: 'a', delta: '{"x":' },
      { type: 'tool-input-delta', id: 'a', delta: '1}' },
      { type: 'tool-input-end', id: 'a' },
      { type: 'tool-call', toolCallId: 'a', toolName: 'f', input: '{"x":1}' },
      { type: 'tool-call', toolCallId: 'a', toolName: 'f', input: '{"x":2}' },
      { type: 'tool-call', toolCallId: 'b', toolName: 'f', input: { x: 3 } },
      { type: 'tool-call', toolCallId: 'c', toolName: 'f', input: null },
      { type: 'tool-call', toolCallId: 'd', toolName: 'f', input: '{"timeZone": Europe/Berlin}' },
      { type: 'tool-input-start', id: 'e', toolName: 'f' },
      { type: 'tool-input-delta', id: 'e', delta: '{"x":5}' },
      { type: 'tool-call', toolCallId: 'x', toolName: 'web_search', input: '{}', providerExecuted: true },
      { type: 'tool-result', toolCallId: 'x', toolName: 'web_search', result: 'found' },
      finish('tool-calls', 'tool_use'),
    ];
    const deltas: ModelDelta[] = [];
    const { stop, blocks } = await ask(standIn(parts), {}, { onDelta: (delta) => deltas.push(delta) });
    const inputs = blocks.flatMap((block) => (block.kind === 'tool-call' ? [block.input] : []));
    expect(stop).toBe('tool-calls');
    expect(inputs).toEqual([{ x: 1 }, { x: 2 }, { x: 3 }, {}, { _invalid: expect.stringContaining('not JSON') as string }, { x: 5 }]);
    expect(deltas).toHaveLength(6);
  });

  test('pieces by their ids, in the order in which they began; those without a beginning begin', async () => {
    const parts = [
      { type: 'reasoning-start', id: 'r' },
      { type: 'text-start', id: 't' },
      { type: 'reasoning-delta', id: 'r', delta: 'I think' },
      { type: 'text-delta', id: 't', delta: 'One' },
      { type: 'reasoning-delta', id: 'r', delta: ' twice' },
      { type: 'text-delta', id: 'u', delta: 'Two' },
      END,
    ];
    const { blocks } = await ask(standIn(parts));
    expect(blocks.map((block) => ('text' in block ? block.text : '?'))).toEqual(['I think twice', 'One', 'Two']);
  });

  test('what cannot be shown is named in its place, and what nobody knows does no harm', async () => {
    const odd = [null, 7, 'text', [], {}, { type: 7 }, { type: 'sparkle', shade: 'blue' }, { type: 'source', url: 'https://example.org' }];
    const parts = [
      ...odd,
      { type: 'file', mediaType: 'image/png', data: 'aGk=' },
      { type: 'text-delta', id: {}, delta: 7 },
      { type: 'raw', rawValue: 1 },
      END,
    ];
    const { blocks } = await ask(standIn(parts));
    expect(blocks).toEqual([{ kind: 'text', text: '[a file of type "image/png", which cannot be shown]' }]);
  });

  test('metadata that cannot be stored is not kept: in a circle, too deep, too large', async () => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    const deep = JSON.parse(`${'{"a":'.repeat(100)}1${'}'.repeat(100)}`) as object;
    const all = [circle, deep, { big: 'x'.repeat(2_000_000) }, { n: 1n }].flatMap((fields, n) => [
      { type: 'text-start', id: `${n}`, providerMetadata: { odd: fields } },
      ...said('Hi', `${n}`).slice(1),
    ]);
    const { blocks } = await ask(standIn([...all, END]));
    expect(blocks).toEqual(Array(4).fill({ kind: 'text', text: 'Hi' }));
  });
});

describe('what goes wrong', () => {
  const apiCall = (fields: object): Error => Object.assign(new Error('the words of the package'), { name: 'AI_APICallError' }, fields);
  const named = (name: string, message: string, fields: object = {}): Error => Object.assign(new Error(message), { name }, fields);
  const throwing =
    (error: unknown): Source =>
    () => {
      throw error;
    };

  test.each<[string, unknown, object]>([
    [
      'a status',
      apiCall({ statusCode: 429, responseHeaders: { 'retry-after': '7' }, responseBody: '{"error":{"message":"slow"}}' }),
      { kind: 'rate-limit', options: expect.objectContaining({ retryAfterMs: 7_000, status: 429 }) as object },
    ],
    ['a body that was read', apiCall({ statusCode: 400, data: { message: 'prompt is too long' } }), { kind: 'context-full' }],
    [
      'no body',
      apiCall({ statusCode: 500, responseHeaders: { 'bad name\n': 'x' } }),
      { kind: 'server', message: expect.stringContaining('500 the words of the package') as string },
    ],
    [
      'no connection',
      apiCall({ cause: Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }) }),
      { kind: 'connection', message: expect.stringContaining('ECONNREFUSED') as string },
    ],
    ['a success that could not be read', apiCall({ statusCode: 200, cause: new Error('x') }), { kind: 'connection' }],
    [
      'no key',
      named('AI_LoadAPIKeyError', 'Mistral API key is missing.'),
      { kind: 'missing-key', message: expect.stringContaining('API key is missing. Set the key') as string },
    ],
    ['no setting', named('AI_LoadSettingError', 'AWS region setting is missing.'), { kind: 'missing-key' }],
    ['no such model', named('AI_NoSuchModelError', 'No such languageModel: m'), { kind: 'not-found' }],
    [
      'a file that its package does not take',
      named('AI_UnsupportedFunctionalityError', 'file part media type audio/wav'),
      { kind: 'invalid-request', options: expect.objectContaining({ status: 400 }) as object },
    ],
    ['credentials', new Error('AWS credential provider failed: expired'), { kind: 'auth' }],
    ['a time of its own', named('TimeoutError', 'The operation was aborted due to timeout'), { kind: 'timeout' }],
    ['a word', 'nope', { kind: 'invalid-request', message: expect.stringContaining('nope') as string }],
    ['nothing', undefined, { kind: 'invalid-request' }],
    ['a mistake of its own', new TypeError('x is not a function'), { kind: 'invalid-request' }],
  ])('before an answer: %s', async (_, error, wanted) => {
    expect(await failing(ask(standIn(throwing(error))))).toMatchObject(wanted);
    expect(await failing(ask(standIn(() => Promise.reject(error as Error))))).toMatchObject(wanted);
  });

  test.each<[string, unknown, string]>([
    ['what it is', { type: 'overloaded_error', message: 'Overloaded' }, 'overloaded'],
    ['inside', { error: { message: 'no', code: 'rate_limit_exceeded' } }, 'rate-limit'],
    ['a word', 'the model is overloaded', 'overloaded'],
    ['a status', apiCall({ statusCode: 503, responseBody: 'high demand' }), 'overloaded'],
    [
      'what its package could not read',
      named('AI_TypeValidationError', 'Type validation failed', { value: { error: { message: 'no', type: 'overloaded_error' } } }),
      'overloaded',
    ],
    ['what nobody can read', named('AI_JSONParseError', 'JSON parsing failed:\n  Text: {'), 'broken-stream'],
    ['a mistake of its own', new TypeError("Cannot read properties of undefined (reading 'delta')"), 'broken-stream'],
    ['nothing', undefined, 'broken-stream'],
  ])('in an answer, told by a part or thrown: %s', async (_, error, kind) => {
    const told = await failing(ask(standIn([...said('Hi'), { type: 'error', error }, finish('error')])));
    expect(told.kind).toBe(kind);
    expect(told.options.usage).toEqual(counted);
    expect(told.message).not.toContain('\n');
    const thrown = new ReadableStream({
      start: (controller) => controller.enqueue(said('Hi')[0]),
      pull: (controller) => controller.error(error),
    });
    expect((await failing(ask(standIn(() => Promise.resolve({ stream: thrown }))))).kind).toBe(kind);
  });

  test('in an answer that had begun, a refusal that would be learnt from is none to ask again for', async () => {
    let requests = 0;
    const error = apiCall({ statusCode: 400, responseBody: "Unexpected role 'user' after role 'tool'" });
    const source = () => (requests++, Promise.resolve({ stream: ReadableStream.from([...said('Hi'), { type: 'error', error }]) }));
    expect((await failing(ask(standIn(source)))).kind).toBe('invalid-request');
    expect(requests).toBe(1);
  });

  test('a stream that only its raw chunks call a refusal', async () => {
    const raw = [{ type: 'raw', rawValue: { error: { code: 503, status: 'UNAVAILABLE', message: 'no' } } }, finish('other')];
    expect((await failing(ask(standIn(raw)))).kind).toBe('overloaded');
    const bedrock = [
      { type: 'raw', rawValue: { throttlingException: { message: 'Too many tokens, please wait before trying again.' } } },
      finish('error'),
    ];
    expect((await failing(ask(standIn(bedrock)))).kind).toBe('rate-limit');
  });

  test('a key that stands in the headers of its package is in no message', async () => {
    const model = {
      specificationVersion: 'v3',
      provider: 'p',
      modelId: 'm',
      supportedUrls: {},
      doStream: throwing(new Error('bad key hunter2hunter2')) as () => never,
      config: { headers: () => ({ Authorization: 'Bearer hunter2hunter2' }) },
    };
    const failure = await failing(ask((() => model) as unknown as AiSdkProvider));
    expect(inspect(failure, { depth: 9 })).not.toContain('hunter2');
  });

  test.each<[string, Source]>([
    ['no stream', () => Promise.resolve({})],
    ['nothing', () => undefined],
    ['a stream of another kind', () => Promise.resolve({ stream: [1, 2] })],
    ['a web page', () => Promise.resolve({ stream: ReadableStream.from([]), response: { headers: { 'content-type': 'text/html' } } })],
  ])('%s is no answer', async (_, source) => {
    expect((await failing(ask(standIn(source)))).kind).toBe('broken-stream');
  });
});

describe('what hangs is given up, whether it minds its signal or not', () => {
  const never = new Promise<never>(() => undefined);
  const silent = (): unknown =>
    Promise.resolve({ stream: new ReadableStream({ start: (c) => c.enqueue(said('Hi')[1]), cancel: () => never }) });
  const endless = (part: unknown) => (): unknown =>
    Promise.resolve({ stream: new ReadableStream({ pull: (controller) => controller.enqueue(part) }) });

  test.each<[string, Source, object]>([
    ['a request', () => never, { kind: 'timeout' }],
    ['a stream', silent, { kind: 'timeout' }],
    ['a flood of words', endless({ type: 'text-delta', id: '0', delta: 'x'.repeat(1_000_000) }), { kind: 'broken-stream' }],
    ['one giant', [{ type: 'text-delta', id: '0', delta: 'x'.repeat(40_000_000) }, END], { kind: 'broken-stream' }],
  ])('%s', async (_, source, wanted) => {
    expect(await failing(ask(standIn(source), {}, { idleMs: 100, totalMs: 60_000 }))).toMatchObject(wanted);
  });

  test('addresses that are never told', async () => {
    expect((await failing(ask(standIn([END], { urls: never }), {}, { idleMs: 100 }))).kind).toBe('timeout');
  });

  test.each<[string, Source, unknown[]]>([
    ['while it is awaited', () => never, []],
    [
      'in the middle: what was whole is kept',
      () =>
        Promise.resolve({
          stream: new ReadableStream({ start: (c) => [...said('Whole.', 'a'), said('half', 'b')[1]].forEach((part) => c.enqueue(part)) }),
        }),
      [{ kind: 'text', text: 'Whole.' }],
    ],
  ])('a stop %s', async (_, source, blocks) => {
    const stop = new AbortController();
    const asked = ask(standIn(source), {}, { signal: stop.signal });
    setTimeout(() => stop.abort(), 20);
    const error: unknown = await asked.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ModelInterrupted);
    expect((error as ModelInterrupted).blocks).toEqual(blocks);
  });

  test('a stream that comes after a stop is left', async () => {
    const stop = new AbortController();
    let left = false;
    let open = (_: unknown): void => {};
    const asked = ask(
      standIn(() => new Promise((resolve) => (open = resolve))),
      {},
      { signal: stop.signal },
    );
    await new Promise((resolve) => setTimeout(resolve, 5));
    stop.abort();
    await asked.catch(() => undefined);
    open({ stream: new ReadableStream({ cancel: () => void (left = true) }) });
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(left).toBe(true);
  });
});

test('whatever parts come: an answer that can stand in the next request, or a ModelFailure', async () => {
  const odd = fc.oneof(fc.string(), fc.integer(), fc.constant(undefined), fc.constant(null), fc.object({ maxDepth: 2 }));
  const id = fc.constantFrom('0', '1', '');
  const types = [
    'text-start',
    'text-delta',
    'text-end',
    'reasoning-start',
    'reasoning-delta',
    'reasoning-end',
    'tool-input-start',
    'tool-input-delta',
  ];
  const more = [
    'tool-input-end',
    'tool-call',
    'tool-result',
    'file',
    'custom',
    'source',
    'raw',
    'error',
    'finish',
    'response-metadata',
    'nobody-knows',
  ];
  const part = fc.record(
    {
      type: fc.constantFrom(...types, ...types, ...more),
      id: fc.oneof(id, id, odd),
      delta: fc.oneof(fc.string(), odd),
      toolCallId: fc.oneof(id, odd),
      toolName: fc.oneof(fc.constantFrom('f', 'g h'), odd),
      input: fc.oneof(fc.json(), odd),
      providerMetadata: fc.oneof(fc.constant({ p: { sig: 'x' } }), odd),
      error: odd,
      rawValue: odd,
      usage: odd,
      finishReason: fc.oneof(
        fc.constantFrom<unknown>('stop', { unified: 'tool-calls', raw: 'tool_use' }, { unified: 'stop', raw: 'x' }),
        odd,
      ),
    },
    { requiredKeys: ['type'] },
  );
  const tools = [{ name: 'f', description: '', inputSchema: {} }];
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 12 }), fc.constantFrom('v2', 'v3', 'v4'), fc.boolean(), async (parts, version, ends) => {
      const answer = await ask(standIn([...parts, ...(ends ? [END] : [])], { version }), { tools }).catch((error: unknown) => error);
      if (answer instanceof ModelFailure) return;
      const { blocks, stop } = answer as AssistantMessage;
      JSON.stringify(blocks);
      const results = blocks.flatMap((block) => (block.kind === 'tool-call' ? [result(block.callId, 'done', 'ok', block.name)] : []));
      const messages = normalize([user('a'), { role: 'assistant', blocks, stop, model: 'ai-sdk/m' }, ...results, user('b')], {
        provider: 'ai-sdk',
      });
      expect(await ask(standIn([...said('Hello.'), END], { version }), { messages, tools })).toMatchObject({ stop: 'end' });
    }),
    { numRuns: 200 },
  );
});
