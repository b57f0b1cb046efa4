import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import { builtinTools } from '../../src/tools/builtin/index.js';
import { enterWorkspace, PathRefused } from '../../src/tools/workspace.js';
import type { ToolResult } from '../../src/tools/tool.js';
import { CANARY, createPlace, toolContext, type Place } from './tool-context.js';

let place: Place;

beforeEach(() => {
  place = createPlace();
});

afterEach(() => {
  place.remove();
});

/** Every built-in that takes a path. */
async function ask(path: string): Promise<{ readFile: ToolResult; all: ToolResult[] }> {
  const context = toolContext({ workspace: place.workspace });
  const run = (name: string, input: { [key: string]: string }): Promise<ToolResult> => {
    const tool = builtinTools.find((candidate) => candidate.name === name);
    if (!tool) throw new Error(`no built-in ${name}`);
    return tool.run(input, context);
  };
  const all = await Promise.all([run('read_file', { path }), run('list_files', { path }), run('search_files', { path, query: 'CANARY' })]);
  return { readFile: all[0]!, all };
}

const text = (result: ToolResult): string => (result.ok ? result.content : result.error);

describe('hostile paths', () => {
  const longName = 'n'.repeat(5_000);

  // Beside ws lie ws-evil/x and secret.txt; in ws: a/, file.txt, and links that lead out.
  it.each<[string, (at: Place) => string, RegExp]>([
    ['S1 climbing out', () => '../secret.txt', /leads out of the workspace/],
    ['S1 climbing far out', () => '../../../../../../../../etc/passwd', /leads out/],
    ['S1 climbing out of a folder', () => 'a/../../secret.txt', /leads out/],
    ['S1 an absolute path', () => '/etc/passwd', /leads out/],
    ['S1 an absolute path that is not there', () => '/etc/no-such-file', /leads out/],
    ['S1 the absolute path of the canary', (at) => join(at.outside, 'secret.txt'), /leads out/],
    ['S1 a home folder', () => '~/.ssh/id_rsa', /home folder/],
    ['S1 the home folder', () => '~', /home folder/],
    ['S2 a twin by prefix', () => '../ws-evil/x', /leads out/],
    ['S2 a twin by prefix, absolute', (at) => `${at.workspace}-evil/x`, /leads out/],
    ['S3 a link to a file outside', () => 'link-to-secret', /leads out/],
    ['S3 through a link to a folder outside', () => 'link-out/x', /leads out/],
    ['S3 the link to a folder outside', () => 'link-out', /leads out/],
    ['S3 a link by way of a link', () => 'link-to-link/x', /leads out/],
    ['S4 a missing file behind a link', () => 'link-out/new.txt', /leads out/],
    ['S4 a missing file far behind a link', () => 'link-out/no/such/new.txt', /leads out/],
    ['S4 a link that leads nowhere', () => 'link-nowhere', /leads out/],
    ['S4 a link to itself', () => 'loop', /leads out/],
    ['S6 a file of the kernel', () => '/proc/self/environ', /leads out/],
    ['S6 an open handle', () => '/proc/self/fd/3', /leads out/],
    ['S6 a link to the environment', () => 'environ', /leads out/],
    ['S6 a link to a device', () => 'zero', /leads out/],
    ['S6 a FIFO', () => 'fifo', /a pipe, a socket or a device/],
    ['S6 a socket', () => 'socket', /a pipe, a socket or a device/],
    ['S6 a folder', () => 'a', /it is a folder. List it with list_files/],
    ['S6 below a file', () => 'file.txt/x', /what would have to be a folder is a file/],
    ['S7 NUL', () => 'a\0.txt', /NUL/],
    ['S7 NUL after a way out', () => '../secret.txt\0', /NUL/],
    ['S7 a name of 5,000 bytes', () => longName, /at most 4096 bytes/],
    ['S7 a path of 5,000 bytes', () => 'a/'.repeat(2_500), /at most 4096 bytes/],
    ['S7 a name of 256 bytes in umlauts', () => 'ü'.repeat(128), /each name in it 255/],
    ['S7 a device of another system', () => 'CON', /cannot find CON/],
    ['S7 a trailing dot and space', () => 'file.txt. ', /cannot find/],
    ['S7 a line break', () => 'x\n[forged]', /cannot find "x\\n\[forged\]"/],
    ['S7 an option', () => '-rf', /cannot find -rf/],
    ['S8 a way out in percents', () => '..%2f..%2fsecret.txt', /cannot find/],
    ['S8 dots in percents', () => '%2e%2e/secret.txt', /cannot find/],
    ['S8 a way out in backslashes', () => '..\\..\\secret.txt', /cannot find/],
    ['a lone surrogate', () => '\ud83d', /cannot find/],
    ['nothing but missing', () => 'no/such/file', /cannot find no\/such\/file in the workspace. Look with list_files/],
  ])('are refused: %s', async (_, path, reason) => {
    mkdirSync(join(place.workspace, 'a'));
    place.write('file.txt', 'inside');
    const link = (target: string, name: string): void => symlinkSync(target, join(place.workspace, name));
    link('../secret.txt', 'link-to-secret');
    link(join(place.outside, 'ws-evil'), 'link-out');
    link('link-out', 'link-to-link');
    link(join(place.outside, 'gone'), 'link-nowhere');
    link('loop', 'loop');
    link('/proc/self/environ', 'environ');
    link('/dev/zero', 'zero');
    execFileSync('mkfifo', [join(place.workspace, 'fifo')]);
    const server = createServer().listen(join(place.workspace, 'socket'));
    await once(server, 'listening');

    const { readFile, all } = await ask(path(place)).finally(() => server.close());

    expect(readFile).toEqual({ ok: false, error: expect.stringMatching(reason) });
    expect(all.map(text).join()).not.toContain(CANARY);
    expect(text(readFile).length).toBeLessThan(1_000);
  });

  it('are never a way out, whatever they are made of', async () => {
    symlinkSync('..', join(place.workspace, 'up'));
    symlinkSync(place.outside, join(place.workspace, 'out'));
    place.write('a/file.txt', 'inside');
    const piece = fc.oneof(
      fc.constantFrom(
        '..',
        '.',
        '',
        '/',
        '~',
        'ws',
        'ws-evil',
        'x',
        'secret.txt',
        'up',
        'out',
        'a',
        'file.txt',
        '\0',
        '%2e%2e',
        '..\\',
        '\u2025',
      ),
      fc.string({ unit: 'binary', maxLength: 8 }),
      fc.constant('root').map(() => place.outside),
    );
    const path = fc.array(piece, { minLength: 1, maxLength: 8 }).map((pieces) => pieces.join('/'));

    await fc.assert(
      fc.asyncProperty(path, async (hostile) => {
        const { all } = await ask(hostile);
        expect(all.map(text).join()).not.toContain(CANARY);
      }),
      { numRuns: 400, examples: [['out/secret.txt'], ['up/secret.txt'], ['a/../up/ws-evil/x']] },
    );
  });

  it('say the same of what is outside, whether it is there or not', async () => {
    symlinkSync(place.outside, join(place.workspace, 'out'));

    const there = await ask('out/secret.txt');
    const missing = await ask('out/secret.tx_');

    expect(there.all.map(text)).toEqual(missing.all.map((result) => text(result).replace('secret.tx_', 'secret.txt')));
  });

  it('into the kernel are refused even where the root is the whole machine', async () => {
    const machine = await enterWorkspace('/');

    await expect(machine.resolve('/proc/self/environ')).rejects.toThrow(PathRefused);
    await expect(machine.resolve('sys/kernel')).rejects.toThrow(PathRefused);
    await expect(machine.openFile(await machine.resolve('dev/null'))).rejects.toThrow('a pipe, a socket or a device');
  });

  it('to a file that this process may not read are refused with the reason', async () => {
    place.write('closed.txt', 'x');
    chmodSync(join(place.workspace, 'closed.txt'), 0o000);
    chmodSync(place.outside, 0o755);
    // Root may read everything, so it becomes nobody for a moment.
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid?.(65_534);
    try {
      expect((await ask('closed.txt')).readFile).toEqual({ ok: false, error: expect.stringContaining('no permission') });
    } finally {
      if (isRoot) process.seteuid?.(0);
    }
  });
});

describe('a folder that is swapped for a link to the outside', () => {
  // On macOS a handle cannot be asked where it lies, so another check stands in; it works on Linux too.
  it.each(['linux', 'darwin'] as const)('is refused when the swap comes between the check and the opening, on %s', async (platform) => {
    place.write('d/x', 'inside');
    const workspace = await enterWorkspace(place.workspace);
    const file = await workspace.resolve('d/x');
    const folder = await workspace.resolve('d');
    renameSync(join(place.workspace, 'd'), join(place.workspace, 'd.old'));
    symlinkSync(join(place.outside, 'ws-evil'), join(place.workspace, 'd'));

    const here = process.platform;
    Object.defineProperty(process, 'platform', { value: platform });
    try {
      await expect(workspace.openFile(file)).rejects.toThrow('leads out');
      await expect(workspace.readFolder(folder, 10)).rejects.toThrow(PathRefused);
      expect((await ask('d.old/x')).readFile).toMatchObject({ ok: true, content: 'inside' });
      expect(text((await ask('d.old')).all[1]!)).toBe('d.old/x  6 bytes');
    } finally {
      Object.defineProperty(process, 'platform', { value: here });
    }
  });

  // Only Linux closes the race altogether (tools/opened-handle-checked).
  (process.platform === 'linux' ? it : it.skip)('lets nothing out in thousands of swaps, while some reads succeed', async () => {
    place.write('d/x', 'inside');
    symlinkSync(join(place.outside, 'ws-evil'), join(place.workspace, 'l'));
    writeFileSync(join(place.outside, 'ws-evil', `${CANARY}.txt`), CANARY);
    const swap = `
      const { renameSync } = require('node:fs');
      for (let i = 0; i < 20000; i++) {
        renameSync('d', 'was'); renameSync('l', 'd');
        renameSync('d', 'l'); renameSync('was', 'd');
      }`;
    const swapper = spawn(process.execPath, ['-e', swap], { cwd: place.workspace, stdio: 'inherit' });
    const ended = once(swapper, 'exit');
    const seen = { inside: 0, refused: 0, escaped: 0 };

    while (swapper.exitCode === null) {
      const { readFile, all } = await ask('d/x');
      all.push(...(await ask('d')).all);
      // The query itself is repeated by no tool, so that the canary can only come from outside.
      if (all.some((result) => text(result).includes(CANARY))) seen.escaped++;
      if (readFile.ok) seen.inside++;
      else seen.refused++;
    }

    expect(await ended).toEqual([0, null]);
    expect(seen.escaped).toBe(0);
    expect(seen.inside).toBeGreaterThan(0);
    expect(seen.refused).toBeGreaterThan(0);
  });
});

describe('legal paths', () => {
  it.each([
    ['file.txt'],
    ['./file.txt'],
    ['.//a//b.txt'],
    ['a/../file.txt'],
    ['with space.txt'],
    ['Übergrößenträger.txt'],
    ['日本語/📝.txt'],
    ['-rf'],
    ['--help.txt'],
    ['..notes'],
    ['...'],
    ['~draft.txt'],
    ['./~'],
    ['100%2f.txt'],
    ['back\\slash.txt'],
    ['line\nbreak.txt'],
    ['.hidden/.env.example'],
    ['link-inside'],
    ['link-folder/b.txt'],
    ['ü'.repeat(127)],
    ['../ws/file.txt'],
  ])('work: %j', async (path) => {
    for (const name of ['file.txt', 'with space.txt', 'Übergrößenträger.txt', '日本語/📝.txt', '-rf', '--help.txt', '..notes', '...'])
      place.write(name, 'inside');
    for (const name of ['~draft.txt', '~', '100%2f.txt', 'back\\slash.txt', 'line\nbreak.txt', '.hidden/.env.example', 'a/b.txt'])
      place.write(name, 'inside');
    place.write('ü'.repeat(127), 'inside');
    symlinkSync('a/../file.txt', join(place.workspace, 'link-inside'));
    symlinkSync(join(place.workspace, 'a'), join(place.workspace, 'link-folder'));

    expect((await ask(path)).readFile).toMatchObject({ ok: true, content: 'inside' });
  });

  it('may be absolute inside the workspace, also by a linked name of it', async () => {
    place.write('a/b.txt', 'inside');
    symlinkSync(place.workspace, join(place.outside, 'desk'));

    expect((await ask(join(place.workspace, 'a/b.txt'))).readFile).toMatchObject({ ok: true, content: 'inside' });
    expect((await ask(join(place.outside, 'desk/a/b.txt'))).readFile).toMatchObject({ ok: true, content: 'inside' });
  });

  it('work where the root itself is given by a link', async () => {
    place.write('b.txt', 'inside');
    symlinkSync(place.workspace, join(place.outside, 'desk'));
    const workspace = await enterWorkspace(join(place.outside, 'desk'));

    expect(await workspace.resolve('b.txt')).toBe(join(place.workspace, 'b.txt'));
  });
});

it('a workspace that is missing is named, with what to do', async () => {
  await expect(enterWorkspace(join(place.outside, 'none'))).rejects.toThrow(/none cannot be entered: create it, or set PERDURA_WORKSPACE/);
});
