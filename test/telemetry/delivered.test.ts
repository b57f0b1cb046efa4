/** Nothing is delivered twice by one worker, and it remembers no more than it must. */
import { createDelivered } from '../../src/telemetry/observability.js';

test('a mark is new once in its run', () => {
  const delivered = createDelivered();
  expect([delivered.isNew('r', 'a'), delivered.isNew('r', 'b'), delivered.isNew('r', 'a'), delivered.isNew('other', 'a')]).toEqual([
    true,
    true,
    false,
    true,
  ]);
});

test('old marks and old runs are forgotten', () => {
  const delivered = createDelivered();
  delivered.isNew('r', 'first');
  for (let n = 0; n < 256; n++) delivered.isNew('r', `m${n}`);
  expect(delivered.isNew('r', 'first')).toBe(true);
  expect(delivered.isNew('r', 'm255')).toBe(false);
  for (let n = 0; n < 1_000; n++) delivered.isNew(`run-${n}`, 'm');
  expect(delivered.isNew('r', 'm255')).toBe(true);
});
