/** Which workers may share a task queue. */
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
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

test('workers of one store are welcome; of another agents folder they are not', async () => {
  const queue = `place-${randomUUID()}`;
  const [first, second] = [await folder(), await folder()];
  const memory = { PERDURA_MEMORY_DIR: join(first, 'memory') };
  await startWorker(first, queue, memory).ready;
  await startWorker(second, queue, memory).ready;
  const other = startWorker(second, queue, { ...memory, PERDURA_AGENTS_DIR: await folder() });
  await expect(other.ready).rejects.toThrow(/another agents folder/);
});

test('one that was killed holds nobody up', async () => {
  const queue = `place-${randomUUID()}`;
  const first = startWorker(await folder(), queue);
  await first.ready;
  await first.kill();
  await startWorker(await folder(), queue).ready;
});
