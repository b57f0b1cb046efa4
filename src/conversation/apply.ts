/**
 * apply(state, event) -> state. Total: every event in every state, and never a throw.
 *
 * The rules are numbered where they are owned: A in arrivals.ts, R in recording.ts, T in turn.ts. Two belong to all:
 * C1  Counters never go back within a life.
 * C2  The state is plain JSON: it equals its own round trip.
 */
import { acceptReduced, receiveAppEvent, withChunksInContext } from './app-events.js';
import { answerResets, receiveMessage, rejectInput, requestInterrupt, requestReset } from './arrivals.js';
import { noteTold } from './attributes.js';
import {
  acceptCompacted,
  acceptUndone,
  failCompaction,
  failUndo,
  forgetContext,
  requestCompaction,
  requestUndo,
  startCompaction,
  startUndo,
} from './compaction.js';
import type { Consolidation } from './contract.js';
import { advanceControl, isHeld, queuedId, setBreakpoints, setMode, startStep } from './control.js';
import { noteChildAsks, noteChildRuns, startChild } from './delegation.js';
import type { ConversationEvent } from './event.js';
import { acceptOrigin, failOpening, holdEvent, startOpening } from './lineage.js';
import { acceptPersisted, acceptRecorded, failPersist, failRecord, startRecord } from './recording.js';
import { acceptRewound, failRewind, isRewinding, requestRewind, startRewind } from './rewinding.js';
import { CONSOLIDATING_RULES } from './rules.js';
import type { ConversationState } from './state.js';
import { turnId } from './turn-id.js';
import { acceptAnswer, failModelCall, startModelCall } from './model-call.js';
import { lookAfterChildren, startLook } from './looking-after.js';
import { startNotifying } from './notice.js';
import { editQueue } from './queue-editing.js';
import { announce } from './settlement.js';
import { acceptChildEnd, acceptDecision, acceptLooked, failTool, finishTool, passWaits, startTools } from './tool-round.js';
import { acceptTruncated, failTruncation, requestTruncation, startTruncation } from './truncation.js';
import { withdraw } from './withdrawal.js';
import { endTurn, passTime, sendStop, stopTurn } from './turn.js';
import {
  acceptAsked,
  acceptConsolidation,
  acceptTrim,
  adoptWindow,
  advanceWindow,
  consolidationOf,
  endsWithNothing,
  failAsking,
  failPuttingAway,
  freshWindow,
  startAsking,
  startPuttingAway,
} from './window.js';

export function apply(before: ConversationState, event: ConversationEvent): ConversationState {
  const now = { ...before, now: Math.max(before.now, event.at) };
  const state = holdEvent(now, event) ?? change(now, event);
  // A reset keeps its place in the queue; when it is next and a turn runs, that turn is stopped.
  const [head] = state.queue;
  const isReset = state.turn && head?.kind === 'reset' && !isHeld(state, 'event', queuedId(head));
  const reset = isReset ? stopTurn(state, 'the session is being reset', event.at) : state;
  const stopped = reset.turn && isRewinding(reset) ? stopTurn(reset, 'the conversation is being rewound', event.at) : reset;
  const advanced = stopped.rules < CONSOLIDATING_RULES ? stopped : advanceWindow(stopped);
  const ended = endsWithNothing(advanced) ? endSession(advanced, 'nothing-to-do') : advanced;
  return advanceControl(before, before.context === ended.context ? ended : withChunksInContext(ended), event);
}

function change(state: ConversationState, event: ConversationEvent): ConversationState {
  switch (event.kind) {
    case 'message-received':
      return receiveMessage(state, event);
    case 'reset-requested':
      return requestReset(state, event);
    case 'interrupt-requested':
      return requestInterrupt(state, event);
    case 'close-requested':
      return state.closing === 'no' ? { ...state, closing: 'running-out' } : state;
    case 'withdraw-requested':
      return withdraw(state, event);
    case 'decided':
      return acceptDecision(state, event);
    case 'budget-raised':
      return { ...state, budget: event.budget };
    case 'app-event-received':
      return receiveAppEvent(state, event);
    case 'app-event-reduced':
      return acceptReduced(state, event);
    case 'mode-set':
      return setMode(state, event);
    case 'breakpoints-set':
      return setBreakpoints(state, event);
    case 'step-requested':
      return startStep(state, event);
    case 'queue-edited':
      return editQueue(state, event);
    case 'child-started':
      return startChild(state, event);
    case 'child-running':
      return noteChildRuns(state, event);
    case 'look-started':
      return startLook(state, event);
    case 'looked':
      return acceptLooked(state, event);
    case 'child-asks':
      return noteChildAsks(state, event);
    case 'child-ended':
      return acceptChildEnd(state, event);
    case 'children-told':
      return { ...state, toChildren: [] };
    case 'parent-told':
      return { ...state, parentTold: { report: state.parentTold?.report ?? 'no', asks: event.asks } };
    case 'report-started':
      return { ...state, parentTold: { asks: state.parentTold?.asks ?? '[]', report: 'running' } };
    case 'reported':
      return { ...state, parentTold: { asks: state.parentTold?.asks ?? '[]', report: 'yes' } };
    case 'notify-started':
      return startNotifying(state, event);
    case 'notified':
      return { ...state, notifying: false };
    case 'renamed':
      return { ...state, title: event.title };
    case 'input-rejected':
      return rejectInput(state, event);
    case 'record-started':
      return startRecord(state);
    case 'recorded':
      return acceptRecorded(state, event);
    case 'record-failed':
      return failRecord(state, event);
    case 'heal-started':
      return { ...state, heal: state.heal && { ...state.heal, doing: 'running' } };
    case 'heal-ended':
      return { ...state, heal: state.heal && { ...state.heal, doing: 'tried' } };
    case 'persist-started':
      return { ...state, persisting: true };
    case 'persisted':
      return acceptPersisted(state, event);
    case 'persist-failed':
      return failPersist(state, event);
    case 'model-call-started':
      return startModelCall(state, event);
    case 'model-answered':
      return acceptAnswer(state, event);
    case 'model-call-failed':
      return failModelCall(state, event);
    case 'tools-started':
      return startTools(state, event);
    case 'tool-finished':
      return finishTool(state, event);
    case 'tool-run-failed':
      return failTool(state, event);
    case 'stop-sent':
      return sendStop(state, event);
    case 'compaction-requested':
      return requestCompaction(state, event);
    case 'compact-started':
      return startCompaction(state, event);
    case 'compacted':
      return afterCompaction(state, acceptCompacted(state, event));
    case 'compact-failed':
      return afterCompaction(state, failCompaction(state, event));
    case 'truncation-requested':
      return requestTruncation(state, event);
    case 'truncate-started':
      return startTruncation(state, event);
    case 'truncated':
      return acceptTruncated(state, event);
    case 'truncate-failed':
      return failTruncation(state, event);
    case 'undo-requested':
      return requestUndo(state, event);
    case 'uncompact-started':
      return startUndo(state, event);
    case 'uncompacted':
      return acceptUndone(state, event);
    case 'uncompact-failed':
      return failUndo(state, event);
    case 'consolidated':
      return endSession(state, event.consolidation);
    case 'memory-ask-started':
      return startAsking(state, event);
    case 'memory-asked':
      return acceptAsked(state, event);
    case 'memory-ask-failed':
      return failAsking(state, event);
    case 'consolidation-ended':
      return acceptConsolidation(state, event);
    case 'put-away-started':
      return startPuttingAway(state);
    case 'put-away':
      return acceptPutAway(state, event);
    case 'put-away-failed':
      return failPuttingAway(state, event);
    case 'origin-open-started':
      return startOpening(state);
    case 'origin-opened':
      return (state.lineage?.held ?? []).reduce(apply, acceptOrigin(state, event));
    case 'origin-open-failed':
      return failOpening(state, event);
    case 'rewind-requested':
      return requestRewind(state, event);
    case 'rewind-started':
      return startRewind(state, event);
    case 'rewound':
      return acceptRewound(state, event);
    case 'rewind-failed':
      return failRewind(state, event);
    case 'time-passed':
      return passWaits(passTime(state));
    case 'hand-over-due':
      return { ...state, handOver: event.reason };
    case 'run-continued':
      return adoptWindow(lookAfterChildren({ ...state, handOver: null, attributes: { ...state.attributes, known: 'unknown' } }));
    case 'attributes-told':
      return noteTold(state, event);
    default:
      return unknownEvent(state, event);
  }
}

function acceptPutAway(state: ConversationState, event: Extract<ConversationEvent, { kind: 'put-away' }>): ConversationState {
  return state.window.ending ? endSession(state, consolidationOf(state, event.result.finished)) : acceptTrim(state, event);
}

/** The reset at the head of the queue is done: a clean session, whose context is empty; the counters go on. */
function endSession(state: ConversationState, consolidation: Consolidation): ConversationState {
  const [head, ...rest] = state.queue;
  if (head?.kind !== 'reset') return state.closing === 'running-out' ? { ...freshWindow(state), closing: 'consolidated' } : state;
  const session = state.session + 1;
  const fresh: ConversationState = { ...freshWindow(forgetContext(state)), queue: rest, session, epoch: state.epoch + 1 };
  return announce(answerResets(fresh, head.resetIds, consolidation), { kind: 'session', session });
}

/** A turn whose model says that its context is full cannot go on when that did not help. */
function afterCompaction(before: ConversationState, after: ConversationState): ConversationState {
  const { epoch } = after;
  if (epoch > before.epoch) {
    const { contextTokens: tokensBefore } = before;
    const { contextTokens: tokensAfter } = after;
    return announce(after, { kind: 'compacted', turn: turnId(after.turn?.number ?? after.latestTurn), epoch, tokensBefore, tokensAfter });
  }
  const tooMuch = before.memory.forced;
  return tooMuch && !after.memory.forced ? endTurn(after, 'failed', tooMuch) : after;
}

/** An event of a newer version: kept out, never a crash. */
function unknownEvent(state: ConversationState, event: never): ConversationState {
  const { kind, at } = event as { kind: string; at: number };
  return rejectInput(state, { kind: 'input-rejected', name: kind, reason: 'an event this version does not know', at });
}
