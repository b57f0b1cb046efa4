/** A run hands over by its own count of history, which has to be what Temporal counts, but for tasks that failed or timed out. */
import { bundleWorkflowCode, DefaultLogger, Worker, type InjectedSinks } from '@temporalio/worker';
import { bundleOptions } from '../../src/extensions/custom-workflows.js';
import type { MeasuredHistory } from '../../src/workflows/host.js';
import { readHistories, workflowIdOf } from './history-file.js';
import type { LengthSinks } from './measured-against-server.js';
import { optionsOf, silence } from './replay-all.js';

const FAILED = ['workflowTaskFailedEventAttributes', 'workflowTaskTimedOutEventAttributes'] as const;

/** By run. */
const seen = new Map<string, { measured: MeasuredHistory; server: MeasuredHistory }[]>();
/** In the order of the histories. */
const errors: (Error | undefined)[] = [];

const histories = readHistories().filter(({ history }) => !history.events?.some((event) => FAILED.some((kind) => event[kind])));

// One worker for all: to start one takes longer than to replay.
beforeAll(async () => {
  silence();
  const options = bundleOptions();
  const ours = require.resolve('./measured-against-server');
  const workflowBundle = await bundleWorkflowCode({
    ...options,
    workflowInterceptorModules: [...options.workflowInterceptorModules, ours],
    logger: new DefaultLogger('ERROR'),
  });
  const sinks: InjectedSinks<LengthSinks> = {
    lengths: {
      seen: { fn: ({ runId }, lengths) => void seen.set(runId, [...(seen.get(runId) ?? []), lengths]), callDuringReplay: true },
    },
  };
  const given = histories.map((run) => ({ history: run.history, workflowId: workflowIdOf(run) }));
  for await (const { error } of Worker.runReplayHistories({ ...optionsOf(workflowBundle), sinks }, given)) errors.push(error);
}, 900_000);

test('of the recorded histories, those without failed tasks are many', () => {
  expect(histories.length).toBeGreaterThan(50);
});

test.each(histories.map((run, i) => [run.name, run, i] as const))(
  '%s is as long by our count as by the server',
  (_name, { history }, i) => {
    expect(errors[i]).toBeUndefined();
    const runId = history.events[0]?.workflowExecutionStartedEventAttributes?.originalExecutionRunId ?? '';
    const lengths = seen.get(runId) ?? [];
    expect(lengths.length).toBeGreaterThan(0);
    expect(lengths.map(({ measured }) => measured.events)).toEqual(lengths.map(({ server }) => server.events));
  },
);
