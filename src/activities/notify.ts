/** The `notify` step: notifies the receivers in the worker's settings that a person is waited for, and how to answer. */
import { Context } from '@temporalio/activity';
import type { NotifyInput } from '../conversation/activity-io/tool-effects.js';
import { tenantOf } from '../records/scope.js';
import { beginningOf } from '../records/text.js';
import { askedArguments } from '../memory/bodies.js';
import type { ConversationDependencies, Notice } from './dependencies.js';
import { shownId } from './shown-id.js';

const ARGUMENT_CHARACTERS = 2_000;

export async function notifyOfWait(dependencies: ConversationDependencies, input: NotifyInput): Promise<void> {
  const { notify } = dependencies;
  if (!notify) return;
  const conversation = await shownId(dependencies, dependencies.key.conversation);
  const notices = input.waiting.map((wait) => noticeOf(dependencies, input.title, wait, conversation));
  await notify(await Promise.all(notices), Context.current().cancellationSignal);
}

/** What people are shown of a wait, wherever they are. `conversation`: what it is called there. */
export async function noticeOf(
  { store, key, identity }: ConversationDependencies,
  title: string | null,
  wait: NotifyInput['waiting'][number],
  conversation: string,
): Promise<Notice> {
  const tenant = tenantOf(identity.scope);
  const { callId, kind, tool, until } = wait;
  const given = (await askedArguments(store, key, wait)) ?? null;
  return {
    conversation,
    ...(tenant !== undefined && { tenant }),
    agent: identity.agent,
    title,
    callId,
    kind,
    tool,
    arguments: beginningOf(JSON.stringify(given), ARGUMENT_CHARACTERS),
    expiresAt: new Date(until).toISOString(),
    command: `perdura ${kind === 'question' ? 'answer' : 'approve'} ${tenant === undefined ? '' : `${tenant}/`}${conversation} ${callId}`,
  };
}
