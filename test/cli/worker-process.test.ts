import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isAlive } from '../../src/platform/processes.js';
import { startWorkerProcess, describeWorkerChange } from '../../src/cli/services/worker-process.js';
import { timeoutSignal } from '../../src/platform/promises.js';
import { waitFor } from '../support/wait-for.js';

const NOW = AbortSignal.abort();

let folder: string;
let said: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'perdura-worker-'));
  said = [];
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Something that behaves like a worker: writes its pid, says that it is ready, stays until SIGTERM. */
function start(script: string): ReturnType<typeof startWorkerProcess> {
  const file = join(folder, 'worker.cjs');
  writeFileSync(file, script);
  return startWorkerProcess({
    command: [file],
    cwd: folder,
    logFile: join(folder, 'log'),
    changed: (change) => said.push(describeWorkerChange(change)),
  });
}

const GOOD = `require('fs').appendFileSync('pids', process.pid + '\\n'); process.send({ kind: 'ready' }); setInterval(() => {}, 1000);`;

function pids(): number[] {
  return readFileSync(join(folder, 'pids'), 'utf8').trim().split('\n').map(Number);
}

async function until(isTrue: () => boolean): Promise<void> {
  await waitFor(isTrue, Boolean);
}

test('a worker that is killed is replaced at once, and that is said', async () => {
  const worker = start(GOOD);
  await worker.ready;
  process.kill(pids()[0] ?? 0, 'SIGKILL');
  await until(() => said.some((text) => text.startsWith('the new worker has taken over')));
  expect(said[0]).toMatch(/^the worker was ended by SIGKILL: starting another/);
  expect(pids()).toHaveLength(2);
  await worker.stop(NOW);
});

test('a worker is told to begin, also one that takes the place of another, and also when it listens later', async () => {
  const waiting = `process.once('message', ({ kind }) => { require('fs').appendFileSync('told', kind); process.send({ kind: 'ready' }); });`;
  const worker = start(`${GOOD.replace(/process.send[^;]+;/, '')} setTimeout(() => { ${waiting} }, 200);`);
  worker.begin('perdura');
  await worker.ready;
  process.kill(pids()[0] ?? 0, 'SIGKILL');
  await until(() => said.some((text) => text.startsWith('the new worker has taken over')));
  expect(readFileSync(join(folder, 'told'), 'utf8')).toBe('beginbegin');
  await worker.stop(NOW);
});

test('the next worker has loaded its code already, and is named and at work only once the first is gone; both end with a stop', async () => {
  const file = join(folder, 'worker.cjs');
  const pidFile = join(folder, 'pid');
  writeFileSync(
    file,
    `const { appendFileSync } = require('fs'); appendFileSync('pids', process.pid + '\\n'); setInterval(() => {}, 1000);
     process.once('message', ({ kind }) => { appendFileSync('told', process.pid + '\\n'); process.send({ kind: 'ready' }); });`,
  );
  const worker = startWorkerProcess({
    ...{ command: [file], cwd: folder, logFile: join(folder, 'log'), pidFile, keepsSpare: true },
    changed: (change) => said.push(describeWorkerChange(change)),
  });
  const told = (): number[] => readFileSync(join(folder, 'told'), 'utf8').trim().split('\n').map(Number);
  worker.begin('perdura');
  await worker.ready;
  await until(() => pids().length === 2);
  const [first = 0, spare] = pids();
  expect([told(), Number(readFileSync(pidFile, 'utf8'))]).toEqual([[first], first]);
  process.kill(first, 'SIGKILL');
  await until(() => said.some((text) => text.startsWith('the new worker has taken over')));
  expect([told(), Number(readFileSync(pidFile, 'utf8'))]).toEqual([[first, spare], spare]);
  await until(() => pids().length === 3);
  await worker.stop(NOW);
  await until(() => !pids().some(isAlive));
});

test('the file that names the worker names the living one, and goes with the last', async () => {
  const file = join(folder, 'worker.cjs');
  writeFileSync(file, GOOD);
  const pidFile = join(folder, 'pid');
  const worker = startWorkerProcess({
    command: [file],
    cwd: folder,
    logFile: join(folder, 'log'),
    pidFile,
    changed: (change) => said.push(describeWorkerChange(change)),
  });
  await worker.ready;
  expect(Number(readFileSync(pidFile, 'utf8'))).toBe(pids()[0]);
  process.kill(pids()[0] ?? 0, 'SIGKILL');
  await until(() => said.some((text) => text.startsWith('the new worker has taken over')));
  expect(Number(readFileSync(pidFile, 'utf8'))).toBe(pids()[1]);
  await worker.stop(NOW);
  expect(existsSync(pidFile)).toBe(false);
});

test('a stopped worker is gone and is not replaced', async () => {
  const worker = start(GOOD);
  await worker.ready;
  await worker.stop(timeoutSignal(60_000));
  expect(pids().map(isAlive)).toEqual([false]);
  expect(said).toEqual([]);
});

test('a worker that is deaf to SIGTERM is killed when there is no time', async () => {
  const worker = start(`process.on('SIGTERM', () => {}); ${GOOD}`);
  await worker.ready;
  await worker.stop(NOW);
  expect(pids().map(isAlive)).toEqual([false]);
});

test('a worker that says that something is unreachable is not tried again: its exit code and the end of its log are reported', async () => {
  const worker = start(`console.error('redis is down'); process.exitCode = 3;`);
  await expect(worker.ready).rejects.toMatchObject({ exitCode: 3, message: expect.stringContaining('redis is down') });
  await worker.stop(NOW);
});

test('a worker that never gets ready is tried three times', async () => {
  const worker = start(`require('fs').appendFileSync('pids', process.pid + '\\n'); throw new Error('broken');`);
  await expect(worker.ready).rejects.toMatchObject({ exitCode: 1, message: expect.stringContaining('broken') });
  expect(pids()).toHaveLength(3);
  await worker.stop(NOW);
});

test('a worker whose parent was killed ends by itself', async () => {
  const cli = join(__dirname, '..', '..', 'dist', 'cli', 'services', 'worker-process.js');
  const script = join(folder, 'worker.cjs');
  writeFileSync(script, `process.once('disconnect', () => process.kill(process.pid, 'SIGTERM')); ${GOOD}`);
  const parent = spawn(
    process.execPath,
    [
      '-e',
      `require(${JSON.stringify(cli)}).startWorkerProcess({ command: [${JSON.stringify(script)}], cwd: '.', logFile: 'log', changed() {} })`,
    ],
    { cwd: folder, stdio: 'ignore' },
  );
  await until(() => {
    try {
      return pids().length === 1;
    } catch {
      return false;
    }
  });
  parent.kill('SIGKILL');
  await until(() => !pids().some(isAlive));
});
