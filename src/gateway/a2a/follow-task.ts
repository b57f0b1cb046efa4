/** A task as it happens. The first update is the task itself, the last has its final state. */
import type { Conversations, Submitted } from '../core/conversations.js';
import { turnStream, withLooks, type TurnDelta } from '../core/turn-stream.js';
import { OLDEST } from '../../stores/feed-cursor.js';
import { endedTask, readTask, waitingIn } from './read-task.js';
import { isTerminal, decideState, renderTask } from './task.js';
import { createTaskEvents, type TaskEvents } from './task-events.js';
import type { TaskName } from './task-id.js';
import type { Message, Update } from './wire.js';

export interface FollowingTask {
  readonly name: TaskName;
  readonly signal: AbortSignal;
  /** Ends where the task waits for a person: for clients that sent a message, and send the answer next. */
  readonly untilAsked: boolean;
}

/** The task of a message that was just submitted, from its first event on. */
export async function* followSubmitted(
  core: Conversations,
  submitted: Submitted,
  sent: Message,
  wanted: FollowingTask,
): AsyncGenerator<Update, void> {
  const { name } = wanted;
  const status = { state: 'TASK_STATE_SUBMITTED' } as const;
  yield { task: { id: name.task, contextId: name.context, status, artifacts: [], history: [{ ...sent, taskId: name.task }] } };
  const left = new AbortController();
  try {
    const live = core.answer(submitted, AbortSignal.any([wanted.signal, left.signal]));
    const deltas = turnStream(live);
    const events = createTaskEvents(name);
    const { value: first } = await deltas.next();
    yield events.begin();
    yield* toUpdates(core, wanted, first ? after(first, deltas) : deltas, events);
  } finally {
    left.abort();
  }
}

/** A task that has begun before: its artifacts so far, then live. */
export async function* followTask(core: Conversations, wanted: FollowingTask): AsyncGenerator<Update, void> {
  const { name, signal, untilAsked } = wanted;
  const left = new AbortController();
  const edge = await core.client.newestCursor(name.conversation);
  const events = createTaskEvents(name);
  const live = core.attach({ id: name.conversation, turn: name.turn, after: OLDEST, signal: AbortSignal.any([signal, left.signal]) });
  const deltas = turnStream(live, edge);
  try {
    const { value: first } = await deltas.next();
    if (first) events.show(first.view);
    const facts = await readTask(core, name, signal);
    yield { task: isTerminal(facts) ? renderTask(facts) : renderTask(facts, { artifacts: events.artifacts() }) };
    if (isTerminal(facts) || (untilAsked && decideState(facts) === 'TASK_STATE_INPUT_REQUIRED')) return;
    const ended = first && { ...first, changes: first.changes.filter(({ kind }) => kind === 'finished') };
    yield* toUpdates(core, wanted, ended ? after(ended, deltas) : deltas, events);
  } finally {
    left.abort();
    void deltas.return().catch(() => undefined);
  }
}

type Deltas = AsyncGenerator<TurnDelta, void>;

async function* after(first: TurnDelta, rest: Deltas): Deltas {
  yield first;
  yield* rest;
}

/** The feed of a conversation has no questions of its sub-agents: where it is silent, they are looked for, less and less often. */
const FIRST_LOOK_MS = 1_000;

async function* toUpdates(
  core: Conversations,
  { name, signal, untilAsked }: FollowingTask,
  deltas: Deltas,
  events: TaskEvents,
): AsyncGenerator<Update, void> {
  const told = new Set<string>();
  const asks = async (): Promise<readonly Update[]> => {
    const waiting = await waitingIn(core, name.conversation, signal);
    // A repeated update would look like another question.
    const isNews = waiting.some(({ conversation, callId }) => !told.has(`${conversation} ${callId}`));
    for (const { conversation, callId } of waiting) told.add(`${conversation} ${callId}`);
    return isNews ? events.ask({ name, entries: [], waiting }) : [];
  };
  for await (const delta of withLooks<TurnDelta | Update>(deltas, asks, FIRST_LOOK_MS)) {
    if (!('changes' in delta)) {
      yield delta;
      if (untilAsked) return;
      continue;
    }
    yield* events.show(delta.view);
    for (const change of delta.changes) {
      if (change.kind === 'finished') return yield* events.end(await endedTask(core, name, change.result));
      yield* events.take(change);
    }
    if (delta.changes.every(({ kind }) => kind !== 'asked')) continue;
    const updates = await asks();
    yield* updates;
    if (updates.length > 0 && untilAsked) return;
  }
}
