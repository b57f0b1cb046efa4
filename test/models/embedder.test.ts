import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { cutText, MAX_TEXT_CHARS, readVectors, type Embedder } from '../../src/models/embedder.js';
import { createOllamaEmbedder } from '../../src/models/ollama/client.js';
import { createOpenAIEmbedder } from '../../src/models/openai/client.js';
import { createEmbedder } from '../../src/models/providers.js';
import { startEmbeddingsApi } from '../support/provider-apis/embeddings-api.js';

const never = new AbortController().signal;
const KEY = 'sk-test-0123456789';
const kinds: readonly (readonly [string, (url: string) => Embedder])[] = [
  ['openai', (url) => named('openai/text-embedding-3-small', { openai: { apiKey: KEY, baseURL: `${url}/v1` } })],
  ['ollama', (url) => named('ollama/nomic-embed-text', { ollama: { host: url } })],
];
const dot = (a: Float32Array | undefined, b: Float32Array | undefined): number =>
  [...(a ?? [])].reduce((sum, value, i) => sum + value * (b?.[i] ?? NaN), 0);

describe.each(kinds)('%s', (provider, create) => {
  test('one vector for each text, in order, of length 1', async () => {
    const api = await startEmbeddingsApi({ means: (word) => (word === 'automobile' ? 'car' : word) });
    try {
      const embedder = create(api.url);
      const { vectors, tokens } = await embedder.embed(['a red car', 'a red automobile', 'mountains'], { signal: never });
      expect(vectors.map((one) => dot(one, one).toFixed(4))).toEqual(['1.0000', '1.0000', '1.0000']);
      expect(dot(vectors[0], vectors[1])).toBeCloseTo(1);
      expect(dot(vectors[0], vectors[2])).toBeLessThan(0.5);
      expect([tokens, embedder.name.startsWith(`${provider}/`)]).toEqual([3, true]);
    } finally {
      await api.close();
    }
  });

  test.each<[string, unknown]>([
    ['one too few', { data: [], embeddings: [], usage: {} }],
    ['of two sizes', answers([[1], [1, 2]])],
    ['no numbers', answers([['x'], ['y']])],
    ['a number that is none', '{"data":[{"index":0,"embedding":[1e999]},{"index":1,"embedding":[1]}],"embeddings":[[1e999],[1]]}'],
    ['a vector without end', answers([new Array(100_000).fill(1), new Array(100_000).fill(1)])],
    ['no JSON', '<html>'],
    ['nothing', {}],
  ])('what it answers is not believed: %s', async (_, answer) => {
    const api = await startEmbeddingsApi({ answer: () => answer });
    try {
      const asked = create(api.url).embed(['a', 'b'], { signal: never });
      await expect(asked).rejects.toMatchObject({ name: 'ModelFailure', kind: 'broken-stream' });
    } finally {
      await api.close();
    }
  });

  test('a refusal is worded as those of models are, without the key', async () => {
    const api = await startEmbeddingsApi({ status: 401, answer: () => ({ error: { message: `wrong key ${KEY}` } }) });
    try {
      const error: Error = await create(api.url)
        .embed(['a'], { signal: never })
        .then(
          () => new Error('it answered'),
          (one: Error) => one,
        );
      expect(error).toMatchObject({ name: 'ModelFailure', kind: 'auth' });
      expect(`${error.message}${error.stack}${String(error.cause)}`).not.toContain(KEY);
    } finally {
      await api.close();
    }
  });

  test('a server that is silent ends in time, and with the signal', async () => {
    const server = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const embedder = create(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      await expect(embedder.embed(['a'], { signal: never, totalMs: 200 })).rejects.toMatchObject({ kind: 'timeout' });
      const abort = new AbortController();
      const asked = embedder.embed(['a'], { signal: abort.signal });
      setTimeout(() => abort.abort(new Error('enough')), 100);
      await expect(asked).rejects.toThrow('enough');
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  test('a long text is cut, never in the middle of a character', async () => {
    const api = await startEmbeddingsApi();
    try {
      await create(api.url).embed([`${'a'.repeat(MAX_TEXT_CHARS - 1)}😀😀`], { signal: never });
      expect(api.requests[0]?.texts).toEqual(['a'.repeat(MAX_TEXT_CHARS - 1)]);
      expect(cutText('short 😀')).toBe('short 😀');
    } finally {
      await api.close();
    }
  });
});

test('without a key nothing is asked', async () => {
  await expect(createOpenAIEmbedder('text-embedding-3-small', {}).embed(['a'], { signal: never })).rejects.toMatchObject({
    kind: 'missing-key',
  });
});

test('a price is known where it is the public API’s', () => {
  expect(createOpenAIEmbedder('text-embedding-3-small', { apiKey: KEY }).price).toBe(0.02);
  expect(createOpenAIEmbedder('text-embedding-3-small', { apiKey: KEY, baseURL: 'http://127.0.0.1:1' }).price).toBeUndefined();
  expect(createOllamaEmbedder('nomic-embed-text', {}).price).toBe(0);
});

test('zeros are like nothing', () => {
  expect(readVectors('x', [[0, 0]], 1)).toEqual([new Float32Array([0, 0])]);
});

/** As `embedder` of a configuration names it. */
function named(wanted: string, options: Parameters<typeof createEmbedder>[1]): Embedder {
  const embedder = createEmbedder(wanted, options);
  if (!embedder) throw new Error(`no embedder ${wanted}`);
  return embedder;
}

/** In the form of both APIs. */
function answers(vectors: unknown[]): object {
  return { data: vectors.map((embedding, index) => ({ index, embedding })), embeddings: vectors, usage: {} };
}
