import type { Worker as Thread } from 'node:worker_threads';
import { asyncLocalStorage, type Context } from '@temporalio/activity';
import type { ApplicationFailure } from '@temporalio/common';
import type { HangAnswer, HangMessage, HangThreadData } from '../../src/telemetry/hang-thread.js';
import { watchForHangs } from '../../src/telemetry/worker-health.js';

const OPTIONS = { connectionOptions: {}, namespace: 'default', endMs: 0, isAlone: true };

/** Runs `work` as an activity whose attempt before this one has left `details`. */
async function runWith(details: unknown, work: () => unknown) {
  const told: HangMessage[] = [];
  let data: HangThreadData | undefined;
  const thread = { unref() {}, postMessage: (message: HangMessage) => told.push(message), terminate: () => Promise.resolve(0) };
  const watch = await watchForHangs(OPTIONS, (workerData) => ((data = workerData), Promise.resolve(thread as unknown as Thread)));
  const info = {
    activityType: 'run-tool',
    workflowExecution: { workflowId: 'chat' },
    base64TaskToken: 'dG9rZW4=',
    heartbeatDetails: details,
  };
  const context = { info } as unknown as Context;
  const { execute } = watch.activities(context).inbound!;
  try {
    const run = (): Promise<unknown> => execute!({ args: [], headers: {} }, () => Promise.resolve(work()));
    const result = await asyncLocalStorage.run(context, run).catch((error: unknown) => error);
    return { result, told, data };
  } finally {
    await watch.close();
  }
}

test('what has ended two workers in a row is not done, and says so', async () => {
  let ran = 0;
  const { result, told } = await runWith({ hung: 2 }, () => (ran += 1));
  const { type, nonRetryable, message } = result as ApplicationFailure;
  expect({ type, nonRetryable, message }).toEqual({
    type: 'hung-worker',
    nonRetryable: true,
    message: expect.stringMatching(/^given up: 2 workers that ran this \(run-tool\) .*correct that, or send something else$/),
  });
  expect({ ran, told }).toEqual({ ran: 0, told: [] });
});

test.each([
  ['nothing before it', undefined, 0],
  ['one that ended a worker', { hung: 1 }, 1],
  ['details of its own', { usage: {}, answers: {} }, 0],
  ['what is no number', { hung: '7' }, 0],
])('after %s it runs, and the thread knows it by its token while it does', async (_, details, hung) => {
  const { result, told } = await runWith(details, () => 'done');
  expect(result).toBe('done');
  expect(told).toEqual([
    { kind: 'began', id: 'dG9rZW4=', what: 'run-tool of chat', hung },
    { kind: 'ended', id: 'dG9rZW4=' },
  ]);
});

test('in the middle of it this thread says which activity that is, behind a pause too; outside of one it says none', async () => {
  const answer = (): HangAnswer => (globalThis as unknown as Record<symbol, () => HangAnswer>)[Symbol.for('perdura.hang-answer')]!();
  const { result } = await runWith(undefined, async () => {
    await new Promise((resolve) => setTimeout(resolve, 1));
    return answer();
  });
  expect(result).toMatchObject({ id: 'dG9rZW4=', stack: expect.stringContaining('hang.test') });
  expect(answer()).not.toHaveProperty('id');
});
