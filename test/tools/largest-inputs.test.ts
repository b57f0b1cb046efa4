/**
 * Each entrance of the tools gets its largest input, of the shape that is worst for it, and an input of a tenth. What takes ten times the
 * processor time, and not a hundred times, holds a worker up for no longer than it is long.
 */
import { createKnownSecrets } from '../../src/platform/known-secrets.js';
import { transformed } from '../../src/memory/channel/transforms.js';
import type { JsonObject } from '../../src/records/message.js';
import { createEditFile } from '../../src/tools/builtin/files/edit-file.js';
import { readFile } from '../../src/tools/builtin/files/read-file.js';
import { searchFiles } from '../../src/tools/builtin/files/search-files.js';
import { FILE_BYTES } from '../../src/tools/builtin/files/write-file.js';
import { readablePage } from '../../src/tools/builtin/web/readable-page.js';
import { secretLeaving } from '../../src/tools/egress-scan.js';
import { createShapeMeter, MAX_DEPTH, MAX_VALUES } from '../../src/tools/mcp/message-shape.js';
import { toToolResult } from '../../src/tools/mcp/result.js';
import { readServerTools } from '../../src/tools/mcp/server-tool.js';
import { MAX_BYTES } from '../../src/tools/mcp/stdio-transport.js';
import type { Tool } from '../../src/tools/tool.js';
import { createPlace, toolContext, type Place } from './tool-context.js';

jest.setTimeout(120_000);

const MEBIBYTE = 1024 * 1024;
/** Ten for what is linear; the rest is for the collector and the compiler. */
const RATIO = 25;
/** Milliseconds of processor time: below it a ratio says nothing. */
const NOISE_MS = 100;
/** For the largest. */
const MOST_MS = 6_000;

let place: Place;
beforeEach(() => (place = createPlace()));
afterEach(() => place.remove());

const run = (tool: Tool, input: JsonObject): Promise<unknown> => tool.run(input, toolContext({ workspace: place.workspace }));

/** The best of two, since the first one compiles; of one, where that is below `enough` already. */
async function processorMs(work: () => unknown, enough = 0): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < 2 && Math.min(...times) >= enough; round++) {
    const before = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(before);
    times.push((user + system) / 1000);
  }
  return Math.min(...times);
}

async function expectLinear(prepare: (size: number) => () => unknown, largest: number): Promise<void> {
  const small = await processorMs(prepare(Math.floor(largest / 10)));
  const limit = Math.min(MOST_MS, Math.max(RATIO * Math.max(small, NOISE_MS / 10), NOISE_MS * 5));
  expect(await processorMs(prepare(largest), limit)).toBeLessThan(limit);
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
    await expectLinear((size) => {
      place.write('x.txt', textOf(size));
      return () => run(editFile, { path: 'x.txt', oldText: oldTextOf(size), newText: 'c' });
    }, FILE_BYTES - 64);
  });
});

test.each<[string, (size: number) => string]>([
  ['one line', (n) => 'a'.repeat(n)],
  ['empty lines', (n) => '\n'.repeat(n)],
  ['what nobody sees', (n) => 'a\u200b'.repeat(n / 4)],
])('read_file: %s', async (_, textOf) => {
  await expectLinear((size) => {
    place.write('x.txt', textOf(size));
    return () => run(readFile, { path: 'x.txt', offset: 2 });
  }, 16 * MEBIBYTE);
});

test.each<[string, (size: number) => string, string]>([
  ['equal letters', (n) => 'a'.repeat(n), `${'a'.repeat(250)}b${'a'.repeat(249)}`],
  ['short lines', (n) => 'ab\n'.repeat(n / 3), 'ba'],
  ['what nobody sees', (n) => `${'\u200b'.repeat(200)}x\n`.repeat(n / 603), 'x'],
])('search_files: %s', async (_, textOf, query) => {
  await expectLinear((size) => {
    place.write('x.txt', textOf(size));
    return () => run(searchFiles, { query, limit: 200, ignoreCase: true });
  }, 4 * MEBIBYTE);
});

test.each<[string, (size: number) => string]>([
  ['paragraphs', (n) => '<p>Words that stand in a paragraph, <a href="/x">and lead on</a>.</p>'.repeat(n / 70)],
  ['nested', (n) => '<div>'.repeat(n / 5)],
  ['what is no element', (n) => '<'.repeat(n)],
])('a page: %s', async (_, htmlOf) => {
  const limitMs = 3_000;
  const html = htmlOf(5 * MEBIBYTE);
  const before = process.cpuUsage();
  // In a thread of its own, so that it holds nobody up; it is ended at its limit.
  await readablePage({ html, url: 'https://a.example/' }, new AbortController().signal, limitMs);
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1000).toBeLessThan(4 * limitMs + 4_000);
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
    const shape = createShapeMeter();
    await expectLinear((size) => {
      const bytes = Buffer.from(textOf(size));
      return () => {
        shape.next();
        if (shape.pass(bytes)) JSON.parse(bytes.toString());
      };
    }, MAX_BYTES);
    shape.next();
    expect(shape.pass(Buffer.from(textOf(MAX_BYTES)))).toBe(passes);
  });

  test('is parsed at the last depth and number of values, whatever its pieces, and not beyond', () => {
    const pass = (text: string, piece = 7): boolean => {
      const [shape, bytes] = [createShapeMeter(), Buffer.from(text)];
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
    await expectLinear((size) => {
      const answer = answerOf(size);
      return () => toToolResult(answer, veil);
    }, 15 * MEBIBYTE);
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
    await expectLinear((size) => {
      const items = itemsOf(size);
      return () => readServerTools('evil', items);
    }, 8.5 * MEBIBYTE);
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
  await expectLinear((size) => {
    const content = contentOf(size);
    return () => transformed(content, { type: 'filtered', params }, undefined);
  }, 10 * MEBIBYTE);
});

test.each<[string, (size: number) => string]>([
  ['beginnings of tokens', (n) => 'eyJ-'.repeat(n / 4)],
  ['letters', (n) => 'aB3'.repeat(n / 3)],
  ['escapes', (n) => '%41'.repeat(n / 3)],
])('what leaves: %s', async (_, textOf) => {
  const known = createKnownSecrets(['canary-token', 'another-secret']);
  await expectLinear((size) => {
    const text = textOf(size);
    return () => secretLeaving(text, known);
  }, MEBIBYTE);
});
