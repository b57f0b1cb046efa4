/** Streams of the AI SDK's interface that never wait and never end. */
import { aiSdk, type AiSdkProvider } from '../../src/models/ai-sdk/provider.js';
import { request } from './builders.js';

test.each<[string, (n: number) => unknown]>([
  ['nothing', () => ({})],
  ['new parts', (n) => ({ type: 'text-start', id: `${n}` })],
  ['pieces of one call', () => ({ type: 'tool-input-delta', id: 'a', delta: '{' })],
])('a flood of %s ends, and others on the worker have their turn meanwhile', async (_, part) => {
  let n = 0;
  const stream = new ReadableStream({ pull: (controller) => controller.enqueue(part(n++)) });
  const model = { specificationVersion: 'v3', provider: 'p', modelId: 'm', supportedUrls: {}, doStream: () => Promise.resolve({ stream }) };
  const turns: number[] = [];
  const others = setInterval(() => turns.push(n), 1);
  const asked = aiSdk((() => model) as unknown as AiSdkProvider).stream(request(), {
    signal: new AbortController().signal,
    onDelta: () => {},
  });
  await expect(asked).rejects.toMatchObject({ kind: 'broken-stream', message: expect.stringContaining('32 MiB') });
  clearInterval(others);
  expect(turns.length).toBeGreaterThan(5);
});
