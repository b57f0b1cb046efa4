/** Of a model's answer nothing is passed on that is a secret, neither at its end nor while it comes. */
import { createModelLimits, type Models } from '../../src/models/known-models.js';
import { ModelFailure, ModelInterrupted, type Model, type ModelDelta, type ModelResponse } from '../../src/models/model.js';
import { modelsWithoutSecrets } from '../../src/models/without-secrets.js';
import { createKnownSecrets } from '../../src/platform/known-secrets.js';
import type { AssistantBlock } from '../../src/records/message.js';
import { request } from './builders.js';

const KEY = 'sk-or-v1-Zk9q7Wm2LxT4vBn8RcY1dHs6JfPgKe3UaXo5iEw0QtVyNlM';
const usage = { inputTokens: 1, cachedTokens: 0, outputTokens: 1 };

function wrapped(model: Partial<Model>): Model {
  const whole: Model = { provider: 'p', stream: () => Promise.reject(new Error('unused')), ...model };
  const models: Models = Object.assign(() => whole, { limits: createModelLimits() });
  return modelsWithoutSecrets(models, createKnownSecrets([KEY]))('p/m');
}

async function answerOf(blocks: readonly AssistantBlock[], deltas: readonly ModelDelta[] = []): Promise<[ModelResponse, ModelDelta[]]> {
  const seen: ModelDelta[] = [];
  const model = wrapped({
    stream: (_request, { onDelta }) => {
      deltas.forEach(onDelta);
      return Promise.resolve({ blocks, stop: 'end' as const, usage });
    },
  });
  const { signal } = new AbortController();
  return [await model.stream(request({}), { signal, onDelta: (delta) => void seen.push(delta) }), seen];
}

test('blocks: words are taken out, a signature goes with what was signed, and what only its maker reads goes as a whole', async () => {
  const untouched: AssistantBlock[] = [
    { kind: 'thinking', text: 'hm', signature: 's', provider: 'p' },
    { kind: 'opaque', provider: 'p', value: { data: 'x' } },
  ];
  const [{ blocks }] = await answerOf([
    ...untouched,
    { kind: 'text', text: `it is ${KEY}.` },
    { kind: 'thinking', text: KEY, signature: 's', provider: 'p' },
    { kind: 'opaque', provider: 'p', value: { data: KEY } },
    { kind: 'tool-call', callId: 'c', name: 'say', input: { to: [KEY], [KEY]: 1 } },
  ]);
  expect(blocks).toEqual([
    ...untouched,
    { kind: 'text', text: 'it is [redacted].' },
    { kind: 'thinking', text: '[redacted]', provider: 'p' },
    { kind: 'tool-call', callId: 'c', name: 'say', input: { to: ['[redacted]'], '[redacted]': 1 } },
  ]);
  expect(blocks[0]).toBe(untouched[0]);
});

test('pieces: none has a part of it, also where it is cut across them or broken off', async () => {
  const pieces = (kind: 'text' | 'thinking', words: string): ModelDelta[] =>
    (words.match(/.{1,7}/gs) ?? []).map((text) => ({ kind, text }));
  const [, seen] = await answerOf(
    [],
    [
      ...pieces('thinking', `hm ${KEY} `),
      ...pieces('text', `it is ${KEY} so`),
      { kind: 'tool-call', name: KEY },
      ...pieces('text', KEY.slice(0, 40)),
    ],
  );
  const joined = (kind: string): string => seen.map((one) => (one.kind === kind && 'text' in one ? one.text : '')).join('');
  expect([joined('thinking'), joined('text')]).toEqual(['hm [redacted] ', 'it is [redacted] so[redacted]']);
  expect(seen).toContainEqual({ kind: 'tool-call', name: '[redacted]' });
});

test('failures: the words, and what caused them, also of another provider’s key', async () => {
  const { signal } = new AbortController();
  const failing = (error: Error): Promise<unknown> =>
    wrapped({ stream: () => Promise.reject(error) })
      .stream(request({}), { signal, onDelta: () => undefined })
      .catch((caught: unknown) => caught);
  const cause = new Error(`no ${KEY}`);
  const failure = (await failing(new ModelFailure('auth', `401 ${KEY}`, { status: 401, cause }))) as ModelFailure;
  expect(failure).toMatchObject({ kind: 'auth', message: '401 [redacted]', options: { status: 401 } });
  expect(String((failure.options.cause as Error).stack)).not.toContain(KEY.slice(8));
  const stopped = (await failing(new ModelInterrupted([{ kind: 'text', text: KEY }], usage))) as ModelInterrupted;
  expect(stopped).toMatchObject({ name: 'ModelInterrupted', blocks: [{ kind: 'text', text: '[redacted]' }], usage });
});
