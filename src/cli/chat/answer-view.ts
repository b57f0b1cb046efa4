/**
 * Draws turns as they happen, from two sources that may each be late or silent: the feed's events and the turn's result.
 *
 * 1. One turn is drawn at a time; events of a later one wait until the earlier has ended.
 * 2. A turn ends once, by its `turn-finished` event or by its result, whichever comes first.
 * 3. The answer is never doubled and never cut: what was streamed is compared with the result's text.
 */
import type { EventInTurn, FeedEvent, TurnEvent, TurnResult } from '../../records/feed-event.js';
import { byTurn } from '../../records/turn-end.js';
import { callTexts, changesBetween, EMPTY_VIEW, withEvent } from '../../records/turn-view.js';
import type { Output } from '../terminal/output.js';
import { toTerminalLine } from '../terminal/terminal-text.js';
import { explainEnd } from '../../insight/turns.js';

export interface AnswerView {
  event(event: FeedEvent): void;
  /** The turn's result as its sender got it. `wholeText` is given where `result.text` is only the beginning. */
  finish(result: TurnResult, wholeText?: string): void;
  /** The person wants no more of this turn: what still comes is not drawn, except what its result keeps. */
  hold(): void;
  /** True when the turn was drawn to its end. */
  isFinished(turn: string): boolean;
}

/** Where it is drawn: an `Output`. */
export type Drawing = Pick<Output, 'text' | 'endText' | 'note' | 'problem'>;

export interface ViewOptions {
  readonly width: number;
  /** Turns before it ended before we came: their events are not drawn. */
  readonly from?: string;
  /** The person's messages stand on the screen already. */
  readonly isOurs: (messageId: string) => boolean;
  /** Another view shows what waits for a person, with its arguments. */
  readonly showsAsked?: boolean;
}

export function createAnswerView(drawing: Drawing, options: ViewOptions): AnswerView {
  const finished = new Set<string>();
  const waiting = new Map<string, EventInTurn[]>();
  let current: string | undefined;
  /** What was drawn of it. */
  let view = EMPTY_VIEW;
  let isHeld = false;
  /** The current turn has a message and no more: it may have been withdrawn, and then nothing reports its end. */
  let isOnlyAnnounced = false;

  const note = (text: string): void => drawing.note(`  ${toTerminalLine(text, options.width - 2)}`);

  const draw = (event: TurnEvent): void => {
    if (isHeld && (event.kind === 'text' || event.kind === 'thinking')) return;
    const before = view;
    view = withEvent(before, event);
    for (const change of changesBetween(before, view)) {
      if (change.kind === 'grow' && change.of === 'text') drawing.text(change.text);
      else if (change.kind === 'call') drawing.endText();
      else if (change.kind === 'void' && change.text !== '') note(WHY_AGAIN[event.kind] ?? '(starting again)');
    }
    switch (event.kind) {
      case 'tool-started':
        return note(`→ ${event.name} ${event.input}`);
      case 'tool-finished':
        return note(`${event.outcome === 'ok' ? '←' : `← ${event.outcome}:`} ${event.name} ${event.preview}`);
      case 'fallback':
        return note(`${event.model} is asked in place of ${event.insteadOf}: ${event.for}`);
      case 'waiting':
        return note(`waiting: ${event.for}; going on at ${new Date(event.until).toLocaleTimeString()}`);
      case 'asked':
        drawing.endText();
        if (options.showsAsked === true) return;
        return note(
          `? ${{ question: 'asks you', approval: 'Allow', 'client-tool': 'waits for its client' }[event.what]} ${event.name} ${event.target}`,
        );
      case 'decided':
        return note(
          `${event.decision === 'approve' || event.decision === 'answer' ? '✓' : '✗'} ${DECIDED[event.decision] ?? event.decision}: ${event.name}`,
        );
      case 'paused':
        return note(`stopped before ${event.why}; \`perdura debug\` goes on step by step`);
      case 'compacted':
        note(`(older turns became memory: ${event.tokensBefore} → ${event.tokensAfter} tokens)`);
        return;
      case 'turn-finished':
        return end(event.turn, event.result);
      case 'resync':
        // The result brings the whole.
        isHeld = true;
        return;
      case 'message':
        if (!options.isOurs(event.messageId)) drawing.note(`› ${toTerminalLine(event.preview, 200)}`);
        return;
      case 'text':
      case 'thinking':
      case 'reset':
        return;
      default:
        return ignoreNewer(event);
    }
  };

  const end = (turn: string, result: TurnResult): void => {
    drawing.endText();
    if (result.textRef !== undefined && (callTexts(view).at(-1)?.text.length ?? 0) <= result.text.length) {
      note(`(only the beginning of ${result.textRef.bytes} bytes; \`perdura show\` has the whole)`);
    }
    sayHowItEnded(result);
    finished.add(turn);
    waiting.delete(turn);
    isHeld = false;
    current = undefined;
    view = EMPTY_VIEW;
    const next = [...waiting.keys()].map((one) => ({ turn: one })).sort(byTurn)[0]?.turn;
    if (next === undefined) return;
    const events = waiting.get(next) ?? [];
    waiting.delete(next);
    for (const event of events) route(event);
  };

  const sayHowItEnded = (result: TurnResult): void => {
    const reason = explainEnd(result);
    if (reason === undefined) return;
    if (result.stopReason === 'interrupted' || result.stopReason === 'withdrawn') note(reason);
    else drawing.problem(reason);
  };

  const route = (event: EventInTurn): void => {
    if (finished.has(event.turn) || (options.from !== undefined && byTurn(event, { turn: options.from }) < 0)) return;
    if (current !== undefined && current !== event.turn && !(isOnlyAnnounced && event.kind !== 'message')) {
      waiting.set(event.turn, [...(waiting.get(event.turn) ?? []), event]);
      return;
    }
    isOnlyAnnounced = event.kind === 'message';
    current = event.turn;
    draw(event);
  };

  return {
    event(event) {
      if (event.kind === 'session') return;
      if (event.kind !== 'resync') route(event);
      else if (current !== undefined) draw(event);
    },
    finish(result, wholeText) {
      const turn = result.turnId ?? 'reset';
      if (finished.has(turn)) return;
      // The sender of a later turn may be answered before the feed has the end of the one before.
      if (current !== undefined && current !== turn) {
        finished.add(current);
        view = EMPTY_VIEW;
        drawing.endText();
      }
      const early = waiting.get(turn) ?? [];
      waiting.delete(turn);
      current = turn;
      for (const event of early) route(event);
      if (!finished.has(turn)) {
        const { textRef: _, ...inFull } = result;
        draw({ kind: 'turn-finished', turn, result: wholeText === undefined ? result : { ...inFull, text: wholeText } });
      }
      // Each reset is separate, without a turn.
      if (result.turnId === null) finished.delete(turn);
    },
    hold() {
      isHeld = true;
    },
    isFinished: (turn) => finished.has(turn),
  };
}

const DECIDED: Readonly<Record<string, string>> = {
  approve: 'allowed',
  deny: 'not allowed',
  answer: 'answered',
  expired: 'nobody decided in time',
};

const WHY_AGAIN: Partial<Record<FeedEvent['kind'], string>> = {
  resync: '(a part was missed; the whole answer follows)',
  'turn-finished': '(the whole answer)',
};

/** A worker of a later version may report things that this one does not know. */
function ignoreNewer(_value: never): void {}
