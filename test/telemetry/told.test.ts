/** Nothing is told twice by one worker, and it remembers no more than it must. */
import { createTold } from '../../src/telemetry/observability.js';

test('a mark is new once in its run', () => {
  const told = createTold();
  expect([told.isNew('r', 'a'), told.isNew('r', 'b'), told.isNew('r', 'a'), told.isNew('other', 'a')]).toEqual([true, true, false, true]);
});

test('old marks and old runs are forgotten', () => {
  const told = createTold();
  told.isNew('r', 'first');
  for (let n = 0; n < 256; n++) told.isNew('r', `m${n}`);
  expect(told.isNew('r', 'first')).toBe(true);
  expect(told.isNew('r', 'm255')).toBe(false);
  for (let n = 0; n < 1_000; n++) told.isNew(`run-${n}`, 'm');
  expect(told.isNew('r', 'm255')).toBe(true);
});
