/**
 * Turns as they are shown. Pure: made of what is recorded, and of live events where a turn still runs.
 *
 * @rule web/ended-turn-as-recorded: A turn that has ended is what is recorded of it, and nothing else. (test: test/page/turns.test.ts)
 * @rule web/running-turn-from-events: A running turn is its live events from its beginning; if they were lost, its record, and live events
 *   after that. (test: test/page/turns.test.ts)
 */
import type { TurnEvent } from '../../../src/records/feed-event.js';
import { EMPTY_VIEW, withEvent as viewWithEvent, type CallPart, type TurnPart, type TurnView } from '../../../src/records/turn-view.js';
import type { components } from '../../../packages/perdura-client/src/schema.js';

export type Entry = components['schemas']['Entry'];
export type TurnEnd = components['schemas']['TurnEnd'];
export type Media = components['schemas']['Media'];
/** Until it is sent a file has its name. */
export type NamedMedia = Media & { readonly name?: string };

/** Of a long text, its beginning. */
export function shownText(text: string | components['schemas']['LongText']): string {
  return typeof text === 'string' ? text : `${text.preview}…`;
}

export interface Words {
  readonly id: string | undefined;
  readonly text: string;
  readonly images: readonly Media[];
  readonly documents: readonly NamedMedia[];
  /** Beside images: how many sounds and videos came along. */
  readonly others: number;
}

export interface Turn extends TurnView {
  readonly id: string;
  readonly session: number;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly messages: readonly Words[];
  readonly isRunning: boolean;
  readonly model?: string;
  /** Why it has no whole answer, as it is recorded. */
  readonly end?: Omit<TurnEnd, 'turn'>;
}

/** Of entries in their order. `ends`: of turns that have no whole answer. */
export function toTurns(entries: readonly Entry[], ends: readonly TurnEnd[] = []): Turn[] {
  const reasons = new Map(ends.map(({ turn, ...end }) => [turn, end]));
  const turns = new Map<string, Entry[]>();
  for (const entry of entries) {
    const known = turns.get(entry.turn);
    if (known === undefined) turns.set(entry.turn, [entry]);
    else known.push(entry);
  }
  return [...turns.values()].map((one) => toTurn(one, reasons.get(one[0]?.turn ?? '')));
}

function toTurn(entries: readonly Entry[], end: Turn['end']): Turn {
  const [first] = entries;
  const results = new Map(entries.flatMap(({ message }) => (message.role === 'tool' ? [[message.callId, message] as const] : [])));
  const messages: Words[] = [];
  const parts: TurnPart[] = [];
  let model: string | undefined;
  for (const { message, slot, messageId } of entries) {
    if (message.role === 'user' && message.from === undefined) {
      const { images = [], audio = [], video = [], documents = [] } = message;
      messages.push({ id: messageId, text: shownText(message.text), images, documents, others: audio.length + video.length });
    } else if (message.role === 'user') parts.push({ kind: 'notice', id: `n${slot}`, text: shownText(message.text) });
    else if (message.role === 'assistant') {
      model = message.model;
      for (const [at, block] of message.blocks.entries()) {
        const part = { id: `${slot}.${at}`, isOpen: false };
        if (block.kind === 'text') parts.push({ kind: 'text', ...part, text: shownText(block.text) });
        else if (block.kind === 'thinking') parts.push({ kind: 'thinking', ...part, text: block.text });
        else if (block.kind === 'tool-call') {
          const result = results.get(block.callId);
          parts.push({
            kind: 'call',
            callId: block.callId,
            name: block.name,
            input: block.inputRef === undefined ? JSON.stringify(block.input, null, 2) : shownText(block.inputRef),
            state: (result?.outcome ?? 'running') as CallPart['state'],
            ...(result && { output: shownText(result.text) }),
            attempts: 1,
          });
        }
      }
    }
  }
  return {
    ...{ ...EMPTY_VIEW, parts, settled: parts.length },
    ...{ id: first?.turn ?? '', session: first?.session ?? 1, at: (first?.ts ?? 0) * 1000, messages },
    isRunning: false,
    ...(end && { end }),
    ...(model !== undefined && { model }),
  };
}

export function emptyTurn(id: string, at: number): Turn {
  return { ...EMPTY_VIEW, id, session: 0, at, messages: [], isRunning: true };
}

/** A running turn after one of its live events. */
export function withEvent(turn: Turn, event: TurnEvent): Turn {
  const next: Turn = { ...turn, ...viewWithEvent(turn, event) };
  switch (event.kind) {
    case 'message':
      if (turn.messages.some(({ id }) => id === event.messageId)) return next;
      return { ...next, messages: [...turn.messages, { id: event.messageId, text: event.preview, images: [], documents: [], others: 0 }] };
    case 'fallback':
      return withNotice(next, `f:${event.call}`, `${event.insteadOf} could not answer (${event.for}); ${event.model} answers instead.`);
    case 'compacted':
      return withNotice(next, `k:${event.epoch}`, `Older turns became memory: ${event.tokensBefore} tokens are now ${event.tokensAfter}.`);
    case 'turn-finished':
      return { ...next, isRunning: false };
    default:
      return next;
  }
}

function withNotice(turn: Turn, id: string, text: string): Turn {
  return { ...turn, parts: [...turn.parts, { kind: 'notice', id, text }] };
}
