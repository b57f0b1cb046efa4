import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Entry } from '../../src/records/message.js';
import type { Activity } from '../../src/heal/read-activities.js';
import { heal, type HealDependencies } from '../../src/heal/heal.js';
import { tombstoneFor } from '../../src/memory/documents/forgetting.js';
import type { InputProcessor } from '../../src/memory/processors.js';
import { createFileStore } from '../../src/stores/file/index.js';
import type { ConversationKey, Store } from '../../src/stores/store.js';
import {
  compaction,
  evict,
  finished,
  message,
  modelSaid,
  modelStep,
  partStep,
  rewind,
  runTool,
  storeStep,
  toolSaid,
  undo,
  userSaid,
} from './builders.js';
import { fakeHistory } from './fake-history.js';

const key: ConversationKey = { namespace: 'default', scope: 'default', conversation: 'c1', life: 'l1' };

let dir: string;
let store: Store;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-heal-'));
  store = createFileStore({ dir });
});
afterEach(async () => {
  await store.close();
  await rm(dir, { recursive: true, force: true });
});

function healing(activities: readonly Activity[], over: Partial<HealDependencies> = {}) {
  const { service } = fakeHistory([activities]);
  return heal({ service, store, rememberedBy: () => Promise.resolve([]), ...over }, key);
}

async function stored(): Promise<Entry[]> {
  return (await store.entries.page(key, 0, 100_000)).entries;
}

function turns(count: number): Activity[] {
  return Array.from({ length: count }, (_, i) => {
    const slot = 2 * i + 1;
    return modelStep({ turn: i + 1, slot: slot + 1, write: { messages: [message(slot, i + 1)] } });
  }).flat();
}

test('a store that lost everything has it again, and a second healing finds nothing to do', async () => {
  const tool = finished(3, 1, 7);
  const life = [...turns(2), ...runTool(tool), ...modelStep({ turn: 3, slot: 8, write: { messages: [message(5, 3)] } })];
  expect(await healing(life)).toMatchObject({ runs: 1, known: 7, missing: 7, restored: 7, lostBodies: [], complete: true, problems: [] });
  const all = [userSaid(1, 1), modelSaid(2, 1), userSaid(3, 2), modelSaid(4, 2), userSaid(5, 3), toolSaid(7, 3, 1), modelSaid(8, 3)];
  expect(await stored()).toEqual(all);
  expect(await healing(life)).toMatchObject({ known: 7, missing: 0, restored: 0 });
  expect(await stored()).toEqual(all);
});

test('what the store has stays as it is', async () => {
  const own = modelSaid(2, 1, 'as the store has it');
  await store.entries.append(key, [own]);
  expect(await healing(turns(1))).toMatchObject({ known: 2, missing: 1, restored: 1 });
  expect(await stored()).toEqual([userSaid(1, 1), own]);
});

test('a long life is written many entries at a time', async () => {
  let writes = 0;
  const counting: Store = { ...store, writes: { apply: (...given) => ((writes += 1), store.writes.apply(...given)) } };
  expect(await healing(turns(1_000), { store: counting })).toMatchObject({ known: 2_000, restored: 2_000 });
  expect(writes).toBeLessThan(20);
  expect(await stored()).toHaveLength(2_000);
});

describe('texts', () => {
  const long = 'a long text, '.repeat(2_000);

  test('a long message goes to the bodies, as do its schema and the values for tools', async () => {
    const over = {
      text: long,
      output: { type: 'object' },
      context: { user: 'u1' },
      images: [{ mediaType: 'image/png', base64: 'x'.repeat(20_000) }],
    };
    expect(await healing(storeStep({ messages: [message(1, 1, over)], startContext: { tenant: 't' } }))).toMatchObject({ lostBodies: [] });
    const [entry] = await stored();
    expect(entry).toMatchObject({ message: { text: { bytes: 26_000 }, images: [{ ref: expect.any(String) as string }] } });
    for (const value of [over.output, over.context, { tenant: 't' }]) {
      const { ref } = await store.bodies.put({ ...key, life: 'another' }, JSON.stringify(value));
      expect(await store.bodies.get(key, ref)).toBe(JSON.stringify(value));
    }
  });

  test('a message in parts is whole again', async () => {
    const json = JSON.stringify({ text: long, context: { user: 'u1' } });
    const refs = ['b:1', 'b:2'];
    const parts = refs.flatMap((ref, i) => partStep(1, i === 0 ? json.slice(0, 9_999) : json.slice(9_999), ref));
    await healing([...parts, ...storeStep({ messages: [{ ...message(1, 1, { text: '' }), parts: refs }] })]);
    expect(await stored()).toMatchObject([{ messageId: 'm1', message: { text: { bytes: 26_000 } } }]);
  });

  test('one of which history has no longer all parts is named, unless the store has them', async () => {
    const [first, second] = await Promise.all(['{"text":"he', 'llo"}'].map((text) => store.bodies.put({ ...key, life: 'l0' }, text)));
    const parted = storeStep({ messages: [{ ...message(1, 1, { text: '' }), parts: [first!.ref, second!.ref] }] });
    const healed = await healing(parted);
    expect(healed.lostBodies).toEqual([first!.ref, second!.ref]);
    expect(healed.problems).toEqual([expect.stringContaining('turn_0001 (slot 1) came in parts')]);
    await store.bodies.put(key, '{"text":"he');
    await store.bodies.put(key, 'llo"}');
    expect(await healing(parted)).toMatchObject({ lostBodies: [], problems: [] });
    expect(await stored()).toEqual([userSaid(1, 1, 'hello')]);
  });

  test('what travelled as a reference alone is named', async () => {
    const text = { ref: 'body_0'.padEnd(69, '0'), sha256: '0'.repeat(64), bytes: 5_000, preview: 'It begins' };
    const healed = await healing(runTool(finished(1, 1, 2, { text })));
    expect(healed).toMatchObject({ restored: 1, lostBodies: [text.ref], problems: [] });
  });

  test('a long report that stands in the place of a result is stored as it was', async () => {
    const settle = [{ effect: 'turn_0001/c1', entry: toolSaid(2, 1, 1, { text: long }) }];
    expect(await healing(storeStep({ settle }))).toMatchObject({ lostBodies: [] });
    expect(await stored()).toMatchObject([{ message: { role: 'tool', text: { bytes: 26_000 } } }]);
  });

  test('values that tools share are there as the last one left them', async () => {
    const put = async (values: object) => (await store.bodies.put({ ...key, life: 'another' }, JSON.stringify(values))).ref;
    const [start, part, whole] = await Promise.all([put({ a: 1, b: 2 }), put({ b: null, c: 3 }), put({ a: 1, c: 3 })]);
    const contextChange = { ref: part, on: { ref: start }, values: { b: null, c: 3 } };
    const ran = runTool(finished(1, 1, 2, { contextChange, appContext: { ref: whole } }));
    expect(await healing(ran)).toMatchObject({ lostBodies: [whole] });
    expect(await healing([...storeStep({ startContext: { a: 1, b: 2 } }), ...ran])).toMatchObject({ lostBodies: [] });
    expect(await store.bodies.get(key, whole)).toBe('{"a":1,"c":3}');
  });
});

describe('processors', () => {
  const redact: InputProcessor = { name: 'Redact', order: 1, process: (text) => text.replace('secret', '***') };
  const picky: InputProcessor = {
    name: 'Picky',
    order: 1,
    process: (text) => {
      if (text.includes('3')) throw new Error('not this one');
      return text;
    },
  };

  test('what they removed stays removed', async () => {
    await healing(storeStep({ messages: [message(1, 1, { text: 'my secret' })] }), { processors: [redact] });
    expect(await stored()).toEqual([userSaid(1, 1, 'my ***')]);
  });

  test('one that throws costs its message, and is said', async () => {
    const { known, problems } = await healing(turns(2), { processors: [picky] });
    expect(known).toBe(3);
    expect(problems).toEqual([expect.stringContaining('the message of turn_0002 (slot 3) cannot be written again')]);
  });
});

describe('what older turns have become', () => {
  const archived = () => store.entries.archived(key);

  test('it is there again: summary, facts, what it began with, what is archived', async () => {
    await healing([...turns(3), ...compaction(1, [[1, 4]], 1)]);
    expect((await store.episodes.list(key)).episodes).toMatchObject([{ id: 'ep_0001', session: 2, epoch: 2, made: { inputsHash: 'h' } }]);
    expect((await store.facts.list(key)).facts).toMatchObject([{ fact: 'fact 1', batch: 'c1/l1/2', source: { turn_ids: ['turn_0001'] } }]);
    expect(await archived()).toEqual([[1, 4]]);
  });

  test('what was taken back stays away, also from a store that still had it', async () => {
    const life = [...turns(3), ...compaction(1, [[1, 4]], 1)];
    await healing(life);
    expect(await healing([...life, ...undo(1, [[1, 4]], 2)])).toMatchObject({ missing: 0 });
    expect((await store.episodes.list(key)).episodes).toEqual([]);
    expect((await store.facts.list(key)).facts).toEqual([]);
    expect(await archived()).toEqual([]);
  });

  test('the archive is as after the last move, also where the store has lost only that', async () => {
    const life = [...turns(5), ...compaction(1, [[1, 4]], 1), ...rewind([[7, 10]], [[3, 6]], 2), ...evict([[3, 3]], 3)];
    await store.entries.archive(key, [[9, 9]], 3);
    await healing(life);
    expect(await archived()).toEqual([
      [1, 3],
      [7, 10],
    ]);
    expect((await store.lives.cuts(key)).map(({ id }) => id)).toEqual(['r2']);
  });

  test('a move that the history does not have yet is left alone', async () => {
    await store.entries.restore(key, [[1, 2]], 9);
    await healing([...turns(2), ...evict([[1, 2]], 3)]);
    expect(await archived()).toEqual([]);
  });

  test('what is to stay forgotten comes back neither as a fact nor in HISTORY', async () => {
    const forget = { scope: 'default', text: 'fact 1', at: 1_000 };
    const rememberedBy = () => Promise.resolve([{ activity: 'forget', input: forget, result: {}, at: 1_000 } as const]);
    await healing([...compaction(1, [[1, 2]], 1), ...evict([[1, 2]], 2, 'user: fact 1')], { rememberedBy });
    expect(await store.documents.forgotten(key)).toEqual([tombstoneFor(forget)]);
    expect((await store.facts.list(key)).facts).toEqual([]);
    const history = [];
    for await (const entry of store.documents.history(key)) history.push(entry);
    expect(history).toMatchObject([{ id: 'c1/l1/ask-2', kind: 'raw-fallback', ts: 7 }]);
    expect(JSON.stringify(history)).not.toContain('fact 1');
  });
});

describe('items of the memory channel', () => {
  test('a result that is one is one again, and so is what the agent stored, though answer and result are far apart', async () => {
    const asks = {
      kind: 'tool-call',
      callId: 'turn_0001/c1',
      name: 'store_in_memory',
      input: { content: 'plums are ripe', type: 'custom' },
    } as const;
    const stores = finished(1, 1, 3, { name: 'store_in_memory', text: 'stored' });
    await healing([
      ...modelStep({ turn: 1, slot: 2, answer: { blocks: [asks], stop: 'tool-calls' } }),
      ...turns(400),
      ...runTool({ ...stores, slot: 9_000 }),
    ]);
    const { items } = await store.items.list(key);
    expect(items).toHaveLength(1);
    expect(await store.bodies.get(key, items[0]!.content.ref)).toBe('plums are ripe');
  });
});
