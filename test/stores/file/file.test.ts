import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, link, mkdir, mkdtemp, readFile, readdir, rename, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { toTraces } from '../../../src/memory/traces.js';
import { createFileStore } from '../../../src/stores/file/index.js';
import { conversationDir, toFileName } from '../../../src/stores/file/paths.js';
import type { ConversationKey, Store } from '../../../src/stores/store.js';
import type { Entry } from '../../../src/records/message.js';
import { aConversation, answerEntry, episode, eventsOf, fact, numbered, readCount, userEntry } from '../builders.js';
import { bytesOfFiles } from '../../support/store-bytes.js';
import { startWriter } from '../child.js';
import { storeContract } from '../contract.js';
import { spendingOf } from '../spendings-contract.js';

storeContract('the file store', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-files-'));
  return {
    open: (options) => createFileStore({ dir, ...options }),
    loseFeed: (key) => rm(join(conversationDir(dir, key), 'feed.jsonl')),
    bytes: () => bytesOfFiles(dir),
    end: () => rm(dir, { recursive: true }),
  };
});

describe('the files', () => {
  let dir: string;
  let key: ConversationKey;
  let said: string[];
  const opened: Store[] = [];
  const traceLines = (entry: Entry, { conversation }: ConversationKey) =>
    toTraces(entry, conversation).map((trace) => JSON.stringify(trace));
  const open = () => {
    const store = createFileStore({ dir, traceLines, log: (line) => said.push(line) });
    opened.push(store);
    return store;
  };
  const fileOf = (name: string) => join(conversationDir(dir, key), name);
  const tracesOf = (...entries: Entry[]) => entries.flatMap((entry) => traceLines(entry, key)).map((line) => `${line}\n`);

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'perdura-files-'));
    key = aConversation();
    said = [];
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((store) => store.close()));
    await rm(dir, { recursive: true });
  });

  test('lie by scope, conversation and life; reading makes none', async () => {
    const store = open();
    await store.entries.page(key, 0, 1);
    expect(await readdir(dir)).toEqual([]);
    await store.entries.record(key, [userEntry(1)]);
    expect((await readdir(join(dir, 'agents', key.scope, 'conversations', 'conv_8', key.life))).sort()).toEqual([
      'journal.jsonl',
      'raw_traces.jsonl',
    ]);
  });

  test('a commit is one line of the journal, result and entries together', async () => {
    await open().effects.commit(key, { id: 'turn_0001/m1', hash: 'h' }, 'four', [answerEntry(2)], { spent: spendingOf(key) });
    expect((await readFile(fileOf('journal.jsonl'), 'utf8')).split('\n').map((line) => (line === '' ? '' : JSON.parse(line)))).toEqual([
      { v: 1, kind: 'committed', id: 'turn_0001/m1', hash: 'h', result: 'four', entries: [answerEntry(2)], spent: spendingOf(key) },
      '',
    ]);
  });

  test('a batch is one line of the journal, without what was there already', async () => {
    const store = open();
    await store.entries.append(key, [answerEntry(2)]);
    const claim = { id: 'c1', hash: 'h' };
    await store.writes.apply(key, {
      record: [userEntry(1)],
      fence: ['c0'],
      append: [answerEntry(2), answerEntry(3)],
      publish: [{ event: 'x' }],
      reserve: { claim, attempt: 'a' },
    });
    const [, line, ...more] = (await readFile(fileOf('journal.jsonl'), 'utf8')).trim().split('\n');
    expect(more).toEqual([]);
    expect(JSON.parse(line ?? '')).toEqual({
      v: 1,
      kind: 'written',
      recorded: [userEntry(1)],
      fenced: ['c0'],
      appended: [answerEntry(3)],
      reserved: { ...claim, attempt: 'a' },
    });
  });

  test('a feed that cannot be written holds up neither a batch nor a commit', async () => {
    await mkdir(fileOf('feed.jsonl'), { recursive: true });
    const store = open();
    await store.writes.apply(key, { record: [userEntry(1)], publish: [{ event: 'x' }] });
    await store.effects.commit(key, { id: 'c1', hash: 'h' }, 'done', [answerEntry(2)], { publish: [{ event: 'x' }] });
    expect(await store.entries.read(key, [1, 2])).toEqual([userEntry(1), answerEntry(2)]);
    await expect(store.feed.publish(key, [{ event: 'x' }])).rejects.toMatchObject({ name: 'StoreUnavailable' });
  });

  test('a fenced commit leaves its usage, once, and nothing else', async () => {
    const store = open();
    await store.effects.fence(key, ['c1']);
    for (const each of [store, open()])
      await each.effects.commit(key, { id: 'c1', hash: 'h' }, 'late', [answerEntry(2)], { spent: spendingOf(key) });
    const lines = (await readFile(fileOf('journal.jsonl'), 'utf8')).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      { v: 1, kind: 'written', fenced: ['c1'] },
      { v: 1, kind: 'paid', id: 'c1', fenced: true, spent: spendingOf(key) },
    ]);
  });

  test('the same writes again add no line', async () => {
    const writes = async (store: Store) => {
      await store.entries.record(key, [userEntry(1)]);
      await store.entries.append(key, [answerEntry(2)]);
      await store.effects.commit(key, { id: 'c1', hash: 'h' }, 'done', [answerEntry(3)]);
      await store.effects.fence(key, ['c1', 'c2']);
    };
    const store = open();
    await writes(store);
    const once = await readFile(fileOf('journal.jsonl'), 'utf8');
    for (const each of [store, open()]) await writes(each);
    expect(await readFile(fileOf('journal.jsonl'), 'utf8')).toBe(once);
  });

  test('of lines that contradict each other, as two holders of the lock could write them, the first counts', async () => {
    const commit = (id: string, result: string, slot: number) => ({
      v: 1,
      kind: 'committed',
      id,
      hash: 'h',
      result,
      entries: [answerEntry(slot, result)],
    });
    const lines = [
      { v: 1, kind: 'written', recorded: [userEntry(1, 'hello', 'm-hello')] },
      { v: 1, kind: 'written', recorded: [userEntry(2, 'hello', 'm-hello')] },
      commit('c1', 'first', 3),
      commit('c1', 'second', 4),
      { v: 1, kind: 'written', fenced: ['c1', 'c2'] },
      commit('c2', 'late', 5),
      { v: 1, kind: 'written', appended: [answerEntry(3, 'other')] },
      { v: 1, kind: 'written', reserved: { id: 'c3', hash: 'h1', attempt: 'a' } },
      { v: 1, kind: 'written', reserved: { id: 'c3', hash: 'h2', attempt: 'b' } },
      commit('c3', 'of another request', 6),
      { v: 1, kind: 'archived', slots: [[1, 1]], move: 5 },
      { v: 1, kind: 'restored', slots: [[1, 1]], move: 4 },
    ];
    await mkdir(conversationDir(dir, key), { recursive: true });
    await writeFile(fileOf('journal.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const store = open();
    expect(await store.entries.page(key, 0, 10)).toEqual({
      entries: [userEntry(1, 'hello', 'm-hello'), answerEntry(3, 'first')],
      last: 3,
      skipped: 0,
    });
    expect(await store.effects.fence(key, ['c1', 'c2'])).toEqual([
      { id: 'c1', status: 'committed', result: 'first' },
      { id: 'c2', status: 'fenced' },
    ]);
    expect(await store.effects.reserve(key, { id: 'c3', hash: 'h1' }, 'c')).toEqual({ status: 'reserved', earlier: 1 });
    expect(await store.effects.reserve(key, { id: 'c3', hash: 'h2' }, 'b')).toEqual({ status: 'conflict' });
    expect(await store.entries.archived(key)).toEqual([[1, 1]]);
  });

  test('a commit cut at any byte leaves neither result nor entries, and what follows is whole', async () => {
    const claim = { id: 'c1', hash: 'h' };
    await open().entries.record(key, [userEntry(1)]);
    const { size: before } = await stat(fileOf('journal.jsonl'));
    await open().effects.commit(key, claim, 'first', [answerEntry(2, 'first')]);
    const whole = await readFile(fileOf('journal.jsonl'));
    for (let cut = before + 1; cut < whole.length - 1; cut += 13) {
      await writeFile(fileOf('journal.jsonl'), whole.subarray(0, cut));
      expect(await open().entries.page(key, 0, 10)).toEqual({ entries: [userEntry(1)], last: 1, skipped: 0 });
      const store = open();
      expect(await store.effects.commit(key, claim, 'again', [answerEntry(2, 'again')])).toEqual({ status: 'committed', result: 'again' });
      for (const each of [store, open()]) {
        expect(await each.entries.page(key, 0, 10)).toEqual({ entries: [userEntry(1), answerEntry(2, 'again')], last: 2, skipped: 1 });
      }
    }
  });

  test('lines that are not ours are skipped and counted; the rest is read', async () => {
    await open().entries.append(key, [answerEntry(1)]);
    await appendFile(
      fileOf('journal.jsonl'),
      ['nonsense', '{"v":1,"kind":"written","appended":[{"v":1}]}', '{"v":2,"kind":"written"}', '[]', 'null', '\u0000'].join('\n') + '\n',
    );
    await open().entries.append(key, [answerEntry(2)]);
    expect(await open().entries.page(key, 0, 10)).toEqual({ entries: [answerEntry(1), answerEntry(2)], last: 2, skipped: 6 });
  });

  test('a directory in the journal’s place: reads find nothing, writes name it, other conversations go on', async () => {
    await mkdir(fileOf('journal.jsonl'), { recursive: true });
    const store = open();
    expect(await store.entries.page(key, 0, 10)).toEqual({ entries: [], last: 0, skipped: 1 });
    expect(await store.entries.read(key, [1])).toEqual([undefined]);
    await expect(store.entries.append(key, [answerEntry(1)])).rejects.toThrow(
      /^cannot append 1 entries from slot 1 of conv_8 in .*; a directory is where a file of the store belongs: move it away$/,
    );
    const other = aConversation();
    await store.entries.append(other, [answerEntry(1)]);
    expect(await store.entries.read(other, [1])).toEqual([answerEntry(1)]);
  });

  test('a damaged body is no body, and putting the text again heals it', async () => {
    const store = open();
    const { ref, sha256 } = await store.bodies.put(key, 'a long text');
    await writeFile(fileOf(`bodies/${sha256}`), 'a bent text');
    expect(await store.bodies.get(key, ref)).toBeUndefined();
    await store.bodies.put(key, 'a long text');
    expect(await store.bodies.get(key, ref)).toBe('a long text');
  });

  test('a journal put back from an older copy is what counts', async () => {
    const store = open();
    await store.entries.append(key, [answerEntry(1)]);
    const older = await readFile(fileOf('journal.jsonl'));
    await store.entries.append(key, [answerEntry(2)]);
    await writeFile(fileOf('journal.jsonl'), older);
    expect(await store.entries.page(key, 0, 10)).toEqual({ entries: [answerEntry(1)], last: 1, skipped: 0 });
    await store.entries.append(key, [answerEntry(2, 'again')]);
    expect(await store.entries.read(key, [2])).toEqual([answerEntry(2, 'again')]);
  });

  test('an older copy that takes the place of a journal that is held open is what counts', async () => {
    const store = open();
    await store.entries.append(key, [answerEntry(1)]);
    await writeFile(fileOf('copy'), await readFile(fileOf('journal.jsonl')));
    await store.entries.append(key, [answerEntry(2)]);
    await rename(fileOf('copy'), fileOf('journal.jsonl'));
    await store.entries.append(key, [answerEntry(3)]);
    for (const each of [store, open()]) expect((await each.entries.page(key, 0, 10)).entries).toEqual([answerEntry(1), answerEntry(3)]);
    await rm(conversationDir(dir, key), { recursive: true });
    await store.entries.append(key, [answerEntry(4)]);
    for (const each of [store, open()]) expect((await each.entries.page(key, 0, 10)).entries).toEqual([answerEntry(4)]);
  });

  test('more conversations than files are kept open for are all written', async () => {
    const store = open();
    const keys = numbered(1, 300).map(() => aConversation());
    for (const slot of [1, 2]) await Promise.all(keys.map((each) => store.entries.append(each, [answerEntry(slot)])));
    const again = open();
    for (const each of keys) expect((await again.entries.page(each, 0, 10)).last).toBe(2);
  });

  test('file names are injective and stay inside their folder', () => {
    const ids = ['a/b', 'a%2Fb', 'a_b', 'A/b', '..', '.', '', '%', '~', 'x'.repeat(400), `${'x'.repeat(400)}y`, 'ä', '\n', 'a.b', '.a.b'];
    const names = ids.map(toFileName);
    expect(new Set(names).size).toBe(ids.length);
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_%~-][A-Za-z0-9._%~-]{0,199}$/);
  });

  describe('raw_traces.jsonl', () => {
    test('holds the traces in the order of writing, once each', async () => {
      const store = open();
      await store.entries.record(key, [userEntry(1)]);
      await store.entries.append(key, [answerEntry(2)]);
      await store.entries.append(key, [answerEntry(2, 'other')]);
      await open().entries.append(key, [answerEntry(3)]);
      expect(await readFile(fileOf('raw_traces.jsonl'), 'utf8')).toBe(tracesOf(userEntry(1), answerEntry(2), answerEntry(3)).join(''));
      expect(said).toEqual([]);
    });

    test.each([
      ['missing', () => rm(fileOf('raw_traces.jsonl'))],
      ['lagging', () => writeFile(fileOf('raw_traces.jsonl'), tracesOf(userEntry(1)).join(''))],
      ['torn', async () => truncate(fileOf('raw_traces.jsonl'), (await stat(fileOf('raw_traces.jsonl'))).size - 5)],
    ])('is rebuilt when it is %s, by the first who opens it and by the next write', async (_, damage) => {
      const store = open();
      await store.entries.append(key, [userEntry(1), answerEntry(2)]);
      await damage();
      await open().entries.page(key, 0, 1);
      expect(await readFile(fileOf('raw_traces.jsonl'), 'utf8')).toBe(tracesOf(userEntry(1), answerEntry(2)).join(''));
      await damage();
      await store.entries.append(key, [answerEntry(3)]);
      expect(await readFile(fileOf('raw_traces.jsonl'), 'utf8')).toBe(tracesOf(userEntry(1), answerEntry(2), answerEntry(3)).join(''));
    });

    test('that cannot be written costs no message', async () => {
      await mkdir(fileOf('raw_traces.jsonl'), { recursive: true });
      const store = open();
      await store.entries.record(key, [userEntry(1)]);
      expect(await store.entries.read(key, [1])).toEqual([userEntry(1)]);
      expect(said.join()).toContain('raw_traces.jsonl');
    });
  });

  describe('the archive', () => {
    const active = () => readFile(fileOf('raw_traces.jsonl'), 'utf8');
    const archive = () => readFile(fileOf('raw_traces_archive.jsonl'), 'utf8');
    const entries = [userEntry(1), answerEntry(2), userEntry(3), answerEntry(4)];
    const [one, two, three, four] = entries as [Entry, Entry, Entry, Entry];

    test('has the traces that the active file no longer has, without tombstones; restored, both are byte for byte as before', async () => {
      const store = open();
      await store.entries.append(key, entries);
      const before = await active();
      await store.entries.archive(key, [[1, 2]], 1);
      expect(await active()).toBe(tracesOf(three, four).join(''));
      expect(await archive()).toBe(tracesOf(one, two).join(''));
      await open().entries.archive(key, [[3, 3]], 1);
      expect(await active()).toBe(tracesOf(four).join(''));
      expect(await archive()).toBe(tracesOf(one, two, three).join(''));
      await store.entries.restore(key, [[1, 3]], 1);
      expect(await active()).toBe(before);
      expect(await archive()).toBe('');
      expect(said).toEqual([]);
    });

    test('goes on growing beside what is recorded, by whichever process', async () => {
      const [store, beside] = [open(), open()];
      await store.entries.append(key, [one, two]);
      await beside.entries.archive(key, [[1, 1]], 1);
      await store.entries.append(key, [three]);
      await store.entries.archive(key, [[2, 2]], 1);
      await beside.entries.append(key, [four]);
      expect(await active()).toBe(tracesOf(three, four).join(''));
      expect(await archive()).toBe(tracesOf(one, two).join(''));
    });

    test('an entry that comes into an archived slot (by heal) is archived', async () => {
      const store = open();
      await store.entries.append(key, [one]);
      await store.entries.archive(key, [[1, 2]], 1);
      await store.entries.append(key, [two, three]);
      expect(await active()).toBe(tracesOf(three).join(''));
      expect(await archive()).toBe(tracesOf(one, two).join(''));
    });

    test.each([
      ['missing', () => rm(fileOf('raw_traces_archive.jsonl'))],
      ['torn', async () => truncate(fileOf('raw_traces_archive.jsonl'), (await stat(fileOf('raw_traces_archive.jsonl'))).size - 5)],
    ])('is rebuilt by the first who opens it when it is %s', async (_, damage) => {
      await open().entries.append(key, entries);
      await open().entries.archive(key, [[1, 3]], 1);
      await damage();
      await open().entries.page(key, 0, 1);
      expect(await archive()).toBe(tracesOf(one, two, three).join(''));
      expect(await active()).toBe(tracesOf(four).join(''));
    });

    test('a crash between the journal and the two files is made good at the next opening', async () => {
      await open().entries.append(key, entries);
      const before = await active();
      await open().entries.archive(key, [[1, 2]], 1);
      await rm(fileOf('raw_traces_archive.jsonl'));
      await writeFile(fileOf('raw_traces.jsonl'), before);
      await open().entries.page(key, 0, 1);
      expect(await active()).toBe(tracesOf(three, four).join(''));
      expect(await archive()).toBe(tracesOf(one, two).join(''));
      await open().entries.restore(key, [[1, 2]], 1);
      await writeFile(fileOf('raw_traces_archive.jsonl'), 'left from before');
      await open().entries.page(key, 0, 1);
      expect(await archive()).toBe('');
    });

    test('is right also where a process died between its writes and what it left has the size that is expected', async () => {
      const store = open();
      await store.entries.append(key, [two]);
      const left = [
        { v: 1, kind: 'archived', slots: [[2, 2]], move: 1 },
        { v: 1, kind: 'written', appended: [four] },
      ];
      await appendFile(fileOf('journal.jsonl'), left.map((line) => `${JSON.stringify(line)}\n`).join(''));
      await store.entries.append(key, [answerEntry(6)]);
      expect(await active()).toBe(tracesOf(four, answerEntry(6)).join(''));
      expect(await archive()).toBe(tracesOf(two).join(''));
    });

    test('archived in overlapping ranges, the active file still grows by appending: it is not written anew', async () => {
      const store = open();
      await store.entries.append(key, entries);
      await store.entries.archive(key, [[1, 2]], 1);
      await store.entries.archive(key, [[2, 3]], 1);
      await store.entries.restore(key, [[1, 1]], 1);
      await store.entries.restore(key, [[1, 2]], 1);
      const { ino } = await stat(fileOf('raw_traces.jsonl'));
      await store.entries.append(key, [answerEntry(5)]);
      expect((await stat(fileOf('raw_traces.jsonl'))).ino).toBe(ino);
      expect(await active()).toBe(tracesOf(one, two, four, answerEntry(5)).join(''));
    });

    test('is not looked at by what records and commits', async () => {
      const store = open();
      await store.entries.append(key, [one, two]);
      await store.entries.archive(key, [[1, 2]], 1);
      await rm(fileOf('raw_traces_archive.jsonl'));
      await store.entries.record(key, [three]);
      await store.effects.commit(key, { id: 'c1', hash: 'h' }, 'done', [four]);
      await store.entries.read(key, [1]);
      expect((await readdir(conversationDir(dir, key))).sort()).toEqual(['journal.jsonl', 'raw_traces.jsonl']);
      expect(await active()).toBe(tracesOf(three, four).join(''));
    });

    test('the same again adds no line, and a damaged range is skipped', async () => {
      const store = open();
      await store.entries.append(key, entries);
      for (const each of [store, open()]) {
        await each.entries.archive(key, [[1, 2]], 1);
        await each.entries.archive(key, [], 1);
        await each.entries.restore(key, [[3, 4]], 1);
      }
      expect((await readFile(fileOf('journal.jsonl'), 'utf8')).trim().split('\n')).toHaveLength(2);
      const ranges = ['[1, 1e15]', '[1]', '["a", "b"]', 'null', '7'];
      await appendFile(fileOf('journal.jsonl'), ranges.map((range) => `{"v":1,"kind":"archived","slots":[${range}],"move":1}\n`).join(''));
      expect(await open().entries.archived(key)).toEqual([[1, 2]]);
      expect(await open().entries.page(key, 0, 10)).toMatchObject({ entries, skipped: 5 });
    });
  });

  describe('episodic.jsonl and semantic.jsonl', () => {
    const facts = (name = 'semantic.jsonl') => join(dir, 'agents', key.scope, name);
    const source = { conversation: 'conv_8', turn_ids: ['turn_0001'] };
    const linesOf = async (path: string) => (await readFile(path, 'utf8')).split('\n').slice(0, -1);

    test('lie where the seed has them, its fields first', async () => {
      const store = open();
      await store.episodes.add(key, episode(1));
      await store.facts.add(key, 'b1', [fact('Use pnpm.')], source);
      expect(await linesOf(fileOf('episodic.jsonl'))).toEqual([
        '{"id":"ep_0001","ts":1738100501.25,"turn_ids":["turn_0001"],"summary":"summary 1","tags":["project"],"salience":0.7,"session":1,"epoch":1,"slots":[[1,4]],"v":1}',
      ]);
      expect(await linesOf(facts())).toEqual([
        '{"id":"sem_0001","ts":1738100501.5,"fact":"Use pnpm.","tags":["testing"],"confidence":0.8,"salience":0.7,"namespace":"default","batches":["b1"],"source":{"conversation":"conv_8","turn_ids":["turn_0001"]},"v":1}',
      ]);
      expect(await readdir(conversationDir(dir, key))).toEqual(['episodic.jsonl']);
      expect((await readdir(join(dir, 'agents', key.scope))).sort()).toEqual(['changes.log', 'conversations', 'semantic.jsonl']);
    });

    const foreign = ['nonsense', '[]', 'null', '{"id":"ep_0009"}', '{"id":"sem_0009","ts":1}', '\u0000'];

    test('lines that are not ours are skipped, counted, and stay', async () => {
      const store = open();
      await store.episodes.add(key, episode(1));
      await store.facts.add(key, 'b1', [fact('one')], source);
      const newer = [
        JSON.stringify({ ...episode(8), v: 2 }),
        JSON.stringify({ ...fact('of a newer version'), id: 'sem_0001', v: 2 }),
        JSON.stringify({ ...episode(9), v: 1, slots: [[1, 'x']] }),
      ];
      for (const path of [fileOf('episodic.jsonl'), facts()]) await appendFile(path, [...foreign, ...newer].join('\n') + '\n{"id":"ep_00');
      expect(await open().episodes.list(key)).toEqual({ episodes: [episode(1)], skipped: 10 });
      expect(await open().facts.list(key)).toMatchObject({ facts: [{ fact: 'one' }], skipped: 10 });
      await store.episodes.add(key, episode(2));
      await store.facts.add(key, 'b2', [fact('two')], source);
      expect((await open().episodes.list(key)).episodes).toEqual([episode(2), episode(1)]);
      expect((await open().facts.list(key)).facts.map(({ id }) => id)).toEqual(['sem_0002', 'sem_0001']);
      for (const path of [fileOf('episodic.jsonl'), facts()])
        expect(await linesOf(path)).toEqual(expect.arrayContaining([...foreign, ...newer]));
    });

    test('a fact that a person wrote in the seed’s format counts, keeps its line, and its number is not given again', async () => {
      const written = '{"id": "sem_0041", "ts": 5, "fact": "By hand.", "tags": [], "confidence": 1, "salience": 1, "note": "mine"}';
      await mkdir(join(dir, 'agents', key.scope), { recursive: true });
      await writeFile(facts(), `${written}\n`);
      const store = open();
      expect((await store.facts.list(key)).facts).toMatchObject([{ id: 'sem_0041', fact: 'By hand.', batch: null, source: null }]);
      expect(await store.facts.add(key, 'b1', [fact('new')], source)).toMatchObject([{ id: 'sem_0042' }]);
      expect(await linesOf(facts())).toContain(written);
      expect(await store.facts.add(key, 'b2', [fact('By hand.')], source)).toMatchObject([{ id: 'sem_0041', batch: 'b2' }]);
    });

    test('what was removed leaves no words behind', async () => {
      const store = open();
      await store.facts.add(key, 'b1', [fact('a secret'), fact('no secret')], source);
      await store.facts.remove(key, ['sem_0001']);
      for (const name of ['semantic.jsonl', 'semantic_removed.jsonl'])
        expect(await readFile(facts(name), 'utf8')).not.toContain('a secret');
    });

    test('a removal that was cut short after its first half is completed by the next one', async () => {
      const store = open();
      await store.facts.add(key, 'b1', [fact('one')], source);
      const before = await readFile(facts(), 'utf8');
      await store.facts.remove(key, ['sem_0001']);
      await writeFile(facts(), before);
      await store.facts.remove(key, ['sem_0001']);
      expect(await open().facts.list(key)).toEqual({ facts: [], skipped: 0 });
      expect(await store.facts.add(key, 'b1', [fact('one')], source)).toEqual([]);
    });

    test('a directory in a file’s place: reads find nothing, writes name it', async () => {
      for (const path of [fileOf('episodic.jsonl'), facts()]) await mkdir(path, { recursive: true });
      const store = open();
      expect(await store.episodes.list(key)).toEqual({ episodes: [], skipped: 1 });
      expect(await store.facts.list(key)).toEqual({ facts: [], skipped: 1 });
      await expect(store.episodes.add(key, episode(1))).rejects.toThrow(
        /^cannot add episode ep_0001 of conv_8 in .*episodic\.jsonl: .*a directory is where/,
      );
      await expect(store.facts.add(key, 'b1', [fact('x')], source)).rejects.toMatchObject({ name: 'StoreUnavailable' });
    });

    test('no file is left beside them', async () => {
      const store = open();
      for (const n of [1, 2, 3]) await store.episodes.add(key, episode(n));
      await store.episodes.remove(key, 'ep_0002');
      expect(await readdir(conversationDir(dir, key))).toEqual(['episodic.jsonl']);
    });
  });

  describe('the lock', () => {
    const holder = (over: object) => JSON.stringify({ pid: process.ppid, host: hostname(), boot: 'another boot', started: 1, ...over });

    const thisBoot = async () =>
      readFile('/proc/sys/kernel/random/boot_id', 'utf8').then(
        (text) => text.trim(),
        () => '',
      );

    test('of a dead process is taken over at once', async () => {
      const child = spawn(process.execPath, ['-e', '']);
      await once(child, 'exit');
      await mkdir(conversationDir(dir, key), { recursive: true });
      await symlink(holder({ pid: child.pid, boot: await thisBoot() }), fileOf('lock'));
      // It is seen that nobody holds it: waiting for it ends in an error, long before it is old enough to be taken.
      await open().entries.record(key, [userEntry(1)]);
    });

    test('of a dead process that had our id (in a container it has) is taken over at once', async () => {
      await mkdir(conversationDir(dir, key), { recursive: true });
      await symlink(holder({ pid: process.pid, boot: await thisBoot() }), fileOf('lock'));
      await open().entries.record(key, [userEntry(1)]);
      expect(await open().entries.read(key, [1])).toEqual([userEntry(1)]);
    });

    test('of an earlier boot is taken over at once, also by many', async () => {
      await mkdir(conversationDir(dir, key), { recursive: true });
      await symlink(holder({}), fileOf('lock'));
      await Promise.all(numbered(1, 8).map(({ n }) => open().entries.append(key, [answerEntry(n)])));
      expect(await open().entries.page(key, 0, 10)).toMatchObject({ last: 8, skipped: 0 });
      expect((await readdir(conversationDir(dir, key))).filter((name) => name.includes('lock'))).toEqual([]);
    });

    test('with the card of a dead process is taken over at once, and the card goes', async () => {
      const child = spawn(process.execPath, ['-e', '']);
      await once(child, 'exit');
      const card = join(dir, 'locks', `${child.pid}-1`);
      await mkdir(join(dir, 'locks'));
      await writeFile(card, holder({ pid: child.pid, boot: await thisBoot() }));
      await mkdir(conversationDir(dir, key), { recursive: true });
      await link(card, fileOf('lock'));
      const store = open();
      await store.entries.record(key, [userEntry(1)]);
      expect(await readdir(join(dir, 'locks'))).toEqual([expect.stringMatching(`^${process.pid}-`)]);
      await store.close();
      expect(await readdir(dir)).toEqual(['agents']);
      await store.entries.record(key, [userEntry(2)]);
      expect((await open().entries.page(key, 0, 10)).last).toBe(2);
    });

    test('is a symbolic link where no card can be', async () => {
      await writeFile(join(dir, 'locks'), 'a file of somebody else');
      const stores = [open(), open()];
      await Promise.all(numbered(1, 8).map(({ n }) => (stores[n % 2] as Store).entries.append(key, [answerEntry(n)])));
      expect(await open().entries.page(key, 0, 10)).toMatchObject({ last: 8, skipped: 0 });
    });

    test('of another machine is refused in a sentence', async () => {
      await mkdir(conversationDir(dir, key), { recursive: true });
      await symlink(holder({ host: 'elsewhere' }), fileOf('lock'));
      await expect(open().entries.record(key, [userEntry(1)])).rejects.toMatchObject({
        name: 'StoreUnavailable',
        message: expect.stringContaining('elsewhere') as string,
      });
      await expect(open().entries.record(key, [userEntry(1)])).rejects.toThrow('the file store is for one machine');
      expect(await open().entries.page(key, 0, 10)).toEqual({ entries: [], last: 0, skipped: 0 });
    });
  });

  describe('processes', () => {
    const writer = (over: Partial<Parameters<typeof startWriter>[0]>) =>
      startWriter({ kind: 'file', where: dir, key, what: 'entries', from: 1, step: 1, to: 1_000_000, ...over });

    test('kill -9 at any moment: what was acknowledged is there, and the next writer goes on at once', async () => {
      let from = 1;
      for (const count of [1, 20, 45]) {
        const killed = writer({ what: 'commits', from });
        await killed.reached(count);
        await killed.kill();
        const store = open();
        expect((await store.entries.read(key, killed.acknowledged)).map((entry) => entry?.slot)).toEqual(killed.acknowledged);
        for (const n of killed.acknowledged) {
          expect(await store.effects.reserve(key, { id: `turn_0001/c${n}`, hash: 'h' }, 'x')).toEqual({
            status: 'committed',
            result: { n },
          });
        }
        from = killed.acknowledged.length + from + 2;
        await store.entries.append(key, [answerEntry(from - 1)]);
        const { entries } = await store.entries.page(key, 0, 10_000);
        const traces = (await readFile(fileOf('raw_traces.jsonl'), 'utf8')).trim().split('\n');
        expect(traces.map((line) => (JSON.parse(line) as { slot: number }).slot).sort((a, b) => a - b)).toEqual(
          entries.map(({ slot }) => slot),
        );
      }
    });

    test('two writers on one conversation lose and double nothing', async () => {
      const writers = [writer({ from: 1, step: 2, to: 300 }), writer({ from: 2, step: 2, to: 300 })];
      await Promise.all(writers.map((each) => each.finished()));
      expect(await open().entries.page(key, 0, 1000)).toEqual({
        entries: numbered(1, 300).map(({ n }) => answerEntry(n)),
        last: 300,
        skipped: 0,
      });
      expect((await readFile(fileOf('raw_traces.jsonl'), 'utf8')).trim().split('\n')).toHaveLength(300);
    });

    test('a reader of the feed gets what another process publishes, all of it, once, in order', async () => {
      const reading = readCount(open().feed, key, '0', 1000);
      const publisher = writer({ what: 'events', to: 1000 });
      expect(eventsOf(await reading)).toEqual(numbered(1, 1000));
      await publisher.finished();
    });
  });

  describe('check', () => {
    test('is content with a directory that can be written', async () => {
      expect(await open().check()).toEqual([]);
    });

    test('names the directory when it is none', async () => {
      await writeFile(join(dir, 'agents'), '');
      await expect(open().check()).rejects.toThrow(`cannot use the memory directory in ${dir}`);
    });
  });
});
