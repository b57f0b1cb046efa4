/** A whole store copied into a folder, and from there into a store of either kind, empty or not. */
import { randomBytes } from 'node:crypto';
import { appendFile, mkdtemp, readdir, readFile, rm, truncate, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { atRestKeyId, createAtRest, deriveAtRestKeys, type AtRest } from '../../src/platform/at-rest.js';
import { findDamage, openWriter, readFiles, readHead, readParts } from '../../src/stores/backup/folder.js';
import { isGone, listParts, namePart, readPart, restorePart, type Part, type PartRecord } from '../../src/stores/backup/parts.js';
import { createFileStore } from '../../src/stores/file/index.js';
import { createRedisStore } from '../../src/stores/redis/index.js';
import { LifeDeleted, type ConversationKey, type Store } from '../../src/stores/store.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { aConversation, answerEntry, episode, fact, item, turnOf, userEntry } from './builders.js';
import { aWrite, collect, entry } from './documents-contract.js';
import { spendingOf } from './spendings-contract.js';

const ROOT = randomBytes(32);
const ENCRYPTED = createAtRest(deriveAtRestKeys([ROOT], 'store'));
const PLAIN = createAtRest();
const NAMESPACE = 'default';
const LONG = 'a long text '.repeat(3_000);

let server: RedisServer;
let dir: string;
const opened: Store[] = [];

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-backup-'));
});
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  await rm(dir, { recursive: true, force: true });
});

let stores = 0;
async function aStore(kind: 'file' | 'redis', atRest: AtRest): Promise<Store> {
  const place = (stores += 1);
  const store =
    kind === 'file'
      ? createFileStore({ dir: join(dir, `store-${place}`), atRest })
      : createRedisStore({ url: `${server.url}/${(place % 15) + 1}`, atRest });
  if (kind === 'redis') {
    const redis = new Redis(`${server.url}/${(place % 15) + 1}`);
    await redis.flushdb();
    await redis.quit();
  }
  opened.push(store);
  return store;
}

/** Something in everything that is copied, of a conversation, its fork, its scope, a tenant and a deleted one. */
async function fill(store: Store): Promise<ConversationKey> {
  const key = aConversation({ scope: 'one', conversation: 'conv_1', life: 'life-1' });
  const record = Array.from({ length: 450 }, (_, i) => userEntry(2 * i + 1, `question ${i}`));
  await store.writes.apply(key, { record, reserve: { claim: { id: 'r1', hash: 'h' }, attempt: 'a 1' } });
  const body = await store.bodies.put(key, LONG);
  await store.effects.commit(key, { id: 'e1', hash: 'h1' }, { text: body.ref }, [answerEntry(2)], {
    spent: spendingOf(key),
    items: [item(1), item(2)],
  });
  await store.effects.fence(key, ['f1']);
  await store.effects.commit(key, { id: 'f1', hash: 'h' }, {}, [], { spent: spendingOf(key) });
  await store.effects.spend(key, 's1', spendingOf(key));
  await store.items.remove(key, ['mem_2'], { ts: 1_738_100_000, slot: 2 });
  await store.items.cite(key, 'mem_1', 'cited');
  await store.entries.archive(key, [[1, 40]], 3);
  await store.episodes.add(key, episode(1));
  await store.turnEnds.add(key, [{ v: 1, turn: turnOf(1), stopReason: 'failed', error: { type: 'ModelFailed', message: 'why' } }]);
  await store.lives.claim(key, { v: 1, id: 'claim-1', slots: [[1, 2]] });
  await store.vectors.add(key, [{ model: 'm/one', text: 7, values: Int8Array.of(1, -2, 3) }]);
  await store.budgets.limit(key, { limit: { maxTokens: 500 }, at: 1_738_100_000_000 });
  await store.uploads.count(key, { file: 'f', size: 12, limit: 100, maxFiles: 9 });

  const fork = aConversation({ scope: 'one', conversation: 'conv_1:2:1', life: 'life-2' });
  const shared = [{ conversation: 'conv_1', life: 'life-1', scope: 'one', slots: [[1, 9]] as [number, number][] }];
  await store.lives.begin(fork, { v: 1, kind: 'fork', of: key, turn: 4, shared, archived: [[1, 3]] });
  await store.entries.append(fork, [userEntry(10, 'of the fork', 'fork-m')]);

  const tenants = aConversation({ scope: 'acme:bob', conversation: 'conv_t', life: 'life-3' });
  await store.entries.append(tenants, [userEntry(1, 'of a tenant')]);
  await store.documents.writeMemory(tenants, aWrite('w1', 'empty', '- of a tenant\n'));

  const deleted = aConversation({ conversation: 'conv_gone', life: 'life-4' });
  await store.lives.markDeleted(deleted, [{ life: 'life-4', at: 1_738_100_000 }]);

  const scope = { namespace: NAMESPACE, scope: 'one' };
  const first = await store.documents.writeMemory(scope, aWrite('w1', 'empty', '- secret word\n- stays\n'));
  const from = first.status === 'written' ? first.version : '';
  await store.documents.writeMemory(scope, aWrite('w2', from, '- stays\n'));
  await store.documents.redact(scope, (line) => line.replace('secret word', '[forgotten]'));
  await store.documents.appendHistory(scope, { ...entry('h1', 1_738_100_000, 'raw'), kind: 'raw-fallback' });
  await store.documents.appendHistory(scope, entry('h1', 1_738_100_060, 'a summary'));
  await store.documents.appendHistory(scope, entry('h2', 1_738_200_000, 'another'));
  await store.documents.propose(scope, 'b1', [{ ts: 1_738_100_000, line: 'maybe', source: { trust: 'tool:web' } }]);
  await store.documents.forget(scope, { id: 'forget_1', ts: 1_738_100_000, words: ['0011223344556677'] });
  const [known] = await store.facts.add(scope, 'batch-1', [fact('one'), fact('two')], { conversation: 'conv_1', turn_ids: [turnOf(1)] });
  await store.facts.remove(scope, [known?.id ?? '']);
  await store.pins.acceptServer({ namespace: NAMESPACE, agent: 'helper' }, 'files', [{ server: 'files', tool: 't', hash: 'h', text: 'x' }]);
  await store.signIns.change({ namespace: NAMESPACE, owner: 'one' }, 'server', () => 'sealed');
  return key;
}

/** All that is copied of a store, by part, in one order: two stores with the same content are the same. */
async function contentOf(store: Store): Promise<Record<string, readonly string[]>> {
  const content: Record<string, string[]> = {};
  for await (const part of listParts(store, NAMESPACE)) {
    const lines: string[] = [];
    for await (const record of readPart(store, NAMESPACE, part, () => undefined)) lines.push(...linesOf(record));
    content[namePart(part)] = lines.sort();
  }
  return content;
}

function linesOf(record: PartRecord): string[] {
  switch (record.kind) {
    case 'records':
      return record.records.map((text) => `${record.collection} ${text.replace(/"change":"[^"]*"/, '')}`);
    case 'ledger':
      return record.ledger.map((one) => JSON.stringify(Object.entries(one).sort()));
    case 'entries':
    case 'history':
      return record.entries.map((one) => JSON.stringify(one));
    default:
      return [JSON.stringify(record)];
  }
}

async function backUp(store: Store, to: string, atRest: AtRest): Promise<void> {
  const head = { program: '0', store: await store.id(), kind: store.kind, namespace: NAMESPACE, begun: '2026-11-29T00:00:00.000Z' };
  const writer = await openWriter(to, head, atRest);
  for await (const part of listParts(store, NAMESPACE)) {
    if (writer.known.has(namePart(part))) continue;
    await writer.add(part, readPart(store, NAMESPACE, part, fail), () => isGone(store, NAMESPACE, part));
  }
  await writer.finish(new Date('2026-11-29T01:00:00.000Z'));
}

function fail(): never {
  throw new Error('something was skipped');
}

async function restore(
  store: Store,
  from: string,
  atRest: AtRest,
): Promise<{ readonly parts: readonly Part[]; readonly different: number }> {
  const head = await readHead(from);
  if (head === undefined) throw new Error('no backup');
  const parts: Part[] = [];
  let different = 0;
  for (const file of await readFiles(from, head, atRest)) {
    expect(await findDamage(from, file)).toBeUndefined();
    for await (const { part, records } of readParts(from, file, atRest)) {
      if (await isGone(store, NAMESPACE, part)) continue;
      const restored = await restorePart(store, NAMESPACE, part, records);
      expect(restored.unreadable).toBe(0);
      different += restored.different;
      parts.push(part);
    }
  }
  return { parts, different };
}

describe.each([
  ['file', 'file', PLAIN, PLAIN],
  ['file', 'redis', PLAIN, ENCRYPTED],
  ['redis', 'file', ENCRYPTED, ENCRYPTED],
  ['redis', 'redis', PLAIN, PLAIN],
] as const)('from %s to %s', (from, to, atRestFrom, atRestTo) => {
  test('everything comes back, and once more changes nothing', async () => {
    const [source, target] = [await aStore(from, atRestFrom), await aStore(to, atRestTo)];
    const key = await fill(source);
    const folder = join(dir, 'backup');
    await backUp(source, folder, atRestTo);
    const before = await contentOf(source);
    expect(Object.keys(before).length).toBeGreaterThan(7);
    await restore(target, folder, atRestTo);
    const after = await contentOf(target);
    expect(Object.keys(after).sort()).toEqual(Object.keys(before).sort());
    for (const name of Object.keys(before)) {
      if (name !== 'scope one') expect({ name, lines: after[name] }).toEqual({ name, lines: before[name] });
    }
    // As conversations see it.
    const fork = { ...key, conversation: 'conv_1:2:1', life: 'life-2' };
    expect((await target.entries.page(fork, 0, 100)).entries).toEqual((await source.entries.page(fork, 0, 100)).entries);
    expect(await target.effects.reserve(key, { id: 'e1', hash: 'h1' }, 'later')).toEqual(
      await source.effects.reserve(key, { id: 'e1', hash: 'h1' }, 'later'),
    );
    expect(await target.effects.reserve(key, { id: 'r1', hash: 'h' }, 'a 2')).toEqual({ status: 'reserved', earlier: 1 });
    expect(await target.entries.record(key, [userEntry(901, 'question 0', 'm1')])).toEqual([{ duplicate: { turn: turnOf(1), slot: 1 } }]);
    expect(await target.bodies.get(key, (await source.bodies.put(key, LONG)).ref)).toBe(LONG);
    expect(await target.uploads.kept({ namespace: NAMESPACE, tenant: '' })).toBe(12);
    const scope = { namespace: NAMESPACE, scope: 'one' };
    expect(await target.documents.memory(scope)).toEqual(await source.documents.memory(scope));
    expect(await collect(target.documents.history(scope))).toEqual(await collect(source.documents.history(scope)));
    expect((await target.facts.list(scope)).facts).toEqual((await source.facts.list(scope)).facts);
    // A removed number is not given again.
    const [next] = await target.facts.add(scope, 'batch-2', [fact('three')], { conversation: 'conv_1', turn_ids: [] });
    expect(next?.id).toBe('sem_0003');

    const once = await contentOf(target);
    await restore(target, folder, atRestTo);
    expect(await contentOf(target)).toEqual(once);
  });
});

test('what the store has stays, what it has forgotten and deleted does not come back', async () => {
  const [source, target] = [await aStore('file', PLAIN), await aStore('redis', PLAIN)];
  const key = await fill(source);
  const folder = join(dir, 'backup');
  await backUp(source, folder, PLAIN);
  const scope = { namespace: NAMESPACE, scope: 'one' };
  await target.documents.writeMemory(scope, aWrite('other', 'empty', '- another memory\n'));
  await target.entries.append(key, [userEntry(1, 'another text', 'm1')]);
  const tenants = { ...key, scope: 'acme:bob', conversation: 'conv_t', life: 'life-3' };
  await target.lives.markDeleted(tenants, [{ life: 'life-3', at: 1_738_100_000 }]);
  const { parts, different } = await restore(target, folder, PLAIN);
  expect(parts.map(namePart)).not.toContain('life conv_t life-3');
  expect(different).toBeGreaterThan(0);
  expect((await target.documents.memory(scope)).text).toBe('- another memory\n');
  expect((await target.entries.read(key, [1, 3])).map((one) => one?.message)).toEqual([
    { role: 'user', text: 'another text' },
    { role: 'user', text: 'question 1' },
  ]);
  await expect(target.entries.append(tenants, [userEntry(1, 'x')])).rejects.toThrow(LifeDeleted);
});

describe('a backup that was cut short', () => {
  test('goes on after its last whole file, also after half a line and half a file', async () => {
    const source = await aStore('file', PLAIN);
    await fill(source);
    const folder = join(dir, 'backup');
    const head = { program: '0', store: await source.id(), kind: source.kind, namespace: NAMESPACE, begun: '2026-11-29T00:00:00.000Z' };
    const first = await openWriter(folder, head, PLAIN);
    const parts: Part[] = [];
    for await (const part of listParts(source, NAMESPACE)) parts.push(part);
    const [one, ...rest] = parts;
    if (one === undefined) throw new Error('no part');
    await first.add(one, readPart(source, NAMESPACE, one, fail), () => Promise.resolve(false));
    await first.finish(new Date());
    // As it was in the middle.
    const {
      finished: _,
      files: __,
      sha256: ___,
      ...unfinished
    } = JSON.parse(await readFile(join(folder, 'backup.json'), 'utf8')) as Record<string, unknown>;
    await writeFile(join(folder, 'backup.json'), JSON.stringify(unfinished));
    await appendFile(join(folder, 'files.jsonl'), '{"file":"0000');
    await writeFile(join(folder, '000002.parts'), 'half');
    await writeFile(join(folder, '000002.parts.1.tmp'), 'half');
    await backUp(source, folder, PLAIN);
    const target = await aStore('file', PLAIN);
    expect((await restore(target, folder, PLAIN)).parts.map(namePart).sort()).toEqual([one, ...rest].map(namePart).sort());
    expect((await readdir(folder)).sort()).toEqual(['000001.parts', '000002.parts', 'backup.json', 'files.jsonl']);
  });

  test('is of one store, and a finished one is left alone', async () => {
    const [source, other] = [await aStore('file', PLAIN), await aStore('file', PLAIN)];
    await fill(source);
    const folder = join(dir, 'backup');
    await backUp(source, folder, PLAIN);
    await expect(backUp(source, folder, PLAIN)).rejects.toThrow(/has a backup that was finished at .*: name another folder/);
    await expect(backUp(other, folder, PLAIN)).rejects.toThrow(/it is of the store \w{6}, namespace default, and this one is \w{6}/);
  });
});

test('what was deleted while it was read does not come back', async () => {
  const [source, target] = [await aStore('file', PLAIN), await aStore('file', PLAIN)];
  const key = await fill(source);
  const folder = join(dir, 'backup');
  const head = { program: '0', store: await source.id(), kind: source.kind, namespace: NAMESPACE, begun: '2026-11-29T00:00:00.000Z' };
  const writer = await openWriter(folder, head, PLAIN);
  const part: Part = { kind: 'life', scope: key.scope, conversation: key.conversation, life: key.life };
  const records = async function* (): AsyncIterable<PartRecord> {
    for await (const record of readPart(source, NAMESPACE, part, () => undefined)) {
      yield record;
      await source.lives.markDeleted(key, [{ life: key.life, at: 1_738_100_000 }]);
    }
  };
  await writer.add(part, records(), () => isGone(source, NAMESPACE, part));
  await writer.finish(new Date());
  expect((await restore(target, folder, PLAIN)).parts).toEqual([]);
  expect((await target.entries.page(key, 0, 10)).entries).toEqual([]);
});

describe('bad input', () => {
  let folder: string;
  beforeEach(async () => {
    const source = await aStore('file', PLAIN);
    await fill(source);
    folder = join(dir, 'backup');
    await backUp(source, folder, ENCRYPTED);
  });
  const firstFile = async (): Promise<Parameters<typeof findDamage>[1]> => {
    const head = await readHead(folder);
    const [file] = head ? await readFiles(folder, head, ENCRYPTED) : [];
    if (file === undefined) throw new Error('no file');
    return file;
  };

  test('a changed, a short and a missing file are each named', async () => {
    const file = await firstFile();
    const path = join(folder, file.file);
    const bytes = await readFile(path);
    const middle = bytes.length >> 1;
    bytes[middle] = (bytes[middle] ?? 0) ^ 1;
    await writeFile(path, bytes);
    expect(await findDamage(folder, file)).toMatch(/^000001\.parts was changed since/);
    await truncate(path, 100);
    expect(await findDamage(folder, file)).toMatch(/^000001\.parts has 100 bytes, and was written with \d+$/);
    await unlink(path);
    expect(await findDamage(folder, file)).toBe('000001.parts is missing');
  });

  test('a list of files that is not as it was written is refused', async () => {
    await appendFile(join(folder, 'files.jsonl'), '\n');
    await expect(firstFile()).rejects.toThrow(/files\.jsonl: it is not as it was written/);
  });

  test('a newer format is refused', async () => {
    const head = JSON.parse(await readFile(join(folder, 'backup.json'), 'utf8')) as object;
    await writeFile(join(folder, 'backup.json'), JSON.stringify({ ...head, v: 2, surprising: true }));
    await expect(readHead(folder)).rejects.toThrow(/written by a newer perdura \(format 2, known is 1\)/);
    await writeFile(join(folder, 'backup.json'), '{"v":1}');
    await expect(readHead(folder)).rejects.toThrow(/it is damaged; put it back from a copy/);
  });

  test('a key that is not here is named, and no word is readable', async () => {
    const head = await readHead(folder);
    if (head === undefined) throw new Error('no backup');
    await expect(readFiles(folder, head, PLAIN)).rejects.toThrow(new RegExp(`it is encrypted with key ${atRestKeyId(ROOT)}`));
    for (const name of await readdir(folder)) {
      const bytes = await readFile(join(folder, name));
      for (const word of ['question', 'conv_1', 'secret'])
        expect({ name, word, is: bytes.includes(word) }).toEqual({ name, word, is: false });
    }
  });
});
