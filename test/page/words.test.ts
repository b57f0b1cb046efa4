import { spent } from '../../web/src/ui/words.js';

test('what a list says of costs is as of now, or says as of when', () => {
  expect(spent({ costUsd: 0.0997, turns: 12, isCurrent: true })).toBe('$0.100');
  expect(spent({ costUsd: 0.0089, turns: 10, isCurrent: false })).toBe('$0.009 as of turn 10');
  expect(spent({ costUsd: 0, turns: 0, isCurrent: false })).toBe('');
  expect(spent({ costUsd: null, turns: null, isCurrent: false })).toBe('');
});
