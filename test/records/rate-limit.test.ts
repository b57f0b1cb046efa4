/** What headers say of limits, as providers document them and as servers that speak nearly so send them. */
import { readLimits } from '../../src/records/rate-limit.js';

const NOW = Date.parse('2026-11-29T12:00:00Z');
const read = (headers: Record<string, string>): ReturnType<typeof readLimits> => readLimits(new Headers(headers), NOW);

test("Anthropic's", () => {
  const headers = {
    'anthropic-ratelimit-requests-limit': '4000',
    'anthropic-ratelimit-requests-remaining': '3999',
    'anthropic-ratelimit-requests-reset': '2026-11-29T12:00:01Z',
    'anthropic-ratelimit-input-tokens-limit': '400000',
    'anthropic-ratelimit-input-tokens-remaining': '398000',
    'anthropic-ratelimit-input-tokens-reset': '2026-11-29T12:00:00Z',
    'anthropic-ratelimit-output-tokens-limit': '80000',
    'anthropic-ratelimit-output-tokens-remaining': '80000',
    'anthropic-ratelimit-output-tokens-reset': '2026-11-29T11:59:59Z',
    // The nearest of these, once more.
    'anthropic-ratelimit-tokens-limit': '480000',
    'anthropic-ratelimit-tokens-remaining': '478000',
  };
  expect(read(headers)).toEqual({
    requests: { limit: 4_000, remaining: 3_999, resetMs: 1_000 },
    input: { limit: 400_000, remaining: 398_000, resetMs: 0 },
    output: { limit: 80_000, remaining: 80_000, resetMs: 0 },
  });
});

test.each([
  ['1s', 1_000],
  ['6m0s', 360_000],
  ['120ms', 120],
  ['1h2m3.5s', 3_723_500],
  ['59.7', 59_700],
  ['2026-11-29T12:01:00Z', 60_000],
  ['9999d', 31 * 86_400_000],
])("OpenAI's, whose reset is %s", (reset, resetMs) => {
  const headers = { 'x-ratelimit-limit-tokens': '150000', 'x-ratelimit-remaining-tokens': '149984', 'x-ratelimit-reset-tokens': reset };
  expect(read(headers)).toEqual({ tokens: { limit: 150_000, remaining: 149_984, resetMs } });
});

test.each([
  ['no number', { 'x-ratelimit-limit-requests': 'burst:100;rate:10', 'x-ratelimit-remaining-requests': '9' }],
  ['no limit beside what is left', { 'x-ratelimit-remaining-requests': '9' }],
  ['a limit of none', { 'x-ratelimit-limit-requests': '0', 'x-ratelimit-remaining-requests': '0' }],
  ['less than none', { 'x-ratelimit-limit-requests': '-1', 'x-ratelimit-remaining-requests': '-1' }],
  ['more than any', { 'x-ratelimit-limit-requests': '9'.repeat(40), 'x-ratelimit-remaining-requests': '1' }],
])('%s says nothing', (_, headers: Record<string, string>) => {
  expect(read(headers)).toEqual({});
});

test('a reset in no known form is passed over, and more than the limit is the limit', () => {
  const headers = { 'x-ratelimit-limit-requests': '10', 'x-ratelimit-remaining-requests': '12', 'x-ratelimit-reset-requests': 'soon' };
  expect(read(headers)).toEqual({ requests: { limit: 10, remaining: 10 } });
});
