import { temporalProvider } from '@temporalio/ai-sdk/workflow';
import {
  allHandlersFinished,
  condition,
  continueAsNew,
  defineUpdate,
  proxyActivities,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { generateText, isStepCount, tool } from 'ai';
import { z } from 'zod';

const { lookup } = proxyActivities({ startToCloseTimeout: '1 minute' });

export async function chat(messages = []) {
  setHandler(defineUpdate('turn'), async (text) => {
    messages.push({ role: 'user', content: text });
    const { text: answer, responseMessages } = await generateText({
      model: temporalProvider.languageModel('scripted'),
      instructions: 'You are a helpful agent.',
      messages,
      tools: {
        lookup: tool({ description: 'look up an item', inputSchema: z.object({ q: z.string() }), execute: (input) => lookup(input) }),
      },
      stopWhen: isStepCount(5),
    });
    messages.push(...responseMessages);
    return answer;
  });
  await condition(() => workflowInfo().continueAsNewSuggested && allHandlersFinished());
  await continueAsNew(messages);
}
