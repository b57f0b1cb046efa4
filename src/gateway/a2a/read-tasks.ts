/** Tasks as Temporal and the store have them: one as it happens, one as it is now, and a list. */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { Conversations } from '../core/conversations.js';
import type { Submitted } from '../../client/turns/stream.js';
import { turnStream, withLooks, type TurnDelta } from '../core/turn-stream.js';
import { OLDEST } from '../../stores/feed-cursor.js';
import {
  isTerminal,
  decideState,
  renderTask,
  type Message,
  type Update,
  type TaskName,
  createTaskEvents,
  type TaskEvents,
  type TaskFacts,
  lastTime,
  type State,
  type Task,
  MAX_CONTEXT,
  readTaskId,
  taskName,
} from './task.js';
import type { Pending, PerduraClient } from '../../client.js';
import type { ClientError } from '../../client/errors.js';
import type { TurnResult } from '../../conversation/protocol/contract.js';
import { turnNumber, turnId } from '../../records/identity.js';
import type { Entry } from '../../records/message.js';
import { waitForEnd, readStatus, isOver, isRunning } from '../../client/turns/turn-status.js';
import { byTurn } from '../../records/turn-end.js';
import { toConversationId, readAs } from '../core/read-body.js';
import { invalid } from '../core/errors.js';

interface FollowingTask {
  readonly name: TaskName;
  readonly signal: AbortSignal;
  /** Ends where the task waits for a person: for clients that sent a message, and send the answer next. */
  readonly untilAsked: boolean;
}

/**
 * The task of a message that was just submitted, from its first event on. The first update is the task itself, the last has its final
 * state.
 */
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
  const deltas = turnStream(core.answer(submitted, AbortSignal.any([wanted.signal, left.signal])));
  try {
    const events = createTaskEvents(name);
    const { value: first } = await deltas.next();
    yield events.begin();
    yield* toUpdates(core, wanted, first ? after(first, deltas) : deltas, events);
  } finally {
    left.abort();
    void deltas.return().catch(() => undefined);
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

const BETWEEN_TRIES_MS = 1_000;

/** Rejects with `not-found` where there is no such task. `patienceMs`: of one that is about to end. */
export async function readTask(core: Conversations, name: TaskName, signal: AbortSignal, patienceMs?: number): Promise<TaskFacts> {
  const end = await waitForEnd(core, name, signal, patienceMs);
  if (end) return endedTask(core, name, end);
  const status = await readStatus(core.client, name.conversation);
  const isLatest = status?.turn === turnNumber(name.turn);
  const waiting = isLatest && status.pendingApprovals > 0 ? await core.client.approvals(name.conversation) : [];
  return {
    name,
    entries: await readEntries(core, name),
    waiting,
    isQueued: status !== null && turnNumber(name.turn) > status.turn,
  };
}

async function endedTask(core: Conversations, name: TaskName, { stopReason, error, text }: TurnResult): Promise<TaskFacts> {
  return { name, entries: await readEntries(core, name), waiting: [], end: { stopReason, text, ...(error && { error }) } };
}

async function readEntries({ client }: Conversations, { conversation, turn }: TaskName): Promise<readonly Entry[]> {
  return (await client.history(conversation)).filter((entry) => entry.turn === turn);
}

/** The calls that wait for a person. If no worker answers, it waits for one, since nothing goes on without one. */
async function waitingIn({ client }: Conversations, conversation: string, signal: AbortSignal): Promise<readonly Pending[]> {
  for (;;) {
    try {
      return await client.approvals(conversation);
    } catch (error) {
      signal.throwIfAborted();
      const { kind } = error as Partial<ClientError>;
      if (kind === 'not-found' || kind === 'closed') return [];
      if (kind !== 'no-worker' && kind !== 'unreachable') throw error;
      await sleep(BETWEEN_TRIES_MS, undefined, { signal });
    }
  }
}

/** Without a context: more would have to be read whole for each request. */
const MAX_CONVERSATIONS = 50;
const AT_ONCE = 10;

interface Listing {
  readonly contextId: string;
  /** Absent: any. */
  readonly state?: State;
  readonly pageSize?: number | undefined;
  readonly pageToken: string;
  readonly historyLength?: number | undefined;
  readonly statusTimestampAfter?: string | undefined;
  readonly includeArtifacts?: boolean | undefined;
}

const paging = z.object({
  pageSize: z.int().min(1).max(100).default(50),
  historyLength: z.int().min(0).optional(),
  statusTimestampAfter: z.iso.datetime({ offset: true }).optional(),
});

/** Tasks of a context, or of the conversations that began last. */
export async function listTasks(core: Conversations, wanted: Listing, signal: AbortSignal): Promise<object> {
  const { pageSize, historyLength = 0, statusTimestampAfter } = readAs(paging, wanted);
  if (wanted.contextId.length > MAX_CONTEXT) throw invalid(`contextId may have ${MAX_CONTEXT} characters`);
  const contexts =
    wanted.contextId === '' ? (await core.client.list({ limit: MAX_CONVERSATIONS })).map(({ id }) => id) : [wanted.contextId];
  const found: TaskFacts[] = [];
  for (let at = 0; at < contexts.length; at += AT_ONCE) {
    signal.throwIfAborted();
    found.push(...(await Promise.all(contexts.slice(at, at + AT_ONCE).map((context) => readTasks(core, context)))).flat());
  }
  const since = statusTimestampAfter === undefined ? -Infinity : Date.parse(statusTimestampAfter);
  const fit = found
    .filter((facts) => (wanted.state === undefined || decideState(facts) === wanted.state) && readTime(facts) >= since)
    .sort((a, b) => readTime(b) - readTime(a) || byTurn(b.name, a.name));
  const begin = wanted.pageToken === '' ? 0 : afterToken(fit, wanted.pageToken);
  const page = fit.slice(begin, begin + pageSize);
  return {
    tasks: page.map((facts) => listed(renderTask(facts, { historyLength }), wanted.includeArtifacts === true)),
    nextPageToken: begin + page.length < fit.length ? (page.at(-1)?.name.task ?? '') : '',
    pageSize,
    totalSize: fit.length,
  };
}

function listed({ artifacts, ...task }: Task, withArtifacts: boolean): object {
  return withArtifacts ? { ...task, artifacts } : task;
}

/** A token is the last task of the page before. */
function afterToken(fit: readonly TaskFacts[], token: string): number {
  const at = fit.findIndex(({ name }) => name.task === token);
  if (at >= 0) return at + 1;
  if (readTaskId(token)) return fit.length;
  throw invalid('pageToken is none of this gateway', 'pageToken');
}

function readTime({ entries }: TaskFacts): number {
  return lastTime(entries) ?? 0;
}

async function readTasks(core: Conversations, context: string): Promise<readonly TaskFacts[]> {
  const id = toConversationId(context);
  const { client } = core;
  if ((await isRunning(client, id)) === undefined) return [];
  const [entries, ends, status] = await Promise.all([client.history(id), client.turnEnds(id), runningStatus(client, id)]);
  const turns = [...new Set(entries.map(({ turn }) => turn))].sort((a, b) => byTurn({ turn: a }, { turn: b }));
  const latest = Math.max(status?.turn ?? 0, turnNumber(turns.at(-1) ?? turnId(0)));
  const waiting = status !== undefined && status !== null && status.pendingApprovals > 0 ? await client.approvals(id).catch(() => []) : [];
  return turns.map((turn): TaskFacts => {
    const task = { name: taskName(context, turn), entries: entries.filter((entry) => entry.turn === turn) };
    const end = ends.findLast((one) => one.turn === turn);
    const goesOn = status !== undefined && (status === null ? turnNumber(turn) === latest && end === undefined : !isOver(turn, status));
    if (goesOn) return { ...task, waiting: turnNumber(turn) === latest ? waiting : [] };
    return { ...task, waiting: [], end: { stopReason: end?.stopReason ?? 'end', text: '', ...(end?.error && { error: end.error }) } };
  });
}

/** Undefined where it has ended; null where no worker answers. */
async function runningStatus(client: PerduraClient, id: string) {
  return (await isRunning(client, id)) === true ? readStatus(client, id) : undefined;
}
