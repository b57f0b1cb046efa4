/** How a worker names its place: which store it has, and on which machine. */
import { hostname } from 'node:os';
import { readIdentity, toIdentity } from '../../../src/client/temporal/worker-place.js';

test('an identity is read as it was written; what others write is theirs', () => {
  const place = { store: 'k3f9a1', agents: '0a1b' };
  expect(readIdentity(toIdentity(place))).toEqual({ pid: process.pid, host: hostname(), place });
  expect(readIdentity(toIdentity(undefined))).toEqual({ pid: process.pid, host: hostname() });
  expect(readIdentity('perdura doctor')).toBeUndefined();
  expect(readIdentity(`1@host#${'x'.repeat(7)}.0a1b`)).toBeUndefined();
});
