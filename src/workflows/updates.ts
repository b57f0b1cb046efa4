/** What clients ask for by update, beside `send` and `turn` (design section 3): each is one row of `defineRequest`. */
import { ApplicationFailure } from '@temporalio/common';
import { choiceRefusal } from '../conversation/context/chosen-chunks.js';
import { appEventRefusal, isKnownEvent, outcomeOfEvent } from '../conversation/context/app-events.js';
import { turnOfMessage } from '../conversation/inbox/arrivals.js';
import { editRefusal, withdrawalRefusal, queuedCount } from '../conversation/inbox/queue-editing.js';
import {
  readAppEvent,
  readBreakpoints,
  readChosenChunks,
  readMode,
  readQueueEdit,
  readStepRequest,
  readParentOrder,
  type ReadAppEvent,
} from '../conversation/protocol/stepping.js';
import type { ResetResult } from '../conversation/protocol/contract.js';
import { readBudget, readDecision, readWithdrawal, readChildNews } from '../conversation/protocol/human-input.js';
import { readModelChoice, readOptionalText, readRewind, readClose, readTitle, readUpgrade } from '../conversation/protocol/input.js';
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
  childSignal,
  closeSignal,
  consolidatedSignal,
  decideSignal,
  eventSignal,
  interruptSignal,
  messageSignal,
  newSignal,
  parentSignal,
  renameSignal,
  upgradeSignal,
} from './messages.js';
import { arrival, failureType, refuseFor, refuseWhenClosing, refuseWhenDone, type DefineRequest, type Handling } from './requests.js';
import type { ConversationEvent } from '../conversation/event.js';
import { readConsolidationNews } from '../conversation/protocol/memory-contract.js';
import { newsRefusal } from '../conversation/turn/delegation.js';

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
      refuse: refuseWhenDone,
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
        refuseWhenDone(state);
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
      refuseWhenDone(state);
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

// Signals: they cannot be refused, so what cannot be read is listed in the status.

/** Signals are accepted before we see them; only Temporal's limit of 2 MiB holds them back. */
const SIGNAL_BYTES = 4 * 1024 * 1024;

export function handleSignals({ host, state, dispatch }: Pick<Handling, 'host' | 'state' | 'dispatch'>): void {
  const reject = (name: string, reason: string): void => dispatch({ kind: 'input-rejected', name, reason, at: host.now() });

  host.setHandler(messageSignal, (payload: unknown) => {
    const message = readMessage(payload, SIGNAL_BYTES);
    if (message.ok) dispatch(arrival(message.value, message.value.id ?? host.uuid(), host.now()));
    else reject('message', message.reason);
  });
  host.setHandler(newSignal, (payload: unknown) => {
    const id = readOptionalText(payload, 'new', 'id');
    if (id.ok) dispatch({ kind: 'reset-requested', resetId: id.value ?? host.uuid(), at: host.now() });
    else reject('new', id.reason);
  });
  host.setHandler(interruptSignal, (payload: unknown) => {
    const reason = readOptionalText(payload, 'interrupt', 'reason');
    // A stop is a stop, also when its reason cannot be read.
    dispatch({ kind: 'interrupt-requested', reason: reason.ok ? (reason.value ?? null) : null, at: host.now() });
  });
  host.setHandler(renameSignal, (payload: unknown) => {
    const title = readTitle(payload);
    if (!title.ok) return reject('rename', title.reason);
    dispatch({ kind: 'renamed', title: title.value, at: host.now() });
    host.upsertMemo({ title: title.value });
  });
  host.setHandler(consolidatedSignal, (payload: unknown) => {
    const news = readConsolidationNews(payload);
    // Of an earlier life: this one has not requested it.
    if (news.ok && news.value.life === state().identity.life) dispatch({ kind: 'consolidation-ended', ...news.value, at: host.now() });
    else if (!news.ok) reject('consolidated', news.reason);
  });
  host.setHandler(eventSignal, (payload: unknown) => {
    const event = readAppEvent(payload);
    if (event.ok) dispatch(appEventReceived(event.value, event.value.id ?? host.uuid(), host.now()));
    else reject('event', event.reason);
  });
  host.setHandler(parentSignal, (payload: unknown) => {
    const read = readParentOrder(payload);
    if (!read.ok) return reject('parent', read.reason);
    const { order, capability } = read.value;
    if (!state().parent || capability !== state().capability) return reject('parent', 'parent.capability is not the one of its start');
    dispatch({ kind: 'parent-ordered', order, at: host.now() });
  });
  host.setHandler(decideSignal, (payload: unknown) => {
    const decision = readDecision(payload);
    if (decision.ok) dispatch({ kind: 'decided', decision: decision.value, at: host.now() });
    else reject('decide', decision.reason);
  });
  host.setHandler(childSignal, (payload: unknown) => {
    const news = readChildNews(payload);
    if (!news.ok) return reject('child', news.reason);
    const refused = newsRefusal(state(), news.value);
    if (refused !== undefined) return reject('child', refused);
    const { callId } = news.value;
    if (news.value.kind === 'asks') dispatch({ kind: 'child-asks', callId, asks: news.value.asks, at: host.now() });
    else if (news.value.kind === 'control') dispatch({ kind: 'child-stepped', callId, control: news.value.control, at: host.now() });
    else dispatch({ kind: 'child-ended', callId, report: news.value.report, at: host.now() });
  });
  host.setHandler(closeSignal, (payload?: unknown) => {
    const close = readClose(payload);
    if (close.ok) dispatch({ kind: 'close-requested', at: host.now(), ...close.value });
    else reject('close', close.reason);
  });
  host.setHandler(upgradeSignal, (payload?: unknown) => {
    const upgrade = readUpgrade(payload);
    if (upgrade.ok) dispatch({ kind: 'upgrade-due', ...upgrade.value, at: host.now() });
    else reject('upgrade', upgrade.reason);
  });
  host.onOtherSignal((name) => {
    reject(name, 'no signal of that name');
  });
}

function appEventReceived({ type, payload, wait }: ReadAppEvent, id: string, at: number): ConversationEvent {
  return { kind: 'app-event-received', id, type, payload, ...(wait && { isAwaited: true }), at };
}
