import { closeSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createChooser, createFileCalls, type Chooser } from '../../../src/stores/file/handles.js';

/** Calls that take as long as they are told to, and say which way they went. */
function aDisk() {
  let now = 0;
  const choose = createChooser(() => now);
  return {
    call: (ms: number) =>
      choose(
        () => {
          now += ms;
          return 'at once';
        },
        async () => 'pooled',
      ),
    pass: (ms: number) => (now += ms),
  };
}

const nextTurn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

test('short calls are made at once, 10 ms of them in one turn of the event loop, and the rest by the thread pool', async () => {
  const disk = aDisk();
  expect(await Promise.all([4, 4, 4, 4].map((ms) => disk.call(ms)))).toEqual(['at once', 'at once', 'at once', 'pooled']);
  await nextTurn();
  expect(await disk.call(4)).toBe('at once');
});

test('after a long one all go to the thread pool for a second', async () => {
  const disk = aDisk();
  expect(await disk.call(12)).toBe('at once');
  await nextTurn();
  disk.pass(999);
  expect(await disk.call(1)).toBe('pooled');
  disk.pass(1);
  expect(await disk.call(1)).toBe('at once');
});

const ways: [string, Chooser][] = [
  ['at once', async (atOnce) => atOnce()],
  ['by the thread pool', async (_, pooled) => pooled()],
];

test.each(ways)('all calls do the same %s', async (_, choose) => {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-calls-'));
  const calls = createFileCalls(choose);
  await calls.makeFolder(join(dir, 'a/b'));
  const fd = await calls.openToAppend(join(dir, 'a/b/file'));
  for (let at = 0; at < 5;) at += await calls.write(fd, Buffer.from('hello'), at);
  closeSync(fd);
  await calls.link(join(dir, 'a/b/file'), join(dir, 'other'));
  expect(await readFile(join(dir, 'other'), 'utf8')).toBe('hello');
  await expect(calls.link(join(dir, 'a/b/file'), join(dir, 'other'))).rejects.toMatchObject({ code: 'EEXIST' });
  await calls.unlink(join(dir, 'other'));
  await expect(calls.unlink(join(dir, 'other'))).rejects.toMatchObject({ code: 'ENOENT' });
  await rm(dir, { recursive: true });
});
