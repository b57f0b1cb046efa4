/**
 * A turn as far as its live events have come. Pure: a view and an event give the next view, and two views give what has changed between
 * them, for readers that are sent changes.
 *
 * @rule records/text-of-one-attempt: A text is of one attempt at one model call. It is final once the tools of that call begin, are waited
 *   for or refused, or another call has text. (test: test/records/turn-view.test.ts)
 * @rule records/failed-attempt-void: Until then it is taken back when the attempt fails: by `reset`, by text of another attempt, or by
 *   `fallback` to another model. (test: test/records/turn-view.test.ts)
 * @rule records/nothing-from-the-middle: After `resync` nothing of the current model call is shown from its middle: its answer comes whole at
 *   the end. (test: test/records/turn-view.test.ts)
 * @rule records/texts-are-the-answer: At the end the texts of the last call, joined, are the answer of the result; text that streaming missed
 *   is added. (test: test/records/turn-view.test.ts)
 */
import type { TurnEvent, TurnResult } from './feed-event.js';
import type { ToolOutcome } from './message.js';

export interface TextPart {
  readonly kind: 'text' | 'thinking';
  /** Of its turn; one that was taken back leaves its id to no other. */
  readonly id: string;
  /** The model call that speaks; absent where only the record or the result has it. */
  readonly call?: string;
  readonly text: string;
  /** More of it may come. */
  readonly isOpen: boolean;
}

export interface CallPart {
  readonly kind: 'call';
  readonly callId: string;
  readonly name: string;
  /** JSON, or its beginning. */
  readonly input: string;
  readonly state: 'waiting' | 'running' | ToolOutcome;
  readonly output?: string;
  readonly ms?: number;
  /** How often it was started. */
  readonly attempts: number;
  readonly decision?: string;
}

/** In words for people, from where the turn is shown. */
export interface NoticePart {
  readonly kind: 'notice';
  readonly id: string;
  readonly text: string;
}

export type TurnPart = TextPart | CallPart | NoticePart;

export interface TurnView {
  /** In the order in which they began. */
  readonly parts: readonly TurnPart[];
  /** So many of `parts` stay (records/text-of-one-attempt). */
  readonly settled: number;
  /** How many texts have begun, with those that were taken back. */
  readonly begun: number;
  /** The model call that spoke last, and its attempt. */
  readonly call?: string;
  readonly attempt?: string;
  /** The call of which events were lost (records/nothing-from-the-middle); `''`: the next one that speaks. */
  readonly broken?: string;
  /** Some of its events were lost. */
  readonly hasGap?: boolean;
  /** Why it goes on later, and when; 0: when a person says so. */
  readonly waits?: { readonly for: string; readonly until: number };
  readonly result?: TurnResult;
}

export const EMPTY_VIEW: TurnView = { parts: [], settled: 0, begun: 0 };

export function turnView(events: Iterable<TurnEvent>, from: TurnView = EMPTY_VIEW): TurnView {
  let view = from;
  for (const event of events) view = withEvent(view, event);
  return view;
}

export function withEvent(view: TurnView, event: TurnEvent): TurnView {
  switch (event.kind) {
    case 'text':
    case 'thinking':
      return withWords(view, event);
    case 'reset':
      return event.call === view.call ? { ...takenBack(view), attempt: event.attempt } : view;
    case 'fallback':
      return event.call === view.call ? takenBack(view) : view;
    case 'resync':
      return { ...takenBack(view), broken: openAt(view) < 0 ? '' : view.call, hasGap: true };
    case 'tool-started': {
      const { callId, name, input } = event;
      const started = withCall(view, callId, (known) => ({
        kind: 'call',
        ...{ callId, name, input, attempts: (known?.attempts ?? 0) + 1 },
        state: 'running',
        ...(known?.decision !== undefined && { decision: known.decision }),
      }));
      return { ...settled(started), waits: undefined };
    }
    case 'asked': {
      const { callId, name } = event;
      const { input = '', attempts = 0 } = callIn(view, callId) ?? {};
      return settled(withCall(view, callId, () => ({ kind: 'call', callId, name, input, attempts, state: 'waiting' })));
    }
    case 'decided':
      return withCall(view, event.callId, (known) => {
        return known && { ...known, state: known.state === 'waiting' ? 'running' : known.state, decision: event.decision };
      });
    case 'tool-finished': {
      const { callId, name, outcome, preview, ms } = event;
      const finished = withCall(view, callId, (known) => ({
        kind: 'call',
        ...{ callId, name, input: known?.input ?? '', output: preview, attempts: Math.max(1, known?.attempts ?? 1) },
        state: outcome as ToolOutcome,
        ...(ms !== undefined && { ms }),
        ...(known?.decision !== undefined && { decision: known.decision }),
      }));
      // One that was refused never began.
      return callIn(view, callId) === undefined ? settled(finished) : finished;
    }
    case 'waiting':
      return { ...closed(view), waits: { for: event.for, until: event.until } };
    case 'paused':
      return { ...closed(view), waits: { for: event.why, until: 0 } };
    case 'turn-finished':
      return { ...closed(withAnswer(view, event.result)), waits: undefined, result: event.result };
    case 'message':
    case 'compacted':
      return view;
    default:
      // A worker of a later version may report what this one does not know.
      event satisfies never;
      return view;
  }
}

export type TurnChange =
  /** A model call speaks. */
  | { readonly kind: 'call'; readonly call: string }
  | { readonly kind: 'begin'; readonly part: string; readonly of: TextPart['kind'] }
  | { readonly kind: 'grow'; readonly part: string; readonly of: TextPart['kind']; readonly text: string }
  /** `text` is the whole of it. */
  | { readonly kind: 'end'; readonly part: string; readonly of: TextPart['kind']; readonly text: string }
  /** Parts that have ended stand: none of them is taken back any more. */
  | { readonly kind: 'settle'; readonly parts: readonly TextPart[] }
  /** Parts that have ended are taken back; `text` is what of them was no thinking. */
  | { readonly kind: 'void'; readonly parts: readonly TextPart[]; readonly text: string };

/** What makes the texts of the one view those of the other; one text after the other is begun, grown, ended and settled. */
export function changesBetween(before: TurnView, after: TurnView): readonly TurnChange[] {
  const changes: TurnChange[] = [];
  let same = 0;
  while (same < before.parts.length && before.parts[same] === after.parts[same]) same += 1;
  const [earlier, later] = [before, after].map(({ parts }) => parts.slice(same).filter(isText)) as [TextPart[], TextPart[]];
  const gone: TextPart[] = [];
  const settling = after.parts.slice(standing(before), standing(after)).filter(isText);
  const settle = (ids: ReadonlySet<string>): void => {
    const parts = settling.filter(({ id }) => ids.has(id));
    if (parts.length > 0) changes.push({ kind: 'settle', parts });
  };
  const end = ({ id: part, kind: of, text }: TextPart): void => void changes.push({ kind: 'end', part, of, text });
  for (const was of earlier) {
    const now = later.find(({ id }) => id === was.id);
    if (now !== undefined && now.text !== was.text) {
      changes.push({ kind: 'grow', part: was.id, of: was.kind, text: now.text.slice(was.text.length) });
    }
    if (was.isOpen && now?.isOpen !== true) end(now ?? was);
    if (now === undefined) gone.push(was);
  }
  if (gone.length > 0) changes.push({ kind: 'void', parts: gone, text: wordsIn(gone) });
  settle(new Set(before.parts.flatMap((part) => (isText(part) ? [part.id] : []))));
  let { call } = before;
  const turnTo = (next: string | undefined): void => {
    if (next !== undefined && next !== call) changes.push({ kind: 'call', call: next });
    call = next;
  };
  for (const now of later) {
    if (earlier.some(({ id }) => id === now.id)) continue;
    turnTo(now.call);
    changes.push({ kind: 'begin', part: now.id, of: now.kind }, { kind: 'grow', part: now.id, of: now.kind, text: now.text });
    if (now.isOpen) continue;
    end(now);
    settle(new Set([now.id]));
  }
  turnTo(after.call);
  return changes;
}

/** How many parts stand: all, once the turn has ended. */
function standing({ parts, settled: stays, result }: TurnView): number {
  return result === undefined ? stays : parts.length;
}

export interface CallText {
  readonly text: string;
  /** More of it may come, or it may be taken back (records/text-of-one-attempt). */
  readonly isOpen: boolean;
}

/** The model's text, one for each of its calls. */
export function callTexts({ parts, settled: stays }: TurnView): readonly CallText[] {
  const texts: { call: string | undefined; text: string; isOpen: boolean }[] = [];
  let isApart = true;
  for (const [at, part] of parts.entries()) {
    if (part.kind === 'call') isApart = true;
    if (part.kind !== 'text' || part.text === '') continue;
    const last = texts.at(-1);
    if (last === undefined || isApart || last.call !== part.call) texts.push({ call: part.call, text: part.text, isOpen: at >= stays });
    else last.text += part.text;
    isApart = false;
  }
  return texts;
}

function withWords(view: TurnView, { kind, call, attempt, text }: Extract<TurnEvent, { readonly kind: TextPart['kind'] }>): TurnView {
  const broken = view.broken === '' ? call : view.broken;
  if (call === broken) return { ...view, broken };
  const before = call !== view.call ? settled(view) : attempt !== view.attempt ? takenBack(view) : view;
  return grown({ ...before, call, attempt, broken: undefined, waits: undefined }, kind, text);
}

function grown(view: TurnView, kind: TextPart['kind'], text: string): TurnView {
  const at = openAt(view);
  const open = view.parts[at];
  if (open?.kind === kind) return { ...view, parts: view.parts.with(at, { ...open, text: open.text + text }) };
  const begun = view.begun + 1;
  const part: TextPart = { kind, id: `p${begun}`, ...(view.call !== undefined && { call: view.call }), text, isOpen: true };
  return { ...view, parts: [...closed(view).parts, part], begun };
}

/**
 * (records/texts-are-the-answer) A turn that was stopped keeps less than what was streamed, and of a long answer the result has the
 * beginning alone.
 */
function withAnswer(view: TurnView, { text, textRef, stopReason, error }: TurnResult): TurnView {
  const isStopped = stopReason !== 'end' || error !== undefined;
  const last = isStopped ? view.parts.filter((part) => isText(part) && part.call === view.call) : view.parts.slice(view.settled);
  const streamed = wordsIn(last);
  // Several texts of one call stand in the result with empty lines between them.
  if (withoutSpace(streamed) === withoutSpace(text)) return view;
  if ((isStopped || textRef !== undefined) && streamed.startsWith(text.trimEnd())) return view;
  // The answer is of an earlier call then, and what was streamed of this one is not kept.
  if (isStopped && callTexts(view).some((one) => withoutSpace(one.text) === withoutSpace(text))) return view;
  if (view.parts[openAt(view)]?.kind === 'text' && text.startsWith(streamed)) return grown(view, 'text', text.slice(streamed.length));
  return text === '' ? takenBack(view) : grown(takenBack(view), 'text', text);
}

function takenBack(view: TurnView): TurnView {
  return { ...view, parts: view.parts.filter((part, at) => at < view.settled || !isText(part)) };
}

function settled(view: TurnView): TurnView {
  return { ...closed(view), settled: view.parts.length };
}

function closed(view: TurnView): TurnView {
  const at = openAt(view);
  const open = view.parts[at];
  return open === undefined ? view : { ...view, parts: view.parts.with(at, { ...open, isOpen: false } as TextPart) };
}

/** -1 where no text is open. */
function openAt({ parts, settled: stays }: TurnView): number {
  for (let at = parts.length - 1; at >= stays; at -= 1) {
    const part = parts[at];
    if (part !== undefined && isText(part) && part.isOpen) return at;
  }
  return -1;
}

function withCall(view: TurnView, callId: string, change: (known: CallPart | undefined) => CallPart | undefined): TurnView {
  const before = closed(view);
  const known = callIn(before, callId);
  const made = change(known);
  if (made === undefined) return before;
  return { ...before, parts: known ? before.parts.map((part) => (part === known ? made : part)) : [...before.parts, made] };
}

function callIn({ parts }: TurnView, callId: string): CallPart | undefined {
  return parts.find((part): part is CallPart => part.kind === 'call' && part.callId === callId);
}

function isText(part: TurnPart): part is TextPart {
  return part.kind === 'text' || part.kind === 'thinking';
}

function wordsIn(parts: readonly TurnPart[]): string {
  return parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');
}

function withoutSpace(text: string): string {
  return text.replace(/\s+/g, '');
}
