/** "Why did it forget?": what the history knows and what the store knows, put together. */
import type { Leaving } from '../../src/conversation/replay/past.js';
import { findReasons } from '../../src/insight/why.js';
import type { EpisodeRecord } from '../../src/stores/store.js';
import { episode } from '../stores/builders.js';

const TURN = 'turn_0002';

function left(more: Partial<Leaving> = {}): Leaving {
  return {
    ...{ kind: 'truncated', event: 'truncate-completed', at: 5_000, epoch: 1, session: 1, slots: [3], allSlots: [3, 1, 4] },
    ...{ tokens: { before: 9, after: 6 }, model: 'a/b' },
    ...more,
  };
}

const COMPACTED = left({
  kind: 'compacted',
  compaction: { episode: 'ep_0007', method: 'model', turns: [TURN], model: 'h/istory', inputsHash: 'hh' },
});
const MADE = {
  inputsHash: 'sh',
  compactor: 'c',
  method: 'rules',
  model: 's/tore',
  failure: 'no answer',
  tokensBefore: 9,
  tokensAfter: 6,
} as const;
const stored = (more: Partial<EpisodeRecord> = {}): EpisodeRecord =>
  episode(7, { id: 'ep_0007', epoch: 1, turn_ids: [TURN], summary: 'They met.', ...more });
const whyAll = (leavings: readonly Leaving[], episodes: readonly EpisodeRecord[] = []) =>
  findReasons(TURN, leavings, episodes, (slot) => (slot === 9 ? undefined : `turn_000${slot}`));

test('what left is said with the turns that left with it, each once, in their order; an unknown slot is of none', () => {
  expect(whyAll([left({ allSlots: [4, 1, 9, 4, 3] })])).toEqual([
    {
      ...{ kind: 'truncated', at: 5_000, epoch: 1, session: 1, slots: [3], tokens: { before: 9, after: 6 } },
      turns: ['turn_0001', 'turn_0003', 'turn_0004'],
      ...{ model: null, method: null, inputsHash: null, failure: null, episode: null, summary: null, consolidation: null, from: 'history' },
    },
  ]);
});

test.each<[what: string, episodes: readonly EpisodeRecord[], expected: object]>([
  [
    'nothing: history alone says who summarized',
    [],
    { model: 'h/istory', method: 'model', inputsHash: 'hh', summary: null, failure: null },
  ],
  ['its summary, of an earlier version', [stored()], { model: 'h/istory', inputsHash: 'hh', summary: 'They met.', failure: null }],
  [
    'its summary and how it was made, which counts more than history’s word',
    [stored({ made: MADE })],
    { model: 's/tore', inputsHash: 'sh', failure: 'no answer', method: 'model', summary: 'They met.' },
  ],
  ['a summary of that name of another epoch, which is another', [stored({ epoch: 2 })], { model: 'h/istory', summary: null }],
])('of a compaction the store has %s', (_what, episodes, expected) => {
  const [why, ...more] = whyAll([COMPACTED], episodes);
  expect(why).toMatchObject({ kind: 'compacted', episode: 'ep_0007', turns: [TURN], from: 'history', ...expected });
  expect(more).toEqual([]);
});

test.each<[what: string, more: Partial<EpisodeRecord>, expected: object | undefined]>([
  ['a compaction', { made: MADE }, { kind: 'compacted', model: 's/tore', method: 'rules', failure: 'no answer' }],
  ['a trim, by its tag', { tags: ['x', 'trimmed'] }, { kind: 'trimmed', model: null, method: null }],
  ['one of other turns', { turn_ids: ['turn_0001'] }, undefined],
])('what only the store still knows: %s', (_what, more, expected) => {
  const found = whyAll([], [stored({ ts: 3.5, ...more })]);
  if (expected === undefined) expect(found).toEqual([]);
  else
    expect(found).toMatchObject([
      { from: 'store', at: 3_500, slots: [], tokens: null, episode: 'ep_0007', summary: 'They met.', ...expected },
    ]);
});

test('all of it stands in the order in which it happened, and a compaction that history explains once', () => {
  const found = whyAll([left({ at: 9_000 }), { ...COMPACTED, at: 2_000 }], [stored({ ts: 2 }), stored({ id: 'ep_0003', ts: 4 })]);
  expect(found.map(({ at, from, episode: of }) => [at, from, of])).toEqual([
    [2_000, 'history', 'ep_0007'],
    [4_000, 'store', 'ep_0003'],
    [9_000, 'history', null],
  ]);
});

test('which consolidation had it is said where long-term memory was asked', () => {
  expect(whyAll([left({ kind: 'trimmed', consolidation: 'cons-1' })])).toMatchObject([{ consolidation: 'cons-1' }]);
});
