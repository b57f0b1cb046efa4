/** Two folders on one machine, one Temporal server: a worker refuses a task queue that another store's worker has. */
import { hostname } from 'node:os';
import { randomUUID } from 'node:crypto';
import { readIdentity, toIdentity } from '../../../src/client/temporal/worker-place.js';
import { endWorkers, folder, startWorker } from './workers-in-folders.js';

afterEach(endWorkers);

test('a worker of another store refuses to start, and says whose queue it is and what to set', async () => {
  const queue = `place-${randomUUID()}`;
  const [first, second] = [await folder(), await folder()];
  await startWorker(first, queue).ready;
  const other = startWorker(second, queue);
  await expect(other.ready).rejects.toThrow(/has a worker with another store \(process \d+.*set PERDURA_TASK_QUEUE to another name here/s);
  expect((await other.ended).code).toBe(2);
  await startWorker(second, `${queue}-own`).ready;
});

test('an identity is read as it was written; what others write is theirs', () => {
  const place = { store: 'k3f9a1', agents: '0a1b' };
  expect(readIdentity(toIdentity(place))).toEqual({ pid: process.pid, host: hostname(), place });
  expect(readIdentity(toIdentity(undefined))).toEqual({ pid: process.pid, host: hostname() });
  expect(readIdentity('perdura doctor')).toBeUndefined();
  expect(readIdentity(`1@host#${'x'.repeat(7)}.0a1b`)).toBeUndefined();
});
