/**
 * A turn's live events as the parts of an answer, for protocols whose clients can only append.
 *
 * After a gap the reader draws nothing of the current model call from its middle: the answer comes whole at the end.
 *
 * @rule turns/parts-one-by-one: A part is begun, grown and ended; parts of one model call come one after the other. (test:
 *   test/gateway/answer-parts.test.ts)
 * @rule turns/failed-attempt-void: The text of a failed attempt is void: its parts end, `void` names them, and the next attempt begins
 *   parts of its own. (test: test/gateway/answer-parts.test.ts)
 * @rule turns/texts-are-the-answer: The texts of the last call that are not void are, put together, the answer of the result; text that
 *   streaming missed is added at the end. (test: test/gateway/answer-parts.test.ts)
 */
import type { TurnResult } from '../../../conversation/protocol/contract.js';
import type { TurnEvent } from './follow-turn.js';

export type PartKind = 'text' | 'thinking';

export type AnswerEvent =
  /** A model call begins. */
  | { readonly kind: 'call'; readonly call: string }
  | { readonly kind: 'begin'; readonly part: string; readonly of: PartKind }
  | { readonly kind: 'grow'; readonly part: string; readonly of: PartKind; readonly text: string }
  | { readonly kind: 'end'; readonly part: string; readonly of: PartKind; readonly text: string }
  | { readonly kind: 'void'; readonly parts: readonly string[] }
  | Extract<TurnEvent, { readonly kind: 'tool-started' | 'tool-finished' | 'asked' | 'decided' | 'waiting' | 'paused' | 'fallback' }>
  | { readonly kind: 'finished'; readonly result: TurnResult };

interface Part {
  readonly id: string;
  readonly of: PartKind;
  text: string;
  isOpen: boolean;
}

export interface AnswerParts {
  /** What follows from this event; after `turn-finished` nothing more. */
  take(event: TurnEvent): readonly AnswerEvent[];
}

export function createAnswerParts(): AnswerParts {
  let call: string | undefined;
  let attempt: string | undefined;
  /** Of the call at hand, without void ones. */
  let parts: Part[] = [];
  let made = 0;
  /** Of this call something is missing; `''`: of the next one that shows. */
  let broken: string | undefined;

  const close = (): AnswerEvent[] => {
    const open = parts.find(({ isOpen }) => isOpen);
    if (!open) return [];
    open.isOpen = false;
    return [{ kind: 'end', part: open.id, of: open.of, text: open.text }];
  };

  const voidAll = (): AnswerEvent[] => {
    const closed = close();
    const gone = parts.map(({ id }) => id);
    parts = [];
    return gone.length === 0 ? closed : [...closed, { kind: 'void', parts: gone }];
  };

  const grow = (of: PartKind, text: string): AnswerEvent[] => {
    const open = parts.find(({ isOpen }) => isOpen);
    if (open?.of === of) {
      open.text += text;
      return [{ kind: 'grow', part: open.id, of, text }];
    }
    const closed = close();
    made += 1;
    const part: Part = { id: `p${made}`, of, text, isOpen: true };
    parts.push(part);
    return [...closed, { kind: 'begin', part: part.id, of }, { kind: 'grow', part: part.id, of, text }];
  };

  const streamed = (event: Extract<TurnEvent, { readonly kind: PartKind }>): AnswerEvent[] => {
    if (broken === '') broken = event.call;
    if (event.call === broken) return [];
    broken = undefined;
    const before: AnswerEvent[] = [];
    if (event.call !== call) {
      before.push(...close(), { kind: 'call', call: event.call });
      parts = [];
    } else if (event.attempt !== attempt) {
      before.push(...voidAll());
    }
    [call, attempt] = [event.call, event.attempt];
    return [...before, ...grow(event.kind, event.text)];
  };

  /** (turns/texts-are-the-answer) */
  const finish = (result: TurnResult): AnswerEvent[] => {
    const drawn = parts.flatMap(({ of, text }) => (of === 'text' ? [text] : [])).join('');
    // Several texts of one call stand in the result with empty lines between them.
    const isWhole =
      withoutSpace(drawn) === withoutSpace(result.text) || (result.stopReason !== 'end' && drawn.startsWith(result.text.trimEnd()));
    if (isWhole) return [...close(), { kind: 'finished', result }];
    const isGrowing = parts.at(-1)?.isOpen === true && parts.at(-1)?.of === 'text' && result.text.startsWith(drawn);
    const rest = isGrowing ? grow('text', result.text.slice(drawn.length)) : [...voidAll(), ...grow('text', result.text)];
    return [...rest, ...close(), { kind: 'finished', result }];
  };

  return {
    take(event) {
      switch (event.kind) {
        case 'text':
        case 'thinking':
          return streamed(event);
        case 'reset':
          if (event.call !== call) return [];
          attempt = event.attempt;
          return voidAll();
        case 'fallback':
          return event.call === call ? [...voidAll(), event] : [event];
        case 'resync':
          broken = parts.some(({ isOpen }) => isOpen) ? call : '';
          return voidAll();
        case 'tool-started': {
          const closed = close();
          // Its call is committed: what it said stays, and is not the answer.
          parts = [];
          return [...closed, event];
        }
        case 'tool-finished':
        case 'asked':
        case 'decided':
        case 'waiting':
        case 'paused':
          return [...close(), event];
        case 'turn-finished':
          return finish(event.result);
        case 'message':
        case 'compacted':
          return [];
      }
    },
  };
}

function withoutSpace(text: string): string {
  return text.replace(/\s+/g, '');
}
