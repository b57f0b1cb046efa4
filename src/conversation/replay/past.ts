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
import type { EffectName } from '../effect.js';
import { listSlots } from '../../records/slots.js';

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

// What took entries out of the prompt, and what brought them back: "why did it forget?", answered by the fold of what happened.

type LeavingKind =
  /** Older turns became memory. */
  | 'compacted'
  /** The context was too full, and the oldest left the prompt. */
  | 'truncated'
  /** Long-term memory has them, and the prompt was to be smaller. */
  | 'trimmed'
  | 'session-ended'
  /** A person went back to an earlier turn: it is a branch now. */
  | 'rewound'
  /** A compaction was taken back, and they were there again. */
  | 'returned'
  /** Anything else: `event` says what. */
  | 'other';

export interface Leaving {
  readonly kind: LeavingKind;
  /** Name of the event (observation.ts). */
  readonly event: string;
  /** Epoch milliseconds. */
  readonly at: number;
  /** That began with it, or was going on. */
  readonly epoch: number;
  readonly session: number;
  /** Of the requested slots, which left or returned. */
  readonly slots: readonly number[];
  /** All that left with them. */
  readonly allSlots: readonly number[];
  readonly tokens: { readonly before: number; readonly after: number };
  /** Which model the conversation used then; a compaction says itself who summarized. */
  readonly model: string | null;
  /** What made an episode of them: a compaction, or a trim. */
  readonly compaction?: {
    readonly episode: string;
    readonly method: string;
    readonly turns: readonly string[];
    /** Absent: no model was called for it, a consolidation had been there. */
    readonly model?: string;
    readonly inputsHash?: string;
  };
  /** Ids of the consolidation requests to long-term memory. */
  readonly consolidation?: string;
}

export function leavingsOf(runs: readonly Run[], requested: ReadonlySet<number>): Leaving[] {
  const found: Leaving[] = [];
  for (const { opened, events } of runs) {
    let state = opened;
    for (const event of events) {
      const before = state;
      state = apply(before, event);
      if (state.context === before.context) continue;
      const [was, is] = [listSlots(before.context), listSlots(state.context)];
      const [had, has] = [new Set(was), new Set(is)];
      const gone = was.filter((slot) => !has.has(slot));
      if (gone.some((slot) => requested.has(slot))) found.push(leavingOf(before, state, event, gone, requested));
      const back = isCompleted(event, 'uncompact') ? is.filter((slot) => !had.has(slot)) : [];
      if (back.some((slot) => requested.has(slot))) found.push({ ...leavingOf(before, state, event, back, requested), kind: 'returned' });
    }
  }
  return found;
}

function leavingOf(
  before: ConversationState,
  after: ConversationState,
  event: ConversationEvent,
  slots: readonly number[],
  requested: ReadonlySet<number>,
): Leaving {
  const kind = kindOf(before, after, event);
  const { covered, ending } = before.consolidation;
  const requests = kind === 'trimmed' ? covered : kind === 'session-ended' ? (ending?.awaited ?? []) : [];
  return {
    kind,
    event: eventName(event),
    at: event.at,
    epoch: after.epoch,
    session: before.session,
    slots: slots.filter((slot) => requested.has(slot)),
    allSlots: slots,
    tokens: { before: before.contextTokens, after: after.contextTokens },
    model: before.settings?.model ?? null,
    ...compactionIn(event),
    ...(requests.length > 0 && { consolidation: requests.map(({ requestId }) => requestId).join(', ') }),
  };
}

function compactionIn(event: ConversationEvent): Pick<Leaving, 'compaction'> {
  if (event.kind !== 'effect-completed') return {};
  if (event.effect === 'evict' && event.output.trimmed) {
    const { episode, messages, unsummarized } = event.output.trimmed;
    return { compaction: { episode: episode.id, method: unsummarized === messages ? 'rules' : 'consolidation', turns: episode.turn_ids } };
  }
  if (event.effect !== 'compact' || event.output.kind !== 'compacted') return {};
  const { episode, method, turns, record } = event.output;
  return { compaction: { episode: episode.id, method, turns, model: record.model, inputsHash: record.inputsHash } };
}

const KIND_OF_EFFECT: Readonly<Partial<Record<EffectName, LeavingKind>>> = {
  compact: 'compacted',
  truncate: 'truncated',
  evict: 'trimmed',
  rewind: 'rewound',
};

function kindOf(before: ConversationState, after: ConversationState, event: ConversationEvent): LeavingKind {
  if (after.session > before.session) return 'session-ended';
  return (event.kind === 'effect-completed' && KIND_OF_EFFECT[event.effect]) || 'other';
}

function isCompleted(event: ConversationEvent, effect: EffectName): boolean {
  return event.kind === 'effect-completed' && event.effect === effect;
}
