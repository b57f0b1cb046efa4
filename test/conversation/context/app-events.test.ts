/** Chunks of the application's own (seed 004): what they take of the context is counted exactly, whatever is done to them. */
import fc from 'fast-check';
import { apply } from '../../../src/conversation/apply.js';
import type { ChunkOperation } from '../../../src/conversation/context/reducers.js';
import { isPending } from '../../../src/conversation/requests.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import type { Compacted } from '../../../src/conversation/context/compaction-effects.js';
import { listSlots, toRanges } from '../../../src/records/slots.js';
import { compactionWindow } from '../../../src/memory/compaction/window.js';
import { selectTruncation } from '../../../src/memory/compaction/truncation.js';
import { entryTokens } from '../../../src/memory/tokens.js';
import { conversation, answer, user } from '../../memory/builders.js';
import type { ConversationEvent } from '../../../src/conversation/event.js';
import type { Effect } from '../../../src/conversation/effect.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import { eventToReduce, outcomeOfEvent } from '../../../src/conversation/context/app-events.js';
import { statusOf } from '../../../src/conversation/views/view.js';
import { answer as modelAnswer, applyAll, asking, open, ORDINARY, outputOf, said, settle, USAGE, type Script } from '../drive.js';

type Wish = { readonly kind: ChunkOperation['kind']; readonly which: number; readonly type: string; readonly text: string };

const wish = fc.record<Wish>({
  kind: fc.constantFrom('ADD' as const, 'UPDATE' as const, 'DELETE' as const, 'BATCH_REPLACE' as const),
  which: fc.nat(20),
  type: fc.constantFrom('WORKING_FLOW', 'STATE', 'NOTICE'),
  text: fc.string({ minLength: 1, maxLength: 400 }),
});

/** Of what there is, and sometimes of what is not. */
function toOperation({ appEvents }: ConversationState, { kind, which, type, text }: Wish): ChunkOperation {
  const id = appEvents?.chunks[which % Math.max(1, appEvents.chunks.length)]?.id ?? 'chunk_0';
  switch (kind) {
    case 'ADD':
      return { kind, chunk: { type, text } };
    case 'UPDATE':
      return { kind, id, text };
    case 'DELETE':
      return { kind, id };
    case 'BATCH_REPLACE':
      return { kind, ids: [id], chunks: [{ type, text }] };
  }
}

function reduced(state: ConversationState, wishes: readonly Wish[]): ConversationState {
  return wishes.reduce((now, one, n) => {
    const id = `e-${n}`;
    const asked = apply(now, { kind: 'app-event-received', id, type: 'any', payload: null, at: n });
    return apply(asked, { kind: 'app-event-reduced', id, reduced: { kind: 'reduced', operations: [toOperation(asked, one)] }, at: n });
  }, state);
}

test('what the context grows by is what its chunks take, after any operations', () => {
  const begin = settle(applyAll(open(), said('a'))).state;
  fc.assert(
    fc.property(fc.array(wish, { maxLength: 60 }), (wishes) => {
      const state = reduced(begin, wishes);
      const chunks = state.appEvents?.chunks ?? [];
      expect(state.contextTokens - begin.contextTokens).toBe(chunks.reduce((sum, { tokens }) => sum + tokens, 0));
      const added = listSlots(state.context).filter((slot) => !listSlots(begin.context).includes(slot));
      expect(added.sort((a, b) => a - b)).toEqual(chunks.map(({ slot }) => slot).sort((a, b) => a - b));
    }),
    { numRuns: 200 },
  );
});

test('a reducer is shown the chunks as they stand in the context', () => {
  const add = (text: string): ChunkOperation => ({ kind: 'ADD', chunk: { type: 'STATE', text } });
  const given = (state: ConversationState, id: string, operations: readonly ChunkOperation[]): ConversationState =>
    applyAll(
      state,
      { kind: 'app-event-received', id, type: 'any', payload: null, at: 1 },
      { kind: 'app-event-reduced', id, reduced: { kind: 'reduced', operations }, at: 1 },
    );
  const two = given(open(), 'e-1', [add('first'), add('second')]);
  const updated = given(two, 'e-2', [{ kind: 'UPDATE', id: two.appEvents?.chunks[0]?.id ?? '', text: 'first, updated' }]);
  const asked = apply(updated, { kind: 'app-event-received', id: 'e-3', type: 'any', payload: null, at: 1 });
  expect(eventToReduce(asked)?.view.chunks.map(({ text }) => text)).toEqual(['first, updated', 'second']);
});

test('sixty updates of one chunk cost what one does', () => {
  const begin = open();
  const [add, ...updates] = Array.from({ length: 61 }, (_, n): Wish => ({
    kind: n === 0 ? 'ADD' : 'UPDATE',
    which: 0,
    type: 'STATE',
    text: 'x'.repeat(8_192),
  }));
  const once = reduced(begin, [add as Wish]);
  expect(reduced(once, updates).contextTokens).toBe(once.contextTokens);
});

const pinned = { ...user(`[STATE] ${'x'.repeat(4_000)}`), from: 'app', chunk: 'STATE' } as const;
const flow = { ...user('y'.repeat(4_000)), from: 'app' } as const;

test('a truncation takes the oldest, and no chunk that is not WORKING_FLOW', () => {
  const entries = conversation([1, pinned, flow, user('a'.repeat(400)), answer('b'.repeat(400))], [2, user('c'.repeat(400))]);
  for (const currentTurn of [null, 'turn_0002']) {
    const { dropped } = selectTruncation(entries, 1_000_000, currentTurn);
    expect(dropped.map(({ message }) => message)).toContainEqual(flow);
    expect(dropped.map(({ message }) => message)).not.toContainEqual(pinned);
  }
});

test.each([0, 1_000_000])('nor does a compaction that has to free %d tokens, and the turn beside it goes', (enough) => {
  const turns = Array.from({ length: 8 }, (_, n) => [n + 2, user(`${n}`.repeat(400)), answer('b'.repeat(400))] as const);
  const entries = conversation([1, pinned, flow, user('a'.repeat(400)), answer('b'.repeat(400))], ...turns);
  const window = compactionWindow(entries, { enough, countEntry: entryTokens(entries) });
  expect(window.entries.map(({ message }) => message)).toContainEqual(flow);
  expect(window.kept.map(({ message }) => message)).toContainEqual(pinned);
});

/** One thing that happens while a turn runs: something ends, an event comes, or the workflow goes on. */
type Moment = Wish & { readonly happens: 'event' | 'goes on' };
const moment: fc.Arbitrary<Moment> = fc
  .tuple(wish, fc.constantFrom('event' as const, 'goes on' as const))
  .map(([one, happens]) => ({ ...one, happens }));

test('in a running turn too: what the context grows by is what chunks, answers and results take, and nothing is added while a model looks', () => {
  fc.assert(
    fc.property(fc.array(moment, { maxLength: 60 }), (moments) => {
      let state = settle(applyAll(open(), said('before'))).state;
      state = applyAll(state, said('a'));
      const begin = state.contextTokens;
      let others = 0;
      let n = 0;
      const flying: Effect[] = [];
      const script = withRounds(4);
      const goOn = (): void => {
        for (let i = 0; i < 100; i++) {
          const step = nextStep(state);
          const before = state.contextTokens;
          if (step.kind === 'begin-turn') {
            state = apply(state, { kind: 'turn-begun', at: state.now });
            others += state.contextTokens - before;
          } else if (step.kind === 'effect') {
            const { kind: _, ...effect } = step;
            state = apply(state, { kind: 'effect-started', ...effect, at: state.now } as ConversationEvent);
            flying.push(effect);
          } else if (step.kind === 'reduce') {
            expect(state.inFlight.map(({ effect }) => effect)).not.toContain('model-step');
            const one = step.event.payload as unknown as Wish;
            const operation = toOperation(state, one);
            state = apply(state, {
              kind: 'app-event-reduced',
              id: step.event.id,
              reduced: { kind: 'reduced', operations: [operation] },
              at: state.now,
            });
            const chunksNow = (state.appEvents?.chunks ?? []).reduce((sum, { tokens }) => sum + tokens, 0);
            expect(state.contextTokens - begin - others).toBe(chunksNow);
          } else return;
        }
      };
      const endOne = (): void => {
        const effect = flying.shift();
        if (!effect) return;
        const before = state.contextTokens;
        const output = outputOf(effect, script);
        state = apply(state, {
          kind: 'effect-completed',
          effect: effect.effect,
          id: effect.id,
          output,
          at: state.now,
        } as ConversationEvent);
        others += state.contextTokens - before;
      };
      for (const { happens, ...one } of moments) {
        if (happens === 'event')
          state = apply(state, { kind: 'app-event-received', id: `e-${++n}`, type: 'any', payload: one, at: state.now });
        else endOne();
        goOn();
      }
      for (let i = 0; i < 200 && (state.turn || state.queue.length > 0); i++) {
        endOne();
        goOn();
      }
      const chunks = state.appEvents?.chunks ?? [];
      expect(state.queue).toEqual([]);
      expect(state.contextTokens - begin - others).toBe(chunks.reduce((sum, { tokens }) => sum + tokens, 0));
      // A chunk of another type belongs to no turn that long-term memory takes over (context/chunk-is-entry).
      const taken = state.consolidation.turns.flatMap(({ slots }) => listSlots(slots));
      expect(chunks.filter(({ type, slot }) => type !== 'WORKING_FLOW' && taken.includes(slot))).toEqual([]);
    }),
    { numRuns: 200 },
  );
});

/** A model that asks for a tool so many times, and then answers; without usage, so that each thing is counted by what it takes. */
function withRounds(rounds: number): Script {
  let asked = 0;
  const usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, costUsd: 0 };
  return { model: (input) => ({ ...(asked++ < rounds ? asking(input, 2) : modelAnswer(input)), usage }) };
}

test('an event that comes while a person is waited for is reduced at once, and its sender hears what became of it', () => {
  const asks = { ...ORDINARY, approval: { policy: 'ask', expiresMs: 7 * 24 * 3_600_000 } } as const;
  let state = settle(applyAll(open(), said('a')), { model: (input) => asking(input, 1, asks) }).state;
  state = apply(state, said('b'));
  state = apply(state, { kind: 'app-event-received', id: 'e', type: 'any', payload: 1, isAwaited: true, at: state.now });
  const step = nextStep(state);
  expect(step).toMatchObject({ kind: 'reduce', event: { id: 'e' }, view: { builtIn: [{ type: 'SYSTEM' }, { type: 'WORKING_FLOW' }] } });
  const add = { kind: 'ADD', chunk: { type: 'STATE', text: 'x'.repeat(400) } } as const;
  state = apply(state, { kind: 'app-event-reduced', id: 'e', reduced: { kind: 'reduced', operations: [add] }, at: state.now });
  const [chunk] = state.appEvents?.chunks ?? [];
  expect(outcomeOfEvent(state, 'e')).toMatchObject({ kind: 'reduced', addedChunks: [chunk?.id], removedChunkIds: [] });
  expect(chunk).toMatchObject({ type: 'STATE', text: 'x'.repeat(400) });
  expect(state.turn?.phase).toMatchObject({ kind: 'tools', calls: [{ status: 'asking' }] });
  expect(outcomeOfEvent(state, 'never')).toEqual({ kind: 'not-known' });
});

test('an event that is taken out of the queue by hand is waited for no longer', () => {
  const asks = { ...ORDINARY, approval: { policy: 'ask', expiresMs: 1e9 } } as const;
  let state = settle(applyAll(open(), said('a')), { model: (input) => asking(input, 1, asks) }).state;
  state = apply(state, { kind: 'mode-set', mode: 'stepping', at: state.now });
  state = apply(state, { kind: 'app-event-received', id: 'e', type: 'any', payload: 1, isAwaited: true, at: state.now });
  expect([outcomeOfEvent(state, 'e'), isPending(state, 'dispatch', 'e')]).toEqual([undefined, true]);
  state = apply(state, { kind: 'queue-edited', edit: { op: 'clear' }, at: state.now });
  expect([outcomeOfEvent(state, 'e'), isPending(state, 'dispatch', 'e')]).toEqual([{ kind: 'not-known' }, false]);
});

test('an event behind a reset waits for the next session, also while a turn runs', () => {
  const asks = { ...ORDINARY, approval: { policy: 'ask', expiresMs: 1e9 } } as const;
  let state = settle(applyAll(open(), said('a')), { model: (input) => asking(input, 1, asks) }).state;
  state = apply(state, { kind: 'mode-set', mode: 'stepping', at: state.now });
  state = apply(state, { kind: 'reset-requested', resetId: 'r', at: state.now });
  state = apply(state, { kind: 'app-event-received', id: 'e', type: 'any', payload: 1, at: state.now });
  expect(nextStep(state).kind).not.toBe('reduce');
  expect(statusOf(state, 0).nextStep).toBeNull();
});

test('an undo brings compacted chunks back, but none that was removed or updated since', () => {
  const add = (text: string, type: string): ChunkOperation => ({ kind: 'ADD', chunk: { type, text } });
  const given = (state: ConversationState, id: string, operations: readonly ChunkOperation[]): ConversationState =>
    applyAll(
      state,
      { kind: 'app-event-received', id, type: 'any', payload: null, at: 1 },
      { kind: 'app-event-reduced', id, reduced: { kind: 'reduced', operations }, at: 1 },
    );
  const texts = (state: ConversationState): (string | undefined)[] => {
    const asked = apply(state, { kind: 'app-event-received', id: 'asked', type: 'any', payload: null, at: 1 });
    return eventToReduce(asked)?.view.chunks.map(({ text }) => text) ?? [];
  };
  const first = settle(applyAll(open(), said('a'))).state;
  const had = given(first, 'e-1', [add('flow', 'WORKING_FLOW'), add('old', 'STATE'), add('gone', 'STATE')]);
  const [flow, old, gone] = had.appEvents?.chunks ?? [];
  const compacted = {
    ...{ kind: 'compacted', life: 'l1', epoch: had.epoch + 1, archived: toRanges([...listSlots(first.context), flow?.slot ?? 0]) },
    ...{ kept: toRanges([old?.slot ?? 0, gone?.slot ?? 0]), turns: ['turn_0001'], task: { goal: 'goal', openTasks: [] }, facts: [] },
    ...{ base: { ref: 'base', text: 'summary' }, method: 'model', tokensBefore: 9, tokensAfter: 1, usage: USAGE },
    ...{ episode: { id: 'ep_0001', ts: 1, turn_ids: [], summary: 'summary', tags: [], salience: 0.5 }, record: {} },
  } as unknown as Compacted;
  const asked = apply(had, { kind: 'compaction-requested', requestId: 'c', at: had.now });
  const after = settle(asked, { compact: () => compacted }).state;
  expect(texts(after)).toEqual(['old', 'gone']);
  const changed = given(after, 'e-2', [{ kind: 'UPDATE', id: old?.id ?? '', text: 'new' }, { kind: 'DELETE', id: gone?.id ?? '' }, add('since', 'STATE')]); // prettier-ignore
  const undone = settle(apply(changed, { kind: 'undo-requested', requestId: 'u', at: changed.now })).state;
  expect(undone.epoch).toBe(changed.epoch + 1);
  expect(texts(undone)).toEqual(['flow', 'new', 'since']);
  const tokens = undone.appEvents?.chunks.reduce((sum, chunk) => sum + chunk.tokens, 0) ?? 0;
  expect(undone.contextTokens - first.contextTokens).toBe(tokens);
});
