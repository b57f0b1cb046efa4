/** Two folders on one machine, one Temporal server: a worker refuses a task queue that another store's worker has. */
import { mkdtemp, rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { readIdentity, toIdentity } from '../../../src/client/temporal/worker-place.js';
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
