/** Temporal as what runs a workflow. */
import {
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  getExternalWorkflowHandle,
  ParentClosePolicy,
  patched,
  proxyActivities,
  proxySinks,
  setCurrentDetails,
  setDefaultSignalHandler,
  setDefaultUpdateHandler,
  setHandler,
  startChild,
  upsertMemo,
  upsertSearchAttributes,
  uuid4,
  workflowInfo,
} from '@temporalio/workflow';
import type { ConversationListener } from '../conversation/views/observation.js';
import type { Host } from './host.js';
import { measureByServer, type MeasureHistory } from './measured-history.js';

/**
 * What happens to a conversation, sent to the worker: for observers, and for replays that rebuild what a store has lost. One way:
 * nothing comes back, and on replay the worker decides whether to listen.
 */
type ConversationSinks = { readonly conversation: ConversationListener };

const { conversation: observer } = proxySinks<ConversationSinks>();

/** A promise costs a replay: each of these is Temporal's. */
export function temporalHost(measure: MeasureHistory = measureByServer): Host {
  return {
    now,
    uuid: uuid4,
    info: workflowInfo,
    measure,
    isReplaying: () => workflowInfo().unsafe.isReplaying,
    patched,
    setHandler: setHandler as Host['setHandler'],
    onOtherSignal: (handle) => setDefaultSignalHandler(handle),
    onOtherUpdate: (handle) => setDefaultUpdateHandler(handle),
    allHandlersFinished,
    condition: condition as Host['condition'],
    onCancelled: (cancelled) => void CancellationScope.current().cancelRequested.catch(cancelled),
    createScope: () => new CancellationScope(),
    activity(name, input, options) {
      const activity = proxyActivities<Record<string, (input: unknown) => Promise<unknown>>>(options)[name];
      if (!activity) throw new Error(`there is no activity ${name}`);
      return activity(input);
    },
    // Abandoned, so that it outlives this run's hand-over (a `TERMINATE` child dies with it, measured).
    startChild: (type, options) => startChild(type, { ...options, parentClosePolicy: ParentClosePolicy.ABANDON }),
    signal: (workflowId, signal, args) => getExternalWorkflowHandle(workflowId).signal(signal, ...args),
    continueAsNew: (argument) => continueAsNew(argument),
    upsertMemo,
    upsertSearchAttributes: (pairs) => upsertSearchAttributes(pairs),
    setCurrentDetails,
    observer,
  };
}

/** The time of the workflow task, which a replay sees again: the one place that asks for it. */
function now(): number {
  return Date.now();
}
