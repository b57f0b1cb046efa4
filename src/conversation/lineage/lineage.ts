/**
 * A life that begins with turns of another one: a fork, or what is resumed (design section 2, Lives).
 *
 * @rule lineage/numbered-after-opening: Nothing is numbered before the life is open: turn, slot and session continue those that it shares,
 *   so that no two things have one name. (test: test/conversation/lineage/lineage.test.ts)
 * @rule lineage/early-events-wait: Events that come before the life is open wait in order, and are as safe as any other. (test:
 *   test/conversation/lineage/lineage.test.ts)
 */
import type { Origin } from '../protocol/lineage.js';
import type { OpenOriginInput, Resumption } from './lineage-effects.js';
import type { ConversationEvent } from '../event.js';
import { isRunning, type Completed, type Failed } from '../effect.js';
import { listSlots, type SlotRange } from '../../records/slots.js';
import { NO_COMPACTION, type CompactionState } from '../state/compaction-state.js';
import type { ConversationState } from '../state.js';
import { estimateTokens } from '../../records/token-usage.js';
import { turnId } from '../../records/identity.js';

const HELD: readonly ConversationEvent['kind'][] = [
  'message-received',
  'withdraw-requested',
  'app-event-received',
  'truncation-requested',
  'reset-requested',
  'interrupt-requested',
  'close-requested',
  'compaction-requested',
  'undo-requested',
  'rewind-requested',
];

export function withOrigin(state: ConversationState, origin: Origin): ConversationState {
  return { ...state, lineage: { origin, isOpen: false, held: [], refused: null, opened: null } };
}

/** Undefined for what need not wait (lineage/early-events-wait). */
export function holdEvent(state: ConversationState, event: ConversationEvent): ConversationState | undefined {
  const { lineage } = state;
  if (!lineage || lineage.isOpen || !HELD.includes(event.kind)) return undefined;
  return { ...state, lineage: { ...lineage, held: [...lineage.held, event] } };
}

export type Opening =
  | { readonly kind: 'open'; readonly input: OpenOriginInput }
  /** The conversation cannot be: it fails with these words. */
  | { readonly kind: 'refuse'; readonly type: string; readonly message: string }
  /** It is being opened. */
  | { readonly kind: 'wait' };

/** Undefined for a conversation that is open. */
export function openingOf(state: ConversationState): Opening | undefined {
  const { lineage, identity, handOver } = state;
  if (!lineage || lineage.isOpen) return undefined;
  if (lineage.refused) return { kind: 'refuse', ...lineage.refused };
  if (isRunning(state, 'open-origin')) return { kind: 'wait' };
  return handOver === null ? { kind: 'open', input: { identity, origin: lineage.origin } } : undefined;
}

/** The caller applies the events that waited (lineage/numbered-after-opening). */
export function acceptOrigin(state: ConversationState, { output: result }: Completed<'open-origin'>): ConversationState {
  const { lineage } = state;
  if (!lineage || lineage.isOpen) return state;
  const { beginning, slot, session, turns, inContext, window, attributes, tokens } = result;
  const opened: ConversationState = {
    ...resumeWith(state, result),
    session,
    counters: { ...state.counters, turn: beginning.turn, slot },
    latestTurn: beginning.turn,
    attributes: { ...state.attributes, known: attributes },
    lineage: {
      ...lineage,
      isOpen: true,
      held: [],
      opened: { conversation: beginning.of.conversation, turn: turnId(beginning.turn), turns, inContext, tokens },
    },
  };
  return { ...opened, consolidation: { ...opened.consolidation, turns: window } };
}

export function failOpening(state: ConversationState, { failure }: Failed<'open-origin'>): ConversationState {
  if (!state.lineage) return state;
  return { ...state, lineage: { ...state.lineage, refused: { type: failure.type, message: failure.message } } };
}

/**
 * The context is replaced as a whole, and nothing of what was before can be brought back by undoing a compaction. What the model has shown
 * of its size stays true.
 */
export function resumeWith(state: ConversationState, { context, base, task, compactions, tokens }: Resumption): ConversationState {
  const { attempts, prefix, learned } = state.compaction;
  const compaction: CompactionState = {
    ...NO_COMPACTION,
    ...{ attempts, prefix },
    ...(learned && { learned }),
    base: base?.ref ?? null,
    baseTokens: estimateTokens(base?.text.length ?? 0),
    task,
    compactions: Math.max(state.compaction.compactions, compactions),
  };
  return {
    ...state,
    context,
    contextTokens: (state.settings?.fixedTokens ?? 0) + tokens,
    compaction,
    consolidation: { ...state.consolidation, pending: null, covered: [] },
  };
}

/** The conversation whose turns it begins with, while it does not have them yet. */
export function awaitedOrigin({ lineage }: ConversationState): string | undefined {
  return lineage && !lineage.isOpen ? lineage.origin.conversation : undefined;
}

/** Conversation, as a search attribute: a resumed one has no parent but itself. */
export function parentOf({ lineage, parent }: ConversationState): string | undefined {
  if (parent) return parent.conversation;
  return lineage?.origin.kind === 'fork' ? lineage.origin.conversation : undefined;
}

/** Whether a turn's slots are all among these. */
export function isWithin(slots: readonly SlotRange[], context: ReadonlySet<number>): boolean {
  return listSlots(slots).every((slot) => context.has(slot));
}
