import { Agent } from '@openai/agents-core';
import { activityAsTool, TemporalOpenAIRunner, WorkflowSafeMemorySession } from '@temporalio/openai-agents/workflow';
import { allHandlersFinished, condition, continueAsNew, defineUpdate, setHandler, workflowInfo } from '@temporalio/workflow';

export async function chat(initialItems = []) {
  const parameters = { type: 'object', properties: { q: { type: 'string' } }, required: ['q'], additionalProperties: false };
  const lookup = activityAsTool({ name: 'lookup', description: 'look up an item', parameters }, { startToCloseTimeout: '1 minute' });
  const agent = new Agent({ name: 'agent', instructions: 'You are a helpful agent.', tools: [lookup] });
  const session = new WorkflowSafeMemorySession({ initialItems });
  const runner = new TemporalOpenAIRunner();
  setHandler(defineUpdate('turn'), async (text) => (await runner.run(agent, text, { session })).finalOutput ?? '');
  await condition(() => workflowInfo().continueAsNewSuggested && allHandlersFinished());
  await continueAsNew(await session.getItems());
}
