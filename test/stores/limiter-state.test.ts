/** What is decided over many calls of one provider: the pure part of its limits. Each store keeps to it (rate-limits-contract.ts). */
import { newLimiter, release, take } from '../../src/stores/limiter-state.js';
import type { LimitClaim } from '../../src/stores/rate-limits.js';

const START = 1_738_100_000_000;

function call(id: string): LimitClaim {
  return { id, tenant: 'acme', conversation: id, isBackground: false, input: 100, output: 50, set: {} };
}

test('a provider that refuses one call in twenty by chance leaves several under way', () => {
  let now = START;
  const state = newLimiter(now);
  const round = (name: string): string[] =>
    Array.from({ length: 40 }, (_, i) => `${name}${i}`).filter((id) => take(state, call(id), now).status === 'granted');
  take(state, call('a'), now);
  release(state, 'a', { refusedMs: 1_000 }, now);
  const widths: number[] = [];
  for (let i = 0, calls = 0; i < 400; i++) {
    now += 60_000;
    const granted = round(`${i}.`);
    widths.push(granted.length);
    for (const id of granted) release(state, id, ++calls % 20 === 0 ? { refusedMs: 1_000 } : {}, now);
  }
  const late = widths.slice(200);
  expect(Math.min(...late)).toBeGreaterThanOrEqual(2);
  expect(late.reduce((sum, width) => sum + width, 0) / late.length).toBeGreaterThanOrEqual(4);
});
