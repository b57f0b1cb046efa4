/** When the lease of a worker is over, and who gets it: by random sequences against a model, and on both stores. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { createFileLeases } from '../../src/stores/file/leases.js';
import {
  createIsGone,
  decodeAnnounced,
  encodeAnnounced,
  judge,
  ownCard,
  SILENT_TICKS,
  type LeaseCard,
  type Leases,
  type Announced,
  type RunningAttempt,
  type Watched,
} from '../../src/stores/leases.js';
import { createRedisLeases } from '../../src/stores/redis/leases.js';
import { startRedis } from '../support/redis-server.js';

const PLACE = { namespace: 'default', taskQueue: 'perdura' };
const HERE = ownCard();
const running = (token: string): RunningAttempt => ({ token, workflowId: 'chat', runId: 'run', attempt: 1, what: 'model-step' });

const runs = (...tokens: string[]): Announced => ({ identity: '7@here', running: tokens.map(running), recent: ['chat'] });

test('a lease is over when its process is gone, or after eight looks in a row, all in time, in which it has not beaten', () => {
  const ids = ['self', 'a', 'b', 'c'];
  // Mostly all are there, and in time, so that silence adds up.
  const steps = fc.array(
    fc.record({
      inTime: fc.integer({ min: 0, max: 15 }).map((n) => n > 0),
      beats: fc.subarray(ids, { maxLength: 2 }),
      there: fc.oneof({ weight: 8, arbitrary: fc.constant(ids) }, { weight: 1, arbitrary: fc.subarray(ids) }),
      gone: fc.option(fc.constantFrom('a', 'b'), { nil: undefined, freq: 20 }),
    }),
    { maxLength: 60 },
  );
  fc.assert(
    fc.property(steps, (all) => {
      let watched: Watched = new Map();
      const beat = new Map(ids.map((id) => [id, 0]));
      /** The model: for each lease the looks since it last beat, was not there, or all counts began anew. */
      const silent = new Map<string, number>();
      for (const { inTime, beats, there, gone } of all) {
        for (const id of beats) beat.set(id, (beat.get(id) ?? 0) + 1);
        const leases = there.map((id) => ({ id, beat: String(beat.get(id)), card: { ...HERE, started: id } }));
        const seen = judge(watched, { inTime, leases, isGone: ({ started }) => started === gone }, 'self');
        for (const id of ids) {
          const isThere = there.includes(id);
          const wasThere = watched.has(id);
          const hasBeaten = !wasThere || watched.get(id)?.beat !== String(beat.get(id));
          if (!isThere) silent.delete(id);
          else silent.set(id, !inTime || hasBeaten ? 0 : (silent.get(id) ?? 0) + 1);
        }
        const expected = there.filter((id) => id !== 'self' && (id === gone || (silent.get(id) ?? 0) >= SILENT_TICKS));
        expect(seen.over.map(({ id }) => id)).toEqual(expected);
        watched = seen.watched;
      }
    }),
  );
});

test('when the store comes back after an outage, no worker is taken for dead before it could beat', () => {
  const leases = ['a', 'b'].map((id) => ({ id, beat: '7', card: undefined }));
  const look = (watched: Watched, inTime: boolean) => judge(watched, { inTime, leases, isGone: () => false }, 'self');
  let { watched } = look(new Map(), false);
  for (let i = 1; i < SILENT_TICKS; i += 1) ({ watched } = look(watched, true));
  const late = look(watched, false);
  expect(late.over).toEqual([]);
  let after = late.watched;
  for (let i = 1; i < SILENT_TICKS; i += 1) {
    const seen = look(after, true);
    expect(seen.over).toEqual([]);
    after = seen.watched;
  }
  expect(look(after, true).over.map(({ id }) => id)).toEqual(['a', 'b']);
});

describe('a process is gone', () => {
  const isGone = createIsGone();
  let child: ChildProcess;
  let card: LeaseCard;
  beforeAll(async () => {
    const program = `
      const { readFileSync } = require('node:fs');
      const started = readFileSync('/proc/self/stat', 'latin1').split(') ').at(-1).split(' ')[19];
      process.stdout.write(started); setInterval(() => {}, 1000);`;
    child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [started] = (await once(child.stdout!, 'data')) as [Buffer];
    card = { ...HERE, pid: child.pid ?? 0, started: started.toString() };
  });
  afterAll(() => child.kill('SIGKILL'));

  test('not while it runs, or stands still', () => {
    expect(isGone(card)).toBe(false);
    child.kill('SIGSTOP');
    expect(isGone(card)).toBe(false);
    child.kill('SIGCONT');
  });

  test('if another one has its id, and never one of another machine or container', () => {
    expect(isGone({ ...card, started: '1' })).toBe(true);
    expect(isGone({ ...card, started: '1', host: 'elsewhere' })).toBe(false);
    expect(isGone({ ...card, started: '1', machine: 'another boot' })).toBe(false);
    expect(isGone({ ...card, pid: 2 ** 22 + 1, machine: 'another boot' })).toBe(false);
  });

  test('once it was killed', async () => {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    expect(isGone(card)).toBe(true);
  });
});

test('what another program has written as running is left out, of any size', () => {
  const good = running('dG9rZW4=');
  const all = (value: unknown) => decodeAnnounced(JSON.stringify(value));
  expect(decodeAnnounced(encodeAnnounced(runs('a', 'b')))).toEqual(runs('a', 'b'));
  const bad = [null, 7, [], { ...good, token: 7 }, { ...good, workflowId: 'x'.repeat(5_000) }, { ...good, attempt: 'NaN' }, good];
  expect(all({ identity: 7, running: bad, recent: [7, 'chat', null] })).toEqual({ identity: '', running: [good], recent: ['chat'] });
  const many = all({ running: Array.from({ length: 5_000 }, () => good), recent: Array.from({ length: 5_000 }, (_, i) => `c${i}`) });
  expect([many.running.length, many.recent.length]).toEqual([2_000, 200]);
  const nothing = { identity: '', running: [], recent: [] };
  for (const text of ['', '{', '[]', 'null', '"[]"', '7']) expect(decodeAnnounced(text)).toEqual(nothing);
  const polluted = decodeAnnounced(`{"running":[{"__proto__":{"x":1},${JSON.stringify(good).slice(1, -1)},"more":1}]}`);
  expect(polluted.running).toEqual([good]);
});

interface Opened {
  readonly open: (place?: typeof PLACE) => Leases;
  /** All that the leases have. */
  lose(): Promise<void>;
  end(): Promise<void>;
}

const STORES: Readonly<Record<string, () => Promise<Opened>>> = {
  async redis() {
    const server = await startRedis();
    const opened: Leases[] = [];
    const { Redis } = await import('ioredis');
    return {
      open(place = PLACE) {
        const leases = createRedisLeases(server.url, place);
        opened.push(leases);
        return leases;
      },
      async lose() {
        const redis = new Redis(server.url);
        await redis.flushall();
        await redis.quit();
      },
      async end() {
        for (const one of opened) await one.close();
        await server.stop();
      },
    };
  },
  async files() {
    const dir = await mkdtemp(join(tmpdir(), 'perdura-leases-'));
    return {
      open: (place = PLACE) => createFileLeases(dir, place),
      lose: () => rm(join(dir, 'workers'), { recursive: true }),
      end: () => rm(dir, { recursive: true, force: true }),
    };
  },
};

describe.each(Object.keys(STORES))('leases in %s', (kind) => {
  let store: Opened;
  let ours: Leases;
  let others: Leases;
  beforeEach(async () => {
    store = await STORES[kind]!();
    [ours, others] = [store.open(), store.open()];
  });
  afterEach(() => store.end());
  const find = async (id: string) => (await others.list()).find((lease) => lease.id === id)!;

  test('a beat shows to others, with who it is; what runs is kept until it changes', async () => {
    expect(await ours.beat('a', { number: 1, card: HERE })).toBe('again');
    expect(await ours.beat('a', { number: 2, card: HERE, announced: runs('t1', 't2') })).toBe('held');
    const before = await find('a');
    expect(before.card).toEqual(HERE);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await ours.beat('a', { number: 3, card: HERE })).toBe('held');
    const after = await find('a');
    expect(after.beat).not.toBe(before.beat);
    expect(await others.claim(before, 'b')).toBeUndefined();
    expect(await others.claim(after, 'b')).toEqual(runs('t1', 't2'));
  });

  test('of many that claim a lease one gets it; it beats no more, also once that is settled', async () => {
    await ours.beat('a', { number: 1, card: HERE, announced: runs('t') });
    const seen = await find('a');
    const claims = await Promise.all(Array.from({ length: 20 }, (_, i) => others.claim(seen, `b${i}`)));
    expect(claims.filter(Boolean)).toEqual([runs('t')]);
    expect(await ours.beat('a', { number: 2, card: HERE, announced: runs() })).toBe('taken');
    expect(await others.list()).toEqual([]);
    await others.remove('a');
    expect(await ours.beat('a', { number: 3, card: HERE })).toBe('taken');
    expect(await ours.beat('a2', { number: 1, card: HERE, announced: runs() })).toBe('held');
  });

  test('a lease that is withdrawn is not there, and no one can claim it', async () => {
    await ours.beat('a', { number: 1, card: HERE, announced: runs('t') });
    const seen = await find('a');
    await ours.remove('a');
    expect(await others.list()).toEqual([]);
    expect(await others.claim(seen, 'b')).toBeUndefined();
  });

  test('a store that has lost all gets it back with the next beats, and no lease is taken for claimed', async () => {
    await ours.beat('a', { number: 1, card: HERE, announced: runs('t') });
    await store.lose();
    expect(await ours.beat('a', { number: 2, card: HERE })).toBe('again');
    expect(await ours.beat('a', { number: 3, card: HERE, announced: runs('t') })).toBe('held');
    expect(await others.claim(await find('a'), 'b')).toEqual(runs('t'));
  });

  test('workers of another task queue are not seen', async () => {
    await ours.beat('a', { number: 1, card: HERE, announced: runs() });
    const elsewhere = store.open({ ...PLACE, taskQueue: 'perdura:2' });
    expect(await elsewhere.list()).toEqual([]);
    await elsewhere.beat('c', { number: 1, card: HERE, announced: runs() });
    expect((await others.list()).map(({ id }) => id)).toEqual(['a']);
  });
});

test('what was claimed of processes that have ended is swept from the folder when a worker begins', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-leases-'));
  const folder = join(dir, 'workers', 'default%3Aperdura');
  const leases = createFileLeases(dir, PLACE);
  const gone = { ...HERE, started: '1' };
  await leases.beat('dead', { number: 1, card: gone, announced: runs('t') });
  await leases.beat('stopped', { number: 1, card: HERE, announced: runs() });
  for (const lease of await leases.list()) await leases.claim(lease, 'me');
  await writeFile(join(folder, 'other-file'), 'not a lease');
  await leases.beat('next', { number: 1, card: HERE });
  expect((await readdir(folder)).sort()).toEqual(['next', 'other-file', 'stopped.taken']);
  await rm(dir, { recursive: true });
});
