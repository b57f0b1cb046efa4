/** State is a fold of events: any state that a conversation was ever in can be had again, forwards and backwards. */
import { apply } from '../../../src/conversation/apply.js';
import type { ConversationEvent } from '../../../src/conversation/event.js';
import { createPast } from '../../../src/conversation/replay/past.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { manyTurns } from '../../support/many-turns.js';

const run = manyTurns(30);

/** The plain fold, without anything kept. */
function folded(position: number): ConversationState {
  return run.events.slice(0, position).reduce(apply, run.opened);
}

test('every state is the fold of the events before it, forwards, backwards and across what is kept', () => {
  const past = createPast([run], 7);
  expect(past.last).toBe(run.events.length);
  const there = Array.from({ length: past.last + 1 }, (_, position) => position);
  for (const position of [...there, ...[...there].reverse(), 50, 3, 51, 49]) {
    const moment = past.at(position);
    expect(moment.event).toBe(position === 0 ? undefined : run.events[position - 1]);
    expect(moment.state).toEqual(folded(position));
  }
});

test('beyond either end is the end', () => {
  const past = createPast([run]);
  expect([past.at(-5).position, past.at(1e9).position]).toEqual([0, past.last]);
});

test('turns are found where they began, and an event by its kind in either direction', () => {
  const past = createPast([run]);
  expect(past.turns.map(({ turn }) => turn)).toEqual(Array.from({ length: 30 }, (_, n) => n + 1));
  const seventh = past.positionOf('turn_0007') ?? 0;
  expect(past.at(seventh).state.turn?.number).toBe(7);
  expect(past.at(seventh - 1).state.turn?.number).not.toBe(7);
  expect(past.positionOf('turn_0031')).toBeUndefined();
  const next = past.find('effect-completed', seventh, 1) ?? 0;
  expect(past.at(next).event?.kind).toBe('effect-completed');
  expect(past.find('effect-completed', next, -1)).toBeLessThan(seventh);
  expect(past.find('nothing-of-that-kind', 0, 1)).toBeUndefined();
});

test('each later run begins where the one before it ended', () => {
  const [first, rest] = [run.events.slice(0, 40), run.events.slice(40)];
  const carried = apply(first.reduce(apply, run.opened), { kind: 'run-continued', at: 1 });
  const past = createPast(
    [
      { opened: run.opened, events: first },
      { opened: carried, events: rest },
    ],
    16,
  );
  expect(past.at(40)).toMatchObject({ run: 1 });
  expect(past.at(41)).toMatchObject({ run: 2, event: undefined, state: carried });
  const { now: _, ...last } = past.at(past.last).state;
  const { now: _now, ...whole } = folded(run.events.length);
  expect(last).toEqual({ ...whole, attributes: last.attributes });
});

test('going to any position applies no more events than lie between two states that are kept', () => {
  const long = manyTurns(300);
  const applied = new Set<number>();
  const watched = long.events.map((event, i) => new Proxy(event, { get: (of, key) => (applied.add(i), Reflect.get(of, key) as unknown) }));
  const past = createPast([{ ...long, events: watched }], 100);
  for (const position of [past.last, 0, Math.floor(past.last / 2), Math.floor(past.last / 2) - 1, 1]) {
    applied.clear();
    past.at(position);
    expect(applied.size).toBeLessThanOrEqual(100);
  }
  expect(past.turns).toHaveLength(300);
});

test('an unknown kind in an old history changes nothing but what was rejected', () => {
  const strange = { kind: 'of-a-later-version', at: 5 } as unknown as ConversationEvent;
  const past = createPast([{ opened: run.opened, events: [strange] }]);
  expect(past.at(1).state.rejected.count).toBe(1);
});
