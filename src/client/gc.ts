/**
 * What keeps an installation from growing for ever: conversations that say after how many days of rest they are over are closed, and what is
 * old goes from the store to the archive.
 *
 * No conversation has a timer for that: ten thousand idle ones would be ten thousand timers in Temporal, each of which wakes a
 * worker and replays a history to find that someone has spoken since. One list a day finds the few that are due.
 *
 * - The age is that of the latest message in the store, or of the start, whichever came last.
 * - One is closed only when its workflow says that it is idle with nothing in its queue; what comes at the same moment is answered first.
 *   It consolidates its memory as `close` does.
 */
import { ScheduleAlreadyRunning, type Client, type ConnectionLike } from '@temporalio/client';
import type { AgentLoader } from '../agents/load-agent.js';
import type { GcOutcome } from '../conversation/outbox/webhook-effects.js';
import { readTenant } from '../records/identity.js';
import { archiveLife, sweepArchive } from '../stores/archive/collect.js';
import type { ConversationKey, Store } from '../stores/store.js';
import { GC_WORKFLOW_TYPE, WORKFLOW_TYPE } from '../workflows/messages.js';
import { firstRun, toMemo, type ErasureAccess } from './erasure/find.js';
import { closeIdle, lastMessage } from './erasure/retention.js';
import { openClient } from './temporal/encryption.js';

/** A running conversation that was idle for as long as it says, or its agent. */
export interface Overdue {
  readonly id: string;
  readonly days: number;
  readonly lastAt: Date;
}

export interface GcOptions {
  /** Days after which a life is archived; only where the store has an archive. */
  readonly archiveAfter: number;
  /** What agents say in `idle`. */
  readonly agents: AgentLoader;
  readonly now?: () => number;
  readonly stop?: AbortSignal | undefined;
  readonly onClosed?: (overdue: Overdue) => void;
  /** Why one that is due stays open. */
  readonly onKept?: (overdue: Overdue, why: string) => void;
  readonly onArchived?: (key: ConversationKey, entries: number) => void;
}

const DAY_MS = 86_400_000;

export async function collectGarbage(access: ErasureAccess, options: GcOptions): Promise<GcOutcome> {
  const outcome = { closed: 0, archived: 0, entries: 0, bodies: 0, plainBytes: 0, bytes: 0, removed: 0, adopted: 0, unknown: 0 };
  for (const overdue of await findOverdue(access, options)) {
    options.stop?.throwIfAborted();
    const why = await closeIdle(access.client, overdue.id);
    if (why !== undefined) {
      options.onKept?.(overdue, why);
      continue;
    }
    outcome.closed += 1;
    options.onClosed?.(overdue);
  }
  if (access.store.archived.place !== undefined) await archiveAll(access, options, outcome);
  return outcome;
}

/** Those that are to be closed, by one list of what runs. */
export async function findOverdue(
  { client, store, namespace, taskQueue }: ErasureAccess,
  { agents, now = Date.now }: GcOptions,
): Promise<Overdue[]> {
  const ofAgents = new Map<string, Promise<number | undefined>>();
  const findDays = (agent: string, scope: string): Promise<number | undefined> => {
    const name = JSON.stringify([readTenant(scope), agent]);
    // Of an agent that cannot be used now nothing is closed.
    const known =
      ofAgents.get(name) ??
      agents(agent, scope).then(
        ({ config }) => toDays(config.idle),
        () => undefined,
      );
    ofAgents.set(name, known);
    return known;
  };
  const overdue: Overdue[] = [];
  for await (const info of client.workflow.list({ query: `WorkflowType = '${WORKFLOW_TYPE}' AND ExecutionStatus = 'Running'` })) {
    const { scope, into } = toMemo(info);
    // Those of another queue have other agents, and may have another store.
    if (scope === undefined || into !== undefined || info.taskQueue !== taskQueue) continue;
    const { idle, agent } = info.memo ?? {};
    const days = toDays(idle) ?? (await findDays(typeof agent === 'string' ? agent : 'default', scope));
    const isDue = (at: number): boolean => days !== undefined && at + days * DAY_MS <= now();
    // The store is read only for those that are old enough by Temporal.
    if (days === undefined || !isDue(info.startTime.getTime())) continue;
    const last = await lastMessage(store, [{ namespace, scope, conversation: info.workflowId, life: firstRun(info) }]);
    const at = Math.max(info.startTime.getTime(), last);
    if (isDue(at)) overdue.push({ id: info.workflowId, days, lastAt: new Date(at) });
  }
  return overdue;
}

function toDays(idle: unknown): number | undefined {
  const days = typeof idle === 'string' ? /^([1-9]\d{0,3})d$/.exec(idle)?.[1] : undefined;
  return days === undefined ? undefined : Number(days);
}

type Counts = { -readonly [Name in keyof GcOutcome]: number };

async function archiveAll({ store, namespace }: ErasureAccess, options: GcOptions, outcome: Counts): Promise<void> {
  const { archiveAfter, now = Date.now, stop, onArchived } = options;
  const before = (now() - archiveAfter * DAY_MS) / 1000;
  const lives: ConversationKey[] = [];
  for (const scope of await store.scopes.list(namespace)) {
    for (const key of await store.scopes.lives({ namespace, scope })) {
      stop?.throwIfAborted();
      lives.push(key);
      const collected = await archiveLife(store, key, { before, isIdle: (await lastMessage(store, [key])) / 1000 < before, stop });
      if (collected.objects === 0) continue;
      outcome.archived += 1;
      outcome.entries += collected.entries;
      outcome.bodies += collected.bodies;
      outcome.plainBytes += collected.plain;
      outcome.bytes += collected.bytes;
      onArchived?.(key, collected.entries);
    }
  }
  const { removed, adopted, unknown } = await sweepArchive(store, namespace, lives, now());
  Object.assign(outcome, { removed, adopted, unknown });
}

interface Place {
  readonly connection: ConnectionLike;
  readonly namespace: string;
  readonly taskQueue: string;
}

/** For the activity `collect`. */
export function createCollect(
  { connection, namespace, taskQueue, store }: Place & { readonly store: Store },
  options: Pick<GcOptions, 'agents' | 'archiveAfter'>,
): (stop: AbortSignal) => Promise<GcOutcome> {
  const client: Client = openClient({ connection, namespace });
  return (stop) => collectGarbage({ client, namespace, taskQueue, store }, { ...options, stop });
}

export function gcSchedule(taskQueue: string): string {
  return `gc-${taskQueue}`;
}

/** Once a day; where there is such a schedule, it stays as it is. */
export async function scheduleGc({ connection, namespace, taskQueue }: Place): Promise<void> {
  const client = openClient({ connection, namespace });
  const id = gcSchedule(taskQueue);
  try {
    await client.schedule.create({
      scheduleId: id,
      spec: { intervals: [{ every: '1 day' }] },
      action: {
        ...{ type: 'startWorkflow', workflowType: GC_WORKFLOW_TYPE, workflowId: id, taskQueue, args: [] },
        staticSummary: 'ends conversations that are idle for as long as they say, and archives what is old',
      },
      policies: { overlap: 'SKIP', catchupWindow: '1 hour' },
    });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
  }
}
