/** A change that running conversations would stumble over is caught by the recorded histories; and each of them replays alone. */
import { Worker, type WorkflowBundle } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import { workflowBundle } from '../support/temporal-worker.js';
import { readHistories, workflowIdOf } from './history-file.js';
import { bundleMutants, mutants, type MutatedCode } from './mutants.js';
import { optionsOf, replayAll, silence } from './replay-all.js';

const histories = readHistories();
let bundle: WorkflowBundle;
let mutated: MutatedCode;

beforeAll(async () => {
  silence();
  [bundle, mutated] = await Promise.all([workflowBundle(), bundleMutants()]);
}, 900_000);

test('what catches a mutant is its change: the same code without one replays all', async () => {
  const meant = mutants.flatMap(({ caughtBy }) => caughtBy);
  const runs = histories.filter(({ name }) => meant.some((beginning) => name.startsWith(beginning)));
  const failures = await replayAll(mutated(), runs);
  expect([...failures.keys()]).toEqual([]);
}, 900_000);

test.each(mutants.map((mutant) => [mutant.name, mutant] as const))(
  'a workflow that %s',
  async (_name, mutant) => {
    const beginnings = mutant.caughtBy;
    const meant = histories.filter(({ name }) => beginnings.some((beginning) => name.startsWith(beginning)));
    const failures = await replayAll(mutated(mutant), meant);
    const violated = [...failures].filter(([, error]) => error instanceof DeterminismViolationError).map(([name]) => name);
    expect(beginnings.filter((beginning) => !violated.some((name) => name.startsWith(beginning)))).toEqual([]);
  },
  900_000,
);

// A worker takes longer to start than a history to replay: one in five shows that none of them needs those before it.
const alone = process.env['PERDURA_LONG'] === '1' ? histories : histories.filter((_, i) => i % 5 === 0);
test.each(alone.map((run) => [run.name, run] as const))(
  '%s replays in a worker of its own, under its own name',
  async (_name, run) => {
    await Worker.runReplayHistory(optionsOf(bundle), run.history, workflowIdOf(run));
  },
  900_000,
);
