/** The thread that holds a worker's lease: the real one, on files. */
import { mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Worker as Thread } from 'node:worker_threads';
import { startThread } from '../../src/platform/processes.js';
import type { FromLease, LeaseThreadData, ToLease } from '../../src/recovery/lease-thread.js';
import { createFileLeases } from '../../src/stores/file/leases.js';
import { decodeAnnounced, ownCard, type Announced } from '../../src/stores/leases.js';
import { until } from '../support/scene.js';

const PLACE = { namespace: 'default', taskQueue: 'perdura' };
const PROGRAM = require.resolve('../../src/recovery/lease-thread');

interface Begun {
  readonly heard: FromLease[];
  readonly heldSince: () => bigint;
  tell(message: ToLease): void;
}

let dir: string;
let threads: Thread[];
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-lease-thread-'));
  threads = [];
});
afterEach(async () => {
  for (const thread of threads) await thread.terminate();
  await rm(dir, { recursive: true, force: true, maxRetries: 3 });
});

const folder = (): string => join(dir, 'workers', 'default%3Aperdura');
const leases = async (): Promise<string[]> => (await readdir(folder()).catch(() => [])).filter((name) => !name.endsWith('.taken'));
const announced = async (id: string): Promise<Announced> =>
  decodeAnnounced(await readFile(join(folder(), id, 'announced'), 'utf8').catch(() => ''));

async function begin(): Promise<Begun> {
  const workerData: LeaseThreadData = { ...PLACE, memoryDir: dir, identity: '7@here', beaten: new SharedArrayBuffer(8) };
  const thread = await startThread(PROGRAM, 64, { workerData });
  threads.push(thread);
  const heard: FromLease[] = [];
  thread.on('message', (message: FromLease) => heard.push(message));
  const before = new Set(await leases());
  await until('a lease', async () => (await leases()).some((id) => !before.has(id)));
  return {
    heard,
    heldSince: () => Atomics.load(new BigInt64Array(workerData.beaten), 0),
    tell: (message) => thread.postMessage(message),
  };
}

function began(token: string, workflowId = 'chat'): ToLease {
  return { kind: 'began', attempt: { token, workflowId, runId: 'run', attempt: 1, what: 'model-step' } };
}

test('a lease is renewed again and again; what runs for longer is announced, with its conversation, until it ends', async () => {
  const { tell, heldSince } = await begin();
  const [id = ''] = await leases();
  const first = heldSince();
  await until('the next beat', () => heldSince() > first);
  tell(began('long'));
  await until('what runs', async () => (await announced(id)).running.length === 1);
  expect(await announced(id)).toEqual({
    identity: '7@here',
    running: [{ token: 'long', workflowId: 'chat', runId: 'run', attempt: 1, what: 'model-step' }],
    recent: ['chat'],
  });
  tell({ kind: 'ended', token: 'long' });
  await until('the end', async () => (await announced(id)).running.length === 0);
  expect((await announced(id)).recent).toEqual(['chat']);
});

test('what ends at once is not announced, but where it was is', async () => {
  const { tell } = await begin();
  const [id = ''] = await leases();
  tell(began('quick'));
  tell({ kind: 'ended', token: 'quick' });
  await until('its conversation', async () => (await announced(id)).recent.includes('chat'));
  expect((await announced(id)).running).toEqual([]);
});

test('the lease of a process that has ended is claimed at once, by one of two', async () => {
  const lost = createFileLeases(dir, PLACE);
  const [one, other] = [await begin(), await begin()];
  const what = {
    identity: '9@here',
    running: [{ token: 't', workflowId: 'chat', runId: 'run', attempt: 1, what: 'run-tool' }],
    recent: ['chat'],
  };
  await lost.beat('dead', { number: 1, card: { ...ownCard(), started: '1' }, announced: what });
  const claims = () => [...one.heard, ...other.heard].filter(({ kind }) => kind === 'claimed');
  await until('a claim', () => claims().length > 0);
  expect(await lost.list()).toHaveLength(2);
  expect(claims()).toEqual([{ kind: 'claimed', lease: 'dead', why: 'gone', announced: what }]);
});

test('one that gives no sign of life is claimed as silent, and while two beat neither is', async () => {
  const lost = createFileLeases(dir, PLACE);
  const [one, other] = [await begin(), await begin()];
  const nothing = { identity: '9@there', running: [], recent: [] };
  await lost.beat('far', { number: 1, card: { ...ownCard(), machine: 'another' }, announced: nothing });
  const heard = () => [...one.heard, ...other.heard];
  await until('a claim', () => heard().length > 0);
  expect(heard()).toEqual([{ kind: 'claimed', lease: 'far', why: 'silent', announced: nothing }]);
});

test('a lease that was claimed is over: the thread says so, and goes on with a new one without what ran before', async () => {
  const { tell, heard } = await begin();
  const [id = ''] = await leases();
  tell(began('long'));
  await until('what runs', async () => (await announced(id)).running.length === 1);
  await rename(join(folder(), id), join(folder(), `${id}.taken`));
  await until('a new lease', async () => (await leases()).length === 1);
  expect(heard).toEqual([{ kind: 'fenced', lease: id }]);
  const [next = ''] = await leases();
  tell(began('next', 'other'));
  await until('what runs then', async () => (await announced(next)).running.length === 1);
  expect((await announced(next)).running.map(({ token }) => token)).toEqual(['next']);
});

test('a lease is confirmed when that is wanted, and taken back at the end', async () => {
  const { tell, heard } = await begin();
  tell({ kind: 'confirm', number: 7 });
  await until('an answer', () => heard.length > 0);
  tell({ kind: 'withdraw' });
  await until('the end', () => heard.length === 2);
  expect(heard).toEqual([{ kind: 'confirmed', number: 7 }, { kind: 'withdrawn' }]);
  expect(await leases()).toEqual([]);
});
