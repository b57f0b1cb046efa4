/**
 * Conversations that are deleted by themselves: those that were over, or idle, for as many days as the installation keeps them. What
 * long-term memory has learnt of them stays (it is a person's, and goes with the person).
 *
 * - The age is that of the latest message in the store, of the start or of the end, whichever came last.
 * - One that runs is closed first, and only when its workflow says that it is idle with nothing in its queue: what comes at the same moment
 *   is answered, and then it is no longer due.
 * - One whose turns a younger fork reads stays until that goes.
 */
import { ScheduleAlreadyRunning, type Client, type ConnectionLike } from '@temporalio/client';
import { openClient } from '../temporal/encryption.js';
import { splitChildId } from '../../conversation/protocol/limits.js';
import type { RetentionOutcome } from '../../conversation/outbox/webhook-effects.js';
import { orUndefinedAfter } from '../../platform/promises.js';
import { readTenant } from '../../records/identity.js';
import { retentionDays, type Retention } from '../../records/time-in-words.js';
import type { ConversationKey, Store } from '../../stores/store.js';
import { closeSignal, RETENTION_WORKFLOW_TYPE, statusQuery, WORKFLOW_TYPE } from '../../workflows/messages.js';
import { unlessGone } from '../deletion.js';
import { ClientError } from '../errors.js';
import { deleteEnded, firstRun, list, toMemo, type ErasureAccess } from './find.js';

/** A conversation that is due. */
export interface Expired {
  readonly id: string;
  readonly scope: string;
  readonly lastAt: Date;
  readonly isRunning: boolean;
}

interface Candidate {
  scope: string;
  /** Epoch milliseconds. */
  at: number;
  isRunning: boolean;
  readonly lives: Map<string, ConversationKey>;
}

const DAY_MS = 86_400_000;
const ANSWER_MS = 10_000;
/** What waits in its queue is run out first. */
const CLOSE_MS = 60_000;

/** Those that are due at `now`, the oldest first. */
export async function findExpired(access: ErasureAccess, retention: Retention, now = Date.now()): Promise<Expired[]> {
  const { store, client, namespace, taskQueue } = access;
  const found = new Map<string, Candidate>();
  const note = (key: ConversationKey, at: number, isRunning: boolean): void => {
    const [id] = splitChildId(key.conversation);
    const known = found.get(id) ?? { scope: key.scope, at: 0, isRunning: false, lives: new Map<string, ConversationKey>() };
    found.set(id, known);
    known.at = Math.max(known.at, at);
    if (key.conversation !== id) return;
    known.lives.set(key.life, key);
    known.isRunning ||= isRunning;
  };
  for await (const info of list(client, WORKFLOW_TYPE)) {
    const { scope, into } = toMemo(info);
    // Those of another queue may have another store: what is kept of them would be lost half.
    if (scope === undefined || into !== undefined || info.taskQueue !== taskQueue) continue;
    const at = (info.closeTime ?? info.startTime).getTime();
    note({ namespace, conversation: info.workflowId, life: firstRun(info), scope }, at, info.status.name === 'RUNNING');
  }
  for (const scope of await store.scopes.list(namespace)) {
    if (findLimit(retention, scope) === null) continue;
    for (const key of await store.scopes.lives({ namespace, scope })) note(key, 0, false);
  }
  const due: Expired[] = [];
  for (const [id, candidate] of found) {
    const limit = findLimit(retention, candidate.scope);
    const isDue = (at: number): boolean => limit !== null && at + limit * DAY_MS <= now;
    // The store is read only for those that are old enough by Temporal.
    if (!isDue(candidate.at)) continue;
    const at = Math.max(candidate.at, await lastMessage(store, [...candidate.lives.values()]));
    if (at > 0 && isDue(at)) due.push({ id, scope: candidate.scope, lastAt: new Date(at), isRunning: candidate.isRunning });
  }
  return due.sort((a, b) => a.lastAt.getTime() - b.lastAt.getTime());
}

/** Deletes what is due; of each that stays `onKept` hears why. */
export async function deleteExpired(
  access: ErasureAccess,
  retention: Retention,
  {
    now = Date.now,
    stop,
    onDeleted = () => undefined,
    onKept = () => undefined,
  }: {
    readonly now?: () => number;
    readonly stop?: AbortSignal;
    readonly onDeleted?: (expired: Expired) => void;
    readonly onKept?: (expired: Expired, why: string) => void;
  } = {},
): Promise<RetentionOutcome> {
  let left = await findExpired(access, retention, now());
  const why = new Map<string, string>();
  let deleted = 0;
  // Again for as long as it helps: a fork that is due goes before what it reads.
  for (let before = Infinity; left.length > 0 && left.length < before;) {
    before = left.length;
    const kept: Expired[] = [];
    for (const expired of left) {
      stop?.throwIfAborted();
      const reason = await deleteOne(access, expired);
      if (reason === undefined) {
        deleted += 1;
        onDeleted(expired);
      } else {
        kept.push(expired);
        why.set(expired.id, reason);
      }
    }
    left = kept;
  }
  for (const expired of left) onKept(expired, why.get(expired.id) ?? '');
  return { deleted, kept: left.length };
}

/** Why it stays; undefined where it is gone. */
async function deleteOne(access: ErasureAccess, { id, scope, lastAt, isRunning }: Expired): Promise<string | undefined> {
  const { store, client, namespace } = access;
  if (isRunning) {
    const reason = await closeIdle(client, id, { memory: false });
    if (reason !== undefined) return reason;
    const lives = (await store.lives.list({ namespace, conversation: id, scope })).map((life) => ({ ...life, scope }));
    if ((await lastMessage(store, lives)) > lastAt.getTime()) return 'it was used just now';
  }
  try {
    await deleteEnded(access, id);
    return undefined;
  } catch (error) {
    if (error instanceof ClientError && error.kind === 'conflict') return error.message;
    if (error instanceof ClientError && error.kind === 'not-found') return undefined;
    throw error;
  }
}

/** Undefined once it has ended, or is gone. `memory: false`: what it has is not consolidated any more. */
export async function closeIdle(client: Client, id: string, how: { readonly memory?: false } = {}): Promise<string | undefined> {
  const handle = client.workflow.getHandle(id);
  const status = await client.withDeadline(Date.now() + ANSWER_MS, () => handle.query(statusQuery)).catch(() => undefined);
  if (status === undefined) return 'it runs, and its worker does not say what it does';
  if (status.phase !== 'idle' || status.queued > 0) return `it runs, and is ${status.phase}`;
  await unlessGone(handle.signal(closeSignal, how));
  const ended = handle.result().then(
    () => true,
    () => true,
  );
  return (await orUndefinedAfter(CLOSE_MS, ended)) === true ? undefined : 'it was told to end, and has not yet';
}

function findLimit(retention: Retention, scope: string): number | null {
  return retentionDays(retention, readTenant(scope));
}

/** Epoch milliseconds; 0 where there is none. */
export async function lastMessage(store: Pick<Store, 'entries'>, lives: readonly ConversationKey[]): Promise<number> {
  let latest = 0;
  for (const key of lives) {
    const { last } = await store.entries.page(key, 0, 1);
    const [entry] = last === 0 ? [] : await store.entries.read(key, [last]);
    latest = Math.max(latest, (entry?.ts ?? 0) * 1000);
  }
  return latest;
}

interface Place {
  readonly connection: ConnectionLike;
  readonly namespace: string;
  readonly taskQueue: string;
}

/** For the activity `retain`. */
export function createRetain(
  { connection, namespace, taskQueue, store }: Place & { readonly store: Store },
  retention: Retention,
): (stop: AbortSignal) => Promise<RetentionOutcome> {
  const client = openClient({ connection, namespace });
  return (stop) => deleteExpired({ client, namespace, taskQueue, store }, retention, { stop });
}

export function retentionSchedule(taskQueue: string): string {
  return `retention-${taskQueue}`;
}

/** Once a day; where there is such a schedule, it stays as it is. */
export async function scheduleRetention({ connection, namespace, taskQueue }: Place): Promise<void> {
  const client = openClient({ connection, namespace });
  const id = retentionSchedule(taskQueue);
  try {
    await client.schedule.create({
      scheduleId: id,
      spec: { intervals: [{ every: '1 day' }] },
      action: {
        ...{ type: 'startWorkflow', workflowType: RETENTION_WORKFLOW_TYPE, workflowId: id, taskQueue, args: [] },
        staticSummary: 'deletes conversations that were over or idle for longer than PERDURA_RETENTION says',
      },
      policies: { overlap: 'SKIP', catchupWindow: '1 hour' },
    });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
  }
}
