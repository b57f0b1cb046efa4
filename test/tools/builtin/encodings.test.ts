/**
 * Files as other systems write them: with a mark, in UTF-16, with other line ends. People have reported each for agents like this one:
 * a mark that an edit takes away (MoonshotAI/kimi-code#3825) or adds (github/copilot-cli#3389), text that is not found behind one
 * (earendil-works/pi#394), and UTF-16 of PowerShell's `>` that is read as NULs (wonderwhy-er/DesktopCommanderMCP#610) or refused as
 * binary (NousResearch/hermes-agent#80717).
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { decodeExactly, decodeText, encodeText, type TextForm } from '../../../src/records/file-type.js';
import { editFile } from '../../../src/tools/builtin/files/edit-file.js';
import { readFile } from '../../../src/tools/builtin/files/read-file.js';
import { searchFiles } from '../../../src/tools/builtin/files/search-files.js';
import { writeFile } from '../../../src/tools/builtin/files/write-file.js';
import type { Tool } from '../../../src/tools/tool.js';
import type { JsonObject } from '../../../src/records/message.js';
import { createPlace, runIn, type Place } from '../tool-context.js';

let place: Place;
beforeEach(() => (place = createPlace()));
afterEach(() => place.remove());

const run = (tool: Tool, input: JsonObject): Promise<string> => runIn(place, tool, input);
const read = (path: string): Promise<string> => run(readFile, { path });
const edit = (oldText: string, newText: string, path = 'a.txt'): Promise<string> => run(editFile, { path, oldText, newText });
const bytesOf = (path: string): Buffer => readFileSync(join(place.workspace, path));
const write = (path: string, text: string, form: TextForm): void => place.write(path, Buffer.from(encodeText(text, form)));

const FORMS: readonly TextForm[] = [
  { encoding: 'utf-8', hasMark: false },
  { encoding: 'utf-8', hasMark: true },
  { encoding: 'utf-16le', hasMark: true },
  { encoding: 'utf-16be', hasMark: true },
];

test.each([
  ['utf-8', 'efbbbf' + Buffer.from('größer 🎈').toString('hex')],
  ['utf-16le', 'fffe' + Buffer.from('größer 🎈', 'utf16le').toString('hex')],
  ['utf-16be', 'feff' + Buffer.from('größer 🎈', 'utf16le').swap16().toString('hex')],
])('%s with its mark is the text without it', (encoding, hex) => {
  const bytes = Buffer.from(hex, 'hex');
  expect(decodeText(bytes)).toBe('größer 🎈');
  expect(decodeExactly(bytes)).toEqual({ text: 'größer 🎈', form: { encoding, hasMark: true } });
});

test('whatever the encoding, the mark and the line ends: what is read is the text, and an edit changes nothing else', async () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'é', '語', '🎈', ' ', '\u0301', '\t'), minLength: 1, maxLength: 6 });
  const line = fc.record({ words: word, end: fc.constantFrom('\n', '\r\n') });
  const lines = fc.oneof(
    fc.array(line, { maxLength: 5 }),
    // All ended alike, as most files are.
    fc
      .tuple(fc.array(word, { maxLength: 5 }), fc.constantFrom('\n', '\r\n', '\r'))
      .map(([all, end]) => all.map((words) => ({ words, end }))),
  );
  await fc.assert(
    fc.asyncProperty(lines, lines, word, fc.constantFrom(...FORMS), async (above, below, last, form) => {
      const ends = [...above, ...below].map(({ end }) => end);
      const end = below[0]?.end ?? above.at(-1)?.end ?? '\n';
      // A return alone ends lines only where nothing else does.
      fc.pre(!ends.includes('\r') || ends.every((one) => one === '\r'));
      const join = (all: typeof above): string => all.map(({ words, end: after }) => words + after).join('');
      const [before, after] = [join(above), `${join(below)}${last}`];
      write('a.txt', `${before}<one>${end}<two>${end}${after}`, form);

      const shown = (text: string): string => (ends.includes('\r') || end === '\r' ? text.replaceAll('\r', '\n') : text);
      expect(await read('a.txt')).toMatch(startingWith(shown(`${before}<one>${end}<two>${end}${after}`)));
      expect(await edit('<one>\n<two>\n', '<1>\n<2>\n<3>\n')).toMatch(new RegExp(`^edited a\\.txt on line ${above.length + 1};`));
      const wanted = Buffer.from(encodeText(`${before}<1>${end}<2>${end}<3>${end}${after}`, form));
      expect(bytesOf('a.txt').toString('hex')).toBe(wanted.toString('hex'));
    }),
    { numRuns: 150 },
  );
});

const startingWith = (text: string): RegExp => new RegExp(`^${text.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&')}(\\n\\[|$)`);

test('a file of Windows’ Notepad in UTF-16 is read, searched and edited as what it is', async () => {
  write('notes.txt', 'one\r\nbread & größer\r\nthree\r\n', { encoding: 'utf-16le', hasMark: true });

  expect(await read('notes.txt')).toBe(
    'one\r\nbread & größer\r\nthree\r\n\n[the file is UTF-16 (little endian); edit_file and write_file keep it so]',
  );
  expect(await run(readFile, { path: 'notes.txt', offset: 3 })).toMatch(/^three\r\n/);
  expect(await run(searchFiles, { query: 'größer' })).toBe('notes.txt:2: bread & größer');
  expect(await run(searchFiles, { query: 'GRÖSSER' })).toMatch(/found nowhere/);
  expect(await run(searchFiles, { query: 'BREAD', ignoreCase: true })).toBe('notes.txt:2: bread & größer');
  expect(await edit('größer\nthree', 'größer\n3\n4', 'notes.txt')).toMatch(/^edited notes\.txt on line 2/);
  expect(bytesOf('notes.txt').subarray(0, 2).toString('hex')).toBe('fffe');
  expect(bytesOf('notes.txt').subarray(2).toString('utf16le')).toBe('one\r\nbread & größer\r\n3\r\n4\r\n');
});

test('a text that is longer than one read is read on in the right place, in UTF-16 too', async () => {
  const lines = Array.from({ length: 30_000 }, (_, i) => `line ${i + 1} é`);
  write('long.txt', lines.join('\n'), { encoding: 'utf-16be', hasMark: true });
  const first = await read('long.txt');
  const next = Number(/read on with offset (\d+)/.exec(first)?.[1]);
  expect(next).toBeGreaterThan(1_000);
  expect(first).toContain(`line ${next - 1} é\n`);
  expect(await run(readFile, { path: 'long.txt', offset: next, limit: 1 })).toMatch(new RegExp(`^line ${next} é\\n`));
});

test('lines that end in carriage returns alone are lines, for reading, searching and editing', async () => {
  place.write('old.txt', 'one\rtwo\rthree\r');
  expect(await run(readFile, { path: 'old.txt', offset: 2, limit: 1 })).toMatch(/^two\n/);
  expect(await run(searchFiles, { query: 'three' })).toBe('old.txt:3: three');
  expect(await edit('two\nthree', '2\n3', 'old.txt')).toMatch(/^edited old\.txt on line 2;/);
  expect(bytesOf('old.txt').toString()).toBe('one\r2\r3\r');
});

test('in a file of mixed line ends the text is found, and new lines end as the one in whose place they stand', async () => {
  place.write('a.txt', 'a\nb\r\nc\r\nd\n');
  expect(await edit('b\nc\nd', 'B\nC\nD')).toMatch(/^edited a\.txt on line 2/);
  expect(bytesOf('a.txt').toString()).toBe('a\nB\r\nC\r\nD\n');
  // A model that knows of them may change them.
  expect(await edit('B\r\nC', 'B\nC')).toMatch(/^edited/);
  expect(bytesOf('a.txt').toString()).toBe('a\nB\nC\r\nD\n');
});

test('a model that sends CR LF or a mark finds its text in a file that has none', async () => {
  place.write('a.txt', 'one\ntwo\n');
  expect(await edit('\ufeffone\r\ntwo', '1\r\n2')).toMatch(/^edited/);
  expect(bytesOf('a.txt').toString()).toBe('1\n2\n');
});

test('a million changes on two lines, which end otherwise, are made in one pass', async () => {
  place.write('a.txt', `a\n${'x'.repeat(1_000_000)}\r\nb`);
  expect(await run(editFile, { path: 'a.txt', oldText: 'x', newText: 'y', all: true })).toMatch(/^edited/);
  expect(bytesOf('a.txt').includes('x')).toBe(false);
});

test('a file that is written anew keeps its mark and its encoding, which no model can write; of line ends it is told', async () => {
  write('script.ps1', 'old\r\n', { encoding: 'utf-8', hasMark: true });
  expect(await run(writeFile, { path: 'script.ps1', content: 'größer\n' })).toBe(
    'wrote script.ps1 in place of the old one of 8 bytes: 12 bytes, 1 lines, in UTF-8 with a byte order mark as before; ' +
      'its lines ended in CR LF and end in LF now',
  );
  expect(bytesOf('script.ps1').toString()).toBe('\ufeffgrößer\n');
  write('app.rc', 'old', { encoding: 'utf-16le', hasMark: true });
  expect(await run(writeFile, { path: 'app.rc', content: '\ufeffnew' })).toMatch(/in UTF-16 \(little endian\) as before$/);
  expect(bytesOf('app.rc').toString('hex')).toBe(`fffe${Buffer.from('new', 'utf16le').toString('hex')}`);
  place.write('plain.txt', 'old');
  expect(await run(writeFile, { path: 'plain.txt', content: 'new' })).toBe(
    'wrote plain.txt in place of the old one of 3 bytes: 3 bytes, 1 lines',
  );
});

test.each([
  ['another encoding', Buffer.from('caf\xe9\n', 'latin1'), /is not UTF-8 text, and writing it back would spoil it/],
  ['half a character of UTF-16', Buffer.from('fffe6100d8', 'hex'), /is marked as UTF-16 and is none/],
  ['NUL in UTF-16', Buffer.from('fffe61000000', 'hex'), /is a binary file/],
  ['UTF-16 without a mark', Buffer.from('one', 'utf16le'), /is a binary file/],
])('%s is refused in words by an edit, and stays as it is', async (_, bytes, words) => {
  place.write('a.txt', bytes);
  expect(await edit('caf', 'x')).toMatch(words);
  expect(bytesOf('a.txt')).toEqual(bytes);
});
