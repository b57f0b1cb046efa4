/** Both stores with encryption: what stands in their bytes. Their whole contract is in encrypted-contract.slow.test.ts. */
import { randomBytes } from 'node:crypto';
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { atRestKeyId, createAtRest, deriveAtRestKeys, type AtRest } from '../../src/platform/at-rest.js';
import { createFileStore } from '../../src/stores/file/index.js';
import { scopeDir } from '../../src/stores/file/paths.js';
import { lifeKey } from '../../src/stores/redis/keys.js';
import { createRedisStore } from '../../src/stores/redis/index.js';
import { StoreUnavailable, type Store } from '../../src/stores/store.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { bytesOfFiles, bytesOfRedis } from '../support/store-bytes.js';
import { aConversation, answerEntry, episode, events, fact, item, readCount, turnOf, userEntry } from './builders.js';
import { aWrite, collect, entry } from './documents-contract.js';

const [OLD, NEW] = [randomBytes(32), randomBytes(32)];
const by = (...roots: readonly Buffer[]): AtRest => createAtRest(deriveAtRestKeys(roots, 'store'));

/** In what forms the canary could stand somewhere. */
const CANARY = 'canary-7f3a';
const FORMS = [CANARY, Buffer.from(CANARY).toString('base64').slice(0, 12), Buffer.from(CANARY).toString('hex')];

/** Writes words into everything that holds words. */
async function fill(store: Store, words: string): Promise<void> {
  const key = aConversation({ scope: 'one', life: 'life' });
  const claim = { id: 'e1', hash: 'h' };
  await store.writes.apply(key, {
    record: [userEntry(1, words)],
    append: [answerEntry(2, words)],
    publish: events([{ words }]),
    reserve: { claim, attempt: 'a1' },
  });
  const spent = undefined;
  await store.effects.commit(key, claim, { words }, [answerEntry(3, words)], {
    spent,
    items: [item(1, { source: words, tags: [words] })],
    publish: events([{ words }]),
  });
  await store.bodies.put(key, `${words} and more`.repeat(100));
  await store.episodes.add(key, episode(1, { summary: words, tags: [words] }));
  await store.turnEnds.add(key, [{ v: 1, turn: turnOf(1), stopReason: 'failed', error: { type: 'ModelFailed', message: words } }]);
  await store.facts.add(key, 'batch', [fact(words)], { conversation: key.conversation, turn_ids: [turnOf(1)] });
  await store.documents.writeMemory(key, aWrite('w1', 'empty', `- ${words}\n`));
  await store.documents.appendHistory(key, entry('h1', 1_738_100_000, words));
  await store.scopes.writeIndex(key, 'part', Buffer.from(words.repeat(50)));
  await store.feed.publish(key, events([{ words }]));
}

interface Place {
  open(atRest: AtRest): Store;
  bytes(): Promise<string>;
}

describe.each(['files', 'redis'] as const)('what is in the bytes of %s', (kind) => {
  let dir: string;
  let server: RedisServer | undefined;
  let place: Place;
  const opened: Store[] = [];

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'perdura-sealed-'));
    server = kind === 'redis' ? await startRedis() : undefined;
    const { url = '' } = server ?? {};
    place = {
      open(atRest) {
        const store = kind === 'redis' ? createRedisStore({ url, atRest }) : createFileStore({ dir, atRest });
        opened.push(store);
        return store;
      },
      bytes: () => (kind === 'redis' ? bytesOfRedis(url) : bytesOfFiles(dir)),
    };
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((store) => store.close()));
    await server?.stop();
    await rm(dir, { recursive: true });
  });

  const key = aConversation({ scope: 'one', life: 'life' });
  const readAll = async (store: Store): Promise<string> =>
    JSON.stringify([
      await store.entries.page(key, 0, 10),
      await store.episodes.list(key),
      await store.documents.memory(key),
      await collect(store.documents.history(key)),
      (await store.scopes.readIndex(key, 'part'))?.toString(),
      await readCount(store.feed, key, '0-0', 3),
    ]);

  test('no words, in any form', async () => {
    await fill(place.open(by(NEW)), CANARY);
    const sealed = await place.bytes();
    for (const form of FORMS) expect(sealed).not.toContain(form);
  });

  test('without encryption all of them', async () => {
    await fill(place.open(createAtRest()), CANARY);
    const stored = await place.bytes();
    expect(stored.split(CANARY).length).toBeGreaterThan(20);
  });

  test('what was plain, and what an older key has sealed, is read as before', async () => {
    const plain = place.open(createAtRest());
    await fill(plain, 'words');
    const before = await readAll(plain);
    expect(await readAll(place.open(by(NEW)))).toBe(before);
    await place.open(by(OLD)).entries.append(key, [userEntry(4, 'by the old key')]);
    const after = JSON.parse(await readAll(place.open(by(NEW, OLD)))) as [{ readonly entries: readonly unknown[] }];
    expect(after[0].entries).toHaveLength(4);
  });

  test('without the key nothing is taken for lost: it is refused, with the name of the key', async () => {
    await fill(place.open(by(OLD)), 'words');
    for (const store of [place.open(by(NEW)), place.open(createAtRest())]) {
      const refusals = await Promise.all(
        [
          store.entries.page(key, 0, 10),
          store.documents.memory(key),
          store.episodes.list(key),
          store.bodies.put(key, 'words and more'.repeat(100)).then((ref) => store.bodies.get(key, ref.ref)),
          collect(store.documents.history(key)),
        ].map((read) => read.then(() => undefined).catch((error: unknown) => error)),
      );
      for (const refusal of refusals.filter((one) => one !== undefined)) {
        expect(refusal).toBeInstanceOf(StoreUnavailable);
        expect(String(refusal)).toContain(`key ${atRestKeyId(OLD)}`);
        expect(String(refusal)).toContain('PERDURA_ENCRYPTION');
      }
      expect(refusals.filter((one) => one !== undefined).length).toBeGreaterThanOrEqual(4);
    }
    expect(await readAll(place.open(by(OLD)))).toContain('words');
  });

  const reseal = async (store: Store): Promise<number> => {
    let values = 0;
    for await (const each of store.reseal()) {
      values += each.values;
      expect(each.left).toBe(0);
    }
    return values;
  };

  test.each([
    ['plain', createAtRest()],
    ['encrypted with an older key', by(OLD)],
  ])('what is %s is written again with the newest key, and needs no other', async (_, atRest) => {
    const old = place.open(atRest);
    await fill(old, CANARY);
    const before = await readAll(old);
    expect(await reseal(place.open(by(NEW, OLD)))).toBeGreaterThanOrEqual(15);
    const sealed = await place.bytes();
    for (const form of FORMS) expect(sealed).not.toContain(form);
    expect(sealed).not.toContain(`pe1:${atRestKeyId(OLD)}`);
    expect(await reseal(place.open(by(NEW)))).toBe(0);
    const after = place.open(by(NEW));
    // The index for search is made again, and live events are told to be gone.
    await after.scopes.writeIndex(key, 'part', Buffer.from(CANARY.repeat(50)));
    await after.feed.publish(key, events([{ words: CANARY }, { words: CANARY }, { words: CANARY }]));
    const [entries, ...others] = JSON.parse(await readAll(after)) as unknown[];
    const [entriesBefore, ...othersBefore] = JSON.parse(before) as unknown[];
    expect([entries, ...others.slice(0, 4)]).toEqual([entriesBefore, ...othersBefore.slice(0, 4)]);
    expect(await after.effects.commit(key, { id: 'e1', hash: 'h' }, { words: 'other' }, [])).toEqual({
      status: 'committed',
      result: { words: CANARY },
    });
  });

  test('it is written again while others write, and nothing is lost', async () => {
    await fill(place.open(createAtRest()), 'words');
    const writer = place.open(by(NEW, OLD));
    const writing = (async () => {
      for (let slot = 4; slot < 64; slot += 1) {
        await writer.entries.append(key, [answerEntry(slot)]);
        await writer.episodes.add(key, episode(slot));
        await writer.documents.appendHistory(key, entry(`h${slot}`, 1_738_100_000 + slot, `entry ${slot}`));
      }
    })();
    const rekeyed = place.open(by(NEW, OLD));
    for (let run = 0; run < 4; run += 1) for await (const _ of rekeyed.reseal());
    await writing;
    const after = place.open(by(NEW, OLD));
    await reseal(after);
    expect((await after.entries.page(key, 0, 100)).entries).toHaveLength(63);
    expect((await after.episodes.list(key)).episodes).toHaveLength(61);
    expect(await collect(after.documents.history(key))).toHaveLength(61);
    expect(await reseal(place.open(by(NEW)))).toBe(0);
  });

  test.each(['pe1:00000000:aaaa', 'pe0:x', `pe1:${atRestKeyId(OLD)}:${'A'.repeat(60)}`])(
    'a text that looks encrypted stays what it is: %j',
    async (text) => {
      for (const atRest of [createAtRest(), by(NEW)]) {
        const store = place.open(atRest);
        const { ref } = await store.bodies.put(key, text);
        expect(await store.bodies.get(key, ref)).toBe(text);
        const { version } = await store.documents.memory(key);
        await store.documents.writeMemory(
          key,
          aWrite(`w-${text}-${String(atRest.isOn)}`, version, `- a\n${text}\n- ${String(atRest.isOn)}\n`),
        );
        expect((await place.open(atRest).documents.memory(key)).text).toBe(`- a\n${text}\n- ${String(atRest.isOn)}\n`);
      }
    },
  );
});

test('an encrypted entry of Redis that was damaged is missing, and is healed by writing it again', async () => {
  const server = await startRedis();
  const redis = new Redis(server.url, { disconnectTimeout: 0 });
  const store = createRedisStore({ url: server.url, atRest: by(NEW) });
  try {
    const key = aConversation();
    await store.entries.append(key, [userEntry(1), userEntry(2)]);
    const stored = (await redis.hget(lifeKey(key, 'entries'), '1')) ?? '';
    await redis.hset(
      lifeKey(key, 'entries'),
      '1',
      // The first character: of the last one some bits may mean nothing.
      stored.replace(/(?<=^pe1:\w{8}:)./, (first) => (first === 'A' ? 'B' : 'A')),
    );
    const another = createRedisStore({ url: server.url, atRest: by(NEW) });
    expect(await another.entries.read(key, [1, 2])).toEqual([undefined, userEntry(2)]);
    await another.entries.append(key, [userEntry(1)]);
    expect(await another.entries.read(key, [1, 2])).toEqual([userEntry(1), userEntry(2)]);
    await another.close();
  } finally {
    await store.close();
    await redis.quit();
    await server.stop();
  }
});

test('HISTORY in files goes on where a writer died, and lines that a person adds are read with the rest', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-sealed-'));
  try {
    const key = aConversation();
    const store = createFileStore({ dir, atRest: by(NEW) });
    await store.documents.appendHistory(key, entry('h1', 1_738_100_000, 'one'));
    const path = join(scopeDir(dir, key), 'HISTORY.md');
    const whole = await readFile(path);
    await store.close();
    for (const cut of [whole.length - 1, whole.length >> 1, 0]) {
      // As a writer leaves it that died in the middle of its line, before it could say that it was done.
      const journal = join(scopeDir(dir, key), 'history.jsonl');
      await writeFile(path, whole.subarray(0, cut));
      await writeFile(journal, (await readFile(journal, 'utf8')).split('\n').slice(0, 1).join('\n') + '\n');
      const next = createFileStore({ dir, atRest: by(NEW) });
      await next.documents.appendHistory(key, entry('h1', 1_738_100_000, 'one'));
      expect((await collect(next.documents.history(key))).map(({ text }) => text)).toEqual(['one']);
      expect((await readFile(path)).equals(whole)).toBe(true);
      await next.close();
    }
    await appendFile(path, '\n## 2026-01-02 03:04\n\nby hand\n');
    const last = createFileStore({ dir, atRest: by(NEW) });
    expect((await collect(last.documents.history(key))).map(({ text }) => text).sort()).toContain('one');
    await last.close();
  } finally {
    await rm(dir, { recursive: true });
  }
});
