/** A run hands over by its own count of history, which has to be what Temporal counts, but for tasks that failed or timed out. */
import { bundleWorkflowCode, DefaultLogger, Runtime, Worker, type InjectedSinks } from '@temporalio/worker';
import { bundleOptions } from '../../src/extensions/workflow-bundle.js';
import type { MeasuredHistory } from '../../src/workflows/measured-history.js';
import { readHistories, workflowIdOf } from './history-file.js';
import type { LengthSinks } from './measured-against-server.js';

const FAILED = ['workflowTaskFailedEventAttributes', 'workflowTaskTimedOutEventAttributes'] as const;

let seen: { measured: MeasuredHistory; server: MeasuredHistory }[];
let bundle: Awaited<ReturnType<typeof bundleWorkflowCode>>;

beforeAll(async () => {
  Runtime.install({ logger: new DefaultLogger('ERROR', () => undefined), telemetryOptions: { logging: { forward: {}, filter: 'OFF' } } });
  const options = bundleOptions();
  const ours = require.resolve('./measured-against-server');
  bundle = await bundleWorkflowCode({
    ...options,
    workflowInterceptorModules: [...options.workflowInterceptorModules, ours],
    logger: new DefaultLogger('ERROR'),
  });
}, 120_000);

const histories = readHistories().filter(({ history }) => !history.events?.some((event) => FAILED.some((kind) => event[kind])));

test('of the recorded histories, those without failed tasks are many', () => {
  expect(histories.length).toBeGreaterThan(50);
});

test.each(histories.map((run) => [run.name, run] as const))('%s is as long by our count as by the server', async (_name, run) => {
  seen = [];
  const sinks: InjectedSinks<LengthSinks> = {
    lengths: { seen: { fn: (_info, lengths) => void seen.push(lengths), callDuringReplay: true } },
  };
  const dataConverter = { payloadConverterPath: require.resolve('../../src/workflows/payload-converter') };
  await Worker.runReplayHistory({ workflowBundle: bundle, dataConverter, sinks }, run.history, workflowIdOf(run));
  expect(seen.length).toBeGreaterThan(0);
  expect(seen.map(({ measured }) => measured.events)).toEqual(seen.map(({ server }) => server.events));
});
