import { compactionRatio, inputBudget, limitedTo } from '../../src/activities/model-step/prompt-budget.js';
import { createModelLimits, modelLimits } from '../../src/models/known-models.js';
import { agentConfigSchema, type AgentConfig } from '../../src/agents/agent-config.js';

const agent = (context: object = {}, maxTokens = 8_000): AgentConfig => agentConfigSchema.parse({ maxTokens, context });

describe('the room for a prompt is what a model takes, less the answer and a margin', () => {
  test.each<[string, string, object, number]>([
    ['the model’s own', 'anthropic/claude-sonnet-5-5', {}, 1_000_000 - 8_000 - 10_000],
    ['of a model that nobody knows', 'own/model', {}, 200_000 - 8_000 - 2_000],
    ['the agent’s margin', 'anthropic/claude-sonnet-5-5', { safetyMargin: 500 }, 1_000_000 - 8_000 - 500],
    ['no margin', 'own/model', { safetyMargin: 0 }, 200_000 - 8_000],
    ['the agent’s window, and the margin of that one', 'anthropic/claude-sonnet-5-5', { maxTokens: 20_000 }, 20_000 - 8_000 - 2_000],
    ['never nothing', 'own/model', { maxTokens: 5_000 }, 1_000],
  ])('%s', (_, model, context, expected) => {
    expect(inputBudget(agent(context), modelLimits(model))).toBe(expected);
  });
});

test('an answer of a model whose window is declared leaves room for the question', () => {
  const limits = createModelLimits({ 'own/small': { contextWindow: 8_000 } })('own/small');
  const config = limitedTo(agent(), 'own/small', limits);
  expect(config.maxTokens).toBe(2_000);
  expect(inputBudget(config, limits)).toBe(8_000 - 2_000 - 500);
});

test('older turns become memory from a share on that the agent says, or the model', () => {
  expect(compactionRatio(agent(), modelLimits('own/model'))).toBe(0.8);
  expect(compactionRatio(agent({ compactionRatio: 0.5 }), modelLimits('own/model'))).toBe(0.5);
});
