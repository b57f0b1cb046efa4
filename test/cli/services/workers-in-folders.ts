/** Workers as processes, each in a folder that is its project; what a test started and made goes with it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startWorkerProcess, type WorkerProcess } from '../../support/worker-process.js';

const folders: string[] = [];
const workers: WorkerProcess[] = [];

/** For `afterEach`. */
export async function endWorkers(): Promise<void> {
  await Promise.all(workers.splice(0).map((worker) => worker.kill()));
  await Promise.all(folders.splice(0).map((dir) => rm(dir, { recursive: true, force: true })));
}

export async function folder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-place-'));
  folders.push(dir);
  return dir;
}

export function startWorker(cwd: string, taskQueue: string, env: Readonly<Record<string, string>> = {}): WorkerProcess {
  const worker = startWorkerProcess({
    cwd,
    env: { TEMPORAL_ADDRESS: process.env['PERDURA_TEST_ADDRESS'] ?? '', PERDURA_TASK_QUEUE: taskQueue, ...env },
  });
  workers.push(worker);
  return worker;
}
