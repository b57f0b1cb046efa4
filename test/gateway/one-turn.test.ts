/** How a turn ended, asked of a worker that is too slow to say it. */
import { once } from 'node:events';
import type { Status } from '../../src/conversation/protocol/contract.js';
import type { Conversations } from '../../src/gateway/core/conversations.js';
import { waitForEnd } from '../../src/client/turns/turn-status.js';

const never = new AbortController().signal;

/** It answers how it stands, and nothing of any turn. */
function slow(status: Pick<Status, 'turn' | 'phase' | 'queued'>): Conversations {
  const ended = async (_id: string, _turn: string, signal: AbortSignal): Promise<never> => {
    await once(signal, 'abort');
    throw signal.reason;
  };
  return { client: { status: () => Promise.resolve(status) }, ended } as unknown as Conversations;
}

const look = (status: Pick<Status, 'turn' | 'phase' | 'queued'>, turn: string): Promise<unknown> =>
  waitForEnd(slow(status), { conversation: 'c', turn }, never);

test('a turn behind all that waits is none, whatever the worker has no time to say', async () => {
  const none = { kind: 'not-found', message: 'conversation c has no turn turn_0004' };
  await expect(look({ turn: 1, phase: 'idle', queued: 2 }, 'turn_0004')).rejects.toMatchObject(none);
  await expect(look({ turn: 1, phase: 'thinking', queued: 2 }, 'turn_0004')).rejects.toMatchObject(none);
});

test('one that waits or runs has not ended', async () => {
  expect(await look({ turn: 1, phase: 'idle', queued: 2 }, 'turn_0003')).toBeUndefined();
  expect(await look({ turn: 1, phase: 'thinking', queued: 0 }, 'turn_0001')).toBeUndefined();
  expect(await look({ turn: 1, phase: 'compacting', queued: 0 }, 'turn_0001')).toBeUndefined();
});
