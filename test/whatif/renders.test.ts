/** A report as people and build servers read it: the first screen says what differs, and nothing that it shows does anything. */
import { createHash } from 'node:crypto';
import { escapeHtml, renderHtml } from '../../src/whatif/render-html.js';
import { renderJunit, type Failure } from '../../src/whatif/render-junit.js';
import { measureCells, renderTable } from '../../src/whatif/render-table.js';
import { commonEnds, withVisibleMarks } from '../../src/whatif/differences.js';
import { mayBeEqual } from '../../src/whatif/summary.js';
import type { ReportedConversation, ReportLine } from '../../src/whatif/report.js';
import { HOSTILE, sampleLines, sampleReport, type SampleOptions } from './sample-report.js';

async function whole(parts: AsyncIterable<string>, between = ''): Promise<string> {
  const all: string[] = [];
  for await (const part of parts) all.push(part);
  return all.join(between);
}

const table = (options: SampleOptions, width = 80): Promise<string> => whole(renderTable(sampleReport(options), { width }), '\n');
const page = (options: SampleOptions): Promise<string> => whole(renderHtml(sampleReport(options)));
const junit = (options: SampleOptions, failOn?: readonly Failure[]): Promise<string> =>
  whole(renderJunit(sampleReport(options), failOn === undefined ? {} : { failOn }));
const firstScreen = (text: string): string => text.split('\n').slice(0, 24).join('\n');

const CJK = '領収書を登録してください。'.repeat(20);
const SAMPLES: readonly [name: string, options: SampleOptions][] = [
  ['the same', {}],
  ['worse', { candidate: 'worse', baseline: 'noisy', judge: 'anthropic/claude-opus-5', skippedEach: 7, gapsEach: 5 }],
  ['noisy', { candidate: 'noisy', baseline: 'noisy' }],
  ['stopped', { candidate: 'stopped' }],
  ['other words, no baseline', { candidate: 'words', lanes: ['candidate'] }],
  ['the baseline alone', { baseline: 'noisy', lanes: ['baseline'] }],
  ['nothing played', { skippedEach: 1 }],
  ['no conversation', { conversations: 0 }],
  ['hostile', { text: HOSTILE, candidate: 'worse', conversations: 3, judge: HOSTILE.slice(0, 300), changes: [HOSTILE] }],
  ['wide letters', { text: CJK, candidate: 'worse', conversations: 3 }],
  ['a megabyte in one text', { text: `${HOSTILE}${'x'.repeat(1e6)}`, candidate: 'worse', conversations: 1, turns: 1 }],
];

describe('a table', () => {
  test('a candidate that does not call its tool: the first screen says so, and its first difference stands side by side', async () => {
    const text = await table({ candidate: 'worse', skippedEach: 10, judge: 'anthropic/claude-opus-5' });
    const screen = firstScreen(text);
    expect(screen).toContain('What if: prompt: agents/default/SOUL.md, one sentence\n18 conversations played, 2 skipped');
    expect(screen).toMatch(/✗ 18 of 18 conversations act otherwise than recorded, .*\(baseline: 0 of 18\)/s);
    expect(screen).toContain('✗ book_expense was called 0 times instead of 54 (baseline: 54)');
    expect(screen).toMatch(/finds the candidate worse in 18 of 18,\s+better in 0, the same in 0; it agreed with itself in 89 %/);
    expect(screen).toMatch(/cost +−5\d % +−\$0\.010\d \(−0\.01\d\d … −0\.01\d\d\) +beyond \(±0 %\)/);
    expect(text).toMatch(/recorded +│ played\n {2}book_expense .*│ \(no tool is called\)/);
  });

  test('a model that is noisy by itself is not taken for a change: every row says that the intervals overlap', async () => {
    const screen = firstScreen(await table({ candidate: 'noisy', baseline: 'noisy', conversations: 60 }));
    expect(screen).not.toContain('✗');
    expect(screen).toMatch(/~ \d+ of 60 conversations act otherwise .*so this may be noise\)/s);
    const rows = screen.split('\n').filter((line) => /\(.* … .*\)/.test(line));
    expect(rows.length).toBeGreaterThan(3);
    expect(rows.filter((line) => !/overlaps \(.*\): noise$/.test(line))).toEqual([]);
  });

  test('without a baseline it says that noise is not known; with one conversation, that there is no interval', async () => {
    expect(await table({ candidate: 'words', lanes: ['candidate'] })).toContain(
      'No baseline was played, so how much of this is a model’s noise is not known',
    );
    expect(await table({ candidate: 'worse', conversations: 1 })).toMatch(
      /not known, since fewer than two can be compared: cost, input tokens/,
    );
  });

  test('the same again is one line, and no measure has changed', async () => {
    const text = await table({});
    expect(text).toContain('✓ Nothing differs: all requests and answers of 20 conversations are as recorded');
    expect(text).toContain('the same: cost, input tokens, output tokens, model calls, tool calls, time in');
    expect(text).not.toMatch(/▸|✗/);
  });

  test('those that were stopped are counted with their reason, and are in no mean', async () => {
    const text = await table({ candidate: 'stopped' });
    expect(text).toContain('✗ 20 conversations were stopped before the end: lookup_rate {"currency":"EUR"}\n  is in no recording');
    expect(text).toContain('Without 20 conversations that stopped');
    expect(text).toContain('stopped in turn 1: lookup_rate');
  });

  test('what was skipped or has gaps is named', async () => {
    const text = await table({ skippedEach: 5, gapsEach: 4 });
    expect(text).toContain('its history was deleted after its retention');
    expect(text).toContain('gap: turn 2: its texts were forgotten');
  });

  test('few of many conversations are drawn, those that act otherwise first, and the others are counted', async () => {
    const lines = [
      ...sampleLines({ candidate: 'words', conversations: 30 }),
      ...sampleLines({ candidate: 'worse', conversations: 30 }),
    ].filter((line, at) => line.kind === 'conversation' || at === 0);
    const text = await whole(renderTable(each(lines)), '\n');
    expect(text.match(/▸/g)).toHaveLength(10);
    expect(text.match(/▸.*: acts otherwise/g)).toHaveLength(10);
    expect(text).toContain('50 more conversations with differences');
    expect(text).toContain('✗ The report has no totals: what wrote it was stopped before its end');
  });

  test.each(SAMPLES)('of %s: no line is wider than the screen, and none moves the cursor or reorders text', async (_name, options) => {
    for (const width of [80, 40, 120]) {
      const lines = (await table(options, width)).split('\n');
      expect(lines.filter((line) => measureCells(line) > width)).toEqual([]);
      expect(lines.filter((line) => /[\p{Cc}\p{Bidi_Control}\u200b\u2028\p{Surrogate}]/u.test(line))).toEqual([]);
    }
  });
});

async function* each<T>(items: Iterable<T>): AsyncGenerator<T, void> {
  for (const item of items) yield await Promise.resolve(item);
}

describe('a page', () => {
  const TAGS = [
    'body',
    'code',
    'details',
    'div',
    'fieldset',
    'h1',
    'h2',
    'h3',
    'h4',
    'head',
    'header',
    'html',
    'input',
    'label',
    'legend',
    'li',
    'main',
    'mark',
    'meta',
    'p',
  ];
  const MORE_TAGS = [
    'pre',
    'section',
    'slot',
    'span',
    'style',
    'summary',
    'table',
    'tbody',
    'td',
    'template',
    'th',
    'thead',
    'title',
    'tr',
    'ul',
  ];

  test.each(SAMPLES)('of %s has only its elements, and no attribute that runs or loads anything', async (_name, options) => {
    const text = (await page(options)).replace(/<style>[^]*?<\/style>/, '<style></style>');
    const elements = [...text.matchAll(/<(?!\/|!doctype)([^>]*)>/g)].map(([, inner = '']) => inner);
    const names = new Set(elements.map((inner) => /^\w+/.exec(inner)?.[0] ?? inner));
    expect([...names].filter((name) => ![...TAGS, ...MORE_TAGS].includes(name))).toEqual([]);
    const attributes = new Set(
      elements.flatMap((inner) => [...inner.replace(/"[^"]*"/g, '""').matchAll(/([\w-]+)=/g)].map(([, name]) => name)),
    );
    const known = [
      'aria-hidden',
      'aria-label',
      'charset',
      'class',
      'content',
      'dir',
      'http-equiv',
      'id',
      'lang',
      'name',
      'role',
      'scope',
      'shadowrootmode',
      'slot',
      'tabindex',
      'type',
      'value',
    ];
    expect([...attributes].filter((name) => !known.includes(name ?? ''))).toEqual([]);
    expect(elements.filter((inner) => (inner.match(/"/g)?.length ?? 0) % 2 === 1)).toEqual([]);
    expect(text).not.toMatch(/[\p{Bidi_Control}\u200b\u0000-\u0008\u001b\p{Surrogate}]/u);
  });

  test('its policy allows the one style that it has, by its hash, and nothing else', async () => {
    const text = await page({});
    const [, policy = ''] = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(text) ?? [];
    const [, style = ''] = /<style>([^]*?)<\/style>/.exec(text) ?? [];
    expect(policy).toBe(
      `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; base-uri 'none'; form-action 'none'`,
    );
    expect(text).not.toMatch(/https?:|<script|<link|url\(|@import|\sstyle=/);
  });

  test('an escaped text ends no element, no attribute and no comment', () => {
    expect(escapeHtml(`<a href="x" b='y' c=\`z\`>&amp;--></a>`)).not.toMatch(/[<>"'`]|&(?!#\d+;)/);
    expect(escapeHtml('\u202e\u0000\ud800')).toBe('\\u{202e}\\u{0}\\u{d800}');
  });

  test('what differs stands first: in the slot before the conversations, with each finding', async () => {
    const text = await page({ candidate: 'worse' });
    expect(text).toContain('<template shadowrootmode="open"><slot name="summary"></slot><slot></slot></template>');
    expect(text).toMatch(/<header slot="summary"[^]*book_expense was called 0 times instead of 60 \(baseline: 60\)[^]*<\/header>/);
    expect(text.match(/<details class="conversation[^>]* open>/g)).toHaveLength(3);
    // Its blanks are shown as they are, so none stand around it.
    expect(text).toContain('<p class="text" dir="auto"><mark>Sure! I will remember</mark> lunch with a customer for 31.50.</p>');
  });

  test('of 5,000 turns those are shown that act otherwise, the others are counted, and the page stays small', async () => {
    const text = await page({ conversations: 1, turns: 5_000, candidate: 'worse' });
    expect(text.match(/<section class="turn/g)).toHaveLength(60);
    expect(text).toContain('4,940 turns not shown here, of which 4940 act otherwise');
    expect(text.length).toBeLessThan(200_000);
  });

  test('a page that is full goes on with what each conversation is, without its turns', async () => {
    const text = await whole(renderHtml(sampleReport({ candidate: 'worse' }), { characters: 20_000 }));
    expect(text.match(/<details class="conversation/g)).toHaveLength(20);
    expect(text.match(/3 turns not shown here/g)?.length).toBeGreaterThan(10);
  });

  test('each conversation is written before the next is read', async () => {
    let given = 0;
    const counted = async function* (): AsyncGenerator<ReportLine, void> {
      for await (const line of sampleReport({ conversations: 30 })) {
        given += 1;
        yield line;
      }
    };
    const parts: number[] = [];
    for await (const part of renderHtml(counted())) if (part.includes('<details class="conversation')) parts.push(given);
    expect(parts).toEqual(Array.from({ length: 30 }, (_, at) => at + 2));
  });
});

describe('JUnit', () => {
  test.each<[how: NonNullable<SampleOptions['candidate']>, failOn: readonly Failure[] | undefined, failures: number]>([
    ['same', undefined, 0],
    ['words', undefined, 0],
    ['words', ['differs'], 20],
    ['worse', undefined, 20],
    ['worse', ['differs'], 20],
    ['worse', ['stopped'], 0],
    ['worse', ['worse'], 16],
    ['stopped', undefined, 20],
    ['stopped', ['acts'], 0],
  ])('of %s, where %j fails a case: %i fail', async (candidate, failOn, failures) => {
    const text = await junit({ candidate, judge: 'a/b' }, failOn);
    expect(text).toContain(`<testsuite name="conversations" tests="20" failures="${failures}" errors="0" skipped="0">`);
    expect(text.match(/<failure /g)?.length ?? 0).toBe(failures);
  });

  test('a failure has the first difference and what the baseline did; what was skipped says why', async () => {
    const text = await junit({ candidate: 'worse', skippedEach: 20 });
    expect(text).toMatch(
      /<testcase name="expenses-001" classname="default"><failure message="acts otherwise">[^]*?\(no tool is called\)[^]*?baseline[^]*?the same<\/failure>/,
    );
    expect(text).toContain('<skipped message="its history was deleted after its retention"/>');
    expect(text).toContain('tests="20" failures="19" errors="0" skipped="1"');
  });

  test.each([
    ['has no totals', [...sampleLines({ conversations: 2 })], 'it was not written to its end'],
    [
      'has no conversation',
      [...sampleLines({ conversations: 0 }), { kind: 'totals', conversations: 0, skipped: 0, lanes: {} }],
      'No conversation was played',
    ],
    [
      'has only skipped ones',
      [...sampleLines({ skippedEach: 1, conversations: 2 }), { kind: 'totals', conversations: 2, skipped: 2, lanes: {} }],
      'No conversation was played',
    ],
  ] as const)('a report that %s does not pass', async (_name, lines, message) => {
    const text = await whole(renderJunit(each(lines as readonly ReportLine[])));
    expect(text).toMatch(new RegExp(`<testcase name="the whole report"[^>]*><failure message="[^"]*${message}`));
  });

  test('of many conversations a suite has 500, and counts are right in each', async () => {
    const text = await junit({ conversations: 1_100, turns: 1, candidate: 'same' });
    expect([...text.matchAll(/<testsuite name="([^"]*)" tests="(\d+)"/g)].map(([, name, tests]) => [name, tests])).toEqual([
      ['conversations', '500'],
      ['conversations from 501', '500'],
      ['conversations from 1001', '100'],
    ]);
  });

  test.each(SAMPLES)('of %s is well-formed', async (_name, options) => {
    const text = await junit(options, ['acts', 'differs', 'stopped', 'worse']);
    expect(text).not.toMatch(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u);
    expect(text.replace(/&#\d+;/g, '')).not.toContain('&');
    const open: string[] = [];
    for (const [, inner = ''] of text.slice(text.indexOf('?>')).matchAll(/<([^<>]*)>/g)) {
      expect(inner).toMatch(/^\/?[\w-]+( \w+="[^"<]*")*\/?$/);
      const name = /[\w-]+/.exec(inner)?.[0] ?? '';
      if (inner.startsWith('/')) expect(open.pop()).toBe(name);
      else if (!inner.endsWith('/')) open.push(name);
    }
    expect(open).toEqual([]);
    expect(text.replace(/<[^<>]*>/g, '')).not.toMatch(/[<>]/);
  });
});

test('marks of no width, direction and control are shown by their codes; joiners of letters and emoji stay', () => {
  expect(withVisibleMarks('a\u202eb\u200b\u0007\ud83d c\r\nd\te')).toBe('a\\u{202e}b\\u{200b}\\u{7}\\u{d83d} c\nd\te');
  expect(withVisibleMarks('👩‍🚀 می‌خواهم ❤️')).toBe('👩‍🚀 می‌خواهم ❤️');
  expect(withVisibleMarks('a \u200d\u200d b')).toBe('a \\u{200d}\\u{200d} b');
});

test.each([
  ['abc', 'abd', 2, 0],
  ['abc', 'xbc', 0, 2],
  ['aa', 'aaa', 2, 0],
  ['', 'x', 0, 0],
  ['🦔', '🦊', 0, 0],
  ['x🦔', 'x🧔', 1, 0],
])('of %j and %j so much is common', (a, b, head, tail) => {
  expect(commonEnds(a, b)).toEqual({ head, tail });
});

test.each([
  [20, 20, 0, 20, false],
  [3, 3, 0, 3, false],
  [2, 2, 0, 2, false],
  [1, 1, 0, 1, true],
  [5, 20, 4, 20, true],
  [14, 20, 1, 20, false],
  [0, 20, 0, 20, true],
  [1, 20, 0, 20, true],
])('%i of %i beside %i of %i: may be equal is %s', (count, all, other, others, isEqual) => {
  expect(mayBeEqual({ count, all }, { count: other, all: others })).toBe(isEqual);
  expect(mayBeEqual({ count: other, all: others }, { count, all })).toBe(isEqual);
});

test('a lane that one conversation lacks, and sides that one turn lacks, are drawn', async () => {
  const [, line] = [...sampleLines({ conversations: 1 })] as [ReportLine, ReportedConversation];
  const { candidate } = line.lanes;
  const turns = candidate!.turns.map(({ played: _, ...turn }) => turn);
  const missing = {
    ...line,
    lanes: {
      candidate: { ...candidate!, turns, divergence: { turn: 'turn_0001', call: 1, what: 'missing' as const, recorded: 'a', played: '' } },
    },
  };
  const text = await whole(renderHtml(each([missing])));
  expect(text).toContain('There is no such turn.');
  expect(text).toContain('one side has no such call');
});
