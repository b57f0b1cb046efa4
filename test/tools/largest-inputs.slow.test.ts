/**
 * Each entrance of the tools gets its largest input, of the shape that is worst for it, and comes to an end: what takes time by the square
 * of such an input takes hours.
 */
import { setImmediate as turnOfEventLoop } from 'node:timers/promises';
import { createKnownSecrets } from '../../src/platform/known-secrets.js';
import { transformed } from '../../src/memory/channel/transforms.js';
import type { JsonObject } from '../../src/records/message.js';
import { createEditFile } from '../../src/tools/builtin/files/edit-file.js';
import { readFile } from '../../src/tools/builtin/files/read-file.js';
import { searchFiles } from '../../src/tools/builtin/files/search-files.js';
import { FILE_BYTES } from '../../src/tools/builtin/files/write-file.js';
import { readablePage } from '../../src/tools/builtin/web/fetch-url.js';
import { secretLeaving } from '../../src/tools/egress-scan.js';
import { createJsonDepthLimit, MAX_DEPTH, MAX_VALUES, MAX_BYTES } from '../../src/tools/mcp/stdio-transport.js';
import { toToolResult } from '../../src/tools/mcp/run-server-tool.js';
import { readServerTools } from '../../src/tools/mcp/server-tool.js';
import type { Tool } from '../../src/tools/tool.js';
import { ends } from '../support/ends.js';
import { createPlace, toolContext, type Place } from './tool-context.js';

const MEBIBYTE = 1024 * 1024;
let place: Place;
beforeEach(() => (place = createPlace()));
afterEach(() => place.remove());

const run = (tool: Tool, input: JsonObject): Promise<unknown> => tool.run(input, toolContext({ workspace: place.workspace }));

/** What pauses, for a file, is held to its end by the runner's own bound, which is met in the turn after it. */
async function expectEnd(work: () => unknown): Promise<void> {
  await ends(work);
  await turnOfEventLoop();
}

describe('edit_file', () => {
  const editFile = createEditFile();
  test.each<[string, (size: number) => string, (size: number) => string]>([
    ['equal lines, and one that differs at the end', (n) => 'a\n'.repeat(n / 2), (n) => `${'a\n'.repeat(n / 4)}b`],
    ['equal lines of blanks', (n) => ' a \n'.repeat(n / 4), (n) => `${'a\n'.repeat(n / 8)}b`],
    ['equal letters, and one that differs in the middle', (n) => 'a'.repeat(n), (n) => `${'a'.repeat(n / 4)}b${'a'.repeat(n / 4)}`],
    ['a long first line that is nearly there', (n) => `${'a'.repeat(n / 2)}\nb`, (n) => `${'a'.repeat(n / 8)}b${'a'.repeat(n / 8)}\nc`],
    ['a beginning that comes again and again', (n) => 'a\na\nb\n'.repeat(n / 6), (n) => `${'a\na\nb\n'.repeat(n / 24)}a\na\na`],
    ['many places', (n) => 'ab'.repeat(n / 2), () => 'ab'],
  ])('%s', async (_, textOf, oldTextOf) => {
    const size = FILE_BYTES - 64;
    place.write('x.txt', textOf(size));
    await expectEnd(() => run(editFile, { path: 'x.txt', oldText: oldTextOf(size), newText: 'c' }));
  });
});

test.each<[string, (size: number) => string]>([
  ['one line', (n) => 'a'.repeat(n)],
  ['empty lines', (n) => '\n'.repeat(n)],
  ['what nobody sees', (n) => 'a\u200b'.repeat(n / 4)],
])('read_file: %s', async (_, textOf) => {
  place.write('x.txt', textOf(16 * MEBIBYTE));
  await expectEnd(() => run(readFile, { path: 'x.txt', offset: 2 }));
});

test.each<[string, (size: number) => string, string]>([
  ['equal letters', (n) => 'a'.repeat(n), `${'a'.repeat(250)}b${'a'.repeat(249)}`],
  ['short lines', (n) => 'ab\n'.repeat(n / 3), 'ba'],
  ['what nobody sees', (n) => `${'\u200b'.repeat(200)}x\n`.repeat(n / 603), 'x'],
])('search_files: %s', async (_, textOf, query) => {
  place.write('x.txt', textOf(4 * MEBIBYTE));
  await expectEnd(() => run(searchFiles, { query, limit: 200, ignoreCase: true }));
});

test.each<[string, (size: number) => string]>([
  ['paragraphs', (n) => '<p>Words that stand in a paragraph, <a href="/x">and lead on</a>.</p>'.repeat(n / 70)],
  ['nested', (n) => '<div>'.repeat(n / 5)],
  ['what is no element', (n) => '<'.repeat(n)],
])('a page: %s', async (_, htmlOf) => {
  // In a thread of its own, so that it holds nobody up; it is ended at its limit.
  const page = await readablePage({ html: htmlOf(5 * MEBIBYTE), url: 'https://a.example/' }, new AbortController().signal, 1_000);
  expect(page?.markdown ?? '').not.toContain('<p>');
});

describe('what an MCP server says', () => {
  const veil = createKnownSecrets(['canary-token']).text;
  test.each<[string, (size: number) => string, boolean]>([
    ['one text', (n) => JSON.stringify('['.repeat(n)), true],
    ['escapes', (n) => JSON.stringify('\\"'.repeat(n / 4)), true],
    ['deep lists', (n) => '['.repeat(n / 2) + ']'.repeat(n / 2), false],
    ['deep objects', (n) => '{"a":'.repeat(n / 6) + '1' + '}'.repeat(n / 6), false],
    ['empty objects', (n) => `[${'{},'.repeat(n / 3)}{}]`, false],
    ['fields', (n) => `{${Array.from({ length: n / 16 }, (_, i) => `"k${i}":0`).join()}}`, false],
    ['lists in lists', (n) => `[${`${'['.repeat(100)}${']'.repeat(100)},`.repeat(n / 201)}0]`, false],
  ])('before it is parsed, and what passes is parsed: %s', async (_, textOf, passes) => {
    const shape = createJsonDepthLimit();
    const bytes = Buffer.from(textOf(MAX_BYTES));
    expect(ends(() => shape.pass(bytes))).toBe(passes);
    if (passes) ends(() => JSON.parse(bytes.toString()));
  });

  test('is parsed at the last depth and number of values, whatever its pieces, and not beyond', () => {
    const pass = (text: string, piece = 7): boolean => {
      const [shape, bytes] = [createJsonDepthLimit(), Buffer.from(text)];
      for (let at = 0; at < bytes.length; at += piece) if (!shape.pass(bytes.subarray(at, at + piece))) return false;
      return true;
    };
    const deep = (depth: number): string => `${'['.repeat(depth)}"]]\\"[,"${']'.repeat(depth)}`;
    expect([pass(deep(MAX_DEPTH)), pass(deep(MAX_DEPTH), 1), pass(deep(MAX_DEPTH + 1))]).toEqual([true, true, false]);
    const wide = (values: number): string => `[${'0,'.repeat(values - 1)}0]`;
    expect([pass(wide(MAX_VALUES)), pass(wide(MAX_VALUES + 1))]).toEqual([true, false]);
  });

  test.each<[string, (size: number) => Record<string, unknown>]>([
    ['one text', (n) => ({ content: [{ type: 'text', text: 'x'.repeat(n) }] })],
    ['what nobody sees, in pieces', (n) => ({ content: [{ type: 'text', text: 'a\u200b'.repeat(n / 2) }] })],
    ['what nobody sees, in one piece', (n) => ({ content: [{ type: 'text', text: '\u200b'.repeat(n) }] })],
    ['many parts', (n) => ({ content: Array.from({ length: n / 40 }, () => ({ type: 'text', text: 'a\u200bb' })) })],
    ['an image of padding', (n) => ({ content: [{ type: 'image', data: `${'='.repeat(n)}a`, mimeType: 'image/png' }] })],
    [
      'the same twice',
      (n) => {
        const rows = Array.from({ length: n / 12 }, (_, i) => ({ i }));
        return { content: [{ type: 'text', text: JSON.stringify({ rows }) }], structuredContent: { rows } };
      },
    ],
  ])('as a result: %s', async (_, answerOf) => {
    const answer = answerOf(15 * MEBIBYTE);
    await expectEnd(() => toToolResult(answer, veil));
  });

  const tool = (i: number, properties: object, more: object = {}): object => ({
    name: `t${i}`,
    inputSchema: { type: 'object', properties },
    ...more,
  });
  test.each<[string, (size: number) => unknown[]]>([
    [
      'schemas',
      (n) =>
        Array.from({ length: 256 }, (_, i) =>
          tool(i, Object.fromEntries(Array.from({ length: n / 256 / 45 }, (_x, k) => [`p${k}`, { type: 'string', minLength: k }]))),
        ),
    ],
    [
      'one schema',
      (n) => [tool(0, Object.fromEntries(Array.from({ length: n / 45 }, (_, k) => [`p${k}`, { type: 'string', minLength: k }])))],
    ],
    ['descriptions', (n) => Array.from({ length: 256 }, (_, i) => tool(i, {}, { description: 'a\u200b'.repeat(n / 1024) }))],
    [
      'descriptions of arguments',
      (n) => Array.from({ length: 256 }, (_, i) => tool(i, { a: { description: 'a\u200b'.repeat(n / 1024) } })),
    ],
  ])('as its tools: %s', async (_, itemsOf) => {
    const items = itemsOf(8.5 * MEBIBYTE);
    await expectEnd(() => readServerTools('evil', items));
  });

  test('offers no more than fits into prompts, and says what is left out', () => {
    const items = Array.from({ length: 256 }, (_, i) => tool(i, { a: { type: 'string', enum: ['x'.repeat(20_000)] } }));
    const { tools, leftOut } = readServerTools('evil', items);
    expect(JSON.stringify(tools).length).toBeLessThan(300 * 1024);
    expect([tools.length > 5, tools.length + leftOut.length]).toEqual([true, 256]);
    expect(leftOut.at(-1)).toEqual({ tool: 't255', reason: expect.stringContaining('more than 262144 characters together') });
  });
});

test.each<[string, (size: number) => string, object]>([
  ['a path through lists', (n) => JSON.stringify(Array.from({ length: n / 24 }, (_, i) => ({ a: [{ b: i }] }))), { path: '$[*].a[*].b' }],
  ['words', (n) => 'ab\n'.repeat(n / 3), { match: 'AB' }],
  ['a path that is nowhere', (n) => JSON.stringify({ a: 'x'.repeat(n) }), { path: '$.*.*.*.*' }],
])('an item of the memory channel: %s', async (_, contentOf, params) => {
  const content = contentOf(10 * MEBIBYTE);
  await expectEnd(() => transformed(content, { type: 'filtered', params }, undefined));
});

test.each<[string, (size: number) => string]>([
  ['beginnings of tokens', (n) => 'eyJ-'.repeat(n / 4)],
  ['letters', (n) => 'aB3'.repeat(n / 3)],
  ['escapes', (n) => '%41'.repeat(n / 3)],
])('what leaves: %s', async (_, textOf) => {
  const known = createKnownSecrets(['canary-token', 'another-secret']);
  const text = textOf(MEBIBYTE);
  await expectEnd(() => secretLeaving(text, known));
});
