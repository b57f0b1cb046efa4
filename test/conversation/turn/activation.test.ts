/**
 * One activation may bring several things at once: results, messages, decisions, reports. On replay they come in the order that history
 * has, which need not be the one in which they came first. It does not matter: whichever comes first, and whether the loop runs between
 * two of them or after all, nothing is lost and nothing is done twice; only numbers may differ.
 */
import fc from 'fast-check';
import { turnOfMessage } from '../../../src/conversation/inbox/arrivals.js';
import type { ConversationEvent } from '../../../src/conversation/event.js';
import { endedTurn } from '../../../src/conversation/views/view.js';
import { endOf } from '../lives/activities.js';
import { choices } from '../lives/choices.js';
import { choose, eventOf, finish, pump, tell, toldTokens } from '../lives/living.js';
import { createWorld, type World } from '../lives/world.js';

type Arrival =
  | { readonly kind: 'end'; readonly effect: World['flying'][number]; readonly how: number; readonly tools: number }
  | { readonly kind: 'event'; readonly event: ConversationEvent };

/** What comes in one activation: some of what is in flight ends, somebody speaks, decides, reports. */
function arrivalsOf(world: World, hows: readonly number[]): Arrival[] {
  const ends = world.flying
    .slice(0, 3)
    .map((effect, i): Arrival => ({ kind: 'end', effect, how: hows[i] ?? 0, tools: 1 + (hows[i] ?? 0) }));
  const others = [
    eventOf(world, { kind: 'say', id: 100, delivery: 'queue', bytes: 1 }),
    hows[3] === 0 ? eventOf(world, { kind: 'say', id: 101, delivery: 'steer', bytes: 1 }) : undefined,
    // The same once more.
    eventOf(world, { kind: 'say', id: 100, delivery: 'queue', bytes: 1 }),
    eventOf(world, { kind: 'decide', which: 0, decision: 'approve' }),
    eventOf(world, { kind: 'child', which: 0, news: 'ended' }),
    eventOf(world, { kind: 'news', isAgain: false }),
  ];
  return [...ends, ...others.flatMap((event): Arrival[] => (event ? [{ kind: 'event', event }] : []))];
}

function arrive(world: World, arrival: Arrival): void {
  if (arrival.kind === 'event') return tell(world, arrival.event);
  const { id, effect } = arrival.effect;
  // A loop between two arrivals may have handed over: what was given up tells nobody then.
  const at = world.flying.findIndex((one) => one.effect === effect && one.id === id);
  const [one] = at === -1 ? [] : world.flying.splice(at, 1);
  if (one) tell(world, endOf(world, one, arrival.how, arrival.tools));
}

/** What must not depend on the order. Whether memory is asked does: a steered message joins a turn or begins one, and messages are counted. */
function essenceOf({ state, said, messages, outcomes, children }: World, arrivals: readonly Arrival[]) {
  const calls = arrivals.flatMap((one) => (one.kind === 'end' && one.effect.effect === 'run-tool' ? [one.effect.id] : []));
  return {
    written: [...messages.keys()].sort(),
    answered: [...said.keys()].filter((id) => endedTurn(state, turnOfMessage(state, id) ?? '')).sort(),
    outcomes: calls.map((id) => [id, outcomes.get(id)]),
    owed: [state.outbox, state.inFlight, state.queue],
    children,
  };
}

/** In the order of `keys`. */
function permuted<T>(items: readonly T[], keys: readonly number[]): T[] {
  return items
    .map((item, i) => ({ item, key: keys[i] ?? 0 }))
    .sort((a, b) => a.key - b.key)
    .map(({ item }) => item);
}

test('the order of what comes in one activation loses nothing, doubles nothing, and changes numbers alone', () => {
  const keys = fc.array(fc.nat(1_000), { minLength: 12, maxLength: 12 });
  const hows = fc.array(fc.constantFrom(0, 1, 2, 4, 5, 6, 9), { minLength: 4, maxLength: 4 });
  // No stop is among them: whether a message was said before a stop or after it is a difference.
  const quiet = choices(30).map((made) =>
    made.filter(({ kind }) => !['close', 'due', 'interrupt', 'reset', 'rewind', 'edit', 'withdraw'].includes(kind)),
  );
  fc.assert(
    fc.property(quiet, hows, fc.array(keys, { minLength: 3, maxLength: 3 }), (made, how, orders) => {
      const world = createWorld();
      for (const choice of made)
        choose(world, choice.kind === 'say' && choice.delivery === 'interrupt' ? { ...choice, delivery: 'queue' } : choice);
      const arrivals = arrivalsOf(world, how);
      const essences = [[], ...orders].flatMap((order) =>
        [true, false].map((isBetween) => {
          const one = structuredClone(world);
          for (const arrival of permuted(arrivals, order)) {
            arrive(one, arrival);
            if (isBetween) pump(one);
          }
          pump(one);
          finish(one);
          expect(one.problems).toEqual([]);
          expect(one.state.usage.inputTokens).toBe(toldTokens(one));
          return essenceOf(one, arrivals);
        }),
      );
      for (const essence of essences) expect(essence).toEqual(essences[0]);
    }),
    { numRuns: process.env['PERDURA_LONG'] === '1' ? 5_000 : 150 },
  );
});
