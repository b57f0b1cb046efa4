/** What took entries out of the prompt, and what brought them back: "why did it forget?", answered by the fold of what happened. */
import { apply } from './apply.js';
import type { ConversationEvent } from './event.js';
import type { Run } from './rebuild.js';
import { slotsOf } from './slots.js';
import type { ConversationState } from './state.js';

export type LeavingKind =
  /** Older turns became memory. */
  | 'compacted'
  /** The context was too full, and the oldest left the prompt. */
  | 'truncated'
  /** The window was full: long-term memory has them. */
  | 'trimmed'
  | 'session-ended'
  /** A person went back to an earlier turn: it is a branch now. */
  | 'rewound'
  /** A compaction was taken back, and they were there again. */
  | 'returned'
  /** Anything else, by the kind of its event. */
  | 'other';

export interface Leaving {
  readonly kind: LeavingKind;
  /** Of the event. */
  readonly event: ConversationEvent['kind'];
  /** Epoch milliseconds. */
  readonly at: number;
  /** That began with it, or was going on. */
  readonly epoch: number;
  readonly session: number;
  /** Of those that were asked about, which left or returned. */
  readonly slots: readonly number[];
  /** All that left with them. */
  readonly allSlots: readonly number[];
  readonly tokens: { readonly before: number; readonly after: number };
  /** Which model the conversation used then; a compaction says itself who summarized. */
  readonly model: string | null;
  readonly compaction?: {
    readonly episode: string;
    readonly method: string;
    readonly turns: readonly string[];
    readonly model?: string;
    readonly inputsHash?: string;
  };
  /** Of the consolidation that long-term memory was asked for. */
  readonly consolidation?: string;
}

export function leavingsOf(runs: readonly Run[], asked: ReadonlySet<number>): Leaving[] {
  const found: Leaving[] = [];
  for (const { opened, events } of runs) {
    let state = opened;
    for (const event of events) {
      const before = state;
      state = apply(before, event);
      if (state.context === before.context) continue;
      const [was, is] = [slotsOf(before.context), slotsOf(state.context)];
      const [had, has] = [new Set(was), new Set(is)];
      const gone = was.filter((slot) => !has.has(slot));
      if (gone.some((slot) => asked.has(slot))) found.push(leavingOf(before, state, event, gone, asked));
      const back = event.kind === 'uncompacted' ? is.filter((slot) => !had.has(slot)) : [];
      if (back.some((slot) => asked.has(slot))) found.push({ ...leavingOf(before, state, event, back, asked), kind: 'returned' });
    }
  }
  return found;
}

function leavingOf(
  before: ConversationState,
  after: ConversationState,
  event: ConversationEvent,
  slots: readonly number[],
  asked: ReadonlySet<number>,
): Leaving {
  const pending = before.window.pending?.requestId ?? before.window.ending?.awaited[0]?.requestId;
  const kind = kindOf(before, after, event);
  return {
    kind,
    event: event.kind,
    at: event.at,
    epoch: after.epoch,
    session: before.session,
    slots: slots.filter((slot) => asked.has(slot)),
    allSlots: slots,
    tokens: { before: before.contextTokens, after: after.contextTokens },
    model: before.settings?.model ?? null,
    ...(event.kind === 'compacted' && event.result.kind === 'compacted' && { compaction: compactionOf(event.result) }),
    ...(pending !== undefined && (kind === 'trimmed' || kind === 'session-ended') && { consolidation: pending }),
  };
}

function compactionOf({
  episode,
  method,
  turns,
  record,
}: Extract<Extract<ConversationEvent, { kind: 'compacted' }>['result'], { kind: 'compacted' }>): NonNullable<Leaving['compaction']> {
  return { episode: episode.id, method, turns, ...(record && { model: record.model, inputsHash: record.inputsHash }) };
}

function kindOf(before: ConversationState, after: ConversationState, event: ConversationEvent): LeavingKind {
  if (after.session > before.session) return 'session-ended';
  if (event.kind === 'compacted' || event.kind === 'truncated' || event.kind === 'rewound') return event.kind;
  return event.kind === 'put-away' ? 'trimmed' : 'other';
}
