/** What is left of uploads in files, by writers that died and by those that are quicker than the sweep. */
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createFileStore } from '../../../src/stores/file/index.js';
import { withLock } from '../../../src/stores/file/lock.js';
import type { Store } from '../../../src/stores/store.js';

const owner = { namespace: 'default', tenant: '' };
let dir: string;
let folder: string;
let store: Store;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-uploads-'));
  folder = join(dir, 'uploads', 'default', '%');
  store = createFileStore({ dir });
});
afterEach(async () => {
  await store.close();
  await rm(dir, { recursive: true });
});

const upload = (expiresAt: number) => ({ id: 'att_1', mediaType: 'image/png', size: 1, sha256: 'x', at: 0, expiresAt });
const keep = async (expiresAt: number): Promise<void> => {
  const draft = await store.uploads.begin(owner);
  await draft.append(Buffer.of(1));
  await draft.keep(upload(expiresAt));
};

test('a sweep that waited for its turn looks again: what was sent meanwhile stays', async () => {
  await keep(Date.now() + 20);
  await sleep(40);
  let sweeping: Promise<number> | undefined;
  const record = join(folder, 'known', 'att_1');
  await withLock(`${record}.lock`, async () => {
    sweeping = store.uploads.sweep();
    await sleep(200);
    await writeFile(`${record}.jsonl`, `${JSON.stringify({ ...upload(Date.now() + 60_000), uses: [], v: 1 })}\n`);
  });
  expect(await sweeping).toBe(0);
  expect(await store.uploads.find(owner, 'att_1')).toMatchObject({ id: 'att_1' });
  expect(await readdir(join(folder, 'waiting'))).toEqual(['att_1']);
});

test('what a dead writer has left goes after an hour, and one that writes is left alone', async () => {
  const draft = await store.uploads.begin(owner);
  await draft.append(Buffer.of(1));
  const [own = ''] = await readdir(join(folder, 'arriving'));
  const left = join(folder, 'arriving', 'left');
  await writeFile(left, 'x');
  const before = Date.now() / 1000 - 3_700;
  await utimes(left, before, before);
  await store.uploads.sweep();
  expect(await readdir(join(folder, 'arriving'))).toEqual([own]);
  await draft.discard();
});

test('bytes that a dead writer has left without their record go, and count no longer', async () => {
  await keep(Date.now() + 60_000);
  await writeFile(join(folder, 'waiting', 'att_left'), 'x');
  expect(await store.uploads.sweep()).toBe(1);
  expect(await readdir(join(folder, 'waiting'))).toEqual(['att_1']);
  expect(await store.uploads.waiting(owner)).toEqual({ count: 1, bytes: 1 });
});

test('a damaged record, or damaged bytes, are none, and hold up no sweep', async () => {
  await keep(Date.now() + 60_000);
  await writeFile(join(folder, 'waiting', 'att_1'), 'y');
  expect(await store.uploads.bytes(owner, 'att_1')).toBeUndefined();
  await writeFile(join(folder, 'known', 'att_1.jsonl'), '{"v":1');
  expect(await store.uploads.find(owner, 'att_1')).toBeUndefined();
  await mkdir(join(dir, 'uploads', 'elsewhere'));
  expect(await store.uploads.sweep()).toBe(1);
  expect(await readdir(join(folder, 'waiting'))).toEqual([]);
});
