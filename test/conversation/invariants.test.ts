/** Random lives of a conversation against the rules that apply.ts, arrivals.ts, pending-writes.ts, turn.ts and next-step.ts number. */
import fc from 'fast-check';
import { apply } from '../../src/conversation/apply.js';
import { turnOfMessage } from '../../src/conversation/inbox/arrivals.js';
import type { ConversationEvent } from '../../src/conversation/event.js';
import { endedTurn } from '../../src/conversation/views/view.js';
import { choices, choose, createWorld, finish, isFromLongAgo, toldTokens, type Choice, type World } from './lives.js';

const RUNS = process.env['PERDURA_LONG'] === '1' ? 20_000 : 400;

function live(made: readonly Choice[], isFork = false): World {
  const world = createWorld({ isFork });
  for (const choice of made) choose(world, choice);
  finish(world);
  return world;
}

test('whatever happens in whatever order, every message is answered exactly once and nothing owed is forgotten', () => {
  fc.assert(
    fc.property(choices(120), fc.boolean(), (made, isFork) => {
      const world = live(made, isFork);
      const { state, problems } = world;
      expect(problems).toEqual([]);
      if (state.lineage && !state.lineage.isOpen) return;
      expect(state).toMatchObject({ turn: null, queue: [], inFlight: [], outbox: { messages: [], settle: [], entries: [], feed: [] } });
      expect(state.rewinds?.asked ?? []).toEqual([]);
      expect(state.consolidation).toMatchObject({ ending: null, pendingRequests: [] });
      for (const id of world.said) {
        const turn = turnOfMessage(state, id);
        if (isFromLongAgo(id) && turn === 'turn_9001') continue;
        expect([id, turn]).toEqual([id, expect.any(String)]);
        const ended = endedTurn(state, turn!);
        expect([id, turn, ended?.stopReason]).toEqual([id, turn, expect.any(String)]);
        if (ended?.stopReason !== 'withdrawn') expect([id, world.messages.has(id)]).toEqual([id, true]);
      }
      expect(JSON.parse(JSON.stringify(state))).toEqual(state); // C2
    }),
    { numRuns: RUNS },
  );
});

test('whatever happens, the end of every turn goes out to webhooks once, in order, and a conversation does not end before', () => {
  fc.assert(
    fc.property(choices(120), fc.boolean(), (made, isFork) => {
      const world = live(made, isFork);
      expect(world.problems).toEqual([]);
      if (world.state.lineage && !world.state.lineage.isOpen) return;
      expect(world.endsDelivered).toEqual(world.ends);
      expect(new Set(world.endsDelivered).size).toBe(world.endsDelivered.length);
    }),
    { numRuns: RUNS },
  );
});

test('whatever happens, who asked for something is answered, and what was paid for is counted once', () => {
  fc.assert(
    fc.property(choices(120), (made) => {
      const world = live(made);
      const { state } = world;
      expect(state.usage.inputTokens).toBe(toldTokens(world));
      expect(state.compaction).toMatchObject({ asked: [], undoAsked: [] });
      expect(state.compaction.truncationAsked).toBeUndefined();
      const answered = state.compaction.outcomes.map(({ requestId }) => requestId);
      expect(world.requests.slice(-16).filter((id) => !answered.includes(id))).toEqual([]);
      if (world.resets <= 20) {
        const resets = state.resets.map(({ resetId }) => resetId);
        expect(Array.from({ length: world.resets }, (_, r) => `r${r + 1}`).filter((id) => !resets.includes(id))).toEqual([]);
      }
      // What waits to be tried again waits for something that is still to be done.
      expect(Object.keys(state.retries).filter((of) => !['store', 'evict', 'deliver'].includes(of))).toEqual([]);
    }),
    { numRuns: RUNS },
  );
});

test('apply never throws, whatever event meets whatever state', () => {
  fc.assert(
    fc.property(choices(40), fc.array(fc.anything(), { maxLength: 5 }), (made, junk) => {
      const world = createWorld();
      for (const choice of made) choose(world, choice);
      for (const kind of junk) {
        const name = typeof kind === 'string' ? kind : 'what-is-this';
        for (const event of [
          { kind: name },
          { kind: 'effect-started', effect: name },
          { kind: 'effect-completed', effect: name, id: 'x' },
        ]) {
          expect(apply(world.state, { ...event, at: 5 } as unknown as ConversationEvent).v).toBe(1);
        }
      }
    }),
    { numRuns: 100 },
  );
});
