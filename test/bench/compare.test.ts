import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compare, keepRows, latestResults, renderComparison } from '../../bench/compare.js';
import type { Measured } from '../../bench/row.js';

const row = (name: string, more: Partial<Measured>): Measured => ({
  row: name,
  product: 0,
  unit: 'ms',
  toHold: '≤ 1.5',
  holds: true,
  ...more,
});

test('what is worse by more than 15 % is named; better, a little worse and the machine’s own times are not', () => {
  const before = [
    row('slower', { ratio: 1 }),
    row('a little slower', { ratio: 1 }),
    row('fewer per second', { ratio: 1, toHold: '≥ 0.8' }),
    row('more per second', { ratio: 1, toHold: '≥ 0.8' }),
    row('events', { product: 10, unit: '' }),
    row('time', { product: 10 }),
    row('lost', { product: 0, unit: '' }),
    row('no longer measured', { ratio: 1 }),
  ];
  const now = [
    row('slower', { ratio: 1.2 }),
    row('a little slower', { ratio: 1.1 }),
    row('fewer per second', { ratio: 0.8, toHold: '≥ 0.8' }),
    row('more per second', { ratio: 1.3, toHold: '≥ 0.8' }),
    row('events', { product: 12, unit: '' }),
    row('time', { product: 100 }),
    row('lost', { product: 1, unit: '' }),
    row('new', { ratio: 9 }),
  ];
  const found = compare(now, before);
  expect({ ...found, regressions: found.regressions.map((one) => one.row) }).toEqual({
    compared: 6,
    regressions: ['slower', 'fewer per second', 'events', 'lost'],
  });
  expect(renderComparison(found, 'kept.json')).toContain(
    '6 rows compared with kept.json: 4 worse by more than its noise\n  WORSE  slower: 1.00 → 1.20, and its noise is 15.0 %',
  );
});

test.each<[what: string, before: Partial<Measured>, now: Partial<Measured>, isWorse: boolean]>([
  ['quiet in both: a little is seen', { ratio: 1.2, noise: 0.03 }, { ratio: 1.25, noise: 0.02 }, true],
  ['less than the noise of this run', { ratio: 1.2, noise: 0.03 }, { ratio: 1.25, noise: 0.05 }, false],
  ['less than the noise of that run', { ratio: 1.2, noise: 0.06 }, { ratio: 1.25, noise: 0.01 }, false],
  ['equal sides that were equal by chance', { ratio: 1.2, noise: 0 }, { ratio: 1.215, noise: 0 }, false],
  ['more is better', { ratio: 0.9, noise: 0.03, toHold: '≥ 0.85' }, { ratio: 0.86, noise: 0.03, toHold: '≥ 0.85' }, true],
  ['only one run has measured its noise', { ratio: 1.2 }, { ratio: 1.3, noise: 0.03 }, true],
])('a row is worse by more than its own noise: %s', (_what, before, now, isWorse) => {
  expect(compare([row('turn', now)], [row('turn', before)]).regressions).toHaveLength(isWorse ? 1 : 0);
});

test('the latest results are those of the highest version', () => {
  const folder = mkdtempSync(join(tmpdir(), 'perdura-results-'));
  try {
    expect(() => latestResults(folder)).toThrow('has no results of a release');
    for (const name of ['0.9.0.json', '0.10.0.json', '0.2.0.json', 'peers.json', 'README.md']) writeFileSync(join(folder, name), '{}');
    expect(latestResults(folder)).toBe(join(folder, '0.10.0.json'));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('rows that were measured again stand where they stood, with their date, and the others stay', () => {
  const folder = mkdtempSync(join(tmpdir(), 'perdura-results-'));
  try {
    const file = join(folder, '0.1.0.json');
    const run = (date: string, ...rows: Measured[]) => keepRows(file, { date, rows });
    const whole = run('2026-01-01', row('a', { product: 1 }), row('b', { product: 2 }), row('c', { product: 3 }));
    writeFileSync(file, JSON.stringify(whole));
    const again = run('2026-02-02', row('b', { product: 20 }), row('d', { product: 4 }));
    expect(again.rows.map(({ row: name, product, date }) => [name, product, date])).toEqual([
      ['a', 1, '2026-01-01'],
      ['b', 20, '2026-02-02'],
      ['d', 4, '2026-02-02'],
      ['c', 3, '2026-01-01'],
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
