/** What was used and signed out: in a folder and in a real Redis, over starts and processes, and while neither answers. */
import { chmod, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAdmission, type Principal } from '../../../src/gateway/access/principal.js';
import { recordSpentInFolder, recordSpentInRedis, type GivenAway, type SpentRecord } from '../../../src/gateway/access/spent.js';
import { GatewayError } from '../../../src/gateway/core/errors.js';
import { openRedisLink, type RedisLink } from '../../../src/stores/redis/link.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { spentInMemory } from '../../support/tenants.js';
import { waitFor } from '../../support/wait-for.js';

const DAY_MS = 24 * 3600_000;
const links: RedisLink[] = [];
const logged: string[] = [];
const log = (line: string): void => void logged.push(line);
let redis: RedisServer;
let dir: string;
let prefix = 0;

beforeAll(async () => {
  redis = await startRedis();
});
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-spent-'));
  prefix += 1;
});
afterEach(async () => {
  await Promise.all(links.splice(0).map((link) => link.close()));
  await rm(dir, { recursive: true, force: true });
});
afterAll(() => redis.stop());

async function inRedis(url = redis.url, log?: (line: string) => void): Promise<SpentRecord> {
  const link = openRedisLink({ url, commandTimeoutMs: url === redis.url ? 4_000 : 300 });
  links.push(link);
  await link.connect();
  return recordSpentInRedis({ client: link.redis, prefix: `perdura:gateway:${prefix}` }, log);
}

const given = async (record: SpentRecord, over: Partial<GivenAway> = {}): Promise<GivenAway> => {
  return { kind: 'session', id: 'one', record: await record.id(), until: Date.now() + 60_000, ...over };
};

/** Each time as another process, or this one after a start, has it. */
const KINDS: readonly (readonly [string, () => Promise<SpentRecord>])[] = [
  ['a folder', () => Promise.resolve(recordSpentInFolder(join(dir, 'spent')))],
  ['Redis', () => inRedis()],
];

describe.each(KINDS)('in %s', (_where, open) => {
  test('what is spent is spent for every one that comes later, and what is not is not', async () => {
    const record = await open();
    const one = await given(record);
    expect([await record.isSpent(one), await record.spend(one), await record.isSpent(one), await record.spend(one)]).toEqual([
      false,
      true,
      true,
      false,
    ]);
    const later = await open();
    expect([await later.isSpent(one), await later.spend(one)]).toEqual([true, false]);
    for (const other of [
      { ...one, id: 'other' },
      { ...one, kind: 'code' as const },
    ])
      expect(await later.isSpent(other)).toBe(false);
    expect(await later.id()).toBe(await record.id());
  });

  test('of many who spend one at once, one has', async () => {
    const records = await Promise.all([open(), open(), open()]);
    const one = await given(records[0]!, { kind: 'code' });
    const answers = await Promise.all(Array.from({ length: 30 }, (_, at) => records[at % 3]!.spend(one)));
    expect(answers.filter(Boolean)).toHaveLength(1);
    expect(new Set(await Promise.all(records.map((record) => record.id()))).size).toBe(1);
  });

  test('records that are made at once are one', async () => {
    const ids = await Promise.all(Array.from({ length: 8 }, async () => (await open()).id()));
    expect(new Set(ids).size).toBe(1);
  });

  test('what names another record is spent', async () => {
    const record = await open();
    const foreign = await given(spentInMemory());
    expect([await record.isSpent(foreign), await record.spend(foreign)]).toEqual([true, false]);
    await record.id();
    expect(await record.isSpent(foreign)).toBe(true);
  });
});

test('a folder has files that only their owner reads, and that go a day after what they are about would have ended', async () => {
  let now = Date.now();
  const at = join(dir, 'spent');
  const record = recordSpentInFolder(at, undefined, () => now);
  const entries = async (): Promise<string[]> => (await readdir(at)).filter((name) => name !== 'id');
  const short = await given(record, { kind: 'code', until: now + 60_000 });
  await record.spend(short);
  await record.spend(await given(record, { id: 'secret-of-a-cookie', until: now + 20 * DAY_MS }));
  const modes = await Promise.all((await readdir(at)).map(async (name) => (await stat(join(at, name))).mode & 0o777));
  expect(modes).toEqual([0o600, 0o600, 0o600]);
  expect((await stat(at)).mode & 0o777).toBe(0o700);
  expect((await entries()).join()).not.toContain('secret');
  // A clock that is set back opens nothing again.
  now += DAY_MS;
  await record.spend(await given(record, { kind: 'code', id: 'two', until: now + 60_000 }));
  expect(await record.isSpent(short)).toBe(true);
  now += 2 * 60_000;
  await record.spend(await given(record, { kind: 'code', id: 'three', until: now + 60_000 }));
  expect((await entries()).filter((name) => name.startsWith('code'))).toHaveLength(2);
  expect((await entries()).filter((name) => name.startsWith('session'))).toHaveLength(1);
});

test('in Redis an entry goes by itself, and names nobody', async () => {
  const record = await inRedis();
  await record.spend(await given(record, { id: 'secret-of-a-cookie', until: Date.now() + 60_000 }));
  const client = links[0]!.redis;
  const keys = await client.keys(`perdura:gateway:${prefix}:{spent}:session:*`);
  expect([keys.length, keys.join().includes('secret')]).toEqual([1, false]);
  expect(await client.pttl(keys[0] ?? '')).toBeGreaterThan(DAY_MS);
});

test('a Redis that was emptied lets nothing in again', async () => {
  const record = await inRedis();
  const [out, other] = [await given(record), await given(record, { id: 'other' })];
  await record.spend(out);
  await links[0]!.redis.flushall();
  for (const one of [out, other]) expect([await record.isSpent(one), await record.spend(one)]).toEqual([true, false]);
  await record.id();
  for (const one of [out, other]) expect([await record.isSpent(one), await record.spend(one)]).toEqual([true, false]);
});

const AWAY: readonly (readonly [string, () => Promise<SpentRecord>])[] = [
  ['Redis is away', () => inRedis('redis://127.0.0.1:1', log)],
  [
    'a file stands where the folder should',
    async () => {
      await writeFile(join(dir, 'spent'), '');
      return recordSpentInFolder(join(dir, 'spent'), log);
    },
  ],
  [
    'its id is damaged',
    async () => {
      const record = recordSpentInFolder(join(dir, 'spent'), log);
      await record.id();
      await writeFile(join(dir, 'spent', 'id'), '');
      return record;
    },
  ],
];
test.each(AWAY)('while %s browsers stay out, in words, and the operator hears it once', async (_what, open) => {
  logged.splice(0);
  const record = await open();
  const one: GivenAway = { kind: 'session', id: 'one', record: 'x'.repeat(24), until: Date.now() + 60_000 };
  const message = expect.stringMatching(/^cannot .* now: .*; try again, or send a token$/) as string;
  const refused = { problem: { status: 503, type: 'sign-outs-unknown', retryAfter: 2, message } };
  await expect(record.id()).rejects.toMatchObject(refused);
  await expect(record.isSpent(one)).rejects.toMatchObject(refused);
  await expect(record.spend(one)).rejects.toMatchObject(refused);
  await expect(record.spend({ ...one, kind: 'code' })).rejects.toMatchObject(refused);
  expect(logged).toEqual([expect.stringMatching(/^cannot sign a user in, so browsers stay out: /)]);
});

test('a folder that cannot be written takes no code and no sign-out, and what it knows it still answers', async () => {
  const at = join(dir, 'spent');
  const record = recordSpentInFolder(at);
  const [out, other] = [await given(record), await given(record, { id: 'other' })];
  await record.spend(out);
  await chmod(at, 0o500);
  try {
    // Root may write everywhere.
    if (process.getuid?.() !== 0) await expect(record.spend(other)).rejects.toMatchObject({ problem: { status: 503 } });
    expect([await record.isSpent(out), await record.isSpent({ ...out, id: 'third' })]).toEqual([true, false]);
  } finally {
    await chmod(at, 0o700);
  }
});

test('what a browser has open ends when it cannot be looked up twice in a row whether it has signed out', async () => {
  const browser: GivenAway = { kind: 'session', id: 'one', record: '', until: 0 };
  const refusal: unknown = await recordSpentInFolder('/dev/null/spent')
    .isSpent(browser)
    .catch((error: unknown) => error);
  const known = { name: 'ada', role: 'user' as const };
  const answers = ['away', 'here', 'away', 'here', 'away', 'away'];
  let looks = 0;
  const again = (): Promise<Principal> => (answers[looks++] === 'away' ? Promise.reject(refusal as Error) : Promise.resolve(known));
  const { signal } = createAdmission(known, again, 5).watch();
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
  expect([looks, signal.reason]).toEqual([6, expect.objectContaining({ problem: expect.objectContaining({ status: 503 }) })]);
  // A provider that does not answer has revoked nothing.
  let asked = 0;
  const refuse = (): Promise<Principal> => {
    asked += 1;
    return Promise.reject(new GatewayError({ status: 503, type: 'unreachable', message: 'the provider does not answer' }));
  };
  const provider = createAdmission(known, refuse, 5).watch();
  await waitFor(
    () => asked,
    (times) => times > 4,
  );
  expect(provider.signal.aborted).toBe(false);
  provider.stop();
});
