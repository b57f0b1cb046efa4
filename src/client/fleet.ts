/** All conversations together, for operators: the workers of a task queue, what has failed, and what was spent. */
import type { WorkflowService } from '@temporalio/client';
import type { Status } from '../conversation/protocol/contract.js';
import { truncate, oneLine } from '../records/text.js';
import { withCurrentStatus, type Standing, type ListOptions } from './listing.js';
import type { Listed } from './describe.js';
import { askedOnce, hasLiveWorker } from './temporal/worker-place.js';
import { readTenant } from '../records/identity.js';
import { sumSpending, sumSpendings, type SpendingGroup, type SpendingSum, type Spent } from '../records/spending.js';
import type { Store } from '../stores/store.js';

/** A worker, as Temporal has seen it. */
export interface WorkerSeen {
  /** `4711@host#store.agents`. */
  readonly identity: string;
  /** Its build, or `perdura@0.1.0+…`; null where Temporal does not say. */
  readonly version: string | null;
  readonly lastSeen: Date;
  /** Which of the two kinds of work it asks for. */
  readonly takes: readonly ('decisions' | 'activities')[];
  /** As the worker itself reports it; null where it or the server is of a version that does not. */
  readonly load: WorkerLoad | null;
}

/** How busy a worker is. */
export interface WorkerLoad {
  readonly activities: Slots;
  readonly decisions: Slots;
  readonly startedAt: Date | null;
  /** Conversations that it has in memory. */
  readonly cached: number;
}

export interface Slots {
  readonly used: number;
  readonly free: number;
  readonly done: number;
  readonly failed: number;
}

/** How much waits on a task queue. */
export interface QueueLoad {
  readonly of: 'decisions' | 'activities';
  /** Tasks that no worker has taken yet, about. */
  readonly backlog: number;
  /** Seconds that the oldest of them has waited. */
  readonly oldestS: number;
  /** Tasks a second. */
  readonly comes: number;
  readonly goes: number;
}

/** Who takes work, and how much waits. */
export interface Workers {
  readonly taskQueue: string;
  readonly workers: readonly WorkerSeen[];
  readonly queues: readonly QueueLoad[];
}

/** Failures of one kind. */
export interface FailureGroup {
  /** Stable, for programs: `auth`, `rate-limit`, `StoreUnavailable`, …; the end of a workflow as Temporal names it. */
  readonly kind: string;
  readonly count: number;
  /** What a person reads of the latest: what was attempted, on what, and what to do. */
  readonly message: string;
  /** They try again by themselves. */
  readonly isRetried: boolean;
  /** The latest, at most `MAX_NAMED`. */
  readonly conversations: readonly string[];
}

/** What has failed lately. */
export interface Failures {
  readonly failures: readonly FailureGroup[];
  /** Conversations that were looked at. */
  readonly looked: number;
  /** Those that did not answer in time. */
  readonly silent: number;
  readonly more: boolean;
}

/** Looks at all conversations and workers at once. */
export interface FleetClient {
  /** As `list`, each as it stands now where it answers in time: what Temporal's list says of turns, cost and status is older. */
  standing(options?: ListOptions): Promise<Standing[]>;
  /** Who takes work from the task queue, and how much of it waits. */
  workers(): Promise<Workers>;
  /** Conversations whose last turn failed, that wait to try again, or whose workflow did not end by itself; by kind, most first. */
  failures(options?: Pick<ListOptions, 'limit' | 'tenant' | 'idPrefix'>): Promise<Failures>;
}

export interface FleetAccess {
  readonly service: WorkflowService;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly list: (options?: ListOptions) => Promise<Listed[]>;
  readonly status: (id: string) => Promise<Status>;
  readonly within: <T>(ms: number, call: () => Promise<T>) => Promise<T>;
}

const MAX_NAMED = 20;
const MAX_ASKED = 200;
const AT_ONCE = 20;
const PATIENCE_MS = 3_000;
const MAX_MESSAGE = 1_000;
const KINDS = [
  ['decisions', 1],
  ['activities', 2],
] as const;

export function createFleet({ service, namespace, taskQueue, list, status, within }: FleetAccess): FleetClient {
  const hasWorker = (queue: string): Promise<boolean> => hasLiveWorker({ workflowService: service }, { namespace, taskQueue: queue });
  return {
    async standing(options) {
      return withCurrentStatus(await list(options), { statusOf: status, hasWorker });
    },

    async workers() {
      const [loads, ...queues] = await Promise.all([
        readLoads(service, { namespace, taskQueue }),
        ...KINDS.map(async ([of, type]) => {
          const answer = await service.describeTaskQueue({
            namespace,
            taskQueue: { name: taskQueue },
            taskQueueType: type,
            reportStats: true,
          });
          return { of, answer };
        }),
      ]);
      const seen = new Map<string, WorkerSeen>();
      for (const { of, answer } of queues) {
        for (const { identity, lastAccessTime, deploymentOptions, workerVersionCapabilities } of answer.pollers ?? []) {
          if (!identity) continue;
          const before = seen.get(identity);
          const lastSeen = new Date(Math.max(toMs(lastAccessTime), before?.lastSeen.getTime() ?? 0));
          const version =
            deploymentOptions?.buildId || workerVersionCapabilities?.buildId || before?.version || loads.get(identity)?.version || null;
          seen.set(identity, {
            identity,
            version,
            lastSeen,
            takes: [...(before?.takes ?? []), of],
            load: loads.get(identity)?.load ?? null,
          });
        }
      }
      return {
        taskQueue,
        workers: [...seen.values()].sort((a, b) => (a.identity < b.identity ? -1 : 1)),
        queues: queues.map(({ of, answer: { stats } }): QueueLoad => ({
          of,
          backlog: Number(stats?.approximateBacklogCount ?? 0),
          oldestS: Number(stats?.approximateBacklogAge?.seconds ?? 0),
          comes: stats?.tasksAddRate ?? 0,
          goes: stats?.tasksDispatchRate ?? 0,
        })),
      };
    },

    async failures({ limit = MAX_ASKED, ...whose } = {}) {
      const listed = await list({ ...whose, limit: Math.min(limit, MAX_ASKED) + 1 });
      const examined = listed.slice(0, Math.min(limit, MAX_ASKED));
      const found: { readonly kind: string; readonly message: string; readonly isRetried: boolean; readonly id: string }[] = [];
      let silent = 0;
      const isServed = askedOnce(hasWorker);
      const look = async ({ id, running, state, taskQueue: queue }: Listed): Promise<void> => {
        if (!running && state !== 'failed' && state !== 'timed-out' && state !== 'terminated') return;
        if (!running && state !== 'failed') {
          found.push({
            id,
            kind: state,
            isRetried: false,
            message: `the workflow was ${state === 'terminated' ? 'terminated from outside' : 'ended by its timeout'}`,
          });
          return;
        }
        const answer = (await isServed(queue)) ? await within(PATIENCE_MS, () => status(id)).catch(() => undefined) : undefined;
        if (answer === undefined) {
          if (state === 'failed')
            found.push({ id, kind: 'workflow-failed', isRetried: false, message: 'the workflow itself failed: Temporal has the reason' });
          else silent += 1;
          return;
        }
        const { waiting, lastError, phase } = answer;
        if (waiting?.kind === 'retry') found.push({ id, kind: waiting.reason, isRetried: true, message: waiting.message });
        else if (lastError && phase === 'idle') found.push({ id, kind: lastError.type, isRetried: false, message: lastError.message });
      };
      for (let at = 0; at < examined.length; at += AT_ONCE) await Promise.all(examined.slice(at, at + AT_ONCE).map(look));
      return { failures: grouped(found), looked: examined.length, silent, more: listed.length > examined.length };
    },
  };
}

function grouped(
  found: readonly { readonly kind: string; readonly message: string; readonly isRetried: boolean; readonly id: string }[],
): FailureGroup[] {
  const groups = new Map<string, FailureGroup>();
  for (const { kind, message, isRetried, id } of found) {
    const before = groups.get(kind);
    groups.set(kind, {
      kind,
      count: (before?.count ?? 0) + 1,
      message: before?.message ?? truncate(oneLine(message), MAX_MESSAGE),
      isRetried,
      conversations: [...(before?.conversations ?? []), id].slice(0, MAX_NAMED),
    });
  }
  return [...groups.values()].sort((a, b) => b.count - a.count || (a.kind < b.kind ? -1 : 1));
}

type Known = ReadonlyMap<string, { readonly version: string | null; readonly load: WorkerLoad }>;

/** Servers and workers of earlier versions do not say. */
async function readLoads(
  service: FleetAccess['service'],
  { namespace, taskQueue }: { readonly namespace: string; readonly taskQueue: string },
): Promise<Known> {
  const answer = await service.listWorkers({ namespace, pageSize: 500 }).catch(() => undefined);
  const heartbeats = (answer?.workersInfo ?? []).flatMap(({ workerHeartbeat }) => workerHeartbeat ?? []);
  const ofQueue = heartbeats.filter((one) => one.taskQueue === taskQueue);
  return new Map(
    ofQueue.map((one) => [
      one.workerIdentity ?? '',
      {
        version: one.deploymentVersion?.buildId || null,
        load: {
          activities: slotsIn(one.activityTaskSlotsInfo),
          decisions: slotsIn(one.workflowTaskSlotsInfo),
          startedAt: one.startTime ? new Date(toMs(one.startTime)) : null,
          cached: one.currentStickyCacheSize ?? 0,
        },
      },
    ]),
  );
}

interface ReportedSlots {
  readonly currentUsedSlots?: number | null;
  readonly currentAvailableSlots?: number | null;
  readonly totalProcessedTasks?: number | null;
  readonly totalFailedTasks?: number | null;
}

function slotsIn(slots: ReportedSlots | null | undefined): Slots {
  return {
    used: slots?.currentUsedSlots ?? 0,
    free: slots?.currentAvailableSlots ?? 0,
    done: slots?.totalProcessedTasks ?? 0,
    failed: slots?.totalFailedTasks ?? 0,
  };
}

function toMs(time: { readonly seconds?: unknown; readonly nanos?: number | null } | null | undefined): number {
  return Number(time?.seconds ?? 0) * 1000 + Math.floor((time?.nanos ?? 0) / 1e6);
}

// What has been spent, from the store: one record for each call that cost something.

/** What is summed up. */
export interface UsageOptions {
  /** Default: by model. */
  readonly by?: SpendingGroup;
  /** Of that moment and later. */
  readonly since?: Date;
  /** Only this tenant's; null: only that of no tenant. */
  readonly tenant?: string | null;
}

/** Sums of what was spent. */
export interface UsageReport {
  readonly by: SpendingGroup;
  /** ISO 8601; null: all that the store has. */
  readonly since: string | null;
  readonly sums: readonly SpendingSum[];
  readonly total: SpendingSum;
}

/** What models were paid for. */
export interface UsageClient {
  /** What all conversations of the namespace have spent, failed calls and those that came too late too; without deleted conversations. */
  usage(options?: UsageOptions): Promise<UsageReport>;
}

export function createUsage({ store, namespace }: { readonly store: () => Promise<Store>; readonly namespace: string }): UsageClient {
  return {
    async usage({ by = 'model', since, tenant } = {}) {
      const spent: Spent[] = [];
      for await (const one of (await store()).spendings.all({ namespace })) {
        const isWanted = tenant === undefined || (readTenant(one.scope) ?? null) === tenant;
        if (isWanted && (!since || one.at >= since.getTime())) spent.push(one);
      }
      return { by, since: since?.toISOString() ?? null, sums: sumSpendings(spent, by), total: sumSpending('total', spent) };
    },
  };
}
