import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { withLock } from '../../src/cli/lock.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'perdura-lock-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

test('of many who want it one has it at a time', async () => {
  let holders = 0;
  let most = 0;
  const work = async (): Promise<void> => {
    holders += 1;
    most = Math.max(most, holders);
    await sleep(5);
    holders -= 1;
  };
  await Promise.all(Array.from({ length: 8 }, () => withLock(join(folder, 'lock'), work)));
  expect(most).toBe(1);
});

test('it is given back also after an error', async () => {
  const lock = join(folder, 'lock');
  await expect(withLock(lock, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(existsSync(lock)).toBe(false);
});

test('the lock of a process that died is taken over', async () => {
  const { pid } = spawnSync(process.execPath, ['-e', '']);
  const lock = join(folder, 'lock');
  mkdirSync(lock);
  writeFileSync(join(lock, 'pid'), String(pid));
  await expect(withLock(lock, async () => 'taken')).resolves.toBe('taken');
});
