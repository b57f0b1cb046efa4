/** What a worker does with its lease, beside a thread and a Temporal that are played. */
import { EventEmitter } from 'node:events';
import type { Worker as Thread } from 'node:worker_threads';
import { asyncLocalStorage, type Context } from '@temporalio/activity';
import type { ApplicationFailure } from '@temporalio/common';
import type { Model } from '../../src/models/model.js';
import type { FromLease, LeaseThreadData, ToLease } from '../../src/recovery/lease-thread.js';
import { startRecovery } from '../../src/recovery/recovery.js';
import { fakeTemporal, type Asked } from './fake-temporal.js';

const TOKEN = Buffer.from('one').toString('base64');
const ATTEMPT = { token: TOKEN, workflowId: 'chat', runId: 'run', attempt: 1, what: 'model-step' };

interface Played {
  readonly told: ToLease[];
  readonly asked: readonly Asked[];
  readonly lines: string[];
  report(message: FromLease): void;
  /** As if the last beat had left so many milliseconds ago. */
  held(ago: number): void;
  /** Runs it as the activity of that token. */
  as<T>(work: () => T): T;
  readonly recovery: Awaited<ReturnType<typeof startRecovery>>;
}

async function play({ confirms = true, isAway = false, isAwaited = true } = {}): Promise<Played> {
  const told: ToLease[] = [];
  const lines: string[] = [];
  const thread = Object.assign(new EventEmitter(), {
    unref() {},
    terminate: () => Promise.resolve(0),
    postMessage(message: ToLease) {
      told.push(message);
      if (message.kind === 'confirm' && confirms) thread.emit('message', { kind: 'confirmed', number: message.number });
      if (message.kind === 'withdraw') thread.emit('message', { kind: 'withdrawn' });
    },
  });
  let data: LeaseThreadData | undefined;
  const { connection, asked } = fakeTemporal({ isAway, awaited: isAwaited ? [TOKEN] : [] });
  const log = { warn: (line: string) => void lines.push(line), info: (line: string) => void lines.push(line) };
  const place = { memoryDir: '/nowhere', namespace: 'default', taskQueue: 'perdura', identity: '7@here' };
  const recovery = await startRecovery({ connection, ...place, log: () => log as never }, (workerData) => {
    data = workerData;
    return Promise.resolve(thread as unknown as Thread);
  });
  const info = { activityType: 'model-step', attempt: 1, workflowExecution: { workflowId: 'chat', runId: 'run' }, base64TaskToken: TOKEN };
  return {
    ...{ told, asked, lines, recovery },
    report: (message) => void thread.emit('message', message),
    held: (ago) => Atomics.store(new BigInt64Array(data!.beaten), 0, process.hrtime.bigint() - BigInt(ago) * 1_000_000n),
    as: (work) => asyncLocalStorage.run({ info } as unknown as Context, work),
  };
}

/** Runs `work` in the middle of the activity. */
async function during<T>({ recovery, as }: Played, work: () => Promise<T>): Promise<T> {
  const { info } = as(() => asyncLocalStorage.getStore()!);
  const { execute } = recovery.activities({ info } as Context).inbound!;
  return (await as(() => execute!({ args: [], headers: {} }, work))) as T;
}

const failed = (work: Promise<unknown>): Promise<ApplicationFailure> =>
  work.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: unknown) => error as ApplicationFailure,
  );

test('the thread knows each activity while it runs, also one that fails', async () => {
  const played = await play();
  await during(played, () => Promise.resolve('done'));
  await failed(during(played, () => Promise.reject(new Error('no'))));
  const [began, ended] = [
    { kind: 'began', attempt: ATTEMPT },
    { kind: 'ended', token: TOKEN },
  ];
  expect(played.told).toEqual([began, ended, began, ended]);
});

test('a lease that was renewed within a second costs a call nothing; outside of an activity nothing is confirmed', async () => {
  const played = await play();
  played.held(900);
  await during(played, async () => expect(played.recovery.confirmLease()).toBeUndefined());
  played.held(60_000);
  expect(played.recovery.confirmLease()).toBeUndefined();
  expect([played.told.filter(({ kind }) => kind === 'confirm'), played.asked]).toEqual([[], []]);
});

test('a lease that was not renewed is confirmed, with the store and with Temporal, before a model is called', async () => {
  const played = await play();
  played.held(1_100);
  let calls = 0;
  const model = { provider: 'p', stream: () => Promise.resolve((calls += 1)) } as unknown as Model;
  const models = played.recovery.guard(Object.assign(() => model, { limits: (() => ({})) as never }));
  await during(played, async () => models('p/one').stream({} as never, {} as never));
  expect(calls).toBe(1);
  expect(played.told.map(({ kind }) => kind)).toEqual(['began', 'confirm', 'ended']);
  expect(played.asked.map(({ name }) => name)).toEqual(['recordActivityTaskHeartbeat']);
});

test('what runs when the lease ends calls nothing any more, and the log says that it is fenced', async () => {
  const played = await play();
  played.held(0);
  const failure = await failed(
    during(played, async () => {
      played.report({ kind: 'fenced', lease: '7-a' });
      await played.recovery.confirmLease();
    }),
  );
  expect({ type: failure.type, nonRetryable: failure.nonRetryable }).toEqual({ type: 'worker-lost', nonRetryable: false });
  expect(played.lines).toEqual([expect.stringMatching(/^fenced: the lease of worker 7-a ended/)]);
});

test('what Temporal had sent to a process that stood still is confirmed with Temporal, and not done where another one does it', async () => {
  const played = await play({ isAwaited: false });
  played.report({ kind: 'fenced', lease: '7-a' });
  played.held(0);
  const failure = await failed(during(played, async () => played.recovery.confirmLease()));
  expect(failure.type).toBe('worker-lost');
});

test('where neither the store nor Temporal answers, what runs goes on', async () => {
  const played = await play({ confirms: false, isAway: true });
  played.held(60_000);
  await during(played, async () => played.recovery.confirmLease());
  expect(played.told.map(({ kind }) => kind)).toEqual(['began', 'confirm', 'ended']);
});

describe('what another worker ran', () => {
  const announced = { identity: '9@there', running: [ATTEMPT], recent: ['chat', 'quiet'] };
  const settled = async ({ told }: Played): Promise<void> => {
    while (!told.some(({ kind }) => kind === 'settled')) await new Promise((resolve) => setImmediate(resolve));
  };

  test('is failed by its token, after its sticky queue was reset; the first attempt is tried again at once', async () => {
    const played = await play();
    played.report({ kind: 'claimed', lease: '9-a', why: 'gone', announced: { ...announced, recent: [] } });
    await settled(played);
    expect(played.asked).toEqual([
      { name: 'resetStickyTaskQueue', request: { namespace: 'default', execution: { workflowId: 'chat', runId: 'run' } } },
      {
        name: 'respondActivityTaskFailed',
        request: {
          namespace: 'default',
          identity: '7@here',
          taskToken: Buffer.from('one'),
          failure: {
            message: expect.any(String),
            source: 'Perdura',
            applicationFailureInfo: { type: 'worker-lost', nextRetryDelay: { nanos: 100_000_000 } },
          },
        },
      },
    ]);
    expect(played.told).toEqual([{ kind: 'settled', lease: '9-a' }]);
    expect(played.lines).toEqual(['worker 9-a has ended: its conversations go on']);
  });

  test('is tried again after its usual pause from the second attempt on', async () => {
    const played = await play();
    const running = [{ ...ATTEMPT, attempt: 2 }];
    played.report({ kind: 'claimed', lease: '9-a', why: 'silent', announced: { ...announced, running, recent: [] } });
    await settled(played);
    expect(JSON.stringify(played.asked)).not.toContain('nextRetryDelay');
  });

  test('and had only just begun is found by its conversation, and nothing of another worker with it', async () => {
    const played = await play();
    played.report({ kind: 'claimed', lease: '9-a', why: 'gone', announced: { ...announced, running: [] } });
    await settled(played);
    const failedById = played.asked.filter(({ name }) => name === 'respondActivityTaskFailedById').map(({ request }) => request);
    // As the played Temporal has them: one of the dead worker's, one of its that waits, one of another's, and one that another tries again.
    expect(failedById).toEqual([expect.objectContaining({ workflowId: 'chat', runId: 'now', activityId: '4' })]);
    expect(played.asked.filter(({ name }) => name === 'resetStickyTaskQueue')).toHaveLength(2);
  });

  test('and what cannot be failed, as Temporal is away, is left to its heartbeat; the worker says so and goes on', async () => {
    const played = await play({ isAway: true });
    played.report({ kind: 'claimed', lease: '9-a', why: 'gone', announced });
    await settled(played);
    expect(played.lines.filter((line) => line.includes('its heartbeat has to time out'))).toHaveLength(3);
  });
});

test('a worker that ends takes its lease back', async () => {
  const played = await play();
  await played.recovery.close();
  expect(played.told).toEqual([{ kind: 'withdraw' }]);
});
