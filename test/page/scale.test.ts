/** Where moments stand on the line of time. */
import { arrangeRows, createScale } from '../../web/src/views/timeline/scale.js';

test('without long waits time is even, from one end to the other', () => {
  const scale = createScale({ from: 1_000, to: 2_000 }, [{ from: 1_000, to: 2_000 }], 500);
  expect([scale.x(1_000), scale.x(1_500), scale.x(2_000), scale.cuts]).toEqual([0, 250, 500, []]);
});

test('hours of waiting for a person are cut, and what is done has the room', () => {
  const hour = 3_600_000;
  const scale = createScale(
    { from: 0, to: hour + 4_000 },
    [
      { from: 0, to: 2_000 },
      { from: hour + 2_000, to: hour + 4_000 },
    ],
    1_000,
  );
  expect(scale.cuts).toHaveLength(1);
  expect(scale.x(2_000)).toBeGreaterThan(400);
  expect(scale.x(hour + 2_000) - scale.x(2_000)).toBeCloseTo(70);
  expect(scale.x(hour + 4_000)).toBeCloseTo(1_000);
});

test('moments keep their order, whatever is cut', () => {
  const scale = createScale(
    { from: 0, to: 1_000_000 },
    [
      { from: 0, to: 10 },
      { from: 500_000, to: 500_500 },
    ],
    300,
  );
  const all = Array.from({ length: 500 }, (_, at) => scale.x(at * 2_000));
  for (const [at, x] of all.entries()) expect(x).toBeGreaterThanOrEqual(all[at - 1] ?? 0);
  expect(scale.ticks.length).toBeLessThan(20);
});

test('bars of one lane that overlap stand in rows of their own', () => {
  expect(
    arrangeRows([
      { from: 0, to: 10 },
      { from: 5, to: 8 },
      { from: 9, to: 12 },
      { from: 11, to: 20 },
    ]),
  ).toEqual([0, 1, 1, 0]);
});
