import { createModels } from '../../src/models/choose.js';
import { costUsd, modelLimits, splitModel } from '../../src/models/registry.js';

const failure = (kind: string, message: RegExp | string): unknown =>
  expect.objectContaining({ name: 'ModelFailure', kind, message: expect.stringMatching(message) });

const thrown = (act: () => unknown): unknown => {
  try {
    return act();
  } catch (error) {
    return error;
  }
};

test('a model’s name is its provider and, after the first slash, its own', () => {
  expect(splitModel('anthropic/claude-sonnet-5-5')).toEqual({ provider: 'anthropic', model: 'claude-sonnet-5-5' });
  expect(splitModel('openrouter/meta/llama')).toEqual({ provider: 'openrouter', model: 'meta/llama' });
});

test.each(['claude-sonnet-5-5', '', '/claude', 'anthropic/', 'anthropic/ claude'])(
  '%j is no name of a model, and the setting is named',
  (name) => {
    expect(thrown(() => splitModel(name))).toEqual(failure('not-found', /PERDURA_MODEL.*agent\.json/));
  },
);

test('an unknown provider is answered with the known ones', () => {
  const choose = createModels({ anthropic: { apiKey: 'sk-ant-secret' } });
  expect(choose('anthropic/claude-sonnet-5-5').provider).toBe('anthropic');
  expect(choose('anthropic/claude-haiku-5-5')).toBe(choose('anthropic/claude-sonnet-5-5'));
  expect(thrown(() => choose('opanai/gpt'))).toEqual(failure('not-found', /no provider "opanai".*Known ones: anthropic/));
  expect(thrown(() => choose('constructor/gpt'))).toEqual(failure('not-found', /Known ones/));
});

test('what a call costs: plain, cached, written to the cache, and output', () => {
  const usage = { inputTokens: 1_000_000, cachedTokens: 600_000, cacheWriteTokens: 300_000, outputTokens: 100_000 };
  // 100k at 2, 600k at 0.1, 300k at 2.5, 100k at 10 dollars a million
  expect(costUsd('anthropic/claude-sonnet-5-5', usage)).toBeCloseTo(0.2 + 0.06 + 0.75 + 1, 10);
});

test('a long prompt costs more on every token where the model has such a price', () => {
  expect(costUsd('anthropic/claude-haiku-5-5', { inputTokens: 100_000, cachedTokens: 0, outputTokens: 1_000 })).toBeCloseTo(0.0105, 10);
  expect(costUsd('anthropic/claude-haiku-5-5', { inputTokens: 100_001, cachedTokens: 0, outputTokens: 1_000 })).toBeCloseTo(0.0525005, 10);
});

test('an unknown model has cautious limits, and a cost that is unknown rather than zero', () => {
  expect(modelLimits('anthropic/claude-next')).toEqual({ contextTokens: 200_000, maxOutputTokens: 32_000, price: null });
  expect(costUsd('anthropic/claude-next', { inputTokens: 1, cachedTokens: 0, outputTokens: 1 })).toBeNull();
});

test('a dated name is the same model', () => {
  expect(modelLimits('anthropic/claude-haiku-4-5-20251001')).toBe(modelLimits('anthropic/claude-haiku-4-5'));
});
