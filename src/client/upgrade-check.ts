/**
 * Whether open conversations go on with another build of the workflow code: the history of each one's present run is replayed by it.
 *
 * A run that is pinned to a build of its workers (Worker Versioning) never meets another build's code: it hands over first. Where it would
 * not replay, it `stays`; that is no failure for as long as that build has workers.
 */
import { createHash } from 'node:crypto';
import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import pLimit from 'p-limit';
import { toBuildId } from './describe.js';
import { MEMORY_WORKFLOW_TYPE } from '../conversation/protocol/memory-contract.js';
import type { Run } from '../conversation/replay/past.js';
import { errorMessage } from '../platform/errors.js';
import { oneLine, truncate, xmlText } from '../records/text.js';
import { WORKFLOW_TYPE } from '../workflows/messages.js';
import { fetchRun, type History } from '../heal/fetch-runs.js';
import type { Replay } from './insight.js';

/** An open workflow, as visibility has it. */
export interface OpenRun {
  readonly id: string;
  readonly runId: string;
  readonly type: string;
  readonly build: string | null;
  readonly isPinned: boolean;
}

/** `unread`: its history could not be fetched, so nothing is known of it. */
export type CheckOutcome = 'replays' | 'breaks' | 'stays' | 'unread' | 'ended';

export interface CheckedRun extends OpenRun {
  readonly outcome: CheckOutcome;
  /** Of its present run. */
  readonly turns: number;
  readonly ms: number;
  readonly why?: string;
}

const FETCHED_AHEAD = 8;
const MAX_WHY = 500;
/** gRPC's status code. */
const NOT_FOUND = 5;

/** Whether a sample takes it in, and which part of it has it: by its id, so that it is the same in every process and at every time. */
export function isInSample(id: string, share: number): boolean {
  return share >= 1 || hash(id) < share;
}

export function choosePart(id: string, parts: number): number {
  return Math.floor(hash(`${id}/part`) * parts);
}

/** Of 0 to 1. */
function hash(text: string): number {
  return createHash('sha256').update(text).digest().readUInt32BE(0) / 2 ** 32;
}

/** As many pages as it takes. Throws what Temporal does. */
export async function* listOpenRuns(client: Client, query: string): AsyncGenerator<OpenRun> {
  for await (const info of client.workflow.list({ query, pageSize: 1_000 })) yield toOpenRun(info);
}

/** The open conversations and memories of a task queue, or those of them that fit. */
export function openQuery(taskQueue: string, query?: string): string {
  const types = `WorkflowType IN ('${WORKFLOW_TYPE}', '${MEMORY_WORKFLOW_TYPE}')`;
  const open = `${types} AND ExecutionStatus = 'Running' AND TaskQueue = '${taskQueue.replaceAll("'", "''")}'`;
  return query === undefined ? open : `${open} AND (${query})`;
}

function toOpenRun({ workflowId, runId, type, searchAttributes }: WorkflowExecutionInfo): OpenRun {
  return {
    ...{ id: workflowId, runId, type },
    build: toBuildId(searchAttributes['TemporalWorkerDeploymentVersion']?.[0]) ?? null,
    isPinned: searchAttributes['TemporalWorkflowVersioningBehavior']?.[0] === 'Pinned',
  };
}

export interface UpgradeCheck {
  readonly fetch: (run: OpenRun) => Promise<History>;
  readonly replay: Replay;
  /** A run that is pinned is no exception. */
  readonly isStrict: boolean;
  readonly checked: (run: CheckedRun) => void;
  readonly signal: AbortSignal;
}

/** Histories are fetched ahead of the replays, which are done one after the other: there is one core to a process. */
export async function checkRuns(runs: readonly OpenRun[], { fetch, replay, isStrict, checked, signal }: UpgradeCheck): Promise<void> {
  const few = pLimit(FETCHED_AHEAD);
  const checkOne = async (run: OpenRun): Promise<void> => {
    if (signal.aborted) return;
    const begun = Date.now();
    const end = (outcome: CheckOutcome, turns: number, why?: string): void =>
      checked({ ...run, outcome, turns, ms: Date.now() - begun, ...(why !== undefined && { why: truncate(oneLine(why), MAX_WHY) }) });
    let history: History;
    try {
      history = await fetch(run);
    } catch (error) {
      const isGone = (error as { readonly code?: unknown }).code === NOT_FOUND;
      return isGone ? end('ended', 0) : end('unread', 0, `its history could not be fetched: ${errorMessage(error)}`);
    }
    const { runs: replayed, problems } = await replay(run.id, [history]);
    const [problem] = problems;
    if (problem === undefined) end('replays', countTurns(replayed[0]));
    else end(run.isPinned && !isStrict ? 'stays' : 'breaks', 0, problem);
  };
  await Promise.all(runs.map((run) => few(() => checkOne(run))));
  signal.throwIfAborted();
}

/** The open run as it is now: it may have handed over since it was listed. */
export function createFetch(client: Client, namespace: string): UpgradeCheck['fetch'] {
  return ({ id }) => fetchRun(client.workflowService, { namespace, workflowId: id });
}

function countTurns(run: Run | undefined): number {
  return run?.events.filter(({ kind }) => kind === 'turn-begun').length ?? 0;
}

// JUnit's report, as CI systems read it.

export function toJUnit(runs: readonly CheckedRun[], seconds: number): string {
  const count = (outcome: CheckOutcome): number => runs.filter((run) => run.outcome === outcome).length;
  const shown = runs.filter(({ outcome }) => outcome !== 'ended');
  const cases = shown.map(({ id, type, build, ms, outcome, why = '' }) => {
    const head = `<testcase classname="${xmlText(type)}" name="${xmlText(id)}" time="${(ms / 1000).toFixed(3)}"`;
    const on = build === null ? '' : ` (on build ${build})`;
    if (outcome === 'replays') return `    ${head}/>`;
    const tag = { breaks: 'failure', unread: 'error', stays: 'skipped' }[outcome as 'breaks' | 'unread' | 'stays'];
    return `    ${head}><${tag} message="${xmlText(why + on)}"/></testcase>`;
  });
  const counts = `tests="${shown.length}" failures="${count('breaks')}" errors="${count('unread')}" skipped="${count('stays')}"`;
  const suite = `  <testsuite name="perdura check-upgrade" ${counts} time="${seconds.toFixed(3)}">`;
  return ['<?xml version="1.0" encoding="UTF-8"?>', '<testsuites>', suite, ...cases, '  </testsuite>', '</testsuites>', ''].join('\n');
}
