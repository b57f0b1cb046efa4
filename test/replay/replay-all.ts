/** Recorded runs, replayed by code that is given. */
import { DefaultLogger, Runtime, Worker, type ReplayWorkerOptions, type WorkflowBundle } from '@temporalio/worker';
import { workflowIdOf, type RecordedRun } from './history-file.js';

/** What a replay logs of a violation is its result, too. */
export function silence(): void {
  Runtime.install({ logger: new DefaultLogger('ERROR', () => undefined), telemetryOptions: { logging: { forward: {}, filter: 'OFF' } } });
}

export function optionsOf(workflowBundle: WorkflowBundle): ReplayWorkerOptions {
  return { workflowBundle, dataConverter: { payloadConverterPath: require.resolve('../../src/workflows/payload-converter') } };
}

/** One worker for all; the failures by name. */
export async function replayAll(bundle: WorkflowBundle, runs: readonly RecordedRun[]): Promise<Map<string, Error>> {
  const failures = new Map<string, Error>();
  const given = runs.map((run) => ({ history: run.history, workflowId: workflowIdOf(run) }));
  let index = 0;
  for await (const { error } of Worker.runReplayHistories(optionsOf(bundle), given)) {
    const name = runs[index++]?.name ?? '';
    if (error) failures.set(name, error);
  }
  if (index !== runs.length) throw new Error(`${index} of ${runs.length} histories were replayed`);
  return failures;
}
