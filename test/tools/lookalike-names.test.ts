/**
 * Names that look like the one that is asked for. Macs put U+202F before the PM of a screenshot's name (anthropics/claude-code#2143,
 * anomalyco/opencode#22574, cline/cline#10691), or U+00A0 (anthropics/claude-code#59381), and write accents apart
 * (lidge-jun/aside-codemode#30); what people paste and models write has neither. The exact name comes first (earendil-works/pi#8877).
 */
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { findFile } from '../../src/cli/args/values.js';
import { readFiles } from '../../src/cli/commands/talk.js';
import { createEditFile } from '../../src/tools/builtin/files/edit-file.js';
import { readFile } from '../../src/tools/builtin/files/read-file.js';
import { createWriteFile } from '../../src/tools/builtin/files/write-file.js';
import { enterWorkspace, findLookalike } from '../../src/tools/workspace.js';
import type { Tool } from '../../src/tools/tool.js';
import type { JsonObject } from '../../src/records/message.js';
import { CANARY, createPlace, runIn, toolContext, type Place } from './tool-context.js';

let place: Place;
beforeEach(() => (place = createPlace()));
afterEach(() => place.remove());

const run = (tool: Tool, input: JsonObject): Promise<string> => runIn(place, tool, input);
const read = (path: string): Promise<string> => run(readFile, { path });

const SHOT = 'Screenshot 2026-11-26 at 10.32.05\u202fAM.png';

test.each([
  ['an ordinary blank for U+202F', SHOT, SHOT.replace('\u202f', ' ')],
  ['an ordinary blank for U+00A0', 'Snímek obrazovky v\u00a013.05.txt', 'Snímek obrazovky v 13.05.txt'],
  ['accents in one', 'cafe\u0301 u\u0308ber.txt', 'café über.txt'],
  ['accents apart', 'café.txt', 'cafe\u0301.txt'],
  ['syllables in one', '학점인정.txt'.normalize('NFD'), '학점인정.txt'],
  ['straight quotes', 'Ada’s “plan”.txt', `Ada's "plan".txt`],
  ['U+202F for an ordinary blank', 'at 10 AM.txt', 'at 10\u202fAM.txt'],
])('a file is found by %s', async (_, name, asked) => {
  place.write(name, 'found');
  expect(await read(asked)).toBe('found');
});

test('folders on the way are found so too, and what is written lies in them', async () => {
  place.write('Ange\u0301lique\u00a0files/plan.txt', 'one\n');
  expect(await read('Angélique files/plan.txt')).toBe('one\n');
  expect(await run(createEditFile(), { path: 'Angélique files/plan.txt', oldText: 'one', newText: 'two' })).toMatch(/^edited/);
  expect(await run(createWriteFile(), { path: 'Angélique files/new/other.txt', content: 'x' })).toMatch(/a new file/);
  const folder = join(place.workspace, 'Ange\u0301lique\u00a0files');
  expect(readFileSync(join(folder, 'plan.txt'), 'utf8')).toBe('two\n');
  expect(readFileSync(join(folder, 'new', 'other.txt'), 'utf8')).toBe('x');
});

test('the exact name comes first; where several look like it, all are named', async () => {
  place.write('a b.txt', 'plain');
  place.write('a\u00a0b.txt', 'fixed');
  place.write('a\u202fb.txt', 'narrow');
  expect(await read('a b.txt')).toBe('plain');
  expect(await read('a\u202fb.txt')).toBe('narrow');
  expect(await read('a\u2009b.txt')).toBe(
    'error: cannot use a\u2009b.txt: 3 names look like it, "a b.txt", "a\\u00a0b.txt", "a\\u202fb.txt". ' +
      'Give one exactly, with the characters behind \\u.',
  );
  expect(await read('a  b.txt')).toMatch(/cannot find/);
});

test('a name that is found is guarded as any other: no link leads out, nothing outside is looked at, nothing protected is written', async () => {
  symlinkSync(join(place.outside, 'secret.txt'), join(place.workspace, 'out\u00a0link'));
  symlinkSync(place.outside, join(place.workspace, 'out'));
  writeFileSync(join(place.outside, 'a\u00a0b.txt'), CANARY);
  mkdirSync(join(place.workspace, '.git'));
  writeFileSync(join(place.workspace, '.git', 'hook\u00a0one'), '');
  expect(await read('out link')).toMatch(/leads out of the workspace/);
  expect(await read('out/a b.txt')).toMatch(/leads out of the workspace/);
  expect(await read('../a b.txt')).toMatch(/leads out of the workspace/);
  expect(await run(createWriteFile(), { path: '.git/hook one', content: 'x' })).toMatch(/cannot write/);
  symlinkSync(join(place.workspace, '.git'), join(place.workspace, 'g\u00a0t'));
  expect(await run(createWriteFile(), { path: 'g t/hook one', content: 'x' })).toMatch(/cannot write/);
  // The name in the call counts too, whatever it is a link to.
  place.write('store/hook\u00a0two', '');
  symlinkSync('store', join(place.workspace, '.husky'));
  expect(await run(createWriteFile(), { path: '.husky/hook two', content: 'x' })).toMatch(/cannot write/);
  expect(readFileSync(join(place.workspace, 'store', 'hook\u00a0two'), 'utf8')).toBe('');
  expect(readFileSync(join(place.workspace, '.git', 'hook\u00a0one'), 'utf8')).toBe('');
});

test('a secret is asked about by the name that it has', async () => {
  place.write('my\u00a0keys/.env', 'KEY=1');
  const examined = await readFile.examine?.({ path: 'my keys/.env' }, toolContext({ workspace: place.workspace }));
  expect(examined).toMatchObject({ real: { path: 'my\u00a0keys/.env' }, asks: { why: '.env may hold secrets' } });
});

test('a path that is there and cannot be gone into is no name to look for', async () => {
  symlinkSync('loop', join(place.workspace, 'loop'));
  place.write('file', '');
  const workspace = await enterWorkspace(place.workspace);
  await expect(workspace.resolve('loop')).rejects.toThrow(/leads out/);
  await expect(workspace.resolve('file/x')).rejects.toThrow(/cannot use file\/x/);
  expect(await findLookalike(sep, '/proc/self/environ2')).toBe('/proc/self/environ2');
});

test('a person’s --attach and @FILE find such names, and read what Windows writes', async () => {
  writeFileSync(join(place.outside, 'Notes 10.32\u202fAM.txt'), Buffer.from('\ufeffgrößer', 'utf16le'));
  expect(await readFiles(place.outside, ['Notes 10.32 AM.txt'])).toMatchObject([{ name: 'Notes 10.32\u202fAM.txt', type: 'text/plain' }]);
  expect(await findFile(place.outside, 'Notes 10.32 AM.txt')).toBe(join(place.outside, 'Notes 10.32\u202fAM.txt'));
  await expect(readFiles(place.outside, ['Notes.txt'])).rejects.toThrow(/^cannot attach Notes\.txt: ENOENT/);
});
