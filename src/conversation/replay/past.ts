/**
 * A conversation's past: since state is a fold of events, every state that it was ever in can be had again, forwards and backwards.
 *
 * Position 0 is the state that the first run began with; each event, and each later run's beginning, is one further. Every so many events a
 * state is kept, so going back applies at most so many.
 */
import { apply } from '../apply.js';
import type { ConversationEvent } from '../event.js';
import { eventName } from '../views/observation.js';
import type { ConversationState } from '../state.js';
import { turnNumber } from '../../records/identity.js';

/** One run of a conversation: the state it began with, and what happened in it. */
export interface Run {
  readonly opened: ConversationState;
  readonly events: readonly ConversationEvent[];
}

export interface Moment {
  readonly position: number;
  /** What led here; undefined at the beginning of a run. */
  readonly event: ConversationEvent | undefined;
  /** Of the runs that are still retained, from 1. */
  readonly run: number;
  readonly state: ConversationState;
}

export interface Past {
  /** Of the latest state. */
  readonly last: number;
  /** Nearest to the position that there is. */
  at(position: number): Moment;
  /** Where turns began: the position at which each is the running one for the first time. */
  readonly turns: readonly { readonly turn: number; readonly position: number }[];
  /** Where this turn began, or the next one that there is; undefined when all are earlier. */
  positionOf(turn: string): number | undefined;
  /** The next position in that direction whose event's kind or name contains the word. */
  find(word: string, from: number, direction: 1 | -1): number | undefined;
}

interface Happening {
  readonly event: ConversationEvent | undefined;
  readonly run: number;
}

export function createPast(runs: readonly Run[], keptEvery = 200): Past {
  const happenings: Happening[] = runs.flatMap(({ events }, run) => [
    { event: undefined, run },
    ...events.map((event) => ({ event, run })),
  ]);
  const last = Math.max(0, happenings.length - 1);
  const kept: ConversationState[] = [];
  const turns: { turn: number; position: number }[] = [];

  const next = (before: ConversationState | undefined, position: number): ConversationState => {
    const { event, run } = happenings[position] ?? { event: undefined, run: 0 };
    const opened = runs[run]?.opened;
    if (event === undefined || before === undefined) {
      if (!opened) throw new Error('there is no run to look at');
      return opened;
    }
    return apply(before, event);
  };
  let folded: ConversationState | undefined;
  for (let position = 0; position < happenings.length; position++) {
    folded = next(folded, position);
    if (position % keptEvery === 0) kept.push(folded);
    const begun = folded.turn?.number ?? 0;
    if (begun > (turns[turns.length - 1]?.turn ?? 0)) turns.push({ turn: begun, position });
  }
  let recent: { readonly position: number; readonly state: ConversationState } | undefined;

  const at = (wanted: number): Moment => {
    const position = Math.min(last, Math.max(0, Math.trunc(wanted)));
    const from = Math.floor(position / keptEvery) * keptEvery;
    const start =
      recent && recent.position <= position && recent.position >= from ? recent : { position: from, state: kept[from / keptEvery] };
    let { state } = start;
    for (let n = start.position + 1; n <= position; n++) state = next(state, n);
    state ??= next(undefined, 0);
    recent = { position, state };
    const { event, run } = happenings[position] ?? { event: undefined, run: 0 };
    return { position, event, run: run + 1, state };
  };

  return {
    last,
    at,
    turns,
    positionOf: (turn) => turns.find((begun) => begun.turn >= turnNumber(turn))?.position,
    find(word, from, direction) {
      for (let position = from + direction; position >= 0 && position <= last; position += direction) {
        if (isNamed(happenings[position]?.event, word)) return position;
      }
      return undefined;
    },
  };
}

function isNamed(event: ConversationEvent | undefined, word: string): boolean {
  return event !== undefined && (event.kind.includes(word) || eventName(event).includes(word));
}
