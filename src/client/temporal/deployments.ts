/**
 * Builds of the workers (Temporal's Worker Versioning): which one takes new runs, how an operator changes that, and when a run is to move.
 *
 * Every run is pinned to the build that began it. Between turns a workflow asks its worker whether new runs would begin on another
 * (`watchRouting`); if so, the run hands over, and Temporal gives the next one its build. No history is replayed by a build that did not make
 * it. The rule needs no more of a server than Temporal 1.28: what newer ones say of it by themselves, those before 1.31 do not.
 *
 * @rule client/moves-once: Only a run that began before the routing changed moves. One that began after it is where Temporal wants it,
 *   whatever a worker knows that looked at the routing before; and it does not move again and again. (test: test/client/deployments.test.ts)
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowService } from '@temporalio/client';
import { optionalTsToMs } from '@temporalio/common/lib/time.js';
import { errorMessage } from '../../platform/errors.js';
import { MEMORY_WORKFLOW_TYPE } from '../../conversation/protocol/memory-contract.js';
import { UPGRADE_MARK, upgradeSignal, WORKFLOW_TYPE } from '../../workflows/messages.js';
import { ClientError, toClientError } from '../errors.js';

/** A build of the workers of a deployment, as `TEMPORAL_DEPLOYMENT_NAME` and `TEMPORAL_WORKER_BUILD_ID` name it. */
export interface WorkerBuild {
  readonly deploymentName: string;
  readonly buildId: string;
}

/** Where new runs of a task queue begin. */
export interface Routing {
  /** Null: on workers without a build. */
  readonly current: WorkerBuild | null;
  readonly ramping: WorkerBuild | null;
  /** Of conversations that the ramping build gets. */
  readonly percentage: number;
  /** When `current` or `ramping` came to be, or its percentage: epoch milliseconds of Temporal's clock. A ramp that is over leaves no time. */
  readonly changedAt: number;
}

type Queue = { readonly namespace: string; readonly taskQueue: string };
type Version = { readonly deploymentName?: string | null; readonly buildId?: string | null } | null | undefined;

const POLL_MS = 5_000;

export async function readRouting(service: Pick<WorkflowService, 'describeTaskQueue'>, { namespace, taskQueue }: Queue): Promise<Routing> {
  const { versioningInfo } = await service.describeTaskQueue({ namespace, taskQueue: { name: taskQueue }, taskQueueType: 1 });
  return {
    current: toBuild(versioningInfo?.currentDeploymentVersion),
    ramping: toBuild(versioningInfo?.rampingDeploymentVersion),
    percentage: versioningInfo?.rampingVersionPercentage ?? 0,
    changedAt: optionalTsToMs(versioningInfo?.updateTime) ?? 0,
  };
}

/**
 * Whether a run that `build` works, begun at `startedAt`, might begin elsewhere if it began now (client/moves-once).
 *
 * @param seenAt when this worker first saw the routing: a run that began later began by a newer one
 */
export function isElsewhere(build: WorkerBuild, routing: Routing, seenAt: number, startedAt: number): boolean {
  const taking = takingBuilds(routing);
  if (!taking.some((one) => isSame(build, one))) return startedAt < seenAt;
  // Which of two builds takes it, Temporal decides by its id.
  return taking.length > 1 && startedAt < routing.changedAt;
}

function takingBuilds({ current, ramping, percentage }: Routing): readonly (WorkerBuild | null)[] {
  if (percentage <= 0 || ramping === null) return [current];
  return percentage >= 100 ? [ramping] : [current, ramping];
}

/** What a worker answers its workflows (`patchActivationCallback` of the SDK), by what Temporal answered a few seconds ago. */
export interface RoutingWatch {
  readonly decide: (question: { readonly patchId: string; readonly workflowInfo: { readonly runStartTime: Date } }) => boolean;
  close(): void;
}

export function watchRouting(
  service: Pick<WorkflowService, 'describeTaskQueue'>,
  {
    build,
    warn,
    pollMs = POLL_MS,
    ...queue
  }: Queue & { readonly build: WorkerBuild; readonly warn: (line: string) => void; readonly pollMs?: number },
): RoutingWatch {
  let routing: Routing | undefined;
  let seenAt = 0;
  let isWarned = false;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  const look = async (): Promise<void> => {
    try {
      const now = await readRouting(service, queue);
      if (JSON.stringify(now) !== JSON.stringify(routing)) seenAt = Date.now();
      if (routing === undefined && !takingBuilds(now).some((one) => isSame(build, one))) warn(describeIdle(build, now));
      routing = now;
      isWarned = false;
    } catch (error) {
      if (!isWarned && !isClosed)
        warn(
          `cannot see which build takes new runs of task queue ${queue.taskQueue}, so conversations stay on this one: ${errorMessage(error)}`,
        );
      isWarned = true;
    }
    if (!isClosed) timer = setTimeout(() => void look(), pollMs).unref();
  };
  void look();
  return {
    // Every other mark is one of the code's, which a new run always has.
    decide: ({ patchId, workflowInfo }) =>
      !patchId.startsWith(UPGRADE_MARK) ||
      (routing !== undefined && isElsewhere(build, routing, seenAt, workflowInfo.runStartTime.getTime())),
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

function describeIdle({ deploymentName, buildId }: WorkerBuild, { current }: Routing): string {
  const others = current === null ? 'workers without a build do' : `build ${current.buildId} does`;
  return `build ${buildId} of ${deploymentName} takes no new conversations yet: ${others}; \`perdura upgrade current ${buildId}\` changes that`;
}

function toBuild(version: Version): WorkerBuild | null {
  return version?.buildId ? { deploymentName: version.deploymentName ?? '', buildId: version.buildId } : null;
}

function isSame(a: WorkerBuild, b: WorkerBuild | null): boolean {
  return a.buildId === b?.buildId && a.deploymentName === b.deploymentName;
}

// What an operator sees and changes.

export interface BuildStanding {
  readonly build: string;
  /** `draining`: conversations are on it still; `drained`: its workers may go. */
  readonly status: 'current' | 'ramping' | 'draining' | 'drained' | 'inactive';
  /** Those that have polled in the last minute. */
  readonly workers: number;
  /** Open conversations whose present run is on it. */
  readonly conversations: number;
}

export interface DeploymentStanding {
  readonly deployment: string;
  readonly current: string | null;
  readonly ramping: { readonly build: string; readonly percentage: number } | null;
  /** Newest first. */
  readonly builds: readonly BuildStanding[];
  /** Open conversations of the task queue that no worker with a build has worked. */
  readonly withoutBuild: number;
}

export interface Deployments {
  standing(deployment: string): Promise<DeploymentStanding>;
  /** New runs begin there from now on, and conversations move there between turns. `force`: also where no worker of it asks for work. */
  setCurrent(build: WorkerBuild, options?: { readonly force?: boolean }): Promise<void>;
  /** As many of a hundred conversations; 0: none any more. */
  setRamp(build: WorkerBuild, percentage: number, options?: { readonly force?: boolean }): Promise<void>;
  /** Tells open conversations, and memories, that are on other builds than `targets` to move; answers how many were told. */
  wake(
    deployment: string,
    targets: readonly string[],
    options?: { readonly parked?: boolean; readonly signal?: AbortSignal },
  ): Promise<number>;
}

type DeploymentService = Pick<
  WorkflowService,
  | 'describeWorkerDeployment'
  | 'describeTaskQueue'
  | 'setWorkerDeploymentCurrentVersion'
  | 'setWorkerDeploymentRampingVersion'
  | 'countWorkflowExecutions'
  | 'listWorkflowExecutions'
  | 'signalWorkflowExecution'
>;

/** Temporal's `WorkerDeploymentVersionStatus`, by number. */
const STATUSES: readonly BuildStanding['status'][] = ['inactive', 'inactive', 'current', 'ramping', 'draining', 'drained'];
const PAGE = 500;
const AT_ONCE = 16;
/** Each is a run that ends and one that begins: all at once they would hold up those that people wait for. */
const WAKES_PER_SECOND = 100;
const OPEN = `WorkflowType = '${WORKFLOW_TYPE}' AND ExecutionStatus = 'Running'`;
const MOVABLE = `WorkflowType IN ('${WORKFLOW_TYPE}', '${MEMORY_WORKFLOW_TYPE}') AND ExecutionStatus = 'Running'`;
const GONE_MS = 75_000;
/** gRPC's status codes. */
const NOT_FOUND = 5;
const FAILED_PRECONDITION = 9;

export function createDeployments(service: DeploymentService, { namespace, taskQueue }: Queue): Deployments {
  const count = async (query: string): Promise<number> => Number((await service.countWorkflowExecutions({ namespace, query })).count ?? 0);
  const change = async (what: string, call: () => Promise<unknown>): Promise<void> => {
    await call().catch(failed(what));
  };

  return {
    async standing(deployment) {
      const fail = failed(`cannot look up deployment ${deployment}`);
      const [{ workerDeploymentInfo: info }, queue] = await Promise.all([
        service.describeWorkerDeployment({ namespace, deploymentName: deployment }),
        service.describeTaskQueue({ namespace, taskQueue: { name: taskQueue }, taskQueueType: 1 }),
      ]).catch(fail);
      const live = (queue.pollers ?? []).filter(({ lastAccessTime }) => Date.now() - (optionalTsToMs(lastAccessTime) ?? 0) < GONE_MS);
      const summaries = [...(info?.versionSummaries ?? [])].sort(
        (a, b) => (optionalTsToMs(b.createTime) ?? 0) - (optionalTsToMs(a.createTime) ?? 0),
      );
      const builds = await Promise.all(
        summaries.map(async ({ deploymentVersion, status }): Promise<BuildStanding> => {
          const build = deploymentVersion?.buildId ?? '';
          return {
            build,
            status: STATUSES[Number(status)] ?? 'inactive',
            workers: live.filter(({ deploymentOptions: of }) => of?.buildId === build && of.deploymentName === deployment).length,
            conversations: await count(`${OPEN} AND ${onBuild(deployment, build)}`),
          };
        }),
      ).catch(fail);
      const { currentDeploymentVersion, rampingDeploymentVersion, rampingVersionPercentage } = info?.routingConfig ?? {};
      const ramping = toBuild(rampingDeploymentVersion);
      return {
        deployment,
        current: toBuild(currentDeploymentVersion)?.buildId ?? null,
        ramping: ramping && { build: ramping.buildId, percentage: rampingVersionPercentage ?? 0 },
        builds,
        withoutBuild: await count(`${OPEN} AND TaskQueue = '${quoted(taskQueue)}' AND TemporalWorkerDeploymentVersion IS NULL`).catch(fail),
      };
    },

    setCurrent: (build, { force = false } = {}) =>
      change(`cannot make build ${build.buildId} of ${build.deploymentName} the current one`, () =>
        service.setWorkerDeploymentCurrentVersion({ namespace, ...build, ignoreMissingTaskQueues: force, allowNoPollers: force }),
      ),

    setRamp: (build, percentage, { force = false } = {}) =>
      change(`cannot give build ${build.buildId} of ${build.deploymentName} ${percentage} % of the conversations`, () =>
        service.setWorkerDeploymentRampingVersion({
          ...{ namespace, deploymentName: build.deploymentName, percentage },
          // Without a build no one is ramped.
          buildId: percentage === 0 ? '' : build.buildId,
          ...{ ignoreMissingTaskQueues: force, allowNoPollers: force },
        }),
      ),

    async wake(deployment, targets, { parked = false, signal } = {}) {
      const elsewhere = targets.map((build) => `NOT (${onBuild(deployment, build)})`).join(' AND ');
      const query = [MOVABLE, `TemporalWorkerDeployment = '${quoted(deployment)}'`, ...(elsewhere === '' ? [] : [elsewhere])].join(' AND ');
      const payload = new TextEncoder().encode(JSON.stringify({ parked }));
      const input = { payloads: [{ metadata: { encoding: new TextEncoder().encode('json/plain') }, data: payload }] };
      const begun = Date.now();
      let told = 0;
      let nextPageToken: Uint8Array | undefined;
      do {
        signal?.throwIfAborted();
        const page = await service
          .listWorkflowExecutions({ namespace, query, pageSize: PAGE, ...(nextPageToken && { nextPageToken }) })
          .catch((error: unknown) => {
            throw toClientError(error, `cannot list what is on other builds of ${deployment}`);
          });
        const ids = (page.executions ?? []).flatMap(({ execution }) => execution?.workflowId ?? []);
        for (let at = 0; at < ids.length; at += AT_ONCE) {
          const some = ids.slice(at, at + AT_ONCE).map(async (workflowId) => {
            // One that has ended meanwhile needs no build.
            await service
              .signalWorkflowExecution({ namespace, workflowExecution: { workflowId }, signalName: upgradeSignal.name, input })
              .then(() => (told += 1))
              .catch((error: unknown) => {
                const failure = toClientError(error, `cannot wake ${workflowId}`);
                if (failure.kind !== 'not-found' && failure.kind !== 'closed') throw failure;
              });
          });
          await Promise.all(some);
          await sleep(begun + (told * 1000) / WAKES_PER_SECOND - Date.now());
        }
        nextPageToken = page.nextPageToken?.length ? page.nextPageToken : undefined;
      } while (nextPageToken !== undefined);
      return told;
    },
  };
}

function failed(what: string): (error: unknown) => never {
  return (error) => {
    const { code, details = '' } = error as { readonly code?: unknown; readonly details?: string };
    if (code === NOT_FOUND || (code === FAILED_PRECONDITION && details.includes('no Worker Deployment found'))) {
      const advice = 'a worker makes it known that has TEMPORAL_DEPLOYMENT_NAME and TEMPORAL_WORKER_BUILD_ID, and polls';
      throw new ClientError('not-found', `${what}: Temporal knows no such deployment or build here; ${advice}`, { cause: error });
    }
    // As where no worker polls, or one lacks a task queue: the server says which.
    if (code === FAILED_PRECONDITION)
      throw new ClientError('conflict', `${what}: ${details}; --force does it all the same`, { cause: error });
    throw toClientError(error, what);
  };
}

function onBuild(deployment: string, build: string): string {
  return `TemporalWorkerDeploymentVersion = '${quoted(deployment)}:${quoted(build)}'`;
}

function quoted(text: string): string {
  return text.replaceAll("'", "''");
}
