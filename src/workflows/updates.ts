/** What clients ask for by update, beside `send` and `turn` (design section 3): each is one row of `defineRequest`. */
import { ApplicationFailure } from '@temporalio/common';
import { choiceRefusal } from '../conversation/context/chosen-chunks.js';
import { appEventRefusal, isKnownEvent, outcomeOfEvent } from '../conversation/context/app-events.js';
import { turnOfMessage } from '../conversation/inbox/arrivals.js';
import { editRefusal, withdrawalRefusal } from '../conversation/inbox/queue-editing.js';
import { queuedCount } from '../conversation/inbox/spill.js';
import {
  readAppEvent,
  readBreakpoints,
  readChosenChunks,
  readMode,
  readQueueEdit,
  readStepRequest,
} from '../conversation/protocol/stepping.js';
import type { ResetResult } from '../conversation/protocol/contract.js';
import { readBudget, readDecision, readWithdrawal } from '../conversation/protocol/human-input.js';
import { readModelChoice, readOptionalText, readRewind } from '../conversation/protocol/input.js';
import { readMessage } from '../conversation/protocol/message.js';
import { isKnown } from '../conversation/requests.js';
import { stepRefusal } from '../conversation/stepping/control.js';
import { decisionRefusal } from '../conversation/turn/approvals.js';
import { controlOf, queueOf } from '../conversation/views/view.js';
import { toRanges } from '../records/slots.js';
import {
  compactUpdate,
  decideUpdate,
  dispatchUpdate,
  editQueueUpdate,
  enqueueUpdate,
  executeTruncationUpdate,
  FAILURES,
  openedUpdate,
  raiseBudgetUpdate,
  resetUpdate,
  rewindUpdate,
  setBreakpointsUpdate,
  setModelUpdate,
  setModeUpdate,
  stepUpdate,
  triggerCompactionUpdate,
  truncateUpdate,
  undoCompactionUpdate,
  withdrawUpdate,
} from './messages.js';
import { arrival, failureType, refuseFor, refuseWhenClosing, type DefineRequest } from './requests.js';
import { appEventReceived } from './signals.js';

export function handleUpdates(defineRequest: DefineRequest): void {
  handleContext(defineRequest);
  handleStepping(defineRequest);
  handleQueue(defineRequest);
  handleLineage(defineRequest);
  defineRequest(decideUpdate, {
    read: readDecision,
    refuse: (state, decision) => refuseFor(decisionRefusal(state, decision), FAILURES.notWaiting),
    events: (decision, { at }) => [{ kind: 'decided', decision, at }],
    answer: (_, { input: { callId, decision } }) => ({ callId, decision }),
  });
  defineRequest(raiseBudgetUpdate, {
    read: (payload) => readBudget(payload),
    events: (budget, { at }) => [{ kind: 'budget-raised', budget, at }],
    answer: (_, { input: budget }) => ({ budget }),
  });
  defineRequest(setModelUpdate, {
    read: readModelChoice,
    events: (model, { at }) => [{ kind: 'model-set', model, at }],
    answer: (_, { input: model }) => ({ model }),
  });
}

function handleContext(defineRequest: DefineRequest): void {
  for (const [update, name, as, kind] of [
    [compactUpdate, 'compact', 'compact', 'compaction-requested'],
    [undoCompactionUpdate, 'undoCompaction', 'undo', 'undo-requested'],
    [truncateUpdate, 'truncate', 'truncate', 'truncation-requested'],
  ] as const) {
    defineRequest(update, {
      read: (payload) => readOptionalText(payload, name, 'id'),
      refuse: refuseWhenClosing,
      known: { as, id: (id) => id },
      events: (_, { id: requestId, at }) => [{ kind, requestId, at }],
      answer: existing,
    });
  }
  for (const [update, name, what] of [
    [executeTruncationUpdate, 'executeTruncation', 'truncate'],
    [triggerCompactionUpdate, 'triggerCompaction', 'compact'],
  ] as const) {
    defineRequest(update, {
      read: (payload) => readChosenChunks(payload, name),
      refuse: (state, { id, slots }) => {
        refuseWhenClosing(state);
        // Sent again, in a later run, it is known.
        const refusal = id !== undefined && isKnown(state, what, id) ? undefined : choiceRefusal(state, slots);
        refuseFor(refusal && `${name} is refused: ${refusal}`, FAILURES.invalidMessage);
      },
      known: { as: what, id: ({ id }) => id },
      events: ({ slots }, { id: requestId, at }) => [{ kind: 'chunks-chosen', requestId, what, slots: toRanges(slots), at }],
      answer: existing,
    });
  }
}

/** The step engine (seed 004): mode, step, breakpoints, and events of the application. */
function handleStepping(defineRequest: DefineRequest): void {
  defineRequest(setModeUpdate, {
    read: readMode,
    events: (mode, { at }) => [{ kind: 'mode-set', mode, at }],
    answer: (_, { state }) => controlOf(state),
  });
  defineRequest(setBreakpointsUpdate, {
    read: readBreakpoints,
    events: (breakpoints, { at }) => [{ kind: 'breakpoints-set', breakpoints, at }],
    answer: (_, { state }) => controlOf(state),
  });
  defineRequest(stepUpdate, {
    read: readStepRequest,
    refuse: (state, { id = '' }) => refuseFor(stepRefusal(state, id), FAILURES.cannotStep),
    known: { as: 'step', id: ({ id }) => id },
    events: ({ scope }, { id, at }) => [{ kind: 'step-requested', id, ...(scope !== undefined && { scope }), at }],
    // Set to auto meanwhile, no event answers this step any more.
    isOver: (state, id) => isKnown(state, 'step', id) || state.control?.lock?.id !== id,
    answer: (result) => {
      if (result) return result;
      throw ApplicationFailure.nonRetryable('the conversation was set to auto while this step ran', FAILURES.cannotStep);
    },
  });
  defineRequest(dispatchUpdate, {
    read: readAppEvent,
    refuse: (state, { id, payload }) => {
      refuseWhenClosing(state);
      const refusal = id !== undefined && isKnownEvent(state, id) ? undefined : appEventRefusal(state, payload);
      refuseFor(refusal && `the event is refused: ${refusal}`, FAILURES.queueFull);
    },
    known: { as: 'dispatch', id: ({ id }) => id },
    events: (event, { id, at }) => [appEventReceived(event, id, at)],
    isOver: (state, id, { wait }) => !wait || outcomeOfEvent(state, id) !== undefined,
    answer: (_, { id, input: { wait }, before, state }) => {
      const result = wait ? outcomeOfEvent(state, id) : undefined;
      return { id, position: queuedCount(before.queue), ...(result && { result }) };
    },
  });
}

function handleQueue(defineRequest: DefineRequest): void {
  defineRequest(resetUpdate, {
    read: (payload) => readOptionalText(payload, 'reset', 'id'),
    refuse: refuseWhenClosing,
    known: { as: 'reset', id: (id) => id },
    events: (_, { id: resetId, at }) => [{ kind: 'reset-requested', resetId, at }],
    answer: (outcome) => resetResult(outcome),
  });
  defineRequest(enqueueUpdate, {
    read: readMessage,
    refuse: refuseWhenClosing,
    known: { as: 'message', id: ({ id }) => id },
    events: (message, { id, at }) => [arrival(message, id, at)],
    isOver: () => true,
    answer: (_, { id: messageId, input, before, state }) => ({
      messageId,
      turnId: turnOfMessage(state, messageId) ?? null,
      acceptedAs: isKnown(before, 'message', messageId) ? 'duplicate' : input.kind === 'reset' ? 'queue' : input.delivery,
      position: queuedCount(before.queue),
    }),
  });
  defineRequest(withdrawUpdate, {
    read: readWithdrawal,
    // What has not been opened yet holds events back: one that is refused now must not count later.
    events: (messageId, { at, before }) =>
      withdrawalRefusal(before, messageId) === undefined ? [{ kind: 'withdraw-requested', messageId, at }] : [],
    answer: (_, { input: messageId, before }) => {
      const reason = withdrawalRefusal(before, messageId);
      return reason === undefined ? { messageId, withdrawn: true } : { messageId, withdrawn: false, reason };
    },
  });
  defineRequest(editQueueUpdate, {
    read: readQueueEdit,
    refuse: (state, edit) => refuseFor(editRefusal(state, edit), FAILURES.invalidMessage),
    events: (edit, { at }) => [{ kind: 'queue-edited', edit, at }],
    answer: (_, { state }) => ({ queue: queueOf(state) }),
  });
}

/** Other lives, and turns taken back. */
function handleLineage(defineRequest: DefineRequest): void {
  defineRequest(openedUpdate, {
    read: () => ({ ok: true, value: undefined }),
    events: () => [],
    isOver: ({ lineage }) => lineage === undefined || lineage.isOpen || lineage.refused !== null,
    answer: (_, { state }) => state.lineage?.opened ?? null,
  });
  defineRequest(rewindUpdate, {
    read: readRewind,
    refuse: refuseWhenClosing,
    known: { as: 'rewind', id: ({ id }) => id },
    events: ({ to, before, message }, { id, at }) => {
      // Sent again after a hand-over, it is the same message.
      const messageId = message && (message.id ?? id);
      return [
        { kind: 'rewind-requested', requestId: id, to, ...(before && { before }), ...(messageId !== undefined && { messageId }), at },
        // No turn begins before the rewind is done; a person waits for this one's answer, so it is the first.
        ...(message && messageId !== undefined ? [arrival({ ...message, delivery: 'interrupt' }, messageId, at)] : []),
      ];
    },
    answer: (outcome, { id, input: { message }, state }) => {
      const turnId = message && turnOfMessage(state, message.id ?? id);
      if (outcome?.kind === 'rewound') return { ...outcome.result, ...(turnId && { turnId }) };
      throw ApplicationFailure.nonRetryable(outcome?.message ?? '', failureType(outcome?.type ?? ''));
    },
  });
}

/** Fails for one that was taken out of the queue. */
export function resetResult(outcome: ResetResult | 'withdrawn' | undefined): ResetResult {
  if (outcome !== 'withdrawn') return existing(outcome);
  throw ApplicationFailure.nonRetryable('the reset was taken out of the queue; the session goes on', FAILURES.withdrawn);
}

/** What is over by its outcome has one. */
function existing<T>(outcome: T | undefined): T {
  if (outcome !== undefined) return outcome;
  throw ApplicationFailure.nonRetryable('there is no outcome');
}
