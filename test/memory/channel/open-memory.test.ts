import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Entry } from '../../../src/records/message.js';
import type { AgentMemory, ItemPlace } from '../../../src/records/memory/agent-memory.js';
import { keepItems, itemId } from '../../../src/memory/channel/items-of-entries.js';
import { openMemory, withOthers } from '../../../src/memory/channel/open-memory.js';
import { createFileStore } from '../../../src/stores/file/index.js';
import type { Store } from '../../../src/stores/store.js';
import { aConversation } from '../../stores/builders.js';
import { calls, conversation, result, user } from '../builders.js';

let dir: string;
let store: Store;
let clock = Date.parse('2026-11-21T10:00:00Z');

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-items-'));
  store = createFileStore({ dir });
});
afterAll(async () => {
  await store.close();
  await rm(dir, { recursive: true });
});

const placeOf = (session = 1): ItemPlace => ({ ...aConversation(), session });

/** As a worker opens it for one call. */
function openedAt(place: ItemPlace, callId: string, slot: number): AgentMemory {
  return openMemory({ store, place, slot, nextId: () => itemId(place, callId, 1), now: () => new Date((clock += 1_000)) });
}

function opened(place: ItemPlace, callId = 'turn_0001/c1', asOf?: { at: number; slot?: number }): AgentMemory {
  let nth = 0;
  const now = (): Date => new Date((clock += 1_000));
  return openMemory({ store, place, nextId: () => itemId(place, callId, (nth += 1)), now, ...(asOf && { asOf }) });
}

test('what is stored has the seed’s defaults, and is read back as it was', async () => {
  const memory = opened(placeOf());
  const text = await memory.store({ content: 'größer 🎈' });
  const json = await memory.store({
    content: { rows: [1, null, 'x'] },
    type: 'database_result',
    metadata: { source: 'ask', tags: ['a'], relatedTo: [text] },
  });
  expect(text).toMatch(/^mem_[0-9a-f]{12}$/);
  expect(await memory.retrieve(text)).toEqual({
    id: text,
    type: 'custom',
    content: 'größer 🎈',
    metadata: { source: 'user', timestamp: new Date(clock - 1_000), size: JSON.stringify('größer 🎈').length },
  });
  expect(await memory.retrieve(json)).toMatchObject({
    type: 'database_result',
    content: { rows: [1, null, 'x'] },
    metadata: { source: 'ask', size: 21, tags: ['a'], relatedTo: [text] },
  });
  expect(await memory.retrieve('mem_no')).toBeNull();
  expect(await memory.retrieve('__proto__')).toBeNull();
});

test('the same call stores the same item, whatever attempt it is', async () => {
  const place = placeOf();
  const first = await opened(place).store({ content: 'one' });
  expect(await opened(place).store({ content: 'one' })).toBe(first);
  expect(await opened(place, 'turn_0001/c2').store({ content: 'one' })).not.toBe(first);
  expect(await opened(placeOf()).store({ content: 'one' })).not.toBe(first);
  expect(await opened(place).query()).toHaveLength(2);
});

test('a query answers with metadata alone, newest first, ten unless it says otherwise', async () => {
  const memory = opened(placeOf());
  const from = new Date(clock);
  for (let n = 0; n < 60; n += 1) {
    await memory.store({ content: `secret ${n}`, metadata: { source: n % 2 ? 'odd' : 'even', tags: n % 3 ? ['a'] : ['a', 'b'] } });
  }
  const ten = await memory.query();
  expect(ten).toHaveLength(10);
  expect(JSON.stringify(ten)).not.toContain('secret');
  const times = ten.map(({ metadata }) => metadata.timestamp.getTime());
  expect(times).toEqual([...times].sort((a, b) => b - a));
  expect(times[0]).toBe(clock);
  expect(await memory.query({ limit: 1_000 })).toHaveLength(50);
  expect(await memory.query({ limit: 0 })).toHaveLength(0);
  expect(await memory.query({ source: 'odd', limit: 50 })).toHaveLength(30);
  expect(await memory.query({ tags: ['a', 'b'], limit: 50 })).toHaveLength(20);
  expect(await memory.query({ type: 'web_content' })).toEqual([]);
  const timeRange = { start: from, end: new Date(from.getTime() + 5_000) };
  expect(await memory.query({ timeRange })).toHaveLength(5);
});

test('a session sees its own items alone', async () => {
  const place = placeOf();
  const id = await opened(place).store({ content: 'old' });
  const next = opened({ ...place, session: 2 }, 'turn_0002/c1');
  expect([await next.retrieve(id), await next.query()]).toEqual([null, []]);
});

test('what was cleared is gone, and a repeated store does not bring it back', async () => {
  const place = placeOf();
  const memory = opened(place);
  const id = await memory.store({ content: 'one' });
  await memory.clear();
  expect(await opened(place).store({ content: 'one' })).toBe(id);
  expect([await memory.retrieve(id), await memory.query()]).toEqual([null, []]);
});

test('a snapshot is small, and restored elsewhere it is a copy of its own', async () => {
  const [parent, child] = [placeOf(), placeOf(3)];
  const memory = opened(parent);
  const long = 'plum '.repeat(20_000);
  const id = await memory.store({ content: long });
  const snapshot = JSON.parse(JSON.stringify(await memory.snapshot())) as Awaited<ReturnType<AgentMemory['snapshot']>>;
  expect(JSON.stringify(snapshot).length).toBeLessThan(1_000);
  const own = opened(child);
  const before = await own.store({ content: 'the child’s own' });
  for (const _ of [1, 2]) await own.restore(snapshot);
  expect((await own.retrieve(id))?.content).toBe(long);
  expect(await own.query()).toHaveLength(2);
  await own.store({ content: 'more' });
  await memory.store({ content: 'the parent’s own' });
  expect((await memory.query()).map((head) => head.id)).not.toContain(before);
  expect(await own.query()).toHaveLength(3);
  await expect(opened({ ...placeOf(), scope: 'somebody-else' }).restore(snapshot)).rejects.toThrow(/memories are shared within one scope/);
});

test('a memory of another conversation is opened by its place, and shared both ways', async () => {
  const parent = placeOf();
  const id = await opened(parent).store({ content: 'of the parent' });
  const shared = opened(parent, 'child-of-it:turn_0001/c1');
  expect((await shared.retrieve(id))?.content).toBe('of the parent');
  const back = await shared.store({ content: 'of the child' });
  expect((await opened(parent).retrieve(back))?.content).toBe('of the child');
});

test('a sub-agent that shares its parent’s memory finds both, and stores for both', async () => {
  const [parent, child] = [placeOf(), placeOf()];
  const theirs = await opened(parent).store({ content: 'of the parent' });
  const own = await opened(child).store({ content: 'of its own tool' });
  const memory = withOthers(opened(child), { shared: opened(parent, 'child:turn_0001/c9'), snapshots: [] });
  expect([(await memory.retrieve(theirs))?.content, (await memory.retrieve(own))?.content]).toEqual(['of the parent', 'of its own tool']);
  const stored = await memory.store({ content: 'for both' });
  expect((await memory.query()).map(({ id }) => id)).toEqual([stored, own, theirs]);
  expect(await memory.query({ limit: 2 })).toHaveLength(2);
  expect((await opened(parent).retrieve(stored))?.content).toBe('for both');
  await memory.clear();
  expect((await opened(parent).query()).map(({ id }) => id)).toEqual([stored, theirs]);
});

test('a snapshot has what was there, and keeps what comes to itself', async () => {
  const [parent, child] = [placeOf(), placeOf()];
  const before = await opened(parent).store({ content: 'early' });
  const memory = withOthers(opened(child, 'turn_0001/c7'), { snapshots: [opened(parent, 'turn_0001/c1', { at: clock })] });
  const after = await opened(parent, 'turn_0001/c2').store({ content: 'late' });
  const own = await memory.store({ content: 'mine' });
  expect((await memory.query()).map(({ id }) => id)).toEqual([own, before]);
  expect((await memory.retrieve(before))?.content).toBe('early');
  expect(await memory.retrieve(after)).toBeNull();
  expect(await opened(parent).retrieve(own)).toBeNull();
});

test('a snapshot is of what was there before a slot, whatever the clocks say, and only then of the newest', async () => {
  const parent = placeOf();
  const early = await openedAt(parent, 'turn_0001/c1', 4).store({ content: 'early' });
  for (const n of [2, 3, 4]) await openedAt(parent, `turn_0001/c${n}`, 4 + n).store({ content: 'late' });
  const seen = opened(parent, 'turn_0001/c9', { at: 0, slot: 5 });
  expect((await seen.query({ limit: 1 })).map(({ id }) => id)).toEqual([early]);
});

test('in a tree with one memory a snapshot is of what the parent saw, whatever the clocks say: its own items by their calls, others by theirs', async () => {
  const root = placeOf();
  const storeIn = async (n: number, slot: number, calls?: readonly { life: string; slot: number }[], late = 0): Promise<string> => {
    const now = (): Date => new Date(clock + late);
    return openMemory({ store, place: root, slot, nextId: () => itemId(root, `c${n}`), now, ...(calls && { calls }) }).store({
      content: n,
    });
  };
  const [own, under] = [(slot: number) => [{ life: 'parent', slot }], (slot: number) => [...own(slot), { life: 'nephew', slot: 2 }]];
  const beside = [{ life: 'sister', slot: 3 }];
  const HOUR = 3_600_000;
  const there = [
    await storeIn(1, 4, undefined, HOUR),
    await storeIn(2, 6, own(3), HOUR),
    await storeIn(3, 6, under(4), HOUR),
    // Side by side: their clocks alone tell.
    await storeIn(4, 7, beside),
  ];
  await storeIn(5, 6, own(5), -HOUR);
  await storeIn(6, 6, under(7), -HOUR);
  await storeIn(7, 7, beside, HOUR);
  const asOf = { at: clock, slot: 6, calls: own(5) };
  const seen = openMemory({ store, place: root, nextId: () => 'mem_none', now: () => new Date(clock), asOf });
  expect((await seen.query()).map(({ id }) => id).sort()).toEqual([...there].sort());
});

test('items are made again from the entries that speak of them, the same as they were', async () => {
  const key = aConversation();
  const mine = (callId: string, text: string) => ({ ...result(callId, text), item: { id: itemId(key, callId), citation: '{}' } });
  const entries: Entry[] = conversation([
    1,
    user('go'),
    calls(
      ['turn_0001/c1', 'fetch_url'],
      ['turn_0001/c2', 'store_in_memory', { content: 'blue', tags: 'a, b' }],
      ['turn_0001/c3', 'store_in_memory', { content: 'x' }],
    ),
    { ...mine('turn_0001/c1', 'a page'), name: 'fetch_url' },
    result('turn_0001/c2', 'Stored', { name: 'store_in_memory' }),
    result('turn_0001/c3', 'no', { name: 'store_in_memory', outcome: 'error' }),
    calls(['turn_0001/c4', 'retrieve_from_memory', { id: 'mem_x' }]),
    { ...result('turn_0001/c4', 'read'), item: { id: 'mem_x', citation: '{}' } },
  ]);
  for (const _ of [1, 2]) await keepItems(store, key, entries);
  const { items } = await store.items.list(key);
  expect(items.map(({ source, type, tags }) => ({ source, type, tags }))).toEqual([
    { source: 'user', type: 'custom', tags: ['a', 'b'] },
    { source: 'fetch_url', type: 'action_result', tags: ['action', 'fetch_url'] },
  ]);
  const memory = opened({ ...key, session: 1 });
  expect((await memory.retrieve(itemId(key, 'turn_0001/c1')))?.content).toBe('a page');
  expect((await memory.retrieve(itemId(key, 'turn_0001/c2', 1)))?.content).toBe('blue');
});

test('an item of a type that there is not is refused', async () => {
  await expect(opened(placeOf()).store({ content: 'x', type: 'nonsense' as never })).rejects.toThrow('its type must be action_result');
  for (const [criteria, words] of [
    [{ type: 'nonsense' }, 'type must be action_result'],
    [{ tags: 'a' }, 'tags must be a list of texts'],
    [{ timeRange: { start: 'yesterday', end: new Date() } }, 'timeRange needs the dates start and end'],
    [{ limit: -1 }, 'limit must be a whole number from 0'],
  ] as const)
    await expect(opened(placeOf()).query(criteria as never)).rejects.toThrow(`cannot search the items in memory: ${words}`);
});
