import fc from 'fast-check';
import type { HistoryEntry } from '../../../src/records/memory/documents.js';
import {
  headerTime,
  historyBlock,
  historyText,
  isoTime,
  formatMonth,
  parseHistory,
  supersede,
  toKeptEntry,
} from '../../../src/records/memory/history-text.js';

const NOON = Date.UTC(2026, 1, 27, 14, 30) / 1000;
const entry = (text: string, ts = NOON): HistoryEntry => ({ id: 'c1', kind: 'summary', ts, text });

test('an entry is the header of the seed, its text, and an empty line before the next', () => {
  expect(historyBlock(entry('A talk.'))).toBe('## 2026-02-27T14:30:00.000Z\nA talk.\n');
  expect(historyText([entry('one'), entry('two', NOON + 0.5)])).toBe(
    '## 2026-02-27T14:30:00.000Z\none\n\n## 2026-02-27T14:30:00.500Z\ntwo\n',
  );
  expect(historyText([])).toBe('');
});

test('a summary says which raw fallback it supersedes', () => {
  expect(supersede(entry('A talk.'), NOON).text).toBe('[supersedes the raw fallback of 2026-02-27T14:30:00.000Z]\nA talk.');
});

test('months are UTC, to the last millisecond', () => {
  const last = Date.UTC(2026, 0, 31, 23, 59, 59, 999) / 1000;
  expect([last, last + 0.001].map(formatMonth)).toEqual(['2026-01', '2026-02']);
  expect(isoTime(last + 0.001)).toBe('2026-02-01T00:00:00.000Z');
});

test.each([
  ['## 2026-02-27T14:30:00.000Z', NOON],
  ['## 2026-02-27T14:30:00Z  ', NOON],
  ['## 2026-02-27 14:30', NOON],
  ['## 2026-02-27T15:30+01:00', NOON],
  ['## 2026-02-27', Date.UTC(2026, 1, 27) / 1000],
  ['## 2026-13-27', undefined],
  ['## 2026-02-27 and more', undefined],
  ['##2026-02-27', undefined],
  [' ## 2026-02-27', undefined],
  ['### 2026-02-27', undefined],
  ['\\## 2026-02-27', undefined],
])('%j is a header of %s', (line, ts) => {
  expect(headerTime(line)).toBe(ts);
});

test('any entries come back as they were kept, and keeping twice changes nothing', () => {
  const texts = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('## 2026-02-27\n', '  ## 2026-02-27', '\\## 2026-02-27', '# a\n\nb'),
  );
  const times = fc.integer({ min: 0, max: 4e12 }).map((ms) => ms / 1000);
  fc.assert(
    fc.property(fc.array(fc.record({ ts: times, text: texts })), (written) => {
      const kept = written.map(({ ts, text }) => toKeptEntry(entry(text, ts)));
      expect(parseHistory(historyText(kept))).toEqual(kept.map(({ ts, text }) => ({ ts, text })));
      expect(kept.map(toKeptEntry)).toEqual(kept);
      expect(historyText(written)).toBe(historyText(kept));
    }),
  );
});

test('what stands before the first header belongs to no entry', () => {
  expect(parseHistory('# Notes\r\n\r\n## 2026-02-27\r\nmine\r\n')).toEqual([{ ts: Date.UTC(2026, 1, 27) / 1000, text: 'mine' }]);
});
