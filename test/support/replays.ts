/** Every history that a test has made must replay: a worker that has let a conversation go would otherwise never take it up again. */
import type { InjectedSinks } from '@temporalio/worker';
import { fetchRuns, type History } from '../../src/heal/fetch-runs.js';
import type { ConversationListener } from '../../src/conversation/views/observation.js';
import type { Secrets } from '../../src/config/settings.js';
import { engineOfThisFile } from './engine.js';
import type { World } from './world.js';

/** What a workflow tells its worker is of no use here. */
const DEAF: InjectedSinks<{ conversation: ConversationListener }> = {
  conversation: { opened: { fn: () => undefined }, event: { fn: () => undefined } },
};

const MAX_HISTORIES = 40;

/** The last test of a file: on Temporal, that every history it has made replays. In memory there are none. */
export function testReplays(world: () => World): void {
  if (engineOfThisFile() === 'memory') return;
  test('every history of these tests replays', () => expectReplays(world()));
}

/** In memory nothing is replayed. */
export async function expectReplays(world: Pick<World, 'temporal' | 'taskQueue' | 'engine'>): Promise<void> {
  if (world.engine === 'temporal') expect(await replayProblems(world)).toEqual([]);
}

export interface Replayed {
  readonly workflowId: string;
  readonly runId: string;
  readonly history: History;
  /** Of its worker; empty where that had none. */
  readonly build: string;
  /** In words; undefined when it replays. */
  readonly problem?: string;
}

/**
 * Of all conversations and memories of this world, every run that has begun; with `most`, some of them from everywhere. `codes`: of builds of
 * the workers, by their ids; what another worker has made is replayed by the code of this build.
 */
export async function replayAll(
  { temporal, taskQueue }: Pick<World, 'temporal' | 'taskQueue'>,
  most = Infinity,
  keys?: Secrets,
  codes: Readonly<Record<string, { readonly code: string }>> = {},
): Promise<Replayed[]> {
  const { converterOf, hasBegun, Worker, workflowBundle } = await import('./temporal-worker.js');
  const query = `TaskQueue = '${taskQueue}' AND ExecutionStatus != 'ContinuedAsNew'`;
  const made: { workflowId: string; history: History }[] = [];
  for await (const { workflowId, runId } of temporal.workflow.list({ query })) {
    const { histories } = await fetchRuns(temporal.workflowService, { namespace: 'default', workflowId, runId });
    for (const history of histories.filter(hasBegun)) made.push({ workflowId, history });
  }
  const step = Math.max(1, Math.ceil(made.length / most));
  const given = made.filter((_, i) => i % step === 0);
  const replayed: Replayed[] = [];
  for (const build of new Set(given.map(toBuild))) {
    const ofBuild = given.filter((one) => toBuild(one) === build);
    const code = { workflowBundle: codes[build] ?? (await workflowBundle()), dataConverter: converterOf(keys) };
    const ahead = [...ofBuild];
    for await (const { error } of Worker.runReplayHistories({ ...code, sinks: DEAF }, ofBuild)) {
      const one = ahead.shift();
      if (!one) throw new Error('more was replayed than there is');
      const runId = one.history.events?.[0]?.workflowExecutionStartedEventAttributes?.originalExecutionRunId ?? '';
      replayed.push({ ...one, runId, build, ...(error ? { problem: error.message } : {}) });
    }
  }
  return replayed;
}

/** The build of the last worker that has worked it; empty where it had none. */
function toBuild({ history: { events } }: { readonly history: History }): string {
  const done = (events ?? []).findLast(({ workflowTaskCompletedEventAttributes }) => workflowTaskCompletedEventAttributes);
  return done?.workflowTaskCompletedEventAttributes?.deploymentVersion?.buildId ?? '';
}

/** Answers what does not replay, in words. A chain of hundreds of runs would take minutes: of many, some from everywhere. */
export async function replayProblems(world: Pick<World, 'temporal' | 'taskQueue'>): Promise<string[]> {
  const replayed = await replayAll(world, MAX_HISTORIES);
  if (replayed.length === 0) return ['there was nothing to replay'];
  return replayed.flatMap(({ workflowId, problem }) => (problem === undefined ? [] : [`${workflowId}: ${problem}`]));
}
