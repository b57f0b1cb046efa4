/** Which workers may share a task queue. */
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { endWorkers, folder, startWorker } from './workers-in-folders.js';

afterEach(endWorkers);

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
