/** Chunks of the application's own (seed 004): what they take of the context is counted exactly, whatever is done to them. */
import fc from 'fast-check';
import { apply } from '../../../src/conversation/apply.js';
import type { ChunkOperation } from '../../../src/conversation/inbox/reducers.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { slotsOf } from '../../../src/records/slots.js';
import { compactionWindow } from '../../../src/memory/compaction/window.js';
import { selectTruncation } from '../../../src/memory/compaction/truncation.js';
import { entryTokens } from '../../../src/memory/tokens.js';
import { conversation, answer, user } from '../../memory/builders.js';
import { applyAll, open, said, settle } from '../drive.js';

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
      const added = slotsOf(state.context).filter((slot) => !slotsOf(begin.context).includes(slot));
      expect(added.sort((a, b) => a - b)).toEqual(chunks.map(({ slot }) => slot).sort((a, b) => a - b));
    }),
    { numRuns: 200 },
  );
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
  const window = compactionWindow(entries, { enough, tokensOf: entryTokens(entries) });
  expect(window.entries.map(({ message }) => message)).toContainEqual(flow);
  expect(window.kept.map(({ message }) => message)).toContainEqual(pinned);
});
