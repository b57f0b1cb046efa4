/** Lives that begin with turns of another one, and turns taken back: as a value, without a server. */
import { apply } from '../../../src/conversation/apply.js';
import type { OpenedOrigin, Rewound } from '../../../src/conversation/lineage/lineage-effects.js';
import { withOrigin } from '../../../src/conversation/lineage/lineage.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import { outcomeFor } from '../../../src/conversation/requests.js';
import { listSlots } from '../../../src/records/slots.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { attributesDue } from '../../../src/conversation/attributes.js';
import { statusOf } from '../../../src/conversation/views/view.js';
import { readRewind, readStart } from '../../../src/conversation/protocol/input.js';
import { applyAll, open, said, settle, take } from '../drive.js';

const ORIGIN = { kind: 'fork', conversation: 'c1', life: 'l0', turn: 'turn_0007' } as const;

const OPENED: OpenedOrigin = {
  life: 'l1',
  beginning: {
    v: 1,
    kind: 'fork',
    of: { conversation: 'c1', life: 'l0' },
    turn: 7,
    shared: [{ conversation: 'c1', life: 'l0', scope: 'default', slots: [[1, 21]] }],
    archived: [[1, 14]],
  },
  slot: 21,
  session: 2,
  turns: 7,
  inContext: 2,
  context: [[15, 21]],
  base: { ref: 'sha256:b', text: 'what was' },
  task: null,
  episodes: [],
  compactions: 3,
  tokens: 400,
  window: [],
  attributes: 'missing',
};

function rewound(more: Partial<Rewound> = {}): Rewound {
  const cut = { v: 1, id: 'r1', branch: 1, to: 1, begun: 2, since: 1, slot: 6, at: 2, session: 1, slots: [[3, 6]] } as const;
  return { life: 'l1', cut, turns: 2, session: 1, context: [[1, 2]], task: null, episodes: [], compactions: 0, tokens: 20, ...more };
}

const forked = (): ConversationState => withOrigin(open(), ORIGIN);

test('a fork does nothing before it is open, and then is numbered on from what it shares', () => {
  const { state: begun, input, done } = take(forked(), 'open-origin');
  expect(input).toMatchObject({ origin: ORIGIN });
  const opening = applyAll(begun, said('m1'), said('m2'), said('m1'));
  expect(nextStep(opening)).toEqual({ kind: 'wait' });
  expect(opening.queue).toEqual([]);
  const { state } = settle(apply(opening, done(OPENED)));
  expect(state).toMatchObject({ session: 2, turnsEnded: 2, latestTurn: 9, compaction: { base: 'sha256:b', compactions: 3 } });
  expect(['m1', 'm2'].map((id) => outcomeFor(state, 'message', id))).toEqual([8, 9]);
  expect(listSlots(state.context).slice(0, 7)).toEqual([15, 16, 17, 18, 19, 20, 21]);
  expect(Math.min(...listSlots(state.context).slice(7))).toBe(22);
});

test('until it has its beginning the status says whose turns it waits for', () => {
  const { state: opening, done } = take(forked(), 'open-origin');
  const words = 'the turns of c1 that it begins with';
  expect(statusOf(opening, 0)).toMatchObject({ waiting: { kind: 'origin', conversation: 'c1' }, waitingFor: words });
  expect(statusOf(apply(opening, done(OPENED)), 0).waiting).toBeUndefined();
});

test('a fork that cannot begin says why, and is no conversation', () => {
  const failure = { type: 'unknown-turn', message: 'c1 has no turn_0007', transient: false };
  const { state, failed } = take(forked(), 'open-origin');
  expect(nextStep(apply(state, failed(failure)))).toEqual({ kind: 'refuse', type: 'unknown-turn', message: 'c1 has no turn_0007' });
});

test('a fork names its parent before anything was said in it, and its model with the first turn', () => {
  const { state: opening, done } = take(forked(), 'open-origin');
  const opened = apply(opening, done({ ...OPENED, attributes: 'registered' }));
  const first = attributesDue(opened);
  expect(first).toEqual({ AgentName: 'default', AgentStatus: 'running', AgentParent: 'c1', AgentTurns: 0, AgentCostUsd: 0 });
  const told = apply(opened, { kind: 'attributes-upserted', status: 'running', turns: 0, at: 3 });
  expect(attributesDue(told)).toBeUndefined();
  const { state } = settle(apply(told, said('m1')));
  expect(attributesDue(state)).toMatchObject({ AgentModel: 'anthropic/claude-test', AgentParent: 'c1', AgentTurns: 1 });
});

/** Of the first turn, where three messages came at once. */
const FIRST = [
  [1, 1],
  [4, 4],
] as const;

test('rewound, the context is replaced, counters and cost go on, and the next turn comes after all others', () => {
  const { state: before } = settle(applyAll(open(), said('m1'), said('m2'), said('m3')));
  const asked = apply(before, { kind: 'rewind-requested', requestId: 'r1', to: 'turn_0001', at: 9 });
  const { state: rewinding, input, done: end } = take(asked, 'rewind');
  expect(input).toMatchObject({ to: 'turn_0001', branch: 1, move: 1, slot: before.counters.slot, waiting: [] });
  const done = apply(rewinding, end(rewound({ context: FIRST })));
  const { turn, slot, queued } = before.counters;
  expect(done).toMatchObject({ counters: { turn, slot, queued, move: 1 }, usage: before.usage, epoch: before.epoch + 1, context: FIRST });
  expect(outcomeFor(done, 'rewind', 'r1')).toEqual({
    kind: 'rewound',
    result: { to: 'turn_0001', cut: 2, branch: 1, session: 1, epoch: before.epoch + 1 },
  });
  const { state } = settle(apply(done, said('m4')));
  expect(outcomeFor(state, 'message', 'm4')).toBe(4);
  const learned = { model: 'a/b', assumed: 9_000, tokens: 4_000 };
  const small = { ...rewinding, compaction: { ...rewinding.compaction, learned } };
  expect(apply(small, end(rewound({ context: FIRST }))).compaction.learned).toEqual(learned);
  // What was cut is nothing that long-term memory will be asked to keep.
  expect(state.consolidation.turns.map(({ turn }) => turn)).toEqual([1, 4]);
  expect(JSON.parse(JSON.stringify(state))).toEqual(state);
});

test('a rewind that fails changes nothing, and one that is asked twice is one', () => {
  const { state: before } = settle(applyAll(open(), said('m1')));
  const request = { kind: 'rewind-requested', requestId: 'r1', to: 'turn_0009', at: 9 } as const;
  const failure = { type: 'unknown-turn', message: 'no turn_0009', transient: false };
  const { state: rewinding, failed } = take(applyAll(before, request, request), 'rewind');
  const after = applyAll(rewinding, failed(failure), request);
  const { requests, now: _, counters, ...rest } = after;
  const { requests: known, now: __, counters: had, ...was } = before;
  expect(rest).toEqual(was);
  // A late attempt at it is told from the next one.
  expect(counters).toEqual({ ...had, effect: had.effect + 1, move: had.move + 1 });
  const answer = { kind: 'rewind', id: 'r1', outcome: { kind: 'failed', type: 'unknown-turn', message: 'no turn_0009' } };
  expect(requests).toEqual({ pending: [], answered: [...known.answered, answer] });
});

test('what is said in place of a turn is answered first once that is cut, and taken back when it cannot be', () => {
  const { state: before } = settle(applyAll(open(), said('m1'), said('m2')));
  const ask = { kind: 'rewind-requested', requestId: 'r1', to: 'turn_0002', before: true, messageId: 'm4', at: 9 } as const;
  const asked = applyAll(before, said('m3', { at: 9 }), ask, said('m4', { at: 9, delivery: 'interrupt' }));
  const { state: stopped, input, done, failed } = take(asked, 'rewind');
  expect(input).toMatchObject({ to: 'turn_0002', before: true });
  const cut = { ...rewound().cut!, to: 0 };
  const after = settle(apply(stopped, done(rewound({ cut })))).state;
  expect(outcomeFor(after, 'rewind', 'r1')).toMatchObject({ kind: 'rewound', result: { to: 'turn_0000', branch: 1 } });
  expect(after.ended.map(({ number, stopReason }) => [number, stopReason]).slice(-2)).toEqual([[4, 'end'], [3, 'end']]); // prettier-ignore
  const failure = { type: 'unknown-turn', message: 'no turn_0002', transient: false };
  const unsaid = settle(apply(stopped, failed(failure))).state;
  expect(unsaid.ended.map(({ number, stopReason }) => [number, stopReason]).slice(-2)).toEqual([[4, 'withdrawn'], [3, 'end']]); // prettier-ignore
});

test.each([
  [{ ...ORIGIN, kind: 'copy' }, 'start.origin.kind'],
  [{ ...ORIGIN, conversation: '../etc' }, 'start.origin.conversation'],
  [{ ...ORIGIN, life: 'a/b' }, 'start.origin.life'],
  [{ ...ORIGIN, turn: '7' }, 'start.origin.turn'],
  [{ ...ORIGIN, run: 7 }, 'start.origin.run'],
  ['c1', 'start.origin must be an object'],
])('an origin such as %j is refused by the name of its field', (origin, words) => {
  const read = readStart({ origin });
  expect(read.ok ? '' : read.reason).toContain(words);
});

test('what a rewind is asked is checked too', () => {
  expect(readRewind({ to: 'turn_0007', id: 'r1' })).toEqual({ ok: true, value: { to: 'turn_0007', id: 'r1' } });
  expect(readRewind({ to: '7' })).toMatchObject({ ok: false });
  expect(readRewind({ to: 'turn_0007', more: 1 })).toMatchObject({ ok: false });
  expect(readRewind('turn_0007')).toMatchObject({ ok: false });
  const message = { kind: 'message', text: 'again', delivery: 'queue' };
  expect(readRewind({ before: 'turn_0007', message: 'again' })).toEqual({ ok: true, value: { to: 'turn_0007', before: true, message } });
  expect(readRewind({ before: 'turn_0007', to: 'turn_0006' })).toEqual({ ok: false, reason: 'rewind takes either "to" or "before"' });
  expect(readRewind({ before: 7 })).toEqual({ ok: false, reason: 'rewind.before must look like "turn_0007"' });
  expect(readRewind({ before: 'turn_0007', message: '' })).toMatchObject({
    ok: false,
    reason: expect.stringMatching(/^rewind\.message: /) as unknown,
  });
  expect(readRewind({ before: 'turn_0007', message: '/new' })).toMatchObject({ ok: false });
});
