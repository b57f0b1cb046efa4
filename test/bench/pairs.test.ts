import { middleOf, overAll } from '../../bench/pairs.js';

test('of several pairs that count whose ratio lies in the middle, however fast others were', () => {
  const pairs = [
    { product: 20, floor: 10 },
    { product: 12, floor: 10 },
    { product: 3, floor: 1 },
    { product: 90, floor: 100 },
    { product: 14, floor: 10 },
  ];
  expect(middleOf(pairs)).toEqual({
    product: 14,
    floor: 10,
    ratio: 1.4,
    notes: ['pairs: 20.0 / 10.0 = 2.00, 12.0 / 10.0 = 1.20, 3.0 / 1.0 = 3.00, 90.0 / 100.0 = 0.90, 14.0 / 10.0 = 1.40'],
  });
});

test('its noise is how far equal sides were apart', () => {
  const equal = [
    { product: 10, floor: 10 },
    { product: 96, floor: 100 },
    { product: 11, floor: 10 },
  ];
  const { noise, notes } = middleOf([{ product: 12, floor: 10 }], equal);
  expect(noise).toBeCloseTo(0.1);
  expect(notes[1]).toBe('equal sides: 10.0 / 10.0 = 1.00, 96.0 / 100.0 = 0.96, 11.0 / 10.0 = 1.10');
});

test('of what is spent unevenly all pairs count, each by what it spent', () => {
  const pairs = [
    { product: 10, floor: 10 },
    { product: 50, floor: 10 },
    { product: 12, floor: 10 },
  ];
  expect(overAll(pairs, [{ product: 11, floor: 10 }])).toMatchObject({ product: 24, floor: 10, ratio: 2.4, noise: expect.closeTo(0.1) });
});

test('no pair is no measurement', () => {
  expect(() => middleOf([])).toThrow('no pair was measured');
});
