import { compare, renderComparison } from '../../bench/compare.js';
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
    '6 rows compared with kept.json: 4 worse by more than 15 %\n  WORSE  slower: 1.00 → 1.20',
  );
});
