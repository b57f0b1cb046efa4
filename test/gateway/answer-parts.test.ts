/** The parts of an answer, for random lives of a turn: attempts that fail, models that are replaced, gaps, tools. */
import fc from 'fast-check';
import type { TurnResult } from '../../src/conversation/protocol/contract.js';
import { createAnswerParts, type AnswerEvent } from '../../src/gateway/core/turns/answer-parts.js';
import type { TurnEvent } from '../../src/gateway/core/turns/follow-turn.js';
import { NO_USAGE } from '../../src/records/message.js';

const turn = 'turn_0001';
const finished = (text: string, stopReason: TurnResult['stopReason'] = 'end'): TurnEvent => ({
  kind: 'turn-finished',
  turn,
  result: { turnId: turn, text, stopReason, usage: NO_USAGE, toolCalls: 0 },
});
const said = (kind: 'text' | 'thinking', call: string, attempt: number, text: string): TurnEvent => ({
  kind,
  turn,
  call,
  attempt: `${call}.${attempt}`,
  text,
});

/** What a client that can only append has at the end; it refuses events that break (turns/parts-one-by-one, turns/failed-attempt-void). */
function read(events: readonly TurnEvent[]): { readonly answer: string; readonly drawn: readonly AnswerEvent[] } {
  const parts = createAnswerParts();
  const drawn = events.flatMap((event) => [...parts.take(event)]);
  const texts = new Map<string, { of: string; text: string; isOpen: boolean }>();
  let ofCall: string[] = [];
  for (const event of drawn) {
    switch (event.kind) {
      case 'call':
      case 'tool-started':
        ofCall = [];
        break;
      case 'begin':
        expect([...texts.values()].some(({ isOpen }) => isOpen)).toBe(false);
        expect(texts.has(event.part)).toBe(false);
        texts.set(event.part, { of: event.of, text: '', isOpen: true });
        ofCall.push(event.part);
        break;
      case 'grow': {
        const part = texts.get(event.part);
        expect(part).toMatchObject({ of: event.of, isOpen: true });
        if (part) part.text += event.text;
        break;
      }
      case 'end': {
        const part = texts.get(event.part);
        expect(part).toEqual({ of: event.of, text: event.text, isOpen: true });
        if (part) part.isOpen = false;
        break;
      }
      case 'void':
        for (const id of event.parts) {
          expect(texts.get(id)).toMatchObject({ isOpen: false });
          ofCall = ofCall.filter((one) => one !== id);
        }
        break;
      default:
    }
  }
  expect([...texts.values()].some(({ isOpen }) => isOpen)).toBe(false);
  const answer = ofCall.flatMap((id) => (texts.get(id)?.of === 'text' ? [texts.get(id)?.text ?? ''] : [])).join('');
  return { answer, drawn };
}

const piece = fc.record({ kind: fc.constantFrom('text' as const, 'thinking' as const), text: fc.string({ minLength: 1, maxLength: 6 }) });
const failing = fc.record({ pieces: fc.array(piece, { maxLength: 4 }), ends: fc.constantFrom('reset', 'nothing', 'late') });
const call = fc.record({ failed: fc.array(failing, { maxLength: 3 }), pieces: fc.array(piece, { maxLength: 6 }), tools: fc.nat(2) });
/** Of all events: where some are lost, and how many. */
const gap = fc.record({ at: fc.nat(40), length: fc.nat(12) });

interface Call {
  readonly failed: readonly { readonly pieces: readonly { kind: 'text' | 'thinking'; text: string }[]; readonly ends: string }[];
  readonly pieces: readonly { kind: 'text' | 'thinking'; text: string }[];
  readonly tools: number;
}

function eventsOf(calls: readonly Call[]): { readonly events: TurnEvent[]; readonly answer: string } {
  const events = calls.flatMap(({ failed, pieces, tools }, index): TurnEvent[] => {
    const name = `call_${index}`;
    const late: TurnEvent[] = [];
    const before = failed.flatMap(({ pieces: own, ends }, attempt): TurnEvent[] => {
      const streamed = own.map((one) => said(one.kind, name, attempt, one.text));
      if (ends === 'late') late.push(...streamed.splice(Math.ceil(streamed.length / 2)));
      return ends === 'reset' ? [...streamed, { kind: 'reset', turn, call: name, attempt: `${name}.${attempt + 1}` }] : streamed;
    });
    const whole = pieces.map((one) => said(one.kind, name, failed.length, one.text));
    // A worker that is thought dead goes on streaming beside the one that took over.
    const mixed = whole.flatMap((one) => [one, ...late.splice(0, 1)]);
    const isLast = index === calls.length - 1;
    const ran = Array.from({ length: isLast ? 0 : tools + 1 }, (_, at): TurnEvent[] => [
      { kind: 'tool-started', turn, callId: `${name}.${at}`, name: 'look', input: '{}' },
      { kind: 'tool-finished', turn, callId: `${name}.${at}`, name: 'look', outcome: 'ok', preview: '' },
    ]).flat();
    return [...before, ...mixed, ...ran];
  });
  const answer = (calls.at(-1)?.pieces ?? []).flatMap(({ kind, text }) => (kind === 'text' ? [text] : [])).join('');
  return { events, answer };
}

test('whatever happened on the way, the texts of the last call that are not void are the answer', () => {
  fc.assert(
    fc.property(fc.array(call, { minLength: 1, maxLength: 4 }), fc.array(gap, { maxLength: 3 }), (calls, gaps) => {
      const { events, answer } = eventsOf(calls);
      const left = [...events];
      for (const { at, length } of gaps) if (at <= left.length) left.splice(at, length, { kind: 'resync' });
      expect(read([...left, finished(answer)]).answer.trimEnd()).toBe(answer.trimEnd());
    }),
    { numRuns: 1_000 },
  );
});

test('an answer that streamed without a fault is drawn once, and nothing of it is void', () => {
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1, maxLength: 8 }), (pieces) => {
      const { events, answer } = eventsOf([{ failed: [], pieces, tools: 0 }]);
      const { drawn } = read([...events, finished(answer)]);
      expect(drawn.filter(({ kind }) => kind === 'void')).toEqual([]);
      expect(drawn.flatMap((event) => (event.kind === 'grow' && event.of === 'text' ? [event.text] : [])).join('')).toBe(answer);
    }),
  );
});

test('a turn that was stopped keeps what was drawn', () => {
  const { answer, drawn } = read([said('text', 'a', 1, 'Once upon'), finished('', 'interrupted')]);
  expect(answer).toBe('Once upon');
  expect(drawn.at(-1)).toMatchObject({ kind: 'finished', result: { stopReason: 'interrupted' } });
});

test('a model that is replaced leaves nothing of what it said', () => {
  const fallback = { kind: 'fallback', turn, call: 'a', for: 'overloaded', from: 'x/a', to: 'x/b' } as unknown as TurnEvent;
  expect(read([said('text', 'a', 1, 'Hal'), fallback, said('text', 'b', 1, 'Hello'), finished('Hello')]).answer).toBe('Hello');
});

test('after a gap nothing of the call at hand is drawn from its middle', () => {
  const { answer, drawn } = read([
    said('text', 'a', 1, 'One '),
    { kind: 'resync' },
    said('text', 'a', 1, 'three'),
    finished('One two three'),
  ]);
  expect(answer).toBe('One two three');
  expect(drawn.flatMap((event) => (event.kind === 'grow' ? [event.text] : []))).toEqual(['One ', 'One two three']);
});

test('what an attempt had streamed is void as soon as the next one streams', () => {
  const { drawn } = read([said('text', 'a', 1, 'Hal'), said('text', 'a', 2, 'Hello'), finished('Hello')]);
  expect(drawn.map(({ kind }) => kind)).toEqual(['call', 'begin', 'grow', 'end', 'void', 'begin', 'grow', 'end', 'finished']);
});
