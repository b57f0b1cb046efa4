/** What is summed over a report: means with their intervals, and counts, of conversations that can be compared. */
import { createTotals, studentQuantile } from '../../src/whatif/totals.js';
import type { Lane, PlayedLane, PlayedSum, ReportedConversation, ReportTotals, TurnSide, Verdict } from '../../src/whatif/report.js';
import { createChance, sampleLines } from './sample-report.js';

const NO_SUM: PlayedSum = { modelCalls: 1, inputTokens: 100, cachedTokens: 0, outputTokens: 10, costUsd: 0, modelMs: 1 };

function side(tools: readonly string[] = [], stopReason = 'end'): TurnSide {
  const calls = tools.map((name) => ({ name, input: '{}', result: '', source: 'recording' as const }));
  return { text: '', stopReason, calls, sum: NO_SUM };
}

function lane(change: Partial<PlayedSum> = {}, more: Partial<PlayedLane> = {}): PlayedLane {
  return { divergence: null, turns: [], sum: { ...NO_SUM, ...change }, recordedSum: NO_SUM, ...more };
}

function conversation(lanes: ReportedConversation['lanes'], verdict?: Verdict): ReportedConversation {
  return { kind: 'conversation', id: 'one', agent: 'default', gaps: [], turns: 0, lanes, ...(verdict && { verdict }) };
}

function total(lines: readonly ReportedConversation[]): ReportTotals {
  const totals = createTotals();
  for (const line of lines) totals.add(line);
  return totals.end();
}

const ofCosts = (costs: readonly (number | null)[], name: Lane = 'candidate') =>
  total(costs.map((costUsd) => conversation({ [name]: lane({ costUsd }) }))).lanes[name]?.change;

test('a mean stands with its 95 % interval by Student: 1, 2, 3 and 6 give 3 ± 3.44', () => {
  const { mean, low, high } = ofCosts([1, 2, 3, 6])!.costUsd!;
  // s = 2.16025, t(3) = 3.18245: half = 3.18245 * 2.16025 / 2.
  expect([mean, low, high].map((value) => Number(value.toFixed(4)))).toEqual([3, -0.4374, 6.4374]);
});

test.each([
  [1, 12.7062],
  [4, 2.7764],
  [9, 2.2622],
  [10, 2.2281],
  [29, 2.0452],
  [120, 1.9799],
  [1e6, 1.96],
])('of %i degrees of freedom 97.5 %% of t is %f', (degrees, quantile) => {
  expect(studentQuantile(degrees)).toBeCloseTo(quantile, 3);
});

test.each([2, 3, 5, 12, 40])('the interval of %i conversations has the true mean in 95 of 100', (size) => {
  const chance = createChance(size);
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - chance())) * Math.cos(2 * Math.PI * chance());
  let held = 0;
  for (let trial = 0; trial < 2_000; trial += 1) {
    const { low, high } = ofCosts(Array.from({ length: size }, () => 7 + normal()))!.costUsd!;
    if (low <= 7 && 7 <= high) held += 1;
  }
  // Three standard deviations of a part of 95 % in 2,000.
  expect(Math.abs(held / 2_000 - 0.95)).toBeLessThan(0.0147);
});

test('of fewer than two there is no interval, and a conversation without a price is in none of costs', () => {
  expect(ofCosts([3])).toMatchObject({ costUsd: null, inputTokens: null });
  expect(ofCosts([3, null])).toMatchObject({ costUsd: null, inputTokens: { mean: 0, low: 0, high: 0 } });
  expect(ofCosts([3, null, 5])!.costUsd).toMatchObject({ mean: 4 });
  expect(total([])).toEqual({ kind: 'totals', conversations: 0, skipped: 0, lanes: {} });
});

test('large numbers lose no difference', () => {
  const big = 1e12;
  const sums = [0.1, 0.2, 0.3].map((more) => lane({ inputTokens: big + more }, { recordedSum: { ...NO_SUM, inputTokens: big } }));
  const { mean, low, high } = total(sums.map((candidate) => conversation({ candidate }))).lanes.candidate!.change.inputTokens!;
  expect(mean).toBeCloseTo(0.2, 3);
  expect(high - low).toBeCloseTo((2 * 4.30265 * 0.1) / Math.sqrt(3), 2);
});

test('one that was stopped is in no mean, and its turns are counted up to the stop: shorter is not cheaper', () => {
  const turns = [
    { turn: 'turn_0001', message: '', recorded: side(['book']), played: side(['book']) },
    { turn: 'turn_0002', message: '', recorded: side(['book', 'pay']), played: side(['lookup'], 'stopped') },
    { turn: 'turn_0003', message: '', recorded: side(['book']) },
  ];
  const whole = conversation({ candidate: lane({ costUsd: 2 }, { turns: turns.slice(0, 1) }) });
  const stopped = conversation({ candidate: lane({ costUsd: -50 }, { turns, stopped: { turn: 'turn_0002', why: 'lookup' } }) });
  const { candidate } = total([whole, stopped, whole]).lanes;
  expect(candidate).toMatchObject({ stopped: 1, tools: { book: [3, 3] }, stopReasons: { end: [3, 3] }, change: { costUsd: { mean: 2 } } });
  expect(Object.keys(candidate!.tools)).toEqual(['book']);
});

test('calls and ends are counted on both sides, also of turns that one side does not have', () => {
  const turns = [
    { turn: 'turn_0001', message: '', recorded: side(['book', 'book']), played: side(['look'], 'tool-limit') },
    { turn: 'turn_0002', message: '', recorded: side(['book']) },
  ];
  const { candidate, baseline } = total([conversation({ candidate: lane({}, { turns }), baseline: lane() })]).lanes;
  expect(candidate).toMatchObject({ tools: { book: [3, 0], look: [0, 1] }, stopReasons: { end: [2, 0], 'tool-limit': [0, 1] } });
  expect(baseline).toMatchObject({ tools: {}, stopReasons: {}, diverged: 0 });
});

test('names that models invent fill no memory and no prototype', () => {
  const names = ['__proto__', 'constructor', 'x'.repeat(1e6), ...Array.from({ length: 5_000 }, (_, at) => `tool_${at}`)];
  const turns = names.map((name) => ({ turn: 'turn_0001', message: '', recorded: side([name]) }));
  const { tools } = total([conversation({ candidate: lane({}, { turns }) })]).lanes.candidate!;
  expect(Object.keys(tools)).toHaveLength(201);
  expect(Math.max(...Object.keys(tools).map(({ length }) => length))).toBe(100);
  expect(Object.getOwnPropertyDescriptor(tools, '__proto__')?.value).toEqual([1, 0]);
  expect(Object.values(tools).reduce((sum, [recorded]) => sum + recorded, 0)).toBe(names.length);
});

test('verdicts are counted from the candidate’s side; agreement is of those that can be read', () => {
  const verdict = (better: Verdict['better'], agreesWithItself: boolean): ReportedConversation =>
    conversation({}, { better, why: '', agreesWithItself });
  const lines = [
    verdict('candidate', true),
    verdict('recorded', true),
    verdict('recorded', true),
    verdict('same', false),
    verdict('unreadable', false),
  ];
  expect(total(lines).judged).toEqual({ better: 1, worse: 2, same: 1, unreadable: 1, agreement: 0.75 });
  expect(total([verdict('unreadable', false)]).judged).toMatchObject({ agreement: 0 });
  expect(total([conversation({})]).judged).toBeUndefined();
});

test('what the judge cost is summed by itself: not known where one is not, absent where it was not counted', () => {
  const judged = (...costs: readonly (number | null | undefined)[]) =>
    total(costs.map((costUsd) => conversation({}, { better: 'same', why: '', agreesWithItself: true, costUsd }))).judged?.costUsd;
  expect([judged(0.5, 0.25), judged(0.5, null), judged(0.5, undefined), judged(null, undefined)]).toEqual([
    0.75,
    null,
    undefined,
    undefined,
  ]);
});

test('a sample of a worse candidate says so in its totals', () => {
  const lines = [...sampleLines({ candidate: 'worse', skippedEach: 10 })].filter((line) => line.kind === 'conversation');
  expect(total(lines)).toMatchObject({
    conversations: 20,
    skipped: 2,
    lanes: {
      candidate: { diverged: 18, stopped: 0, tools: { book_expense: [54, 0] } },
      baseline: { diverged: 0, tools: { book_expense: [54, 54] } },
    },
  });
});
