/** A task as it happens. The first update is the task itself, the last has its final state. */
import type { Conversations, Submitted } from '../core/conversations.js';
import { answerStream, type AnswerBatch } from '../core/turns/answer-stream.js';
import { orSilence } from '../../platform/promises.js';
import { OLDEST } from '../../stores/feed-cursor.js';
import { endedTask, readTask, waitingIn } from './read-task.js';
import { isTerminal, stateOf, taskOf } from './task.js';
import { createTaskEvents, type TaskEvents } from './task-events.js';
import type { TaskName } from './task-id.js';
import type { Message, Update } from './wire.js';

export interface FollowingTask {
  readonly name: TaskName;
  readonly signal: AbortSignal;
  /** Ends where a person is asked: for those who sent a message, and send the answer next. */
  readonly untilAsked: boolean;
}

/** What has just been submitted, from its first sign on. */
export async function* followSubmitted(
  core: Conversations,
  submitted: Submitted,
  said: Message,
  wanted: FollowingTask,
): AsyncGenerator<Update, void> {
  const { name } = wanted;
  const status = { state: 'TASK_STATE_SUBMITTED' } as const;
  yield { task: { id: name.task, contextId: name.context, status, artifacts: [], history: [{ ...said, taskId: name.task }] } };
  const left = new AbortController();
  try {
    const followed = core.answer(submitted, AbortSignal.any([wanted.signal, left.signal]));
    const batches = answerStream(followed);
    const events = createTaskEvents(name);
    const { value: first } = await batches.next();
    yield events.begin();
    yield* updatesOf(core, wanted, first ? after(first, batches) : batches, events);
  } finally {
    left.abort();
  }
}

/** What has begun before: what it has made so far, then live. */
export async function* followTask(core: Conversations, wanted: FollowingTask): AsyncGenerator<Update, void> {
  const { name, signal, untilAsked } = wanted;
  const left = new AbortController();
  const edge = await core.client.newestCursor(name.conversation);
  const events = createTaskEvents(name);
  const followed = core.attach({ id: name.conversation, turn: name.turn, after: OLDEST, signal: AbortSignal.any([signal, left.signal]) });
  const batches = answerStream(followed, edge);
  try {
    const { value: first } = await batches.next();
    if (first) events.show(first.view);
    const facts = await readTask(core, name, signal);
    yield { task: isTerminal(facts) ? taskOf(facts) : taskOf(facts, { artifacts: events.artifacts() }) };
    if (isTerminal(facts) || (untilAsked && stateOf(facts) === 'TASK_STATE_INPUT_REQUIRED')) return;
    const ended = first && { ...first, events: first.events.filter(({ kind }) => kind === 'finished') };
    yield* updatesOf(core, wanted, ended ? after(ended, batches) : batches, events);
  } finally {
    left.abort();
    void batches.return().catch(() => undefined);
  }
}

type Batches = AsyncGenerator<AnswerBatch, void>;

async function* after(first: AnswerBatch, rest: Batches): Batches {
  yield first;
  yield* rest;
}

async function* updatesOf(
  core: Conversations,
  { name, signal, untilAsked }: FollowingTask,
  batches: Batches,
  events: TaskEvents,
): AsyncGenerator<Update, void> {
  const told = new Set<string>();
  const asksOf = async (): Promise<readonly Update[]> => {
    const waiting = await waitingIn(core, name.conversation, signal);
    // One that is told again would look like another question.
    const isNews = waiting.some(({ conversation, callId }) => !told.has(`${conversation} ${callId}`));
    for (const { conversation, callId } of waiting) told.add(`${conversation} ${callId}`);
    return isNews ? [...events.ask({ name, entries: [], waiting })] : [];
  };
  let pause = FIRST_LOOK_MS;
  for await (const batch of orSilence(batches, () => pause)) {
    pause = batch === undefined ? Math.min(LAST_LOOK_MS, 2 * pause) : FIRST_LOOK_MS;
    if (batch !== undefined) yield* events.show(batch.view);
    for (const event of batch?.events ?? []) {
      if (event.kind === 'finished') return yield* events.end(await endedTask(core, name, event.result));
      yield* events.take(event);
    }
    if (batch?.events.every(({ kind }) => kind !== 'asked') === true) continue;
    const asked = await asksOf();
    yield* asked;
    if (asked.length > 0 && untilAsked) return;
  }
}

/** The feed of a conversation does not say what its sub-agents ask: where it is silent, that is looked for, less and less often. */
const FIRST_LOOK_MS = 1_000;
const LAST_LOOK_MS = 30_000;
