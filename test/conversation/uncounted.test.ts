/** What the store has from workflow tasks that Temporal did not take, and the loop that goes on all the same. */
import { apply } from '../../src/conversation/apply.js';
import type { MessageToRecord, Recorded, RecordInput } from '../../src/conversation/effects.js';
import { endedTurn } from '../../src/conversation/view.js';
import { LIMITS } from '../../src/conversation/contract.js';
import { nextStep } from '../../src/conversation/next-step.js';
import { rebuild } from '../../src/conversation/rebuild.js';
import type { ConversationEvent } from '../../src/conversation/event.js';
import type { ConversationState } from '../../src/conversation/state.js';
import { turnOfMessage } from '../../src/conversation/arrivals.js';
import { applyAll, open, recorded, said, settle } from './drive.js';

interface Place {
  readonly turn: string;
  readonly slot: number;
}

/** The store's part of the contract: one place for each id, and a slot for one message. */
function createPlaces(uncounted: Record<string, Place> = {}) {
  const places = new Map(Object.entries(uncounted));
  const record = ({ messageId, turn, slot, movedFrom }: MessageToRecord): Partial<Recorded['messages'][number]> => {
    const first = places.get(messageId);
    if (first && (first.slot !== slot || first.turn !== turn) && first.slot !== movedFrom)
      return { duplicate: first.turn, first: first.slot };
    if ([...places].some(([id, place]) => place.slot === slot && id !== messageId)) return { taken: true };
    places.set(messageId, { turn, slot });
    return {};
  };
  return {
    places,
    perform: (input: RecordInput): Recorded => {
      const done = recorded(input);
      return { ...done, messages: done.messages.map((message, i) => ({ ...message, ...record(input.messages[i]!) })) };
    },
  };
}

/** Says these, and goes on until nothing is left to do. */
function converse(uncounted: Record<string, Place>, ...ids: string[]) {
  const { places, perform } = createPlaces(uncounted);
  const events: ConversationEvent[] = ids.map((id) => said(id));
  let state = applyAll(open(), ...events);
  const goOn = (): ConversationState => {
    const settled = settle(state, { record: perform });
    events.push(...settled.events);
    return (state = settled.state);
  };
  const say = (id: string): ConversationState => {
    events.push(said(id));
    state = apply(state, said(id));
    return goOn();
  };
  return { state: goOn(), places, events, say };
}

const at = (turn: number, slot: number): Place => ({ turn: `turn_${String(turn).padStart(4, '0')}`, slot });

test('two messages that the store has in the other order are both answered, and the store follows', () => {
  const { state, places } = converse({ a: at(2, 2), b: at(1, 1) }, 'a', 'b');
  expect(state.turnsEnded).toBe(2);
  for (const [id, turn] of [
    ['a', 'turn_0001'],
    ['b', 'turn_0002'],
  ] as const) {
    expect(turnOfMessage(state, id)).toBe(turn);
    expect(places.get(id)?.turn).toBe(turn);
  }
  expect(new Set([...places.values()].map(({ slot }) => slot)).size).toBe(2);
});

test('a message that never comes again stays where it is, and the one that got its slot gets another', () => {
  const { state, places } = converse({ gone: at(1, 1) }, 'a');
  expect(state.turnsEnded).toBe(1);
  expect(places.get('gone')).toEqual(at(1, 1));
  expect(places.get('a')).toEqual(at(1, 2));
});

test('a message that comes again after its turn and slot went to others gets a turn of its own, once', () => {
  const { state, say, places } = converse({ late: at(2, 3) }, 'a', 'b');
  expect(state.turnsEnded).toBe(2);
  expect(say('late').turnsEnded).toBe(3);
  expect(say('late').turnsEnded).toBe(3);
  expect(places.get('late')?.turn).toBe('turn_0003');
});

test('a message under numbers that nobody has yet is moved to its own', () => {
  const { state, places } = converse({ a: at(7, 12) }, 'a');
  expect(endedTurn(state, 'turn_0001')).toMatchObject({ stopReason: 'end' });
  expect(places.get('a')).toEqual(at(1, 1));
});

test('what was counted and is remembered no more stays a duplicate of its turn', () => {
  const { say, places } = converse({}, 'first');
  for (let n = 0; n < LIMITS.rememberedIds; n++) say(`later ${n}`);
  const before = say('last').turnsEnded;
  expect(before).toBe(LIMITS.rememberedIds + 2);
  const after = say('first');
  expect(after.turnsEnded).toBe(before);
  expect(turnOfMessage(after, 'first')).toBe('turn_0001');
  expect(places.get('first')).toEqual(at(1, 1));
  // The old turn that is remembered again hides nothing of the gap before the others.
  expect(say('later 0').turnsEnded).toBe(before);
});

test('results of before, which do not say where the first one lies, meant one that was counted', () => {
  let state = apply(open(), said('a'));
  const step = nextStep(state);
  if (step.kind !== 'record') throw new Error(step.kind);
  const done = recorded(step.input);
  const old: Recorded = { ...done, messages: done.messages.map((message) => ({ ...message, duplicate: 'turn_0009' })) };
  state = applyAll(state, { kind: 'record-started', at: 1001 }, { kind: 'recorded', recorded: old, at: 1001 });
  expect(state.queue).toEqual([]);
  expect(turnOfMessage(state, 'a')).toBe('turn_0009');
});

test('what is rebuilt from the events is what the store has, each message once', () => {
  const { events, places } = converse({ a: at(2, 2), b: at(1, 1), gone: at(3, 3) }, 'a', 'b', 'c');
  const { messages } = rebuild({ opened: open(), events });
  const counted = [...places].filter(([id]) => id !== 'gone');
  expect(Object.fromEntries(messages.map(({ messageId, turn, slot }) => [messageId, { turn, slot }]))).toEqual(Object.fromEntries(counted));
  expect(messages).toHaveLength(3);
});
