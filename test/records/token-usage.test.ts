/** Thresholds and truncation by numbers alone (seed 004). */
import { checkTokenUsage, DEFAULT_THRESHOLDS, thresholdsAt, type ChunkType, type MemoryChunk } from '../../src/records/token-usage.js';
import { selectTruncation } from '../../src/memory/compaction/truncation.js';
import { entryTokens, shownTokensEach } from '../../src/memory/tokens.js';
import { answer, calls, conversation, result, user } from '../memory/builders.js';

const chunk = (id: string, tokens: number, createdAt: number, type: ChunkType = 'WORKING_FLOW'): MemoryChunk => ({
  id,
  type,
  tokens,
  createdAt,
});

test('the seed’s thresholds, and its result', () => {
  expect(DEFAULT_THRESHOLDS).toEqual({ softThreshold: 50_000, hardThreshold: 80_000, truncationThreshold: 100_000 });
  const system = chunk('s', 10_000, 0, 'SYSTEM');
  const flow = chunk('w', 20_000, 1);
  expect(checkTokenUsage([system, flow], DEFAULT_THRESHOLDS)).toEqual({
    totalTokens: 30_000,
    compressibleTokens: 20_000,
    suggestCompaction: false,
    forceCompaction: false,
    needsTruncation: false,
    chunksToCompact: [flow],
    chunksToTruncate: [],
  });
});

test('one number sets them all, and each can be set by itself', () => {
  expect(thresholdsAt()).toEqual(DEFAULT_THRESHOLDS);
  expect(thresholdsAt(160_000)).toEqual({ softThreshold: 100_000, hardThreshold: 160_000, truncationThreshold: 200_000 });
  expect(thresholdsAt(160_000, { softThreshold: 7, truncationThreshold: 170_000 })).toMatchObject({
    softThreshold: 7,
    truncationThreshold: 170_000,
  });
  expect(thresholdsAt(160_000, { hardThreshold: 8_000 })).toEqual({
    softThreshold: 5_000,
    hardThreshold: 8_000,
    truncationThreshold: 10_000,
  });
});

test.each([
  [49_999, [false, false, false]],
  [50_000, [true, false, false]],
  [79_999, [true, false, false]],
  [80_000, [true, true, false]],
  [99_999, [true, true, false]],
  [100_000, [true, true, true]],
])('%i tokens: %j', (total, wanted) => {
  const { suggestCompaction, forceCompaction, needsTruncation } = checkTokenUsage([], DEFAULT_THRESHOLDS, total);
  expect([suggestCompaction, forceCompaction, needsTruncation]).toEqual(wanted);
});

test('the oldest of the working flow go, by their time, until what is over the hard threshold is covered', () => {
  const chunks = [chunk('new', 40_000, 30), chunk('sys', 50_000, 1, 'SYSTEM'), chunk('old', 15_000, 10), chunk('next', 15_000, 20)];
  expect(checkTokenUsage(chunks, DEFAULT_THRESHOLDS).chunksToTruncate).toEqual(['old', 'next', 'new']);
  expect(checkTokenUsage(chunks, DEFAULT_THRESHOLDS, 105_000).chunksToTruncate).toEqual(['old', 'next']);
});

describe('of a conversation', () => {
  const entries = conversation(
    [1, user('first'), calls(['c1'], ['c2']), result('c1', 'x'.repeat(400)), result('c2'), answer('one')],
    [2, user('second'), answer('two')],
    [3, user('third'), calls(['c3']), result('c3', 'y'.repeat(400))],
  );
  const slots = (excess: number, turn: string | null = 'turn_0003'): number[] =>
    selectTruncation(entries, excess, turn)
      .dropped.map(({ slot }) => slot)
      .sort((a, b) => a - b);

  test('calls go with all of their results', () => {
    expect(slots(1)).toEqual([1]);
    const [first = 0] = shownTokensEach(entries.map(({ message }) => message));
    expect(slots(first + 1)).toEqual([1, 2, 3, 4]);
  });

  test('the message of the running turn and its last answer stay, however much is too many', () => {
    expect(slots(1_000_000)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(slots(1_000_000, null)).toHaveLength(entries.length);
  });

  test('by a tokenizer that makes more of them fewer messages cover the same', () => {
    const dropped = (count?: (text: string) => number): number =>
      selectTruncation(entries, 5, 'turn_0003', entryTokens(entries, { ...(count && { count }) })).dropped.length;
    expect(dropped()).toBe(4);
    expect(dropped((text) => text.length)).toBe(1);
  });

  test('nothing goes where nothing is too many', () => {
    expect(slots(0)).toEqual([]);
  });
});
