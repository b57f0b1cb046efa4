/**
 * How long a provider may be silent. People with slow machines ask for it where nothing can be set (can1357/oh-my-pi#3301,
 * RooCodeInc/Roo-Code#3621): loading a model and reading a long prompt take minutes before the first byte.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { checkExtensions } from '../../src/extensions/user-config.js';
import type { Model, ModelFailure, ModelResponse, SilenceLimits, StreamOptions } from '../../src/models/model.js';
import { createModels, type ProviderOptions } from '../../src/models/providers.js';
import { request } from './builders.js';

/** So long that no test waits for it. */
const LONG_MS = 5_000;

let close: () => Promise<void> = async () => {};
afterEach(() => close());

async function serve(answer: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((asked, response) => asked.resume().on('end', () => answer(response)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function modelsAt(url: string, silence: ProviderOptions['silence']): ReturnType<typeof createModels> {
  const keyed = { apiKey: 'a-key', baseURL: url };
  return createModels({ anthropic: keyed, openai: keyed, gemini: keyed, ollama: { host: url }, ...(silence && { silence }) });
}

function ask(model: Model, more: Partial<StreamOptions> = {}): Promise<ModelResponse> {
  return model.stream(request({}), { signal: new AbortController().signal, onDelta: () => {}, totalMs: LONG_MS, ...more });
}

const failing = (asked: Promise<unknown>): Promise<ModelFailure> =>
  asked.then(
    (value) => Promise.reject(new Error(`it did not fail but said ${JSON.stringify(value)}`)),
    (error: unknown) => error as ModelFailure,
  );

const PROVIDERS = ['anthropic', 'openai', 'openai-responses', 'gemini', 'ollama'];

test.each(PROVIDERS)('a call of %s whose first byte does not come is given up when the setting says', async (provider) => {
  const url = await serve(() => {});
  const silence: SilenceLimits = { firstByteMs: 50, betweenBytesMs: LONG_MS };
  const { kind, message } = await failing(ask(modelsAt(url, { [provider]: silence, '*': {} })(`${provider}/some-model`)));
  expect([kind, message]).toEqual(['timeout', expect.stringContaining('nothing came for 0.05 s')]);
});

test.each(PROVIDERS)('an answer of %s that stops in its middle is given up by the other setting, by that of `*` too', async (provider) => {
  const url = await serve((response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).write('\n'));
  const silence: SilenceLimits = { firstByteMs: LONG_MS, betweenBytesMs: 50 };
  const { kind, message } = await failing(ask(modelsAt(url, { '*': silence })(`${provider}/some-model`)));
  expect([kind, message]).toEqual(['timeout', expect.stringContaining('nothing came for 0.05 s')]);
});

const LATE_MS = 300;

test('a first byte that comes late is waited for, however short the other limit is', async () => {
  const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' };
  const events = [
    { ...chunk, choices: [{ index: 0, delta: { content: 'late' }, finish_reason: null }] },
    { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: { prompt_tokens: 1, completion_tokens: 1 } },
  ];
  const body = `${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`;
  const url = await serve((response) => {
    setTimeout(() => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(body), LATE_MS);
  });
  // A server of one's own: of the first byte nothing is set.
  for (const silence of [{ betweenBytesMs: LATE_MS / 3 }, { firstByteMs: LONG_MS, betweenBytesMs: LATE_MS / 3 }]) {
    const answer = await ask(modelsAt(url, { openai: silence })('openai/some-model'));
    expect(answer).toMatchObject({ blocks: [{ kind: 'text', text: 'late' }], stop: 'end' });
  }
});

test('what a call says itself comes before the setting', async () => {
  const url = await serve(() => {});
  const models = modelsAt(url, { anthropic: { firstByteMs: LONG_MS } });
  expect((await failing(ask(models('anthropic/some-model'), { idleMs: 50 }))).message).toContain('nothing came for 0.05 s');
});

test('a custom provider is told the limits, and is itself in all else', async () => {
  class Own implements Model {
    readonly provider = 'own';
    readonly takesMustCall = true;
    readonly #window = 8_000;
    told: SilenceLimits | undefined;
    async contextWindow() {
      return { tokens: this.#window } as never;
    }
    async stream(_: unknown, { silence }: StreamOptions): Promise<ModelResponse> {
      this.told = silence;
      return { blocks: [], stop: 'end', usage: { inputTokens: this.#window, cachedTokens: 0, outputTokens: 0 } };
    }
  }
  const own = new Own();
  const model = createModels({ custom: { own }, silence: { own: { firstByteMs: 7 } } })('own/x');
  expect((await ask(model)).usage.inputTokens).toBe(8_000);
  expect(own.told).toEqual({ firstByteMs: 7 });
  expect(await model.contextWindow?.('x', undefined)).toEqual({ tokens: 8_000 });
  expect([model.provider, model.takesMustCall, model.textTools]).toEqual(['own', true, undefined]);
});

test.each<[string, unknown, RegExp]>([
  ['no object', 7, /^here: silence: /],
  ['a time of nothing', { openai: { firstByteMs: 0 } }, /silence\.openai\.firstByteMs/],
  ['half a millisecond', { openai: { betweenBytesMs: 1.5 } }, /silence\.openai\.betweenBytesMs/],
  ['more than any call may take', { ollama: { firstByteMs: 86_400_001 } }, /silence\.ollama\.firstByteMs/],
  ['a limit that nobody knows', { openai: { idleMs: 5 } }, /silence\.openai.*idleMs/],
  [
    'a provider that nobody knows',
    { opnai: { firstByteMs: 5 } },
    /silence: there is no provider "opnai"; there are: \*, anthropic, openai,/,
  ],
])('in perdura.config %s is refused with its place', (_, silence, words) => {
  expect(() => checkExtensions({ silence }, 'here')).toThrow(words);
});

test('in perdura.config each provider may have its own, a custom one too', () => {
  const own = { provider: 'own', stream: () => Promise.reject(new Error('never asked')) };
  const silence = { own: { firstByteMs: 5 }, 'openai-responses': { betweenBytesMs: 5 }, '*': {} };
  expect(checkExtensions({ providers: { own }, silence }, 'here').silence).toBe(silence);
});
