import { withCountedInput } from '../../src/activities/model-step/call-model.js';
import type { ModelRequest, ModelResponse } from '../../src/models/model.js';

const REQUEST: ModelRequest = {
  ...{ model: 'm', maxTokens: 100, tools: [], system: 's'.repeat(400) },
  messages: [{ role: 'user', text: 'x'.repeat(4_000) }],
};
const answer = (inputTokens: number, stop: ModelResponse['stop'] = 'end'): ModelResponse => ({
  blocks: [{ kind: 'text', text: 'Yes.' }],
  stop,
  usage: { inputTokens, cachedTokens: 0, outputTokens: 2 },
});

test('of a provider that reports no input the messages are counted, with the system prompt and the tools', async () => {
  const { usage } = await withCountedInput(answer(0), REQUEST, 'own/m');
  expect(usage).toMatchObject({ cachedTokens: 0, outputTokens: 2 });
  expect(usage.inputTokens).toBeGreaterThanOrEqual(1_100);
  expect(usage.inputTokens).toBeLessThan(1_120);
});

test('what a provider reports counts, and an answer that was stopped is left as it is', async () => {
  expect((await withCountedInput(answer(7), REQUEST, 'own/m')).usage.inputTokens).toBe(7);
  expect((await withCountedInput(answer(0, 'interrupted'), REQUEST, 'own/m')).usage.inputTokens).toBe(0);
});
