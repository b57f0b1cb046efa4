/** When a run hands over. */
import { HAND_OVER, handOverReason } from '../../src/conversation/opening.js';
import { open } from './drive.js';

const short = { events: 10, bytes: 10, updates: 1 };

test.each(['events', 'bytes', 'updates'] as const)('is due once history has its %s, and not one before', (unit) => {
  expect(handOverReason(open(), { ...short, [unit]: HAND_OVER[unit] - 1 })).toBeUndefined();
  expect(handOverReason(open(), { ...short, [unit]: HAND_OVER[unit] })).toBe(`${HAND_OVER[unit]} ${unit}`);
});

test('is not decided twice', () => {
  expect(handOverReason({ ...open(), handOver: '3000 events' }, HAND_OVER)).toBeUndefined();
});

test('waits for a state that a run can take over', () => {
  expect(handOverReason({ ...open(), title: 'x'.repeat(1_500_000) }, HAND_OVER)).toBeUndefined();
});
