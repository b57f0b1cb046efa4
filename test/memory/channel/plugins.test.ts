import { BUILTIN_PLUGINS, headAndTail, rowsPlugin } from '../../../src/memory/channel/builtin-plugins.js';
import {
  CITATION_BYTES,
  createCompactors,
  type CompactedResult,
  type CompactionPlugins,
} from '../../../src/memory/channel/compaction-plugin.js';
import type { JsonValue } from '../../../src/records/message.js';

const failures: string[] = [];
const compactors = (own: CompactionPlugins = {}) =>
  createCompactors({ byTool: { ...BUILTIN_PLUGINS, ...own }, byShape: [rowsPlugin], otherwise: headAndTail }, (tool, reason) =>
    failures.push(`${tool}: ${reason}`),
  );
const compact = (name: string, message: string, input: JsonValue = {}, own?: CompactionPlugins): CompactedResult =>
  compactors(own).compact({ message, outcome: 'ok' }, { name, input }, { memoryId: 'mem_1' });
const reference = { memoryId: 'mem_1', retrieveWith: 'Retrieve from Memory with id="mem_1"' };
const BODY = 'Lorem ipsum. '.repeat(4_000);

beforeEach(() => void failures.splice(0));
afterEach(() => expect(failures).toEqual([]));

test('a page that is JSON is cited as the seed has it', () => {
  const page = JSON.stringify({ url: 'https://example.org/', metadata: { title: 'Plums' }, content: BODY });
  expect(compact('fetch_url', page)).toEqual({
    actionName: 'Web Page Content',
    url: 'https://example.org/',
    title: 'Plums',
    excerpt: `${BODY.slice(0, 500)}...`,
    contentLength: BODY.length,
    ...reference,
  });
});

test('a page that is text has its address from the call and its title from its heading', () => {
  expect(compact('fetch_url', `# Plums of the harbour\n\n${BODY}`, { url: 'https://example.org/plums' })).toMatchObject({
    actionName: 'Web Page Content',
    url: 'https://example.org/plums',
    title: 'Plums of the harbour',
    contentLength: BODY.length + 24,
  });
});

test.each(['#', '##', '###', '####', '##   '])('the first heading gives the title, of whatever level: %s', (marks) => {
  const page = `Skip to content\n\n${marks} Plums of the harbour\n\n## A part\n\n${BODY}`;
  expect(compact('fetch_url', page, { url: 'https://example.org/plums' })).toMatchObject({ title: 'Plums of the harbour' });
});

test('a command is cited by its end too, which shows how it went', () => {
  const cited = compact('run_command', `first line\n${BODY}\nexit code 3`, { command: 'make all' });
  expect(cited).toMatchObject({ actionName: 'run_command', command: 'make all', outcome: 'ok', lines: 3, ...reference });
  expect(cited['head']).toMatch(/^first line/);
  expect(cited['tail']).toMatch(/exit code 3$/);
});

test('files, searches, rows, and anything else', () => {
  expect(compact('read_file', `one\ntwo\n${BODY}`, { path: 'a.txt' })).toMatchObject({ path: 'a.txt', lines: 3, ...reference });
  expect(compact('search_files', 'a:1 plum\nb:2 plum\nc\nd\ne', { text: 'plum' })).toMatchObject({
    query: 'plum',
    first: ['a:1 plum', 'b:2 plum', 'c', 'd'],
    lines: 5,
  });
  const rows = Array.from({ length: 300 }, (_, id) => ({ id, name: `plum ${id}` }));
  const cited = { actionName: 'ask_database', rows: 300, columns: ['id', 'name'], firstRow: '{"id":0,"name":"plum 0"}', ...reference };
  expect(compact('ask_database', JSON.stringify(rows))).toEqual(cited);
  expect(compact('ask_database', JSON.stringify({ rows }))).toEqual(cited);
  expect(compact('my_tool', BODY)).toEqual({
    actionName: 'my_tool',
    head: BODY.slice(0, 300),
    tail: BODY.slice(-150),
    contentLength: BODY.length,
    ...reference,
  });
});

test('one’s own plugin wins over the built-in one', () => {
  const own = { fetch_url: { compact: () => ({ mine: true }) } };
  expect(compact('fetch_url', BODY, {}, own)).toEqual({ mine: true });
});

test.each<[string, () => unknown, RegExp]>([
  [
    'throws',
    () => {
      throw new Error('no idea');
    },
    /^look: no idea$/,
  ],
  ['says too much', () => ({ all: BODY }), /bytes, more than 1024$/],
  ['answers with no object', () => 'text', /no object$/],
  ['answers with nothing', () => undefined, /no object$/],
  ['answers with what is no JSON', () => ({ big: 1n }), /BigInt/],
])('a plugin that %s is replaced by the beginning and the end', (_, made, reason) => {
  const own = { look: { compact: made as () => CompactedResult } };
  expect(compact('look', BODY, {}, own)).toMatchObject({ head: BODY.slice(0, 300), ...reference });
  expect(failures.splice(0)).toEqual([expect.stringMatching(reason)]);
});

test('whatever a result is, its citation is bounded and well-formed', () => {
  const hostile = [
    '\ud800'.repeat(9_000),
    '🎈'.repeat(9_000),
    '\u0000\u001b[2J'.repeat(3_000),
    '['.repeat(9_000),
    `[${'{},'.repeat(3_000)}{}]`,
    '"'.repeat(9_000),
  ];
  for (const name of ['fetch_url', 'run_command', 'read_file', 'search_files', 'other']) {
    for (const text of hostile) {
      const json = JSON.stringify(compact(name, text, { url: text, command: text, path: text, text }), null, 2);
      // The last resort may be longer than its bound by what JSON makes of it; run-tool bounds it again.
      expect(Buffer.byteLength(json)).toBeLessThan(4 * CITATION_BYTES);
      expect(json.isWellFormed()).toBe(true);
    }
  }
  failures.splice(0);
});

test.each<[string, () => unknown, string]>([
  ['a promise', () => Promise.resolve({ a: 1 }), 'it answered with a promise'],
  ['a promise that rejects', () => Promise.reject(new Error('later')), 'it answered with a promise'],
  ['nothing', () => undefined, 'no object'],
  ['an empty object', () => ({}), 'an empty object'],
  ['a map', () => new Map([['a', 1]]), 'an empty object'],
  ['what becomes a text', () => ({ toJSON: () => 'text' }), 'no object'],
  [
    'what has no end',
    () => {
      const a: Record<string, unknown> = {};
      return (a['a'] = a);
    },
    'circular',
  ],
])('a plugin that answers with %s is told of, and the result has its ends', async (_what, answer, reason) => {
  const cited = compact('fetch_url', BODY, {}, { fetch_url: { compact: answer as never } });
  // A rejection that nobody handles would come by now.
  await new Promise(setImmediate);
  expect(cited).toMatchObject(reference);
  expect(failures.splice(0)).toEqual([expect.stringContaining(reason)]);
});
