/** The `notify` step: notifies the receivers in the worker's settings that a person is waited for, and how to answer. */
import { Context } from '@temporalio/activity';
import type { NotifyInput } from '../conversation/activity-io/tool-effects.js';
import { beginningOf } from '../records/text.js';
import { askedArguments } from '../memory/bodies.js';
import type { ConversationDependencies, Notice } from './dependencies.js';

const ARGUMENT_CHARACTERS = 2_000;

export async function notifyOfWait(dependencies: ConversationDependencies, input: NotifyInput): Promise<void> {
  const { notify } = dependencies;
  if (!notify) return;
  const notices = input.waiting.map((wait) => noticeOf(dependencies, input.title, wait));
  await notify(await Promise.all(notices), Context.current().cancellationSignal);
}

/** What people are shown of a wait, wherever they are. `shownId`: what commands take for the conversation. */
export async function noticeOf(
  { store, key, identity }: ConversationDependencies,
  title: string | null,
  wait: NotifyInput['waiting'][number],
  shownId: string = key.conversation,
): Promise<Notice> {
  const { callId, kind, tool, until } = wait;
  const given = (await askedArguments(store, key, wait)) ?? null;
  return {
    conversation: key.conversation,
    agent: identity.agent,
    title,
    callId,
    kind,
    tool,
    arguments: beginningOf(JSON.stringify(given), ARGUMENT_CHARACTERS),
    expiresAt: new Date(until).toISOString(),
    command: `perdura ${kind === 'question' ? 'answer' : 'approve'} ${shownId} ${callId}`,
  };
}
