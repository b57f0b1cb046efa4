/**
 * The fold of a turn's live events, for random lives of turns: attempts that fail, models that are replaced, lost events, tools. Beside it a
 * model that looks at all events at once and asks of each text whether anything takes it back.
 */
import fc from 'fast-check';
import type { TurnEvent, TurnResult } from '../../src/records/feed-event.js';
import { NO_USAGE } from '../../src/records/message.js';
import {
  callTexts,
  changesBetween,
  EMPTY_VIEW,
  turnView,
  type TextPart,
  type TurnChange,
  type TurnPart,
  type TurnView,
} from '../../src/records/turn-view.js';

const turn = 'turn_0001';
const speaks = (kind: 'text' | 'thinking', call: string, attempt: string, text: string): TurnEvent => ({ kind, turn, call, attempt, text });
const finished = (text: string, stopReason: TurnResult['stopReason'] = 'end'): TurnEvent => ({
  kind: 'turn-finished',
  turn,
  result: { turnId: turn, text, stopReason, usage: NO_USAGE, toolCalls: 0 },
});

const call = fc.constantFrom('m1', 'm2');
const attempt = fc.constantFrom('1', '2');
const callId = fc.constantFrom('c1', 'c2');
const word = fc.string({ minLength: 1, maxLength: 4 });
const words = fc.record({ kind: fc.constantFrom('text' as const, 'thinking' as const), call, attempt, text: word });
const anything: fc.Arbitrary<TurnEvent> = fc
  .oneof(
    { arbitrary: words, weight: 6 },
    fc.record({ kind: fc.constant('reset' as const), call, attempt }),
    fc.record({ kind: fc.constant('fallback' as const), call, for: word, model: word, insteadOf: word, reason: word }),
    fc.record({ kind: fc.constant('resync' as const) }),
    fc.record({ kind: fc.constant('tool-started' as const), callId, name: word, input: word }),
    fc.record({ kind: fc.constant('tool-finished' as const), callId, name: word, outcome: fc.constantFrom('ok', 'error'), preview: word }),
    fc.record({
      kind: fc.constant('asked' as const),
      callId,
      name: word,
      what: fc.constant('approval' as const),
      target: word,
      until: fc.nat(),
    }),
    fc.record({ kind: fc.constant('decided' as const), callId, name: word, decision: fc.constantFrom('approve', 'deny') }),
    fc.record({ kind: fc.constant('waiting' as const), for: word, until: fc.nat() }),
    fc.record({ kind: fc.constant('message' as const), messageId: word, preview: word, ts: fc.nat() }),
  )
  .map((event) => ({ turn, ...event }) as TurnEvent);
const end = fc.record({ text: word, stopReason: fc.constantFrom('end' as const, 'interrupted' as const, 'failed' as const) });
const life = fc
  .tuple(fc.array(anything, { maxLength: 30 }), fc.option(end))
  .map(([events, last]) => (last === null ? events : [...events, finished(last.text, last.stopReason)]));

type Spoken = Extract<TurnEvent, { readonly kind: 'text' | 'thinking' }>;
const isSpoken = (event: TurnEvent): event is Spoken => event.kind === 'text' || event.kind === 'thinking';
const begunAnew = (event: TurnEvent): string | undefined => (event.kind === 'reset' || event.kind === 'fallback' ? event.call : undefined);

/** All but the texts of a call of which events were lost: of the one that spoke then, or else of the next. */
function heardOf(events: readonly TurnEvent[]): TurnEvent[] {
  const heard: TurnEvent[] = [];
  for (const [at, event] of events.entries()) {
    const gap = events.slice(0, at).findLastIndex(({ kind }) => kind === 'resync');
    const calls = events.slice(gap + 1, at + 1).flatMap((one) => (isSpoken(one) ? [one.call] : []));
    const broken = gap < 0 ? undefined : (speakingIn(heard.slice(0, heard.indexOf(events[gap]!))) ?? calls[0]);
    if (!isSpoken(event) || broken === undefined || calls.some((one) => one !== broken)) heard.push(event);
  }
  return heard;
}

function speakingIn(heard: readonly TurnEvent[]): string | undefined {
  const last = heard.findLast(isSpoken)?.call;
  const latest = heard.findLast((event) => event.kind !== 'message' && [undefined, last].includes(begunAnew(event)));
  return latest && isSpoken(latest) ? latest.call : undefined;
}

function hasBegun(events: readonly TurnEvent[], callId: string): boolean {
  return events.some((event) => event.kind !== 'decided' && 'callId' in event && event.callId === callId);
}

/** Letter by letter, since texts of one call may be in several parts. */
function standingIn(events: readonly TurnEvent[]): string[] {
  const heard = heardOf(events);
  return heard.flatMap((event, at) => {
    if (!isSpoken(event)) return [];
    for (const [after, later] of heard.entries()) {
      if (after <= at) continue;
      if (later.kind === 'tool-started' || later.kind === 'asked' || (isSpoken(later) && later.call !== event.call)) break;
      if (later.kind === 'tool-finished' && !hasBegun(heard.slice(0, after), later.callId)) break;
      if (later.kind === 'resync' || begunAnew(later) === event.call || (isSpoken(later) && later.attempt !== event.attempt)) return [];
    }
    return lettersOf(event);
  });
}

function lettersOf({ kind, call: of, text }: Pick<Spoken, 'kind' | 'text'> & { readonly call?: string }): string[] {
  return text.split('').map((letter) => `${kind} ${of} ${letter}`);
}

const isText = (part: TurnPart): part is TextPart => part.kind === 'text' || part.kind === 'thinking';

/** What a client has that can only append; it refuses what breaks the order of changes. */
class Client {
  readonly texts = new Map<string, { readonly of: string; text: string; isOpen: boolean }>();
  readonly #known = new Set<string>();
  readonly #settled = new Set<string>();

  take(change: TurnChange): void {
    switch (change.kind) {
      case 'begin':
        expect([...this.texts.values()].filter(({ isOpen }) => isOpen)).toEqual([]);
        expect(this.#known.has(change.part)).toBe(false);
        this.#known.add(change.part);
        this.texts.set(change.part, { of: change.of, text: '', isOpen: true });
        return;
      case 'grow': {
        const part = this.texts.get(change.part);
        expect(part).toMatchObject({ of: change.of, isOpen: true });
        if (part) part.text += change.text;
        return;
      }
      case 'end': {
        const part = this.texts.get(change.part);
        expect(part).toEqual({ of: change.of, text: change.text, isOpen: true });
        if (part) part.isOpen = false;
        return;
      }
      case 'void':
        expect(change.text).toBe(
          change.parts
            .map(({ id }) => this.texts.get(id))
            .map((part) => (part?.of === 'text' ? part.text : ''))
            .join(''),
        );
        for (const { id } of change.parts) {
          expect(this.texts.get(id)).toMatchObject({ isOpen: false });
          expect(this.#settled.has(id)).toBe(false);
          this.texts.delete(id);
        }
        return;
      case 'settle':
        for (const { id, kind: of, text } of change.parts) {
          expect(this.texts.get(id)).toEqual({ of, text, isOpen: false });
          expect(this.#settled.has(id)).toBe(false);
          this.#settled.add(id);
        }
        return;
      case 'call':
    }
  }

  /** Of the view that it has followed. */
  sees({ parts, settled, result }: TurnView): void {
    const stays = result === undefined ? parts.slice(0, settled) : parts;
    const texts = parts.filter(isText).map(({ id, kind, text, isOpen }) => [id, { of: kind, text, isOpen }]);
    expect([[...this.texts], [...this.#settled]]).toEqual([texts, stays.filter(isText).map(({ id }) => id)]);
  }
}

describe('any turn', () => {
  test('has the texts that nothing takes back, as a look at all of its events finds them', () => {
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 30 }), (events) => {
        expect(turnView(events).parts.filter(isText).flatMap(lettersOf)).toEqual(standingIn(events));
      }),
      { numRuns: 2_000 },
    );
  });

  test('looks the same folded at once, in pieces, and on from a view that was stored in its middle', () => {
    fc.assert(
      fc.property(life, fc.nat(30), (events, at) => {
        const half = turnView(events.slice(0, at));
        const stored = JSON.parse(JSON.stringify(half)) as TurnView;
        expect(turnView(events.slice(at), half)).toEqual(turnView(events));
        expect(turnView(events.slice(at), stored)).toEqual(turnView(events));
      }),
    );
  });

  test('is what its changes make of it, however many events lie between two looks', () => {
    fc.assert(
      fc.property(life, fc.array(fc.nat(4), { minLength: 1, maxLength: 10 }), (events, steps) => {
        const client = new Client();
        let view = EMPTY_VIEW;
        for (let at = 0, step = 0; at < events.length; step += 1) {
          const next = at + 1 + (steps[step % steps.length] ?? 0);
          const before = view;
          view = turnView(events.slice(at, next), before);
          for (const change of changesBetween(before, view)) client.take(change);
          client.sees(view);
          at = next;
        }
      }),
      { numRuns: 1_000 },
    );
  });
});

const piece = fc.record({ kind: fc.constantFrom('text' as const, 'thinking' as const), text: fc.string({ minLength: 1, maxLength: 6 }) });
const failing = fc.record({ pieces: fc.array(piece, { maxLength: 4 }), ends: fc.constantFrom('reset', 'nothing', 'late') });
const modelCall = fc.record({ failed: fc.array(failing, { maxLength: 3 }), pieces: fc.array(piece, { maxLength: 6 }), tools: fc.nat(2) });
/** Of all events: where some are lost, and how many. */
const gap = fc.record({ at: fc.nat(40), length: fc.nat(12) });

interface ModelCall {
  readonly failed: readonly { readonly pieces: readonly { kind: 'text' | 'thinking'; text: string }[]; readonly ends: string }[];
  readonly pieces: readonly { kind: 'text' | 'thinking'; text: string }[];
  readonly tools: number;
}

/** A turn as a worker and its successors tell it, and its answer. */
function turnOf(calls: readonly ModelCall[]): { readonly events: TurnEvent[]; readonly answer: string } {
  const events = calls.flatMap(({ failed, pieces, tools }, index): TurnEvent[] => {
    const name = `call_${index}`;
    const late: TurnEvent[] = [];
    const before = failed.flatMap(({ pieces: parts, ends }, tries): TurnEvent[] => {
      const streamed = parts.map((one) => speaks(one.kind, name, `${tries}`, one.text));
      if (ends === 'late') late.push(...streamed.splice(Math.ceil(streamed.length / 2)));
      return ends === 'reset' ? [...streamed, { kind: 'reset', turn, call: name, attempt: `${tries + 1}` }] : streamed;
    });
    const whole = pieces.map((one) => speaks(one.kind, name, `${failed.length}`, one.text));
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

/** Of the last call: after its tools. */
const answerIn = (view: TurnView): string =>
  view.parts
    .slice(view.settled)
    .map((part) => (part.kind === 'text' ? part.text : ''))
    .join('');
const drawn = (events: readonly TurnEvent[]): TurnChange[] =>
  events.flatMap((_, at) => [...changesBetween(turnView(events.slice(0, at)), turnView(events.slice(0, at + 1)))]);

describe('at its end', () => {
  test('whatever happened on the way, the texts of the last call that stand are the answer', () => {
    fc.assert(
      fc.property(fc.array(modelCall, { minLength: 1, maxLength: 4 }), fc.array(gap, { maxLength: 3 }), (calls, gaps) => {
        const { events, answer } = turnOf(calls);
        for (const { at, length } of gaps) if (at <= events.length) events.splice(at, length, { kind: 'resync' });
        expect(answerIn(turnView([...events, finished(answer)])).trimEnd()).toBe(answer.trimEnd());
      }),
      { numRuns: 1_000 },
    );
  });

  test('an answer that streamed without a fault was drawn once, and nothing of it is taken back', () => {
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 8 }), (pieces) => {
        const { events, answer } = turnOf([{ failed: [], pieces, tools: 0 }]);
        const changes = drawn([...events, finished(answer)]);
        expect(changes.filter(({ kind }) => kind === 'void')).toEqual([]);
        expect(changes.flatMap((change) => (change.kind === 'grow' && change.of === 'text' ? [change.text] : [])).join('')).toBe(answer);
      }),
    );
  });

  test('a turn that was stopped keeps what it had said, and does not say it again', () => {
    expect(callTexts(turnView([speaks('text', 'a', '1', 'Once upon'), finished('', 'interrupted')]))).toMatchObject([
      { text: 'Once upon' },
    ]);
    const started: TurnEvent = { kind: 'tool-started', turn, callId: 'c', name: 'look', input: '{}' };
    const limited = [speaks('text', 'a', '1', 'I look.'), started, finished('I look.', 'tool-limit')];
    expect(callTexts(turnView(limited))).toMatchObject([{ text: 'I look.' }]);
  });

  test('what came after lost events is no middle of a text: the answer comes whole', () => {
    const events = [speaks('text', 'a', '1', 'One '), { kind: 'resync' } as const, speaks('text', 'a', '1', 'three')];
    const changes = drawn([...events, finished('One two three')]);
    expect(changes.flatMap((change) => (change.kind === 'grow' ? [change.text] : []))).toEqual(['One ', 'One two three']);
  });

  test('what an attempt had streamed is taken back as soon as the next one speaks', () => {
    const changes = drawn([speaks('text', 'a', '1', 'Hal'), speaks('text', 'a', '2', 'Hello'), finished('Hello')]);
    expect(changes.map(({ kind }) => kind)).toEqual(['call', 'begin', 'grow', 'end', 'void', 'begin', 'grow', 'end', 'settle']);
  });
});
