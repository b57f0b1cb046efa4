/** Where a session ends and the next begins, and what a compaction means to the turn that waited for it. */
import { answerResets, resetIds } from './inbox/arrivals.js';
import { forgetContext } from './context/compaction.js';
import type { Consolidation } from './protocol/contract.js';
import type { Completed } from './effect.js';
import { announce } from './outbox/settlement.js';
import type { ConversationState } from './state.js';
import { forgetAllowed } from './turn/approvals.js';
import { endTurn } from './turn/turn.js';
import { turnId } from '../records/identity.js';
import type { EventOf } from './event.js';
import { consolidationOf, coverPending, freshConsolidation, closeWithoutMemory, acceptTrim } from './context/consolidation.js';

export function acceptEvicted(state: ConversationState, completed: Completed<'evict'>): ConversationState {
  const { what } = completed.input;
  switch (what.kind) {
    case 'session-end':
      return endSession(state, consolidationOf(state, completed.output.finished));
    case 'overdue':
      return coverPending(state, what.unfinished[0]?.requestId);
    case 'trim':
      return acceptTrim(state, what, completed.output);
  }
}

/** A repeated request without memory ends the wait for the consolidation. */
export function requestClose(state: ConversationState, { memory }: EventOf<'close-requested'>): ConversationState {
  const closing: ConversationState = state.closing === 'no' ? { ...state, closing: 'running-out' } : state;
  return memory === false ? closeWithoutMemory(closing) : closing;
}

/** The reset at the head of the queue is done: a clean session, whose context is empty; the counters go on. */
export function endSession(state: ConversationState, consolidation: Consolidation): ConversationState {
  const [head, ...rest] = state.queue;
  if (head?.kind !== 'reset') return state.closing === 'running-out' ? { ...freshConsolidation(state), closing: 'consolidated' } : state;
  const session = state.session + 1;
  const { words: _, ...silent } = state;
  const fresh: ConversationState = {
    ...freshConsolidation(forgetContext(forgetAllowed(silent))),
    queue: rest,
    session,
    epoch: state.epoch + 1,
  };
  return announce(answerResets(fresh, resetIds(fresh, head.number), consolidation), { kind: 'session', session });
}

/** A turn that was too much for the model cannot go on when that did not help, unless the next prompt is shorter all the same. */
export function afterCompaction(before: ConversationState, after: ConversationState): ConversationState {
  const { epoch } = after;
  if (epoch > before.epoch) {
    const { contextTokens: tokensBefore } = before;
    const { contextTokens: tokensAfter } = after;
    return announce(after, { kind: 'compacted', turn: turnId(after.turn?.number ?? after.latestTurn), epoch, tokensBefore, tokensAfter });
  }
  const tooMuch = before.compaction.forced;
  // What is over the size that the model has shown is left out of the prompt.
  const isShorter = after.compaction.cited !== before.compaction.cited || isOverLearned(after);
  return tooMuch && !after.compaction.forced && !isShorter ? endTurn(after, 'failed', tooMuch) : after;
}

function isOverLearned({ compaction: { learned }, settings, contextTokens }: ConversationState): boolean {
  return learned !== undefined && settings !== null && contextTokens > settings.contextBudget;
}
