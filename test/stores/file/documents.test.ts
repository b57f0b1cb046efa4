import { spawnSync } from 'node:child_process';
import {
  appendFile,
  chmod,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { historyBlock } from '../../../src/records/memory/history-text.js';
import { memoryVersion } from '../../../src/stores/codecs.js';
import { scopeDir } from '../../../src/stores/file/paths.js';
import { createFileStore } from '../../../src/stores/file/index.js';
import { DocumentRefused, MAX_MEMORY, StoreUnavailable, type ScopeKey, type Store } from '../../../src/stores/store.js';
import { aScope } from '../builders.js';
import { aWrite, collect, documentsContract, entry } from '../documents-contract.js';

documentsContract('the file store', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-documents-'));
  return {
    open: () => createFileStore({ dir }),
    async editMemory(key, text) {
      await mkdir(scopeDir(dir, key), { recursive: true });
      await writeFile(join(scopeDir(dir, key), 'MEMORY.md'), text);
    },
    historyText: (key) => readFile(join(scopeDir(dir, key), 'HISTORY.md'), 'utf8'),
    end: () => rm(dir, { recursive: true }),
  };
});

describe('documents in files', () => {
  let dir: string;
  let key: ScopeKey;
  let store: Store;
  const open = (): Store => createFileStore({ dir });
  const path = (name: string): string => join(scopeDir(dir, key), name);
  const read = (name: string): Promise<string> => readFile(path(name), 'utf8');
  const write = async (name: string, content: string | Buffer): Promise<void> => {
    await mkdir(scopeDir(dir, key), { recursive: true });
    await writeFile(path(name), content);
  };
  const history = (from: Store = open()) => collect(from.documents.history(key));
  /** A journal without its last line, as a writer leaves it that died just before. */
  const withoutLastLine = async (name: string): Promise<void> => write(name, (await read(name)).replace(/[^\n]*\n$/, ''));

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'perdura-documents-'));
    key = aScope();
    store = open();
  });
  afterEach(() => rm(dir, { recursive: true }));

  test('reading makes no file', async () => {
    await store.documents.memory(key);
    await store.documents.changes(key);
    await history(store);
    await store.documents.proposals(key);
    await store.documents.forgotten(key);
    await store.documents.redact(key, (line) => line);
    expect(await readdir(dir)).toEqual([]);
  });

  test('lie where the seed has them, and nothing is left beside them', async () => {
    const source = { trust: 'model' } as const;
    await store.documents.writeMemory(key, aWrite('w1', 'empty', '- one\n', { lines: [{ line: '- one', source }] }));
    await store.documents.appendHistory(key, entry('c1', Date.UTC(2026, 1, 27, 14, 30) / 1000, 'A talk.'));
    await store.documents.appendHistory(key, entry('c2', Date.UTC(2026, 2, 1) / 1000, 'Another.'));
    await store.documents.propose(key, 'b1', [{ ts: 1, line: '- two', source }]);
    await store.documents.forget(key, { id: 'f', ts: 1, words: [] });
    expect((await readdir(scopeDir(dir, key))).sort()).toEqual([
      ...['HISTORY-2026-02.md', 'HISTORY-2026-03.md', 'HISTORY.md', 'MEMORY.md'],
      ...['forgotten.jsonl', 'history.jsonl', 'memory-changes.jsonl', 'memory-versions', 'proposals.jsonl'],
    ]);
    expect(await read('MEMORY.md')).toBe('- one\n');
    expect(await read('HISTORY-2026-02.md')).toBe('## 2026-02-27T14:30:00.000Z\nA talk.\n');
    expect(await read('HISTORY-2026-03.md')).toBe('## 2026-03-01T00:00:00.000Z\nAnother.\n');
    expect(await read('HISTORY.md')).toBe('## 2026-02-27T14:30:00.000Z\nA talk.\n\n## 2026-03-01T00:00:00.000Z\nAnother.\n');
  });

  describe('MEMORY.md', () => {
    test('that has not changed is not read again; a change with the same size and time is seen', async () => {
      await write('MEMORY.md', 'one');
      await utimes(path('MEMORY.md'), 1, 1);
      expect((await store.documents.memory(key)).text).toBe('one');
      await write('MEMORY.md', 'two');
      await utimes(path('MEMORY.md'), 1, 1);
      expect((await store.documents.memory(key)).text).toBe('two');
      await write('beside', 'six');
      await utimes(path('beside'), 1, 1);
      await rename(path('beside'), path('MEMORY.md'));
      expect((await store.documents.memory(key)).text).toBe('six');
    });

    test('keeps its permissions', async () => {
      await write('MEMORY.md', 'one');
      await chmod(path('MEMORY.md'), 0o664);
      await store.documents.writeMemory(key, aWrite('w1', memoryVersion('one'), 'two'));
      expect((await stat(path('MEMORY.md'))).mode & 0o777).toBe(0o664);
    });

    test('that is not UTF-8 is refused in words, by readers and writers, and stays as it is', async () => {
      const bytes = Buffer.from([0x2d, 0x20, 0xe4, 0x0a]);
      await write('MEMORY.md', bytes);
      for (const call of [store.documents.memory(key), store.documents.writeMemory(key, aWrite('w1', 'empty', 'two'))]) {
        await expect(call).rejects.toBeInstanceOf(DocumentRefused);
        await expect(call).rejects.toThrow(/^cannot read .*MEMORY\.md: it is not UTF-8; save it as UTF-8 with an editor, or move it away$/);
      }
      expect(await readFile(path('MEMORY.md'))).toEqual(bytes);
      expect(await readdir(scopeDir(dir, key))).toEqual(['MEMORY.md']);
    });

    test('that Windows’ Notepad has saved in UTF-16 is read, and written as it was found', async () => {
      await write('MEMORY.md', Buffer.from('\ufeff- größer\r\n', 'utf16le'));
      const before = await store.documents.memory(key);
      expect(before).toEqual({ version: memoryVersion('- größer\r\n'), text: '- größer\r\n' });
      const after = '- größer\r\n- 日本\n';
      expect(await store.documents.writeMemory(key, aWrite('w1', before.version, after))).toMatchObject({ status: 'written' });
      expect(await readFile(path('MEMORY.md'))).toEqual(Buffer.from(`\ufeff${after}`, 'utf16le'));
      for (const each of [store, open()]) expect((await each.documents.memory(key)).text).toBe(after);
      expect((await open().documents.changes(key)).changes.map(({ cause }) => cause)).toEqual(['hand', 'consolidation']);
    });

    test('in UTF-16 that would be too long so is written in UTF-8, and stays readable', async () => {
      await write('MEMORY.md', Buffer.from('\ufeffone', 'utf16le'));
      const long = 'x'.repeat(MAX_MEMORY - 10);
      expect(await store.documents.writeMemory(key, aWrite('w1', memoryVersion('one'), long))).toMatchObject({ status: 'written' });
      expect((await open().documents.memory(key)).text).toBe(long);
    });

    test('that is a link is not followed', async () => {
      const secret = join(dir, 'secret');
      await writeFile(secret, 'a secret');
      await write('beside', '');
      await symlink(secret, path('MEMORY.md'));
      for (const call of [store.documents.memory(key), store.documents.writeMemory(key, aWrite('w1', 'empty', 'two'))]) {
        await expect(call).rejects.toThrow(
          /^cannot use .*MEMORY\.md: it is a link, and links are not followed; put the file itself there$/,
        );
      }
      expect(await readFile(secret, 'utf8')).toBe('a secret');
    });

    test('that is a folder or a pipe is refused, and nobody waits for it', async () => {
      await mkdir(path('MEMORY.md'), { recursive: true });
      await expect(store.documents.memory(key)).rejects.toThrow(/MEMORY\.md: it is no regular file; put the file itself there$/);
      await rm(path('MEMORY.md'), { recursive: true });
      expect(spawnSync('mkfifo', [path('MEMORY.md')]).status).toBe(0);
      await expect(store.documents.memory(key)).rejects.toThrow('it is no regular file');
    });

    test('that is read-only is not replaced', async () => {
      await write('MEMORY.md', 'one');
      await store.documents.memory(key);
      await chmod(path('MEMORY.md'), 0o444);
      const writing = store.documents.writeMemory(key, aWrite('w1', memoryVersion('one'), 'two'));
      await expect(writing).rejects.toBeInstanceOf(StoreUnavailable);
      await expect(writing).rejects.toThrow(/^cannot write the MEMORY\.md of .*MEMORY\.md is read-only; .*see its owner and permissions$/);
      expect(await read('MEMORY.md')).toBe('one');
      await chmod(path('MEMORY.md'), 0o644);
      expect(await open().documents.memory(key)).toMatchObject({ text: 'one' });
      expect(await open().documents.writeMemory(key, aWrite('w1', memoryVersion('one'), 'two'))).toMatchObject({ status: 'written' });
      expect((await store.documents.changes(key)).changes.map(({ id }) => id)).toEqual([expect.stringMatching(/^hand\//), 'w1']);
    });

    test('stays as it is when what lies beside it cannot be written', async () => {
      await write('memory-versions', 'a file in the way');
      await expect(store.documents.writeMemory(key, aWrite('w1', 'empty', 'two'))).rejects.toThrow(/^cannot write the MEMORY\.md of /);
      expect((await readdir(scopeDir(dir, key))).sort()).toEqual(['memory-versions']);
    });
  });

  describe('a writer of MEMORY.md that died', () => {
    const [one, two] = [memoryVersion('one'), memoryVersion('two')];
    beforeEach(async () => {
      await store.documents.writeMemory(key, aWrite('w1', 'empty', 'one'));
      await store.documents.writeMemory(key, aWrite('w2', one, 'two'));
      await withoutLastLine('memory-changes.jsonl');
    });

    test('after it was replaced: it is that change for everybody, no edit by hand', async () => {
      expect(await open().documents.memory(key)).toEqual({ version: two, text: 'two' });
      expect(await open().documents.writeMemory(key, aWrite('w2', one, 'two'))).toEqual({ status: 'written', version: two });
      expect((await open().documents.changes(key)).changes.map(({ id }) => id)).toEqual(['w1', 'w2']);
    });

    test('before it was replaced: the change never was, and the repeated write makes it', async () => {
      await write('MEMORY.md', 'one');
      expect(await open().documents.memory(key)).toEqual({ version: one, text: 'one' });
      expect(await open().documents.memoryText(key, two)).toBeUndefined();
      expect(await open().documents.writeMemory(key, aWrite('w2', one, 'two'))).toEqual({ status: 'written', version: two });
      expect(await read('MEMORY.md')).toBe('two');
      expect((await open().documents.changes(key)).changes.map(({ id }) => id)).toEqual(['w1', 'w2']);
    });

    test('and then it was edited: the repeated write is a conflict', async () => {
      await write('MEMORY.md', 'three');
      const current = { version: memoryVersion('three'), text: 'three' };
      expect(await open().documents.writeMemory(key, aWrite('w2', one, 'two'))).toEqual({ status: 'conflict', current });
      await write('MEMORY.md', 'two');
      expect((await open().documents.memory(key)).version).toBe(two);
      expect((await open().documents.changes(key)).changes.map(({ cause }) => cause)).toEqual(['consolidation', 'hand', 'hand']);
    });

    test('in the middle of a line: what follows is whole', async () => {
      await write('MEMORY.md', 'one');
      await truncate(path('memory-changes.jsonl'), (await stat(path('memory-changes.jsonl'))).size - 9);
      expect(await open().documents.writeMemory(key, aWrite('w2', one, 'two'))).toEqual({ status: 'written', version: two });
      for (const each of [store, open()]) {
        const { changes, skipped } = await each.documents.changes(key);
        expect([changes.map(({ id }) => id), skipped]).toEqual([['w1', 'w2'], 1]);
      }
    });
  });

  describe('HISTORY', () => {
    const [january, february] = [Date.UTC(2026, 0, 31, 23, 59, 59, 999) / 1000, Date.UTC(2026, 1, 1) / 1000];

    test('of each month has a file, in UTC', async () => {
      await store.documents.appendHistory(key, entry('c1', january, 'January'));
      await store.documents.appendHistory(key, entry('c2', february, 'February'));
      expect(await read('HISTORY-2026-01.md')).toBe('## 2026-01-31T23:59:59.999Z\nJanuary\n');
      expect(await read('HISTORY-2026-02.md')).toBe('## 2026-02-01T00:00:00.000Z\nFebruary\n');
    });

    test('has what people write into the files, in any month, and knows its own entries when they have edited them', async () => {
      await store.documents.appendHistory(key, entry('c1', january, 'January'));
      await store.documents.appendHistory(key, entry('c2', february, 'February', 'raw-fallback'));
      await write('HISTORY-2026-01.md', (await read('HISTORY-2026-01.md')).replace('January', 'January, as I know it.'));
      await appendFile(path('HISTORY-2026-02.md'), '\r\n## 2026-02-03\r\nBy hand.\r\n\r\n## 2026-02-04 09:30\n## no header\n');
      await write('HISTORY.md', `# A title\n\n## 2025-12-24T10:00:00+01:00\nOf an older program.\n\n${await read('HISTORY.md')}`);
      expect(await history()).toEqual([
        entry('', Date.UTC(2026, 1, 4, 9, 30) / 1000, '## no header'),
        entry('', Date.UTC(2026, 1, 3) / 1000, 'By hand.'),
        entry('c2', february, 'February', 'raw-fallback'),
        entry('c1', january, 'January, as I know it.'),
        entry('', Date.UTC(2025, 11, 24, 9) / 1000, 'Of an older program.'),
      ]);
    });

    test('goes on after an empty line, however a person left the file', async () => {
      for (const tail of ['by hand', 'by hand\n', 'by hand\n\n', '\n']) {
        await write('HISTORY.md', tail);
        await store.documents.appendHistory(key, entry(`c${tail}`, 100, 'text'));
        expect(await read('HISTORY.md')).toBe(`${tail.trim() === '' ? '\n' : 'by hand\n\n'}${historyBlock(entry('', 100, 'text'))}`);
      }
    });

    test('of a writer that died is completed, from whichever byte, by the same call or by the next one; nothing is doubled', async () => {
      const [first, second] = [entry('c1', 100, 'first'), entry('c2', 200, 'zweiter Eintrag, größer 🎈')];
      await store.documents.appendHistory(key, first);
      const before = { main: await read('HISTORY.md'), month: await read('HISTORY-1970-01.md') };
      await store.documents.appendHistory(key, second);
      await withoutLastLine('history.jsonl');
      const [journal, whole] = [await read('history.jsonl'), Buffer.from(await read('HISTORY.md'))];
      for (let cut = before.main.length; cut <= whole.length; cut += 3) {
        for (const again of [second, entry('c3', 300, 'third')]) {
          await write('history.jsonl', journal);
          await write('HISTORY.md', whole.subarray(0, cut));
          await write('HISTORY-1970-01.md', cut === whole.length ? whole : before.month);
          const other = open();
          expect(await other.documents.appendHistory(key, again)).toBe(again === second ? 'known' : 'appended');
          const text = again === second ? whole.toString() : `${whole.toString()}\n${historyBlock(again)}`;
          expect([await read('HISTORY.md'), await read('HISTORY-1970-01.md')]).toEqual([text, text]);
          expect(await history()).toEqual(again === second ? [second, first] : [again, second, first]);
        }
      }
    });

    test('of a writer that died, and a person who wrote behind it: the block is there once', async () => {
      await store.documents.appendHistory(key, entry('c1', 100, 'first'));
      await withoutLastLine('history.jsonl');
      await appendFile(path('HISTORY.md'), '\n## 1970-01-02\nBy hand.\n');
      await rm(path('HISTORY-1970-01.md'));
      expect(await open().documents.appendHistory(key, entry('c1', 100, 'first'))).toBe('known');
      expect(await read('HISTORY.md')).toBe('## 1970-01-01T00:01:40.000Z\nfirst\n\n## 1970-01-02\nBy hand.\n');
      expect(await read('HISTORY-1970-01.md')).toBe('## 1970-01-01T00:01:40.000Z\nfirst\n');
    });

    test('a torn or foreign line of its journal takes no entry away', async () => {
      await store.documents.appendHistory(key, entry('c1', 100, 'first'));
      await appendFile(path('history.jsonl'), 'nonsense\n{"v":2,"kind":"begun"}\n{"v":1,"kind":"begun","ent');
      await store.documents.appendHistory(key, entry('c2', 200, 'second'));
      expect(await history()).toEqual([entry('c2', 200, 'second'), entry('c1', 100, 'first')]);
      await rm(path('history.jsonl'));
      expect((await history()).map(({ id, text }) => [id, text])).toEqual([
        ['', 'second'],
        ['', 'first'],
      ]);
    });

    test.each(['utf16le', 'utf16be'])('that an editor has saved in %s takes entries as it is', async (encoding) => {
      const encoded = (text: string): Buffer => {
        const bytes = Buffer.from(text, 'utf16le');
        return encoding === 'utf16le' ? bytes : bytes.swap16();
      };
      await store.documents.appendHistory(key, entry('c1', 100, 'größer'));
      const files = ['HISTORY.md', 'HISTORY-1970-01.md'];
      for (const name of files) await write(name, encoded(`\ufeff${await read(name)}`));
      await open().documents.appendHistory(key, entry('c2', 200, '日本'));
      expect(await history(open())).toEqual([entry('c2', 200, '日本'), entry('c1', 100, 'größer')]);
      for (const name of files) {
        const text = '\ufeff## 1970-01-01T00:01:40.000Z\ngrößer\n\n## 1970-01-01T00:03:20.000Z\n日本\n';
        expect(await readFile(path(name))).toEqual(encoded(text));
      }
    });

    test('that begins with a mark loses no entry by it', async () => {
      await store.documents.appendHistory(key, entry('c1', 100, 'first'));
      for (const name of ['HISTORY.md', 'HISTORY-1970-01.md']) await write(name, `\ufeff${await read(name)}`);
      expect(await history(open())).toEqual([entry('c1', 100, 'first')]);
    });

    test('that is a link or read-only takes nothing, and says so', async () => {
      await write('elsewhere', '');
      await symlink(path('elsewhere'), path('HISTORY.md'));
      await expect(store.documents.appendHistory(key, entry('c1', 100, 'text'))).rejects.toBeInstanceOf(DocumentRefused);
      expect(await read('elsewhere')).toBe('');
      await rm(path('HISTORY.md'));
      await write('HISTORY.md', 'mine\n');
      await chmod(path('HISTORY.md'), 0o444);
      await expect(store.documents.appendHistory(key, entry('c1', 100, 'text'))).rejects.toThrow('HISTORY.md is read-only');
      expect(await read('HISTORY.md')).toBe('mine\n');
      await chmod(path('HISTORY.md'), 0o644);
      expect(await open().documents.appendHistory(key, entry('c1', 100, 'text'))).toBe('known');
      expect(await read('HISTORY.md')).toBe('mine\n\n## 1970-01-01T00:01:40.000Z\ntext\n');
    });
  });

  describe('redact', () => {
    const redact = (text: string): string => text.replaceAll('secret', 'x').replaceAll('2026', 'y');

    test('leaves every other byte of HISTORY as it was, headers too', async () => {
      const before = Buffer.concat([
        Buffer.from('\ufeff# notes\r\n\r\n##   odd\n## 2026-02-27T14:30:00.000Z\r\na \rsecret in 2026\r\n'),
        Buffer.from([0xe4, 0x0a]),
        Buffer.from('  the end, without newline'),
      ]);
      await write('HISTORY-2026-02.md', before);
      await store.documents.redact(key, redact);
      const after = await readFile(path('HISTORY-2026-02.md'));
      expect(after.toString('latin1')).toBe(before.toString('latin1').replace('secret in 2026', 'x in y'));
      const { ino } = await stat(path('HISTORY-2026-02.md'));
      await store.documents.redact(key, redact);
      expect((await stat(path('HISTORY-2026-02.md'))).ino).toBe(ino);
    });

    test('finds the words of a HISTORY that an editor has saved in UTF-16, and leaves it so', async () => {
      await write('HISTORY.md', Buffer.from('\ufeffa secret\r\nwords\r\n', 'utf16le'));
      await store.documents.redact(key, redact);
      expect(await readFile(path('HISTORY.md'))).toEqual(Buffer.from('\ufeffa x\r\nwords\r\n', 'utf16le'));
    });

    test('leaves no word in any file of ours, torn lines and what a dead writer left included', async () => {
      await store.documents.writeMemory(
        key,
        aWrite('w1', 'empty', 'a secret', { lines: [{ line: 'a secret', source: { trust: 'user' } }] }),
      );
      await store.documents.writeMemory(key, aWrite('w2', memoryVersion('a secret'), 'nothing'));
      await store.documents.appendHistory(key, entry('c1', 100, 'a secret'));
      await store.documents.propose(key, 'b1', [{ ts: 1, line: 'a secret', source: { trust: 'model' } }]);
      for (const name of ['memory-changes.jsonl', 'history.jsonl']) await appendFile(path(name), '{"v":1,"text":"a secret');
      for (const name of ['MEMORY.md', 'HISTORY-2026-01.md', 'memory-versions/0123456789abcdef.md'])
        await write(`${name}.0e6c3ad8-2c0e-4a3c-9d4e-6b1f2a3c4d5e.tmp`, 'a secret');
      await store.documents.redact(key, redact);
      const grep = spawnSync('grep', ['-rl', 'secret', scopeDir(dir, key)], { encoding: 'utf8' });
      expect(grep.stdout).toBe('');
      expect(await history()).toEqual([entry('c1', 100, 'a x')]);
      expect((await open().documents.changes(key)).changes.map(({ id }) => id)).toEqual(['w1', 'w2']);
    });

    test('of an entry that a dead writer has only begun reaches that too', async () => {
      await store.documents.appendHistory(key, entry('c1', 100, 'a secret'));
      await withoutLastLine('history.jsonl');
      await rm(path('HISTORY.md'));
      await open().documents.redact(key, redact);
      expect(await read('HISTORY.md')).toBe('## 1970-01-01T00:01:40.000Z\na x\n');
      expect(await open().documents.appendHistory(key, entry('c1', 100, 'a secret'))).toBe('known');
      expect(await history()).toEqual([entry('c1', 100, 'a x')]);
    });
  });
});
