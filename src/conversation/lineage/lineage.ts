/**
 * A life that begins with turns of another one: a fork, or what is resumed (design section 2, Lives).
 *
 * @rule lineage/numbered-after-opening: Nothing is numbered before the life is open: turn, slot and session continue those that it shares,
 *   so that no two things have one name. (test: test/conversation/lineage/lineage.test.ts)
 * @rule lineage/early-events-wait: Events that come before the life is open wait in order, and are as safe as any other. (test:
 *   test/conversation/lineage/lineage.test.ts)
 * @rule lineage/rewind-between-turns: A rewind happens between turns: it stops the running one first. Waiting messages stay, and are
 *   answered after it. (test: test/workflows/lineage.test.ts)
 * @rule lineage/failed-rewind-changes-nothing: A failed rewind changes nothing, and takes back the message that came with it. (test:
 *   test/conversation/lineage/lineage.test.ts)
 */
import { withResumedChunks } from '../context/chunks.js';
import { keptLessons } from '../context/learning.js';
import type { Origin } from '../protocol/input.js';
import type { OpenOriginInput, Resumption, RewindInput } from './lineage-effects.js';
import type { ConversationEvent, EventOf } from '../event.js';
import { isRunning, type Completed, type Failed } from '../effect.js';
import { listSlots, type SlotRange, withSlot } from '../../records/slots.js';
import { inTokens, NO_COMPACTION, type CompactionState } from '../state/compaction-state.js';
import type { ConversationState } from '../state.js';
import { estimateTokens } from '../../records/token-estimate.js';
import { turnId, turnNumber } from '../../records/identity.js';
import { compactsAt, nextMove } from '../context/compaction.js';
import { withdraw } from '../inbox/queue-editing.js';
import { answer, pendingRequests, request } from '../requests.js';

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
export function resumeWith(
  state: ConversationState,
  { context, base, task, compactions, tokens, chunks, since }: Resumption,
): ConversationState {
  const { attempts, prefix } = state.compaction;
  const compaction: CompactionState = {
    ...NO_COMPACTION,
    ...{ attempts, prefix },
    ...keptLessons(state.compaction),
    base: base?.ref ?? null,
    baseTokens: inTokens(state, estimateTokens(base?.text ?? '')),
    task,
    compactions: Math.max(state.compaction.compactions, compactions),
  };
  const resumed: ConversationState = {
    ...state,
    context,
    contextTokens: (state.settings?.fixedTokens ?? 0) + inTokens(state, tokens),
    compaction,
    consolidation: { ...state.consolidation, pending: null, covered: [], ...(since !== undefined && { since }) },
  };
  return withResumedChunks(resumed, chunks);
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

// Turns taken back in place: the context becomes what it was at the end of an earlier turn, and goes on from there.
//
// Counters go on: no turn and no slot is given twice. Usage stays paid. The store keeps the cut turns as a branch, which can be forked.

export function requestRewind(state: ConversationState, event: EventOf<'rewind-requested'>): ConversationState {
  const { requestId: id, to, before, messageId } = event;
  return request(state, { kind: 'rewind', id, input: { to, ...(before && { before }), ...(messageId !== undefined && { messageId }) } });
}

/** From the request on no turn begins. */
export function isRewinding(state: ConversationState): boolean {
  return pendingRequests(state, 'rewind').length > 0;
}

/** The next one; undefined while there is none, or a turn is being stopped, or a session ended: these come first. */
export function rewindInput(state: ConversationState): RewindInput | undefined {
  const { consolidation, compaction } = state;
  const [next] = pendingRequests(state, 'rewind');
  if (!next || state.turn || consolidation.ending) return undefined;
  const { to, before } = next.input;
  return {
    identity: state.identity,
    requestId: next.id,
    move: state.counters.move + 1,
    branch: (state.branches ?? 0) + 1,
    to,
    ...(before && { before }),
    slot: state.counters.slot,
    waiting: waitingSlots(state),
    session: state.session,
    at: state.now / 1000,
    compactions: compaction.compactions,
    ...(state.settings && { line: compactsAt(state.settings) }),
  };
}

export function startRewind(state: ConversationState): ConversationState {
  return nextMove(state);
}

export function acceptRewound(state: ConversationState, { input, output: result }: Completed<'rewind'>): ConversationState {
  const epoch = state.epoch + 1;
  const session = Math.max(state.session, result.session);
  const inContext = new Set(listSlots(result.context));
  // What long-term memory does not have yet, and has no request for: it never gets what was cut.
  const { turns, pending, covered, pendingRequests } = state.consolidation;
  const requested = new Set(
    [...pendingRequests, ...(pending ? [pending] : []), ...covered.flatMap((one) => one.turns)].flatMap(({ slots }) => listSlots(slots)),
  );
  const left = result.window
    ? result.window.filter(({ slots }) => !listSlots(slots).some((slot) => requested.has(slot)))
    : turns.slice(pending?.turns ?? 0).filter(({ slots }) => isWithin(slots, inContext));
  // A summary that also has turns that were cut stands for none of them.
  const stillCovered = covered.filter((one) => one.turns.every(({ slots }) => isWithin(slots, inContext)));
  const rewound = { ...resumeWith(state, result), epoch, session };
  const branch = result.cut?.branch ?? null;
  const known: ConversationState = {
    ...rewound,
    consolidation: { ...rewound.consolidation, turns: left, covered: stillCovered },
    // What an event adds now is of that turn, and not of one that was cut.
    ...(result.cut && { latestTurn: result.cut.to }),
    ...(branch !== null && { branches: Math.max(state.branches ?? 0, branch) }),
  };
  return answer(known, 'rewind', [input.requestId], {
    kind: 'rewound',
    result: { to: turnId(result.cut?.to ?? turnNumber(input.to)), cut: result.turns, branch, session, epoch },
  });
}

/** (lineage/failed-rewind-changes-nothing) */
export function failRewind(state: ConversationState, { input: { requestId }, failure }: Failed<'rewind'>): ConversationState {
  const messageId = pendingRequests(state, 'rewind').find(({ id }) => id === requestId)?.input.messageId;
  const without = messageId === undefined ? state : withdraw(state, { kind: 'withdraw-requested', messageId, at: state.now });
  return answer(without, 'rewind', [requestId], { kind: 'failed', type: failure.type, message: failure.message });
}

/** (lineage/rewind-between-turns) */
function waitingSlots({ queue }: ConversationState): readonly SlotRange[] {
  const slots = queue.flatMap((item) => (item.kind === 'message' ? [item.slot] : item.kind === 'spilled' ? listSlots(item.slots) : []));
  return slots.sort((a, b) => a - b).reduce<readonly SlotRange[]>(withSlot, []);
}
