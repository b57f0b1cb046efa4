import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MAX_FILE, readLayoutFiles, writeLayout } from '../../../src/cli/commands/transfer.js';

const FILES = {
  'raw_traces.jsonl': 'a\n',
  'raw_traces_archive.jsonl': '',
  'episodic.jsonl': '',
  'semantic.jsonl': '',
  'perdura.json': '{}',
};

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-layout-'));
});
afterEach(() => rm(dir, { recursive: true }));

test('what was written is read; a second export does not overwrite the first', async () => {
  await writeLayout(join(dir, 'out'), FILES);
  expect(await readLayoutFiles(join(dir, 'out'))).toEqual(FILES);
  await expect(writeLayout(join(dir, 'out'), { ...FILES, 'raw_traces.jsonl': 'b\n' })).rejects.toThrow('there is an export already');
  expect(await readLayoutFiles(join(dir, 'out'))).toEqual(FILES);
});

test.each(['utf8', 'utf16le'] as const)('files that an editor has saved in %s with a mark are read without it', async (encoding) => {
  await writeFile(join(dir, 'raw_traces.jsonl'), Buffer.from('\ufeff{"a":"größer"}\n', encoding));
  expect(await readLayoutFiles(dir)).toEqual({ 'raw_traces.jsonl': '{"a":"größer"}\n' });
});

test('links are followed neither for reading nor for writing, be it the folder or a file', async () => {
  await writeFile(join(dir, 'secret'), 'secret');
  await symlink(join(dir, 'secret'), join(dir, 'raw_traces.jsonl'));
  await expect(readLayoutFiles(dir)).rejects.toThrow('links are not followed');
  await expect(writeLayout(dir, FILES)).rejects.toThrow('there is an export already');
  await symlink(dir, join(dir, 'link'));
  await expect(readLayoutFiles(join(dir, 'link'))).rejects.toThrow('is no folder but a link');
  await expect(writeLayout(join(dir, 'link'), FILES)).rejects.toThrow('is no folder but a link');
  expect((await readdir(dir)).sort()).toEqual(['link', 'raw_traces.jsonl', 'secret']);
});

test('a pipe, a file that is too large, and a folder without any of the files are refused', async () => {
  await expect(readLayoutFiles(dir)).rejects.toThrow('none of raw_traces.jsonl');
  await expect(readLayoutFiles(join(dir, 'nowhere'))).rejects.toThrow('cannot open');
  spawnSync('mkfifo', [join(dir, 'semantic.jsonl')]);
  await expect(readLayoutFiles(dir)).rejects.toThrow('it is no file');
  await rm(join(dir, 'semantic.jsonl'));
  await writeFile(join(dir, 'semantic.jsonl'), '');
  await truncate(join(dir, 'semantic.jsonl'), MAX_FILE + 1);
  await expect(readLayoutFiles(dir)).rejects.toThrow(`at most ${MAX_FILE} are read`);
});
