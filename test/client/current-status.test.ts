import { withCurrentStatus } from '../../src/client/listing.js';
import type { Listed } from '../../src/client.js';
import type { Status } from '../../src/conversation/protocol/contract.js';

function listed(id: string, more: Partial<Listed> = {}): Listed {
  const startedAt = new Date(0);
  const name = { id, taskQueue: 'q', agent: 'default', scope: 'default', tenant: null, publicId: null, title: null, model: null };
  return { ...name, running: true, state: 'running', startedAt, closedAt: null, status: 'running', turns: 0, costUsd: 0, ...more };
}

function standing(turns: number, more: Partial<Status> = {}): Status {
  const usage = { inputTokens: 1, cachedTokens: 0, outputTokens: 1, costUsd: turns / 100 };
  return { phase: 'idle', turns, usage, title: null, model: 'x/y', pendingApprovals: 0, ...more } as Status;
}

test('turns, cost and what went wrong are as of now, before the tenth turn too', async () => {
  const lastError = { turnId: 'turn_0003', stopReason: 'failed', type: 'auth', message: 'export a key' } as const;
  const answers: Record<string, Status> = { a: standing(3, { lastError, answeredAt: 7_000 }), b: standing(1, { pendingApprovals: 1 }) };
  const statusOf = async (id: string): Promise<Status> => answers[id] ?? Promise.reject(new Error('gone'));
  const shown = await withCurrentStatus([listed('a'), listed('b'), listed('c')], { statusOf, hasWorker: async () => true });
  expect(shown).toMatchObject([
    { id: 'a', turns: 3, costUsd: 0.03, status: 'failed', isCurrent: true, lastError, answeredAt: new Date(7_000) },
    { id: 'b', turns: 1, status: 'waiting', isCurrent: true },
    { id: 'c', turns: 0, status: 'running', isCurrent: false },
  ]);
});

test('a conversation that ended by itself is not asked, one without a worker neither, and a queue is looked at once', async () => {
  const asked: string[] = [];
  const queues: string[] = [];
  const shown = await withCurrentStatus(
    [
      listed('done', { running: false, state: 'ended', turns: 7 }),
      listed('a', { taskQueue: 'empty' }),
      listed('b', { taskQueue: 'empty' }),
    ],
    {
      statusOf: async (id) => (asked.push(id), standing(1)),
      hasWorker: async (queue) => (queues.push(queue), false),
    },
  );
  expect([asked, queues]).toEqual([[], ['empty']]);
  expect(shown.map(({ isCurrent }) => isCurrent)).toEqual([true, false, false]);
});

test('of a long list so many are asked, few at once, and none is waited for beyond the time', async () => {
  const asked: string[] = [];
  let running = 0;
  let most = 0;
  let shown: Awaited<ReturnType<typeof withCurrentStatus>> = [];
  const statusOf = async (id: string): Promise<Status> => {
    asked.push(id);
    most = Math.max(most, (running += 1));
    await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
    return id === 'c0' ? new Promise<Status>(() => undefined) : standing(2);
  };
  const many = Array.from({ length: 300 }, (_, at) => listed(`c${at}`));
  jest.useFakeTimers({ doNotFake: ['setImmediate'] });
  try {
    const looking = withCurrentStatus(many, { statusOf, hasWorker: async () => true, patienceMs: 200 });
    for (let turns = 0; turns < 1_000 && (asked.length < 100 || running > 0); turns++)
      await new Promise((resolve) => setImmediate(resolve));
    jest.advanceTimersByTime(200);
    shown = await looking;
  } finally {
    jest.useRealTimers();
  }
  expect([shown.length, asked.length, most]).toEqual([300, 100, 8]);
  expect(shown.filter(({ isCurrent }) => isCurrent)).toHaveLength(99);
});
