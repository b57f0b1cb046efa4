/**
 * Undoes a compaction.
 *
 * @rule context/undo-restores: An undo restores the context from before the compaction, with everything that came since. (test:
 *   test/conversation/context/compaction.test.ts)
 */
import type { UncompactInput } from './compaction-effects.js';
import { isChangingContext, type Completed, type Failed } from '../effect.js';
import type { EventOf } from '../event.js';
import { answer, pendingRequests, request } from '../requests.js';
import type { ConversationState } from '../state.js';
import { listSlots, toRanges, withSlot, type SlotRange } from '../../records/slots.js';

export function uncompactInput(state: ConversationState): UncompactInput | undefined {
  const { before } = state.compaction;
  if (!before || isChangingContext(state) || pendingRequests(state, 'undo').length === 0) return undefined;
  const { epoch, episode, archived } = before;
  return { identity: state.identity, move: state.counters.move + 1, epoch, episode, archived };
}

export function requestUndo(state: ConversationState, { requestId: id }: EventOf<'undo-requested'>): ConversationState {
  return state.compaction.before ? request(state, { kind: 'undo', id }) : answer(state, 'undo', [id], { kind: 'nothing-to-undo' });
}

export function acceptUndone(state: ConversationState, { input }: Completed<'uncompact'>): ConversationState {
  const { before } = state.compaction;
  if (before?.epoch !== input.epoch) return state; // (context/late-result-only-costs)
  const there = new Set(listSlots([...before.context, ...(before.leftOut ?? [])]));
  const isSince = (slot: number): boolean => !there.has(slot);
  const now = listSlots(state.context);
  // Entries before the oldest that stayed are notices of later truncations.
  const notices = now.slice(
    0,
    Math.max(
      0,
      now.findIndex((slot) => !isSince(slot)),
    ),
  );
  const since = now.slice(notices.length).filter(isSince);
  const leftOut = [...listSlots(before.leftOut ?? []), ...listSlots(state.compaction.leftOut ?? []).filter(isSince)];
  const { cited } = state.compaction;
  return {
    ...answer(state, 'undo', undoRequests(state), { kind: 'undone', epoch: state.epoch + 1 }),
    // Epochs only count up (conversation/counters-never-back): a new one gets the earlier context (context/undo-restores).
    epoch: state.epoch + 1,
    context: since.reduce<readonly SlotRange[]>(withSlot, toRanges([...notices, ...listSlots(before.context)])),
    contextTokens: before.contextTokens,
    compaction: {
      ...state.compaction,
      base: before.base,
      baseTokens: before.baseTokens,
      ...(cited && { cited: before.cited ?? [] }),
      ...(state.compaction.leftOut && { leftOut: toRanges(leftOut) }),
      reported: null,
      rest: null,
      before: null,
    },
  };
}

export function failUndo(state: ConversationState, { failure }: Failed<'uncompact'>): ConversationState {
  return answer(state, 'undo', undoRequests(state), { kind: 'failed', message: `${failure.type}: ${failure.message}` });
}

export function undoRequests(state: ConversationState): readonly string[] {
  return pendingRequests(state, 'undo').map(({ id }) => id);
}
