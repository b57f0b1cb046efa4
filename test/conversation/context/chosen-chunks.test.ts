/** Chunks that a program names: truncated or compacted, one request at a time (seed 004, executeTruncation and triggerCompaction). */
import { apply } from '../../../src/conversation/apply.js';
import type { CompactInput, Compacted, Truncated, TruncateInput } from '../../../src/conversation/context/compaction-effects.js';
import { choiceRefusal, tokenUsageOf } from '../../../src/conversation/context/chosen-chunks.js';
import { outcomeFor } from '../../../src/conversation/requests.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import { readChosenChunks } from '../../../src/conversation/protocol/stepping.js';
import { LIMITS } from '../../../src/conversation/protocol/limits.js';
import type { ConversationEvent } from '../../../src/conversation/event.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { listSlots, toRanges } from '../../../src/records/slots.js';
import { applyAll, namesOf, open, said, settle, take, USAGE } from '../drive.js';

function talked(turns: number): ConversationState {
  let state = open();
  for (let n = 1; n <= turns; n++) state = settle(apply(state, said(`m${n}`))).state;
  return state;
}

function choosing(what: 'truncate' | 'compact', slots: readonly number[], requestId: string = what): ConversationEvent {
  return { kind: 'chunks-chosen', requestId, what, slots: toRanges(slots), at: 5_000 };
}

function truncated({ chosen, epoch, notice }: TruncateInput): Truncated {
  const entry = { v: 1, ...notice, ts: 1, message: { role: 'user', text: 'left out', from: 'notice' } } as const;
  return { life: 'l1', epoch, dropped: chosen?.slots ?? [], tokens: 3, entries: listSlots(chosen?.slots ?? []).length, notice: entry };
}

/** All but the last two entries. */
function takenAway(input: CompactInput): Compacted {
  const slots = listSlots(input.context);
  return {
    kind: 'compacted',
    life: 'l1',
    epoch: input.epoch,
    kept: toRanges(slots.slice(-2)),
    archived: toRanges(slots.slice(0, -2)),
    turns: ['turn_0001'],
    task: { goal: 'the goal', openTasks: [] },
    base: { ref: 'base', text: 'x' },
    episode: { id: 'ep_0001', ts: 1, turn_ids: ['turn_0001'], summary: 's', tags: [], salience: 0.5 },
    facts: [],
    method: 'rules',
    record: { inputsHash: 'i', compactor: 'c', method: 'rules', model: 'm', tokensBefore: 10, tokensAfter: 2 },
    tokensBefore: 10,
    tokensAfter: 2,
    usage: USAGE,
  };
}

const nothing = ({ epoch }: CompactInput): Compacted => ({ kind: 'nothing-to-compact', epoch });

test('what is chosen leaves the prompt below every threshold, and waits as left out for the next summary', () => {
  const state = talked(3);
  const { state: after, steps } = settle(apply(state, choosing('truncate', [3])), { truncate: truncated });
  expect(namesOf(steps)).toEqual(['truncate', 'wait']);
  expect(listSlots(after.context)).not.toContain(3);
  expect(listSlots(after.context)).toEqual(expect.arrayContaining([1, 2, 4, 5, 6]));
  expect(after.compaction.leftOut).toEqual([[3, 3]]);
  expect(outcomeFor(after, 'truncate', 'truncate')).toMatchObject({ kind: 'truncated', entries: 1 });
  expect(after.requests.pending).toEqual([]);
});

test('what a program has named makes no turn pay for a summary', () => {
  const { state } = settle(apply(talked(3), choosing('truncate', [3])), { truncate: truncated });
  const { steps } = settle(apply(state, said('next')));
  expect(namesOf(steps)).not.toContain('compact');
});

test('a compaction takes what was chosen and nothing else, and answers its request alone', () => {
  const asked = applyAll(talked(3), choosing('compact', [1, 2]), { kind: 'compaction-requested', requestId: 'all', at: 5_000 });
  const { input, state, done } = take(asked, 'compact');
  expect(input).toMatchObject({ cause: 'asked', chosen: { requestId: 'compact', slots: [[1, 2]] }, enough: 0, free: 0 });
  const after = apply(state, done(nothing(input)));
  expect(outcomeFor(after, 'compact', 'compact')).toEqual({ kind: 'nothing-to-compact' });
  expect(outcomeFor(after, 'compact', 'all')).toBeUndefined();
  expect(take(after, 'compact').input).not.toHaveProperty('chosen');
});

test('one is done at a time, in their order, and one that fails is answered', () => {
  const asked = applyAll(talked(4), choosing('truncate', [1], 'a'), choosing('compact', [2], 'b'), choosing('truncate', [3], 'c'));
  const first = take(asked, 'truncate');
  expect(first.input.chosen?.requestId).toBe('a');
  const second = take(apply(first.state, first.failed({ type: 'timeout', message: 'slow', transient: true })), 'compact');
  expect(outcomeFor(second.state, 'truncate', 'a')).toMatchObject({ kind: 'failed' });
  const third = take(apply(second.state, second.done(nothing(second.input))), 'truncate');
  expect(third.input.chosen?.requestId).toBe('c');
});

test('where a compaction has taken all of it meanwhile, and where the session ends, the request is answered all the same', () => {
  const asked = apply(talked(3), { kind: 'compaction-requested', requestId: 'all', at: 5_000 });
  const running = take(asked, 'compact');
  const waiting = apply(running.state, choosing('truncate', [1, 2]));
  expect(nextStep(waiting).kind).toBe('wait');
  const taken = apply(waiting, running.done(takenAway(running.input)));
  expect(outcomeFor(taken, 'truncate', 'truncate')).toEqual({ kind: 'nothing-to-truncate' });
  expect(taken.requests.pending).toEqual([]);

  const cleared = settle(apply(waiting, { kind: 'reset-requested', resetId: 'r', at: 5_001 })).state;
  expect(outcomeFor(cleared, 'truncate', 'truncate')).toEqual({ kind: 'failed', message: 'the session ended first' });
});

test('only what is in the context and of the working flow can be chosen, and so many requests wait', () => {
  const state = talked(2);
  expect(choiceRefusal(state, [1, 2])).toBeUndefined();
  expect(choiceRefusal(state, [99])).toMatch(/chunk_99 is not in the context, which has chunk_1 to chunk_4/);
  const note = { id: 'chunk_2', type: 'STATE', slot: 2, tokens: 5, createdAt: 1 };
  const withNote = { ...state, appEvents: { chunks: [note], unreduced: { count: 0, types: [] }, parked: [], parkedCount: 0 } };
  expect(choiceRefusal(withNote, [2])).toMatch(/chunk_2 is of type STATE/);
  expect(tokenUsageOf(withNote).chunksToCompact).toEqual([
    [1, 1],
    [3, 4],
  ]);
  const full = applyAll(state, ...Array.from({ length: LIMITS.choices }, (_, n) => choosing('compact', [1], `r${n}`)));
  expect(choiceRefusal(full, [1])).toMatch(/wait already/);
});

test.each<[unknown, RegExp]>([
  [{}, /chunks must be a list of 1 to 1000/],
  [{ chunks: [] }, /a list of 1 to/],
  [{ chunks: Array.from({ length: 1_001 }, () => 'chunk_1') }, /a list of 1 to/],
  [{ chunks: ['chunk_0'] }, /look like "chunk_12"/],
  [{ chunks: [7] }, /look like "chunk_12"/],
  [{ chunks: ['chunk_1'], force: true }, /force is not a field/],
])('the payload %j is refused', (payload, reason) => {
  const read = readChosenChunks(payload, 'executeTruncation');
  expect(read).toMatchObject({ ok: false, reason: expect.stringMatching(reason) });
});
