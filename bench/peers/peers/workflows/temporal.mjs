import {
  allHandlersFinished,
  condition,
  continueAsNew,
  defineUpdate,
  proxyActivities,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';

const { callModel, lookup } = proxyActivities({ startToCloseTimeout: '1 minute' });

export async function chat(messages = []) {
  setHandler(defineUpdate('turn'), async (text) => {
    messages.push({ role: 'user', content: text });
    for (;;) {
      const { text: answer, call } = await callModel(messages);
      messages.push({ role: 'assistant', content: answer ?? '', call });
      if (!call) return answer;
      messages.push({ role: 'tool', content: await lookup(call.input) });
    }
  });
  await condition(() => workflowInfo().continueAsNewSuggested && allHandlersFinished());
  await continueAsNew(messages);
}
