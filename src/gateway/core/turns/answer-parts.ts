/**
 * A turn's live events as the parts of an answer, for protocols whose clients can only append: what changes in the view of the turn
 * (records/turn-view.ts), and the events that are news in themselves.
 */
import type { TurnEvent, TurnResult } from '../../../records/feed-event.js';
import { changesBetween, EMPTY_VIEW, withEvent, type TurnChange, type TurnView } from '../../../records/turn-view.js';

export type AnswerEvent =
  | TurnChange
  | Extract<TurnEvent, { readonly kind: 'tool-started' | 'tool-finished' | 'decided' | 'waiting' | 'paused' | 'fallback' }>
  /** `isOver`: it has been answered since, as a reader that comes later sees. */
  | (Extract<TurnEvent, { readonly kind: 'asked' }> & { readonly isOver?: true })
  | { readonly kind: 'finished'; readonly result: TurnResult };

export interface AnswerParts {
  /** What follows from this event; after `turn-finished` nothing more. */
  take(event: TurnEvent): readonly AnswerEvent[];
  /** The turn after the last of them. */
  view(): TurnView;
}

export function createAnswerParts(): AnswerParts {
  let view = EMPTY_VIEW;
  return {
    take(event) {
      const before = view;
      view = withEvent(before, event);
      return [...changesBetween(before, view), ...passedOn(event)];
    },
    view: () => view,
  };
}

function passedOn(event: TurnEvent): readonly AnswerEvent[] {
  switch (event.kind) {
    case 'tool-started':
    case 'tool-finished':
    case 'asked':
    case 'decided':
    case 'waiting':
    case 'paused':
    case 'fallback':
      return [event];
    case 'turn-finished':
      return [{ kind: 'finished', result: event.result }];
    default:
      return [];
  }
}
