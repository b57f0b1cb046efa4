/** Every history that a test has made must replay: a worker that has let a conversation go would otherwise never take it up again. */
import { Worker, type InjectedSinks } from '@temporalio/worker';
import { fetchRuns } from '../../src/heal/fetch-runs.js';
import { hasBegun } from '../../src/heal/replay-here.js';
import type { ConversationSinks } from '../../src/workflows/observe.js';
import { workflowBundle, type World } from './world.js';

/** What a workflow tells its worker is of no use here. */
const DEAF: InjectedSinks<ConversationSinks> = { conversation: { opened: { fn: () => undefined }, event: { fn: () => undefined } } };

const MOST = 40;

/** Answers what does not replay, in words; of all conversations and memories of this world. */
export async function replayProblems({ temporal, taskQueue }: Pick<World, 'temporal' | 'taskQueue'>): Promise<string[]> {
  const query = `TaskQueue = '${taskQueue}' AND ExecutionStatus != 'ContinuedAsNew'`;
  const made: { workflowId: string; history: object }[] = [];
  for await (const { workflowId, runId } of temporal.workflow.list({ query })) {
    const { histories } = await fetchRuns(temporal.workflowService, { namespace: 'default', workflowId, runId });
    for (const history of histories.filter(hasBegun)) made.push({ workflowId, history });
  }
  // A chain of hundreds of runs would take minutes: of many, some from everywhere.
  const step = Math.max(1, Math.ceil(made.length / MOST));
  const given = made.filter((_, i) => i % step === 0);
  const problems: string[] = [];
  let at = 0;
  const code = {
    workflowBundle: await workflowBundle(),
    dataConverter: { payloadConverterPath: require.resolve('../../src/workflows/payload-converter') },
  };
  for await (const { error } of Worker.runReplayHistories({ ...code, sinks: DEAF }, given)) {
    const one = given[at++];
    if (error) problems.push(`${one?.workflowId}: ${error.message}`);
  }
  if (at === 0) problems.push('there was nothing to replay');
  return problems;
}
