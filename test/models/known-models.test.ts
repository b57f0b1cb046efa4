import { execFileSync } from 'node:child_process';
import { createModels } from '../../src/models/providers.js';
import { costUsd, withCost, createModelLimits, knownModels, modelLimits, splitModel } from '../../src/models/known-models.js';
import { readFileSync } from 'node:fs';

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

test('each provider goes by the name before the slash', () => {
  const choose = createModels({});
  const names = ['anthropic', 'openai', 'openai-responses', 'gemini', 'ollama'];
  expect(names.map((name) => choose(`${name}/x`).provider)).toEqual(names);
  expect(thrown(() => choose('opanai/gpt'))).toEqual(failure('not-found', `Known ones: ${names.join(', ')}.`));
});

test('what a call costs: plain, cached, written to the cache, and output', () => {
  const usage = { inputTokens: 1_000_000, cachedTokens: 600_000, cacheWriteTokens: 300_000, outputTokens: 100_000 };
  // 100k at 2, 600k at 0.1, 300k at 2.5, 100k at 10 dollars a million
  expect(costUsd(modelLimits('anthropic/claude-sonnet-5-5'), usage)).toBeCloseTo(0.2 + 0.06 + 0.75 + 1, 10);
  // 100k of what is written are kept for an hour: at 4 dollars
  expect(withCost(modelLimits('anthropic/claude-sonnet-5-5'), { ...usage, hourWriteTokens: 100_000 })).toEqual({
    ...usage,
    costUsd: expect.closeTo(0.2 + 0.06 + 0.5 + 0.4 + 1, 10) as number,
  });
});

test('a long prompt costs more on every token where the model has such a price', () => {
  expect(costUsd(modelLimits('anthropic/claude-haiku-5-5'), { inputTokens: 100_000, cachedTokens: 0, outputTokens: 1_000 })).toBeCloseTo(
    0.0105,
    10,
  );
  expect(costUsd(modelLimits('anthropic/claude-haiku-5-5'), { inputTokens: 100_001, cachedTokens: 0, outputTokens: 1_000 })).toBeCloseTo(
    0.0525005,
    10,
  );
});

test('an unknown model has cautious limits, and a cost that is unknown rather than zero', () => {
  expect(modelLimits('anthropic/claude-next')).toEqual({
    contextTokens: 200_000,
    maxOutputTokens: 32_000,
    documents: true,
    price: null,
    compactionRatio: 0.8,
    safetyMargin: 2_000,
    answerSchema: false,
  });
  expect(costUsd(modelLimits('anthropic/claude-next'), { inputTokens: 1, cachedTokens: 0, outputTokens: 1 })).toBeNull();
});

test('what estimates miss grows with the window, and so does the margin for it', () => {
  const margins = ['openai/gpt-4o', 'anthropic/claude-haiku-4-5', 'openai/gpt-5', 'gemini/gemini-3.8-flash'];
  expect(margins.map((name) => modelLimits(name).safetyMargin)).toEqual([2_000, 2_000, 4_000, 10_485]);
});

test('of models on a computer of one’s own some have no tools, whatever their tag', () => {
  const names = ['ollama/gemma3', 'ollama/gemma3:12b-it-qat', 'ollama/llama3:8b', 'ollama/llama3.1', 'ollama/own/gemma3', 'openai/gemma3'];
  expect(names.map((name) => modelLimits(name).textTools)).toEqual(['xml', 'xml', 'xml', undefined, undefined, undefined]);
  expect(modelLimits('ollama/gemma3').price?.input).toBe(0);
});

test('a dated name is the same model', () => {
  expect(modelLimits('anthropic/claude-haiku-4-5-20251001')).toBe(modelLimits('anthropic/claude-haiku-4-5'));
});

test('both of OpenAI’s APIs have the same models, dated as it dates them', () => {
  const limits = modelLimits('openai/gpt-5.5');
  expect(limits).toMatchObject({ contextTokens: 1_050_000, price: { input: 5, cached: 0.5, output: 30 } });
  expect(modelLimits('openai-responses/gpt-5.5')).toBe(limits);
  expect(modelLimits('openai-responses/gpt-5.5-2026-04-23')).toBe(limits);
  expect(modelLimits('openai/gpt-5.5-mine').price).toBeNull();
});

test('a long prompt costs more with OpenAI and Gemini too', () => {
  const usage = { inputTokens: 300_000, cachedTokens: 0, outputTokens: 1_000 };
  expect(costUsd(modelLimits('openai/gpt-5.4'), usage)).toBeCloseTo(1.5 + 0.0225, 10);
  expect(costUsd(modelLimits('gemini/gemini-3.1-pro-preview'), usage)).toBeCloseTo(1.2 + 0.018, 10);
});

test('what runs in Ollama costs nothing', () => {
  expect(costUsd(modelLimits('ollama/llama4:scout'), { inputTokens: 1_000_000, cachedTokens: 0, outputTokens: 1_000 })).toBe(0);
});

test('what a user declares of a model stands before what is known: the exact name, then all of a provider', () => {
  const limits = createModelLimits({
    'acme/fast': { prices: { input: 2, output: 10, cached: 0.2 }, contextWindow: 16_000, maxOutputTokens: 2_000 },
    'acme/*': { prices: { input: 1, output: 1 } },
    'openai/gpt-5.4': { prices: { input: 1, output: 2 } },
  });
  const usage = { inputTokens: 1_000_000, cachedTokens: 600_000, cacheWriteTokens: 300_000, outputTokens: 100_000 };
  // 100k and 300k at 2, 600k at 0.2, 100k at 10 dollars a million
  expect(costUsd(limits('acme/fast'), usage)).toBeCloseTo(0.8 + 0.12 + 1, 10);
  expect(limits('acme/fast')).toMatchObject({ contextTokens: 16_000, maxOutputTokens: 2_000, safetyMargin: 1_000 });
  expect(costUsd(limits('acme/slow/er'), usage)).toBeCloseTo(1.1, 10);
  expect(limits('acme/slow')).toMatchObject({ contextTokens: 200_000, maxOutputTokens: 32_000 });
  // It has a higher price for long prompts, which a declared one replaces.
  expect(costUsd(limits('openai/gpt-5.4'), usage)).toBeCloseTo(1.2, 10);
  expect(limits('constructor').price).toBeNull();
  expect(limits('openai/gpt-5.5')).toBe(modelLimits('openai/gpt-5.5'));
});

test.each<[string, object]>([
  [
    'bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0',
    { contextTokens: 200_000, price: { input: 3, cached: 0.3, cacheWrite: 3.75, output: 15 } },
  ],
  ['amazon-bedrock/us.anthropic.claude-haiku-5-5', { contextTokens: 1_000_000, documents: true }],
  ['azure/gpt-5', { price: { input: 1.25, output: 10 }, answerSchema: true }],
  ['mistral/mistral-large-latest', { contextTokens: 262_144, price: { input: 0.5, cached: 0.05, output: 1.5 }, documents: false }],
  ['xai/grok-4.7', { contextTokens: 500_000, longPrompt: { overTokens: 200_000, price: { input: 4, cached: 1, output: 12 } } }],
  ['groq/openai/gpt-oss-20b', { contextTokens: 131_072 }],
  ['google-vertex/gemini-2.5-pro', { contextTokens: 1_048_576, documents: true }],
  ['vertex/claude-sonnet-4-5@20250929', { contextTokens: 200_000 }],
  ['google/gemini-2.5-flash', { price: { input: 0.3, output: 2.5 } }],
  ['openai/gpt-4o-2024-11-20', { contextTokens: 128_000, maxOutputTokens: 16_384, safetyMargin: 2_000 }],
])('%s is in the public table, whatever its provider is called here', (name, known) => {
  expect(modelLimits(name)).toMatchObject(known);
  expect(costUsd(modelLimits(name), { inputTokens: 1_000, cachedTokens: 0, outputTokens: 1_000 })).toBeGreaterThan(0);
});

test('what the table has no single price for has no price: another name, steps, thoughts that cost more than words', () => {
  const names = [
    'bedrock/anthropic.claude-next',
    'mistral/my-own',
    'alibaba/qwen3-max',
    'acme/gpt-4o',
    'azure/my-deployment',
    '/gpt-4o',
    'gpt-4o',
  ];
  expect(names.map((name) => modelLimits(name).price)).toEqual(names.map(() => null));
  expect(modelLimits('alibaba/qwen3-max').contextTokens).toBe(258_048);
});

test('a declared price stands before the table’s, and its long prompt', () => {
  const limits = createModelLimits({
    'xai/grok-4.7': { prices: { input: 1, output: 1 } },
    'mistral/*': { prices: { input: 1, output: 1 } },
  });
  const usage = { inputTokens: 300_000, cachedTokens: 0, outputTokens: 0 };
  expect(costUsd(limits('xai/grok-4.7'), usage)).toBeCloseTo(0.3, 10);
  expect(costUsd(limits('mistral/mistral-large-latest'), usage)).toBeCloseTo(0.3, 10);
});

test('every row of the table can be used: whole numbers of tokens, an answer inside the window, prices that are some', () => {
  const rows = readFileSync('data/models.txt', 'utf8')
    .trim()
    .split('\n')
    .filter((row) => !row.startsWith('#'));
  expect(rows.length).toBeGreaterThan(1_000);
  let provider = '';
  for (const row of rows) {
    const [name = '', ...rest] = row.split(' ');
    if (name.startsWith('[')) {
      provider = name.slice(1, -1);
      continue;
    }
    expect([3, 7, 12]).toContain(rest.length);
    const { contextTokens, maxOutputTokens, safetyMargin, price, longPrompt } = modelLimits(`${provider}/${name}`);
    expect([contextTokens, maxOutputTokens, safetyMargin].every((count) => Number.isSafeInteger(count) && count > 0)).toBe(true);
    for (const rate of [price, longPrompt?.price]) {
      if (!rate) continue;
      expect(Math.min(rate.input, rate.output)).toBeGreaterThan(0);
      // Some charge nothing for a cache.
      expect(Math.min(rate.cached, rate.cacheWrite)).toBeGreaterThanOrEqual(0);
    }
  }
});

test('what is offered for completion are names that people write', () => {
  const names = knownModels();
  expect(names).toEqual(expect.arrayContaining(['anthropic/claude-sonnet-5-5', 'openai/gpt-5.5', 'gemini/gemini-3.8-flash']));
  expect(names.length).toBe(new Set(names).size);
  expect(names.filter((name) => /bedrock|-\d{8}/.test(name))).toEqual([]);
});

test('the table is what its script has made', () => {
  expect(() => execFileSync(process.execPath, ['scripts/model-table.mjs'], { stdio: 'pipe' })).not.toThrow();
});
