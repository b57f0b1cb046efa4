import { answerTokens, promptCut } from '../../src/models/model.js';
import { createOllamaModel, createWindows, DEFAULT_WINDOW, readShown, toContextWindow } from '../../src/models/ollama/client.js';
import { startOllamaApi } from '../support/provider-apis/ollama-api.js';
import { text } from '../support/provider-apis/reply.js';
import { request } from './builders.js';

const LLAMA = {
  model_info: { 'general.architecture': 'llama', 'llama.context_length': 131_072 },
  parameters: 'stop "<|eot|>"\nnum_ctx   16384',
};

test.each<[string, unknown, object]>([
  ['what the model was made for, and its own num_ctx', LLAMA, { most: 131_072, set: 16_384 }],
  ['the smaller part of two', { model_info: { 'a.context_length': 8_192, 'a.vision.context_length': 4_096 } }, { most: 4_096 }],
  ['no number', { model_info: { 'a.context_length': '8192' }, parameters: 'num_ctx many' }, {}],
  ['less than any model takes', { model_info: { 'a.context_length': 1 }, parameters: 'num_ctx 0' }, {}],
  ['more than any model takes', { model_info: { 'a.context_length': 1e12 }, parameters: 'num_ctx 99999999999' }, {}],
  ['nothing', {}, {}],
  ['another kind of thing', ['x'], {}],
])('what /api/show says: %s', (_, body, expected) => {
  expect(readShown(body)).toEqual(expected);
});

test.each<[string, object, number | undefined, number]>([
  ['the agent’s number', { most: 131_072, set: 16_384 }, 50_000, 50_000],
  ['never past what the model was made for', { most: 8_192 }, 50_000, 8_192],
  ['else the model’s own', { most: 131_072, set: 16_384 }, undefined, 16_384],
  ['else a default', { most: 131_072 }, undefined, DEFAULT_WINDOW],
  ['also of a small model', { most: 8_192 }, undefined, 8_192],
  ['and where the server said nothing', {}, undefined, DEFAULT_WINDOW],
])('the window: %s', (_, shown, wanted, tokens) => {
  expect(toContextWindow(shown, wanted)).toEqual({ tokens, isKnown: 'most' in shown });
});

test('an answer leaves most of a small window to the prompt', () => {
  expect([32_768, 16_384, 8_192].map((window) => answerTokens(8_192, window))).toEqual([8_192, 8_192, 2_048]);
});

test('far fewer tokens than were sent are a prompt that was cut; a few fewer, or a handful, are not', () => {
  expect(promptCut(20_000, 4_096)).toEqual({ sent: 20_000, read: 4_096 });
  // As much as the window has: the server has cut, however little.
  expect(promptCut(5_000, 4_096, 4_096)).toEqual({ sent: 5_000, read: 4_096 });
  expect(promptCut(5_000, 4_095, 4_096)).toBeUndefined();
  expect([promptCut(20_000, 10_000), promptCut(7_000, 4_096), promptCut(900, 20), promptCut(20_000, 0)]).toEqual(Array(4).fill(undefined));
});

test('num_ctx goes with each call, and the server is asked once', async () => {
  const api = await startOllamaApi({ shown: LLAMA, answer: () => text('Hi') });
  try {
    const model = createOllamaModel({ host: api.url });
    const first = await model.contextWindow?.('llama', 20_000);
    await model.contextWindow?.('llama', undefined);
    const ask = { signal: new AbortController().signal, onDelta: () => undefined };
    await model.stream(request({ model: 'llama', maxTokens: 4_000, contextWindow: first?.tokens ?? 0 }), ask);
    expect(api.hits.map(({ path }) => path)).toEqual(['/api/show', '/api/chat']);
    expect(api.hits[1]?.body?.['options']).toEqual({ num_ctx: 20_000, num_predict: 4_000 });
  } finally {
    await api.close();
  }
});

describe('a server that is of no help', () => {
  const windowsAt = (answer: () => Promise<Response>) => {
    let asked = 0;
    let now = 0;
    const fetch = (): Promise<Response> => ((asked += 1), answer());
    const windows = createWindows({ host: 'http://ollama', headers: {} }, { fetch, now: () => now });
    return { windows, asked: () => asked, wait: (ms: number) => (now += ms) };
  };

  test.each<[string, () => Promise<Response>]>([
    ['is away', () => Promise.reject(new TypeError('fetch failed'))],
    ['refuses', () => Promise.resolve(new Response('no', { status: 404 }))],
    ['sends a page', () => Promise.resolve(new Response('<html>'))],
    ['sends too much', () => Promise.resolve(new Response(JSON.stringify({ ...LLAMA, license: 'x'.repeat(5_000_000) })))],
  ])('that %s is no error', async (_, answer) => {
    expect(await windowsAt(answer).windows('m')).toEqual({});
  });

  test('is asked again after a minute, one that answered after ten', async () => {
    const away = windowsAt(() => Promise.reject(new TypeError('fetch failed')));
    const there = windowsAt(() => Promise.resolve(new Response(JSON.stringify(LLAMA))));
    for (const { windows, wait } of [away, there]) {
      await windows('m');
      await windows('m');
      wait(61_000);
      await windows('m');
    }
    expect([away.asked(), there.asked()]).toEqual([2, 1]);
    there.wait(600_000);
    await there.windows('m');
    expect(there.asked()).toBe(2);
  });

  test('remembers so many models and no more', async () => {
    const { windows, asked } = windowsAt(() => Promise.resolve(new Response(JSON.stringify(LLAMA))));
    for (let n = 0; n <= 64; n++) await windows(`m${n}`);
    await windows('m64');
    expect(asked()).toBe(65);
    await windows('m0');
    expect(asked()).toBe(66);
  });
});
