/** Which workers may share a task queue. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { startWorkerProcess, type WorkerProcess } from '../../support/worker-process.js';

const folders: string[] = [];
const workers: WorkerProcess[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.kill()));
  await Promise.all(folders.splice(0).map((dir) => rm(dir, { recursive: true, force: true })));
});

async function folder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-place-'));
  folders.push(dir);
  return dir;
}

function startWorker(cwd: string, taskQueue: string, env: Readonly<Record<string, string>> = {}): WorkerProcess {
  const worker = startWorkerProcess({
    cwd,
    env: { TEMPORAL_ADDRESS: process.env['PERDURA_TEST_ADDRESS'] ?? '', PERDURA_TASK_QUEUE: taskQueue, ...env },
  });
  workers.push(worker);
  return worker;
}

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
