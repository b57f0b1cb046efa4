import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { tokenCounterBy, tokenCounterFor, findTokenizer } from '../../src/models/token-counter.js';
import { ends } from '../support/ends.js';

test.each([
  ['openai/gpt-6.1-sol', 'o200k_base'],
  ['openai/gpt-4o-mini-2024-07-18', 'o200k_base'],
  ['openai-responses/gpt-5.3-codex', 'o200k_base'],
  ['openai/o3', 'o200k_base'],
  ['openai/ft:gpt-4o-mini-2024-07-18:us::1', 'o200k_base'],
  ['openai/gpt-4-turbo', 'cl100k_base'],
  ['openai/gpt-3.5-turbo', 'cl100k_base'],
  ['openai/gpt-oss-120b', undefined],
  ['openai/qwen3', undefined],
  ['anthropic/claude-sonnet-5-5', undefined],
  ['gemini/gemini-2.5-pro', undefined],
  ['ollama/gpt-4o', undefined],
  ['nothing', undefined],
])('%s: %s', (model, tokenizer) => {
  expect(findTokenizer(model)).toBe(tokenizer);
});

test('a model without a public tokenizer is estimated, and so is one of a later version', async () => {
  for (const counter of [await tokenCounterFor('anthropic/claude-sonnet-5-5'), await tokenCounterBy('o900k_base')]) {
    expect(counter.by).toBe('estimate');
    expect(counter.count('今天天气很好')).toBe(6);
  }
});

/** As the published tokenizers count; characters over four would say 3, 2 and 10. */
test.each([
  ['o200k_base', 'hello world', 2],
  ['o200k_base', '今天天气很好', 4],
  ['cl100k_base', 'hello world', 2],
  ['cl100k_base', '今天天气很好', 8],
])('%s counts %j', async (tokenizer, text, tokens) => {
  const counter = await tokenCounterBy(tokenizer);
  expect(counter).toMatchObject({ by: tokenizer });
  expect(counter.count(text)).toBe(tokens);
});

test('what looks like a special token is counted as the text that it is', async () => {
  const { count } = await tokenCounterBy('o200k_base');
  expect(count('<|endoftext|>')).toBeGreaterThan(3);
});

test('long texts are counted piece by piece, about as the whole', async () => {
  const { count } = await tokenCounterBy('o200k_base');
  const text = 'The harbour master keeps the ledger of every ship. '.repeat(500);
  expect(count(text) / countTokens(text)).toBeCloseTo(1, 1);
});

/** Uncut, the library needs minutes for these. */
test.each([
  ['emoji', '😀'.repeat(60_000)],
  ['one letter', 'a'.repeat(200_000)],
  ['half characters', '\ud83d'.repeat(60_000)],
  ['spaces', ' '.repeat(200_000)],
])('no text without borders holds it up: %s', async (_, text) => {
  const { count } = await tokenCounterBy('o200k_base');
  expect(ends(() => count(text))).toBeGreaterThan(0);
});

test('a long text that is counted again is as long, also after many others', async () => {
  const { count } = await tokenCounterFor('openai/gpt-5');
  const texts = Array.from({ length: 50 }, (_, i) => `${i} harbour `.repeat(200));
  expect([...texts, ...texts].map(count)).toEqual([...texts, ...texts].map((text) => countTokens(text)));
});
