/** What took entries out of the prompt, and what brought them back: "why did it forget?", answered by the fold of what happened. */
import { apply } from '../apply.js';
import type { ConversationEvent } from '../event.js';
import type { EffectName } from '../effect.js';
import { eventName } from '../views/observation.js';
import type { Run } from './past.js';
import { listSlots } from '../../records/slots.js';
import type { ConversationState } from '../state.js';

export type LeavingKind =
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
