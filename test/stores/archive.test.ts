/** What is old is in an archive, and is read as if it were in the store, by either kind of store, plain or encrypted. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { createAtRest, deriveAtRestKeys, type AtRest } from '../../src/platform/at-rest.js';
import { archiveLife, sweepArchive } from '../../src/stores/archive/collect.js';
import { createFolderArchive } from '../../src/stores/archive/place.js';
import type { ArchivePlace } from '../../src/stores/store.js';
import { createFileStore } from '../../src/stores/file/index.js';
import { createRedisStore } from '../../src/stores/redis/index.js';
import { StoreUnavailable, type ConversationKey, type Store } from '../../src/stores/store.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { bytesOfFiles, bytesOfRedis } from '../support/store-bytes.js';
import { aConversation, answerEntry, item, turnOf, userEntry } from './builders.js';
import { spendingOf } from './spendings-contract.js';

const ENCRYPTED = createAtRest(deriveAtRestKeys([randomBytes(32)], 'store'));
const PLAIN = createAtRest();
const LONG = 'a long canary-9c2e text '.repeat(2_000);
const [TURNS, LATER] = [60, Math.floor(Date.now() / 1000) + 1_000];
const IDLE = { before: LATER, isIdle: true };

let server: RedisServer;
let dir: string;
let place: ArchivePlace;
const opened: Store[] = [];

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-archive-'));
  place = createFolderArchive(join(dir, 'archive'));
  const redis = new Redis(server.url);
  await redis.flushall();
  await redis.quit();
});
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  await rm(dir, { recursive: true, force: true });
});

function openStore(kind: 'file' | 'redis', atRest: AtRest, archive: ArchivePlace | undefined = place): Store {
  const given = { atRest, ...(archive && { archive }) };
  const store = kind === 'file' ? createFileStore({ dir: join(dir, 'store'), ...given }) : createRedisStore({ url: server.url, ...given });
  opened.push(store);
  return store;
}

function readBytes(kind: 'file' | 'redis'): Promise<string> {
  return kind === 'file' ? bytesOfFiles(join(dir, 'store')) : bytesOfRedis(server.url);
}

/** A conversation of some turns, with long texts, items, costs and a ledger. */
async function converse(store: Store, over: Partial<ConversationKey> = {}): Promise<ConversationKey> {
  const key = aConversation({ conversation: 'conv_1', ...over });
  for (let n = 1; n <= TURNS; n += 1) {
    const turn = turnOf(n);
    const words = `question ${n} of canary-9c2e`;
    await store.writes.apply(key, { record: [{ ...userEntry(2 * n - 1, words, `m${n}`), turn }] });
    const answer = { ...answerEntry(2 * n, `answer ${n} of canary-9c2e`), turn };
    const spent = spendingOf(key);
    await store.effects.commit(key, { id: `${turn}/m1`, hash: 'h' }, { text: `answer ${n} of canary-9c2e` }, [answer], { spent });
  }
  await store.effects.fence(key, ['turn_0003/m2']);
  await store.effects.reserve(key, { id: 'turn_0060/m9', hash: 'h' }, 'a1');
  const body = await store.bodies.put(key, LONG);
  const ref = { ref: body.ref, bytes: body.bytes, json: false };
  await store.items.put(key, [item(1, { content: ref })]);
  await store.entries.archive(key, [[1, 40]], 2);
  return key;
}

/** What a conversation and its people find. */
async function read(store: Store, key: ConversationKey): Promise<unknown> {
  const claim = { id: 'turn_0001/m1', hash: 'h' };
  const spent: unknown[] = [];
  for await (const one of store.spendings.all(key)) spent.push(one);
  return {
    page: await store.entries.page(key, 0, 1_000),
    some: await store.entries.read(key, [1, 77, 999]),
    archived: await store.entries.archived(key),
    body: await store.bodies.get(key, (await store.items.list(key)).items[0]?.content.ref ?? ''),
    reservation: await store.effects.reserve(key, claim, 'later'),
    commitment: await store.effects.commit(key, claim, { text: 'another' }, []),
    fenced: await store.effects.fence(key, ['turn_0002/m1', 'turn_0003/m2']),
    batch: await store.writes.apply(key, { fence: ['turn_0004/m1'], reserve: { claim, attempt: 'x' } }),
    again: await store.entries.record(key, [userEntry(500, 'again', 'm7')]),
    attempts: await store.effects.reserve(key, { id: 'turn_0060/m9', hash: 'h' }, 'a1'),
    spent: spent.map((one) => JSON.stringify(one)).sort(),
  };
}

describe.each([
  ['file', PLAIN],
  ['file', ENCRYPTED],
  ['redis', PLAIN],
  ['redis', ENCRYPTED],
] as const)('%s', (kind, atRest) => {
  test('everything is read as before, also by another process, and no text of it is in the store', async () => {
    const store = openStore(kind, atRest);
    const key = await converse(store);
    const before = await read(store, key);
    const { lives } = await store.scopes.marks(key);
    expect(await archiveLife(store, key, IDLE)).toMatchObject({ objects: 1, entries: 2 * TURNS, bodies: 1, results: TURNS });
    if (atRest === PLAIN) expect(await readBytes(kind)).not.toContain('canary-9c2e');
    for (const each of [store, openStore(kind, atRest)]) expect(await read(each, key)).toEqual(before);
    // A search has it already.
    if (kind === 'redis') expect((await store.scopes.marks(key)).lives).toEqual(lives);
    const [name = ''] = await listNames();
    const bytes = await readFile(join(dir, 'archive', name));
    expect(bytes.length).toBeLessThan(LONG.length / 4);
    expect(bytes.includes('canary')).toBe(false);
    // Nothing is left to do.
    expect(await archiveLife(store, key, IDLE)).toMatchObject({ objects: 0 });
  });

  test('it goes on as a conversation, and what it says then is archived later', async () => {
    const store = openStore(kind, atRest);
    const key = await converse(store);
    await archiveLife(store, key, IDLE);
    const next = Array.from({ length: 60 }, (_, i) => userEntry(121 + i, `more ${i} `.repeat(40), `later-${i}`));
    await store.entries.record(key, next);
    await store.entries.restore(key, [[1, 40]], 3);
    expect((await store.entries.page(key, 0, 1_000)).entries).toHaveLength(2 * TURNS + 60);
    expect(await store.entries.archived(key)).toEqual([]);
    expect(await archiveLife(store, key, IDLE)).toMatchObject({ objects: 1, entries: 60 });
    expect((await store.entries.page(key, 100, 100)).entries.map(({ slot }) => slot)).toEqual(
      Array.from({ length: 80 }, (_, i) => 101 + i),
    );
    expect(await store.archived.index(key)).toHaveLength(2);
  });

  test('of one in use only what was compacted goes, and no text that others need', async () => {
    const store = openStore(kind, atRest);
    const key = await converse(store);
    const before = await read(store, key);
    const collected = await archiveLife(store, key, { before: LATER, isIdle: false });
    expect(collected).toMatchObject({ entries: 40, bodies: 0, results: 20 });
    expect(await read(store, key)).toEqual(before);
    expect(await archiveLife(store, key, { before: LATER, isIdle: false })).toMatchObject({ objects: 0 });
    // Nothing is old enough.
    const young = await converse(store, { conversation: 'conv_2' });
    expect(await archiveLife(store, young, { before: 1_000, isIdle: true })).toMatchObject({ objects: 0 });
  });

  test.each(['put', 'index', 'drop'] as const)('killed before its %s nothing is lost, and another goes on', async (when) => {
    const store = openStore(kind, atRest);
    const key = await converse(store);
    const before = await read(store, key);
    const killed = (): never => {
      throw new Error('killed');
    };
    const dying: Store = {
      ...store,
      archived: {
        ...store.archived,
        write: async (of, content) => {
          if (when === 'put') killed();
          const record = await store.archived.write(of, content);
          if (when !== 'index') return record;
          await store.contents
            .open({ name: 'archives', key: of }, (await import('../../src/stores/archived.js')).ARCHIVES)
            .change('x', () => []);
          return killed();
        },
      },
      contents: { ...store.contents, drop: async (...args) => (when === 'drop' ? killed() : store.contents.drop(...args)) },
    };
    await expect(archiveLife(dying, key, IDLE)).rejects.toThrow('killed');
    expect(await read(store, key)).toEqual(before);
    expect(await archiveLife(store, key, IDLE)).toMatchObject({ entries: 2 * TURNS });
    expect(await read(store, key)).toEqual(before);
  });

  test('a deleted life takes its archives along, those too that no index names', async () => {
    const store = openStore(kind, atRest);
    const key = await converse(store);
    const other = await converse(store, { conversation: 'conv_2' });
    for (const each of [key, other]) await archiveLife(store, each, IDLE);
    const [name = ''] = (await listNames()).filter((one) => one.includes('conv_1'));
    await writeFile(join(dir, 'archive', name.replace(/[^/]*$/, 'f'.repeat(64))), 'of a collection that was killed');
    await store.lives.markDeleted(key, [{ life: key.life, at: 1 }]);
    await store.lives.delete(key);
    expect((await listNames()).filter((one) => one.includes('conv_1'))).toEqual([]);
    expect(await listNames()).toHaveLength(1);
    expect((await store.entries.page(other, 0, 1_000)).entries).toHaveLength(2 * TURNS);
  });
});

async function listNames(): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of place.list('')) names.push(name);
  return names.sort();
}

test('deleted while it is archived, nothing stays', async () => {
  const store = openStore('redis', PLAIN);
  const key = await converse(store);
  const racing: Store = {
    ...store,
    archived: {
      ...store.archived,
      write: async (of, content) => {
        await store.lives.markDeleted(key, [{ life: key.life, at: 1 }]);
        await store.lives.delete(key);
        return store.archived.write(of, content);
      },
    },
  };
  expect(await archiveLife(racing, key, IDLE)).toMatchObject({ objects: 0, why: 'deleted' });
  expect(await listNames()).toEqual([]);
});

test('a store that lost its index gets it back, and what a deleted life has left is removed', async () => {
  const store = openStore('redis', PLAIN);
  const [key, gone] = [await converse(store), await converse(store, { conversation: 'conv_2' })];
  const before = await read(store, key);
  await archiveLife(store, key, IDLE);
  await archiveLife(store, gone, IDLE);
  const redis = new Redis(server.url);
  const [index = ''] = await redis.keys('perdura:*conv_1}*:archives');
  await redis.del(index);
  await redis.quit();
  expect((await store.entries.page(key, 0, 1_000)).entries).toEqual([]);
  await store.lives.markDeleted(gone, [{ life: gone.life, at: 1 }]);
  const soon = Date.now() + 2 * 60 * 60 * 1000;
  // One that is being written just now is left alone.
  expect(await sweepArchive(store, 'default', [key])).toEqual({ removed: 0, adopted: 0, unknown: 0 });
  expect(await sweepArchive(store, 'default', [key], soon)).toEqual({ removed: 1, adopted: 1, unknown: 0 });
  expect(await read(store, key)).toEqual(before);
  expect(await sweepArchive(store, 'default', [], soon)).toEqual({ removed: 0, adopted: 0, unknown: 1 });
});

describe('an archive that', () => {
  test('is not named here is asked for by its setting, for reading as for deleting', async () => {
    const store = openStore('redis', PLAIN);
    const key = await converse(store);
    await archiveLife(store, key, IDLE);
    const without = createRedisStore({ url: server.url });
    opened.push(without);
    await expect(without.entries.read(key, [1])).rejects.toThrow(/it is in an archive, and PERDURA_ARCHIVE is not set here/);
    await expect(without.lives.delete(key)).rejects.toThrow(StoreUnavailable);
  });

  test('was damaged is as what a store has lost: healing writes it again', async () => {
    const store = openStore('file', PLAIN);
    const key = await converse(store);
    await archiveLife(store, key, IDLE);
    const [name = ''] = await listNames();
    await writeFile(join(dir, 'archive', name), 'damaged');
    const later = openStore('file', PLAIN);
    expect(await later.entries.read(key, [1])).toEqual([undefined]);
    await expect(later.effects.reserve(key, { id: 'turn_0001/m1', hash: 'h' }, 'a')).rejects.toThrow(/is gone or damaged; put it back/);
    await later.entries.append(key, [userEntry(1, 'question 1 of canary-9c2e', 'm1')]);
    expect((await later.entries.read(key, [1]))[0]).toMatchObject({ message: { text: 'question 1 of canary-9c2e' } });
  });

  test('gives back something else than was written has nothing removed for it', async () => {
    const wrong: ArchivePlace = { ...place, get: async () => Buffer.from('something else') };
    const store = openStore('file', PLAIN, wrong);
    const key = await converse(store);
    await expect(archiveLife(store, key, IDLE)).rejects.toThrow(/does not give back what was written there/);
    expect((await store.contents.entries.page(key, 0, 1_000)).entries).toHaveLength(2 * TURNS);
  });

  test('cannot be written is named', async () => {
    await writeFile(join(dir, 'a-file'), '');
    const store = openStore('file', PLAIN, createFolderArchive(join(dir, 'a-file')));
    const key = await converse(store);
    await expect(archiveLife(store, key, IDLE)).rejects.toThrow(
      /cannot write an archive: the archive at .*a-file: .*; see that it can be reached/,
    );
  });
});

test('a line of a newer program is not written anew, so that it is not lost', async () => {
  const store = openStore('file', PLAIN);
  const key = await converse(store);
  const [journal = ''] = (await readdir(join(dir, 'store'), { recursive: true })).filter((name) => name.endsWith('journal.jsonl'));
  const path = join(dir, 'store', journal);
  await writeFile(path, `${await readFile(path, 'utf8')}{"v":2,"kind":"newer"}\n`);
  expect(await archiveLife(store, key, IDLE)).toMatchObject({ objects: 0, why: 'unreadable' });
  expect(await readFile(path, 'utf8')).toContain('newer');
});
