/** What a conversation is for, as its messages say it (design section 4): what the tool `set_task` has pinned last, and its first message. */
import { pinnedAgain, type Task } from '../records/episodes.js';
import { isFromPerson, isNotice, shownText, type ConversationMessage } from '../records/message.js';
import { truncate } from '../records/text.js';
import { memoryBundle } from './compaction/snapshot.js';

const GOAL_CHARACTERS = 500;
/** As `memoryBundle` writes it, at the end of what it writes. */
const PINNED = /(?:^|\n\n)(\[TASK\]\n[^]*)$/;
const PINNED_GOAL = /^\[TASK\]\nGoal: ([^]*?)(?:\nOpen tasks:|$)/;

/** The session's first user message is its goal, unless the agent has pinned another. */
export function goalIn(messages: readonly ConversationMessage[]): string {
  const first = messages.find(isFromPerson);
  return first ? truncate(shownText(first.text), GOAL_CHARACTERS) : '';
}

/** As the tool `set_task` has pinned it; its goal is '' where none was ever set: then it is the session's first message. */
export function taskIn(messages: readonly ConversationMessage[]): Task | null {
  const done = new Set(messages.flatMap((message) => (message.role === 'tool' && message.outcome === 'ok' ? [message.callId] : [])));
  let pinned: Task | null = null;
  for (const message of messages) {
    if (message.role !== 'assistant') continue;
    for (const block of message.blocks) {
      if (block.kind !== 'tool-call' || block.name !== 'set_task' || !done.has(block.callId)) continue;
      const { goal, openTasks } = (block.input ?? {}) as { readonly goal?: unknown; readonly openTasks?: unknown };
      pinned = pinnedAgain(pinned, {
        goal: typeof goal === 'string' ? goal.trim() : '',
        openTasks: Array.isArray(openTasks) ? openTasks.filter((one): one is string => typeof one === 'string') : [],
      });
    }
  }
  return pinned;
}

/** Whether what stands before the messages of an epoch names the goal. */
export function namesGoal(base: string): boolean {
  return PINNED_GOAL.test(PINNED.exec(base)?.[1] ?? '');
}

/**
 * Of messages that leave a prompt and for which no summary stands: what they have pinned, as the end of the notice that says so; '' where
 * that is nothing. An earlier notice may be among them: wherever it stands, it has what left before all others of these, since the oldest
 * leave first. `isBeginning`: the session's first message is the first of these.
 */
export function describePins(leaving: readonly ConversationMessage[], isBeginning: boolean): string {
  const noticed = leaving.map((message) =>
    message.role === 'user' && isNotice(message) ? PINNED.exec(shownText(message.text))?.[1] : undefined,
  );
  const notice = noticed.findLast((text) => text !== undefined);
  const pinned = taskIn(leaving);
  if (notice !== undefined && pinned === null) return `\n\n${notice}`;
  const first = isBeginning ? goalIn(leaving) : '';
  const goal = pinned?.goal || (PINNED_GOAL.exec(notice ?? '')?.[1]?.replace(/\n {2}/g, '\n') ?? first);
  const text = memoryBundle({ goal, openTasks: pinned?.openTasks ?? [] });
  return text === '' ? '' : `\n\n${text}`;
}
