/** The `notify` step: notifies the receivers in the worker's settings that a person is waited for, and how to answer. */
import { Context } from '@temporalio/activity';
import type { NotifyInput } from '../conversation/activity-io/tool-effects.js';
import { beginningOf } from '../records/text.js';
import { askedArguments } from '../memory/bodies.js';
import type { ConversationDependencies, Notice } from './dependencies.js';

const ARGUMENT_CHARACTERS = 2_000;

export async function notifyOfWait({ store, key, identity, notify }: ConversationDependencies, input: NotifyInput): Promise<void> {
  if (!notify) return;
  const { agent } = identity;
  const notices = input.waiting.map(async (wait): Promise<Notice> => {
    const { callId, kind, tool, until } = wait;
    const given = (await askedArguments(store, key, wait)) ?? null;
    return {
      conversation: key.conversation,
      agent,
      title: input.title,
      callId,
      kind,
      tool,
      arguments: beginningOf(JSON.stringify(given), ARGUMENT_CHARACTERS),
      expiresAt: new Date(until).toISOString(),
      command: `perdura ${kind === 'question' ? 'answer' : 'approve'} ${key.conversation} ${callId}`,
    };
  });
  await notify(await Promise.all(notices), Context.current().cancellationSignal);
}
