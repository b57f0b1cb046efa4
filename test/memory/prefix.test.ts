/** A conversation up to one of its turns, with compactions, resets and rewinds behind it. */
import type { Cut } from '../../src/records/slots.js';
import type { Entry } from '../../src/records/message.js';
import { turnId } from '../../src/records/identity.js';
import { currentLine, episodesInSight, prefixBefore, findPrefix, toSlotRanges, type Past } from '../../src/memory/prefix.js';
import type { EpisodeRecord } from '../../src/stores/store.js';

/** A turn of a message and an answer, beginning at `slot`; it ends at `10 * turn` seconds. */
function turn(number: number, slot: number, { session = 1, answer = slot + 1 } = {}): Entry[] {
  const common = { v: 1, session, turn: turnId(number), ts: 10 * number } as const;
  return [
    { ...common, slot, seq: 1, message: { role: 'user', text: `message ${number}` }, messageId: `m${number}` },
    { ...common, slot: answer, seq: 2, message: { role: 'assistant', blocks: [{ kind: 'text', text: 'yes' }], model: 'a/b', stop: 'end' } },
  ];
}

const turns = (from: number, to: number, more?: { session: number }): Entry[] =>
  Array.from({ length: to - from + 1 }, (_, i) => turn(from + i, 2 * (from + i) - 1, more)).flat();

function past(entries: readonly Entry[], more: Partial<Past> = {}): Past {
  return { entries, cuts: [], episodes: [], archived: [], ...more };
}

function episodeOf(n: number, first: number, last: number, ts: number, session = 1): EpisodeRecord {
  const slots = [[2 * first - 1, 2 * last]] as const;
  return { id: `ep_000${n}`, ts, turn_ids: [], summary: `summary ${n}`, tags: [], salience: 0.5, session, epoch: n, slots };
}

/** After the last of `entries`, back to the end of `to`. */
function cutTo(branch: number, to: number, last: number, session = 1): Cut {
  return { v: 1, id: `r${branch}`, branch, to, begun: 2 * to, since: 10 * to, slot: 2 * last, at: 10 * last + 5, session, slots: [] };
}

const numbers = (list: readonly { readonly number: number }[] | undefined): number[] | undefined => list?.map(({ number }) => number);

test('a prefix is its turns, and there is none of a turn that is not there', () => {
  const prefix = findPrefix(past(turns(1, 5)), 3);
  expect(numbers(prefix?.line)).toEqual([1, 2, 3]);
  expect(numbers(prefix?.context)).toEqual([1, 2, 3]);
  expect(findPrefix(past(turns(1, 5)), 6)).toBeUndefined();
});

test('a message that waited behind the running turn is of its own turn, whatever its slot', () => {
  // The second message came (slot 2) before the first was answered (slot 3).
  const entries = [...turn(1, 1, { answer: 3 }), ...turn(2, 2, { answer: 4 })];
  const prefix = findPrefix(past(entries), 1);
  expect(toSlotRanges(prefix?.context ?? [])).toEqual([[1, 1], [3, 3]]); // prettier-ignore
});

test('the context is of the turn’s session alone, and shown is all', () => {
  const entries = [...turns(1, 2), ...turns(3, 5, { session: 2 })];
  const prefix = findPrefix(past(entries), 4);
  expect(numbers(prefix?.line)).toEqual([1, 2, 3, 4]);
  expect(numbers(prefix?.context)).toEqual([3, 4]);
});

test('a summary that there was by then stands for its turns; one that was made later does not', () => {
  const episodes = [episodeOf(1, 1, 3, 65), episodeOf(2, 4, 6, 95)];
  const archived = [[1, 12]] as const;
  const late = findPrefix(past(turns(1, 10), { episodes, archived }), 8);
  expect(late?.episodes.map(({ id }) => id)).toEqual(['ep_0001']);
  expect(numbers(late?.context)).toEqual([4, 5, 6, 7, 8]);
  const early = findPrefix(past(turns(1, 10), { episodes, archived }), 5);
  expect(early?.episodes).toEqual([]);
  expect(numbers(early?.context)).toEqual([1, 2, 3, 4, 5]);
});

test('of turns that are archived without a summary each is there word for word', () => {
  expect(numbers(findPrefix(past(turns(1, 20), { archived: [[1, 30]] }), 12)?.context)).toHaveLength(12);
});

test('after a rewind a turn follows the one that it was rewound to, and a cut one those that it followed', () => {
  const cuts = [cutTo(1, 2, 4)];
  const entries = turns(1, 6);
  expect(numbers(findPrefix(past(entries, { cuts }), 6)?.context)).toEqual([1, 2, 5, 6]);
  expect(numbers(findPrefix(past(entries, { cuts }), 4)?.context)).toEqual([1, 2, 3, 4]);
  expect(numbers(currentLine(entries, cuts))).toEqual([1, 2, 5, 6]);
});

test('rewound again, also into a branch, the line is found through all rewinds', () => {
  const cuts = [cutTo(1, 2, 4), cutTo(2, 3, 6)];
  expect(numbers(currentLine(turns(1, 8), cuts))).toEqual([1, 2, 3, 7, 8]);
  expect(numbers(currentLine(turns(1, 6), cuts))).toEqual([1, 2, 3]);
  expect(numbers(findPrefix(past(turns(1, 8), { cuts }), 6)?.line)).toEqual([1, 2, 5, 6]);
});

test('before a turn is the turn that it came after; before the first of a session its context is empty', () => {
  const entries = [...turns(1, 3), ...turns(4, 5, { session: 2 })];
  expect(prefixBefore(past(entries), 3)).toEqual(findPrefix(past(entries), 2));
  expect(prefixBefore(past(entries), 4)).toMatchObject({ turn: { number: 3 }, line: [{}, {}, {}], session: [], context: [], episodes: [] });
  expect(prefixBefore(past(entries), 1)).toEqual({ line: [], session: [], context: [], episodes: [] });
  expect(prefixBefore(past(entries), 9)).toBeUndefined();
});

test('said again, the first turn of a session has none of the session before it, and the first of all has nothing before it', () => {
  const entries = [...turns(1, 3), ...turns(4, 6, { session: 2 })];
  // Before turn 4, and turn 5 and 6 came in its place.
  const again = [cutTo(1, 3, 4, 1)];
  expect(numbers(findPrefix(past(entries, { cuts: again }), 6)?.context)).toEqual([5, 6]);
  expect(numbers(findPrefix(past(entries, { cuts: again }), 6)?.line)).toEqual([1, 2, 3, 5, 6]);
  const all = [cutTo(1, 0, 2, 0)];
  expect(numbers(currentLine(turns(1, 4), all))).toEqual([3, 4]);
  expect(numbers(findPrefix(past(turns(1, 4), { cuts: all }), 4)?.context)).toEqual([3, 4]);
});

test('a rewind past a reset brings the turns of the old session into the new one', () => {
  const entries = [...turns(1, 2), ...turns(3, 4, { session: 2 }), ...turns(5, 6, { session: 3 })];
  const cuts = [cutTo(1, 2, 4, 3)];
  expect(numbers(findPrefix(past(entries, { cuts }), 6)?.context)).toEqual([1, 2, 5, 6]);
  const reset = [...entries, ...turns(7, 7, { session: 4 })];
  expect(numbers(findPrefix(past(reset, { cuts }), 7)?.context)).toEqual([7]);
});

test('summaries of cut turns, and those made of a branch, are out of sight, and in sight for that branch', () => {
  const made = episodeOf(1, 1, 3, 45);
  const cuts = [cutTo(1, 4, 8)];
  const ofBranch = episodeOf(2, 4, 6, 82);
  const after = episodeOf(3, 1, 3, 120);
  expect(episodesInSight([made, ofBranch, after], cuts).map(({ id }) => id)).toEqual(['ep_0003']);
  const branch = findPrefix(past(turns(1, 12), { cuts, episodes: [made, ofBranch], archived: [[1, 12]] }), 8);
  expect(branch?.episodes.map(({ id }) => id)).toEqual(['ep_0001']);
});
