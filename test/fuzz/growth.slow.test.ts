/**
 * What a text from outside costs. Each function that reads one gets texts made to be slow, at three sizes: four times the text may cost
 * little more than four times the processor. A square would cost sixteen times.
 */
import { mergeMemory, withoutDuplicateLines } from '../../src/memory/consolidation/merge.js';
import { parseResponse } from '../../src/memory/consolidation/parse-response.js';
import { withProvenance } from '../../src/memory/consolidation/provenance.js';
import { changesWhatMayBeDone } from '../../src/memory/consolidation/permission-changes.js';
import { typedWords } from '../../src/memory/consolidation/typed-words.js';
import { checkResult } from '../../src/memory/consolidation/consolidate.js';
import { parseSummary } from '../../src/memory/compaction/summary-answer.js';
import { redactor, toTombstone, withoutForgotten } from '../../src/memory/documents/forgetting.js';
import { diffMemory } from '../../src/memory/documents/memory-diff.js';
import { queryTerms } from '../../src/memory/documents/search-history.js';
import { evidenceWords, significantWords } from '../../src/memory/documents/significant-words.js';
import { parseTextToolCalls } from '../../src/models/text-tools/model.js';
import { createKnownSecrets } from '../../src/platform/known-secrets.js';
import { objectsInAnswer, squeezed } from '../../src/records/balanced-json.js';
import { withoutTextFiles } from '../../src/records/file-type.js';
import { messageParts } from '../../src/records/message-parts.js';
import { parseHistory, withoutHeaders } from '../../src/records/memory/history-text.js';
import { foldedLine } from '../../src/records/memory/documents.js';
import { firstWords, hasRandomToken, withoutSecretForms } from '../../src/records/secret-forms.js';
import { cleanText, oneLine, truncate, withoutHeadings } from '../../src/records/text.js';
import { createAnalyzer } from '../../src/search/analysis.js';
import { splitPassages } from '../../src/search/search-index.js';
import { splitWords } from '../../src/search/words.js';
import { canonicalForms } from '../../src/tools/call-identity.js';
import { matches } from '../../src/tools/approval-rules.js';
import { secretLeaving } from '../../src/tools/egress-scan.js';
import { plainOutput, showHidden, withoutHidden } from '../../src/tools/hidden-text.js';
import { toTerminalLine, toTerminalText, wrapWords } from '../../src/cli/terminal/terminal-text.js';
import type { Entry } from '../../src/records/message.js';
import { answer, result, user } from '../memory/builders.js';

/** Characters of the smallest text. */
const SIZE = 8_000;
/** Of processor time: what costs less at four times the size is no danger, and too little to compare. */
const HARMLESS_MS = 100;
/** Four times the text; linear in a machine with caches is 4 to 5, a square 16. */
const MAX_GROWTH = 7;

const repeat = (unit: string, size: number): string => unit.repeat(Math.ceil(size / unit.length)).slice(0, size);
const numbered = (line: (at: number) => string, size: number): string => {
  const lines: string[] = [];
  for (let length = 0, at = 0; length < size; at += 1) length += lines[lines.push(line(at)) - 1]!.length + 1;
  return lines.join('\n').slice(0, size);
};

const TEXTS: Readonly<Record<string, (size: number) => string>> = {
  ...Object.fromEntries(
    [
      'a',
      ' ',
      '\n',
      '{',
      '[',
      '"',
      '\\',
      '<',
      '>',
      '`',
      '*',
      '_',
      '(',
      '.',
      '@',
      '/',
      ':',
      '-',
      '#',
      '|',
      '~',
      '0',
      'é',
      '漢',
      '\u200b',
      '\u202e',
      '\u0301',
    ].map((unit) => [`only ${JSON.stringify(unit)}`, (size: number) => repeat(unit, size)]),
  ),
  ...Object.fromEntries(
    [
      ...[
        'ab ',
        '- a\n',
        'a.b.',
        'a@b.',
        '{"a":',
        '[{',
        '"a":"',
        '\\"',
        '```\n',
        '<a ',
        '<tool_call>',
        '</',
        '<!--',
        'http://',
        '..\\',
        '%25',
        '&amp;',
      ],
      ...[
        '\u001b[',
        '\u001b]8;;',
        '1.',
        '1,',
        '2026-',
        'in May ',
        ' \n',
        '\r\n',
        'aA1',
        '=',
        'sk-',
        'key=',
        '@@',
        '__',
        '**a',
        '](',
        '| a ',
        '"memory_update":"',
      ],
    ].map((unit) => [`${JSON.stringify(unit)} again and again`, (size: number) => repeat(unit, size)]),
  ),
  'short lines': (size) => numbered((at) => at.toString(36), size),
  'lines with one word in common': (size) => numbered((at) => `- harbour ${at.toString(36)}x`, size),
  'lines of many words': (size) => numbered((at) => `- ${Array.from({ length: 12 }, (_, n) => `w${(at * 7 + n) % 400}`).join(' ')}`, size),
  headings: (size) => numbered((at) => `## [2026-01-${String((at % 28) + 1).padStart(2, '0')} 10:00] h${at}`, size),
};

const SECRETS = createKnownSecrets(['a-secret-that-only-tests-have', 'aaaaaaaaaaaaaaaa']);
const TOMBSTONES = [toTombstone('the harbour of Oslo', { id: 't1', ts: 1, salt: 'scope' })];
const analyzer = createAnalyzer();
const half = (text: string): string => text.slice(text.length / 2);
/** As many lines as an update of memory may have. */
const kept = (text: string): string => text.split('\n').slice(0, 2_000).join('\n');

const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  parseResponse: (text) => [parseResponse(text), parseResponse(`{"memory_update": "${text}`), parseResponse(text, half(text))],
  parseSummary: (text) => parseSummary(text, half(text)),
  objectsInAnswer: (text) => objectsInAnswer(text, half(text), 16),
  squeezed,
  checkResult: (text) =>
    checkResult(
      { memoryUpdate: text, historyEntry: text },
      { entries: [{ role: 'user', content: half(text) }], currentMemory: half(text) },
    ),
  'withProvenance, of memory': (text) => provenance(kept(text), half(text), ''),
  'withProvenance, of a person': (text) => provenance(kept(text), '', '', half(text)),
  'withProvenance, of a tool': (text) => provenance(kept(text), '', half(text)),
  mergeMemory: (text) => mergeMemory({ base: half(text), theirs: `x\n${text.slice(0, text.length / 2)}`, ours: kept(text) }),
  diffMemory: (text) => diffMemory(half(text), `${text}\nb`),
  withoutDuplicateLines,
  withoutForgotten: (text) => withoutForgotten(text, TOMBSTONES, 'scope'),
  redactor: (text) => redactor(TOMBSTONES, 'scope')(text),
  queryTerms,
  significantWords,
  evidenceWords,
  foldedLine,
  parseHistory,
  withoutHeaders,
  'parseTextToolCalls, XML': (text) => parseTextToolCalls(text, { format: 'xml', tools: ['a'] }),
  'parseTextToolCalls, JSON': (text) => parseTextToolCalls(text, { format: 'json', tools: ['a'] }),
  'known secrets': (text) => [SECRETS.isIn(text), SECRETS.text(text)],
  withoutSecretForms: (text) => withoutSecretForms(text, '…'),
  hasRandomToken,
  firstWords: (text) => firstWords(text, { longest: 60 }),
  secretLeaving: (text) => secretLeaving(text, SECRETS),
  cleanText,
  oneLine,
  withoutHeadings,
  truncate: (text) => truncate(text, text.length / 2),
  withoutTextFiles,
  messageParts,
  changesWhatMayBeDone,
  typedWords: (text) => typedWords([{ text, turn: 'turn_0001', day: new Set() }]).saidExactly(text),
  splitWords: (text) => splitPassages(text).map(({ start, end }) => splitWords(text.slice(start, end))),
  splitPassages,
  'analysis of a passage': (text) =>
    splitPassages(text).map(({ start, end }) => analyzer.text(text.slice(start, end), { at: 1_800_000_000 })),
  'canonicalForms of a path': (text) => canonicalForms('path', text),
  'canonicalForms of an address': (text) => canonicalForms('url', `https://${text}`),
  matches: (text) => matches(`${'a*'.repeat(20)}b`, text),
  withoutHidden,
  showHidden,
  plainOutput,
  toTerminalText,
  toTerminalLine: (text) => toTerminalLine(text, 80),
  // What reaches it is safe, save for colours of ours.
  wrapWords: (text) => [wrapWords(toTerminalText(text), 80), wrapWords(text.replaceAll('a', '\x1b[31ma\x1b[39m'), 80)],
};

const toEntry = (message: Entry['message'], at = 0): Entry => ({
  v: 1,
  slot: at,
  session: 1,
  turn: 'turn_0001',
  seq: at,
  ts: 1_800_000_000,
  message,
});

function provenance(memoryUpdate: string, currentMemory: string, tool: string, typed = 'Where is the harbour?'): unknown {
  const entries = [user(typed), result('turn_0001/c1', tool, { name: 'fetch_url' }), answer(half(memoryUpdate))].map(toEntry);
  return withProvenance({ memoryUpdate, currentMemory, entries, conversation: 'c', trustedTools: new Set() });
}

/** Milliseconds of processor; the least of three where once was longer than `enough`. */
function costOf(read: (text: string) => unknown, text: string, enough = HARMLESS_MS / 8): number {
  let least = Infinity;
  for (let tries = 0; tries < 3; tries += 1) {
    const before = process.cpuUsage();
    read(text);
    const { user: ours, system } = process.cpuUsage(before);
    least = Math.min(least, (ours + system) / 1000);
    // clock: once is enough for what is short
    if (least < enough) break;
  }
  return least;
}

test.each(Object.keys(READERS))('%s', (name) => {
  const read = READERS[name]!;
  const slow: string[] = [];
  for (const [what, make] of Object.entries(TEXTS)) {
    const large = costOf(read, make(4 * SIZE), HARMLESS_MS);
    // clock: of the processor alone, which another program's load does not move
    if (large < HARMLESS_MS) continue;
    let [most, least] = [large, costOf(read, make(SIZE))];
    // clock: collections of garbage and the caches of a busy machine count too, but not each time: the least of each is what it costs
    for (let again = 0; again < 8 && most / least > MAX_GROWTH; again += 1)
      [most, least] = [Math.min(most, costOf(read, make(4 * SIZE))), Math.min(least, costOf(read, make(SIZE)))];
    const growth = most / least;
    // clock: a square grows sixteenfold here, what is linear fourfold
    if (growth > MAX_GROWTH)
      slow.push(`${what}: ${large.toFixed(0)} ms for ${4 * SIZE} characters, ${growth.toFixed(1)} times what a quarter costs`);
  }
  expect(slow).toEqual([]);
});
