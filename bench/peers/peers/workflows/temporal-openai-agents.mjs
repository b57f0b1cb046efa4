import { Agent } from '@openai/agents-core';
import { activityAsTool, TemporalOpenAIRunner, WorkflowSafeMemorySession } from '@temporalio/openai-agents/workflow';
import { condition, defineUpdate, setHandler } from '@temporalio/workflow';

export async function chat() {
  const parameters = { type: 'object', properties: { q: { type: 'string' } }, required: ['q'], additionalProperties: false };
  const lookup = activityAsTool({ name: 'lookup', description: 'look up an item', parameters }, { startToCloseTimeout: '1 minute' });
  const agent = new Agent({ name: 'agent', instructions: 'You are a helpful agent.', tools: [lookup] });
  const session = new WorkflowSafeMemorySession();
  const runner = new TemporalOpenAIRunner();
  setHandler(defineUpdate('turn'), async (text) => (await runner.run(agent, text, { session })).finalOutput ?? '');
  await condition(() => false);
}
