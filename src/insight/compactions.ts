/** Each time that the prompt was made smaller, or larger again: what it stood on before and after, and whether that was taken back. */
import { apply } from '../conversation/apply.js';
import type { CompactInput } from '../conversation/context/compaction-effects.js';
import type { ConversationEvent } from '../conversation/event.js';
import type { Run } from '../conversation/replay/past.js';
import type { ConversationState } from '../conversation/state.js';
import type { Usage } from '../records/message.js';
import { listSlots } from '../records/slots.js';

/** Something that has changed the context. */
export interface ContextChange {
  /** In the order in which they happened, from 1. */
  readonly number: number;
  readonly kind: 'compacted' | 'cited' | 'truncated' | 'trimmed' | 'undone';
  /** Epoch milliseconds. */
  readonly at: number;
  readonly epoch: number;
  readonly session: number;
  /** Why, as the conversation decided it; null where it says no reason. */
  readonly cause: CompactInput['cause'] | null;
  readonly method: string | null;
  /** `provider/model` that summarized. */
  readonly model: string | null;
  readonly usage: Usage | null;
  readonly episode: string | null;
  readonly turns: readonly string[];
  /** Of the messages that left the prompt, or are in it again. */
  readonly slots: readonly number[];
  readonly tokens: { readonly before: number; readonly after: number };
  readonly messages: { readonly before: number; readonly after: number };
  /** References to the text before the messages; null where there was none. */
  readonly base: { readonly before: string | null; readonly after: string | null };
  /** Text of the one after, where history has it. */
  readonly text: string | null;
  /** Number of the change that took it back. */
  readonly undoneBy: number | null;
}

export function findContextChanges(runs: readonly Run[]): ContextChange[] {
  const found: ContextChange[] = [];
  for (const { opened, events } of runs) {
    let state = opened;
    for (const event of events) {
      const before = state;
      state = apply(before, event);
      const change = changeIn(before, state, event, found.length + 1);
      if (change === undefined) continue;
      if (change.kind === 'undone') {
        const undone = found.findLast((one) => one.episode === change.episode && one.undoneBy === null);
        if (undone) found[undone.number - 1] = { ...undone, undoneBy: change.number };
      }
      found.push(change);
    }
  }
  return found;
}

function changeIn(
  before: ConversationState,
  after: ConversationState,
  event: ConversationEvent,
  number: number,
): ContextChange | undefined {
  if (event.kind !== 'effect-completed') return undefined;
  const effect = before.inFlight.find((one) => one.effect === event.effect && one.id === event.id);
  // A late compaction, of a session or an epoch that has passed, changed only its cost.
  const isSame = after.epoch === before.epoch && after.context === before.context && after.compaction.cited === before.compaction.cited;
  if (isSame) return undefined;
  const [was, is] = [listSlots(before.context), listSlots(after.context)];
  const gone = difference(was, is);
  const common = {
    number,
    at: event.at,
    epoch: after.epoch,
    session: before.session,
    cause: effect?.effect === 'compact' ? effect.input.cause : null,
    method: null,
    model: null,
    usage: null,
    episode: null,
    turns: [],
    slots: gone,
    tokens: { before: before.contextTokens, after: after.contextTokens },
    messages: { before: was.length, after: is.length },
    base: { before: before.compaction.base, after: after.compaction.base },
    text: null,
    undoneBy: null,
  };
  switch (event.effect) {
    case 'compact': {
      const { output } = event;
      if (output.kind === 'nothing-to-compact') return undefined;
      if (output.kind === 'cited') return { ...common, kind: 'cited' };
      const { method, record, usage, episode, turns, base } = output;
      return { ...common, kind: 'compacted', method, model: record.model ?? null, usage, episode: episode.id, turns, text: base.text };
    }
    case 'truncate':
      return { ...common, kind: gone.length === 0 ? 'cited' : 'truncated' };
    case 'evict': {
      const { trimmed } = event.output;
      if (!trimmed) return undefined;
      return { ...common, kind: 'trimmed', episode: trimmed.episode.id, turns: trimmed.episode.turn_ids, text: trimmed.base.text };
    }
    case 'uncompact':
      return {
        ...common,
        kind: 'undone',
        episode: effect?.effect === 'uncompact' ? effect.input.episode : null,
        slots: difference(is, was),
      };
    default:
      return undefined;
  }
}

function difference(from: readonly number[], without: readonly number[]): number[] {
  const other = new Set(without);
  return from.filter((slot) => !other.has(slot));
}
