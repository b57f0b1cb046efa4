/**
 * Temporal as what runs a workflow, and what stops a reducer of the application that does not return.
 *
 * @rule workflows/reducer-stopped: A reducer that takes too many steps or too long fails the workflow task, in words, and nothing of that
 *   task is in history. Its conversation waits, the others of the worker go on, and a worker with a reducer that returns goes on with it.
 *   (test: test/temporal/looping-reducer.slow.test.ts)
 * @rule workflows/standing-ends-worker: Without reducers of an application no call into a workflow has a time limit, which would take a thread of
 *   the system each time. If the workflows of a worker answer nothing for half a minute, it ends in words, and others go on with what it ran.
 *   (test: test/temporal/standing-workflows.slow.test.ts)
 * @rule workflows/early-signals: Signals that come before a run has begun, with its start or while the run before it hands over, are heard in
 *   the order of history, whatever their names. (test: test/temporal/without-worker.test.ts)
 */
import {
  allHandlersFinished,
  CancellationScope,
  condition,
  makeContinueAsNewFunc,
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
import type { QueryDefinition, SignalDefinition, UpdateDefinition } from '@temporalio/common';
import { MAX_STEPS, STEPS, type createReducerRegistry, type Steps } from '../conversation/context/reducers.js';
import { UNOBSERVED, type ConversationListener } from '../conversation/views/observation.js';
import type { Host } from './host.js';
import { DESCRIPTIONS, UPGRADE_MARK } from './messages.js';
import { measureByServer, type MeasureHistory } from './measured-history.js';

/**
 * What happens to a conversation, sent to the worker: for observers, and for replays that rebuild what a store has lost. One way:
 * nothing comes back, and on replay the worker decides whether to listen.
 */
type ConversationSinks = { readonly conversation: ConversationListener };

const { conversation: observer } = proxySinks<ConversationSinks>();
/** What is told is copied twice on its way to the worker. */
const isObserved = (globalThis as { [UNOBSERVED]?: boolean })[UNOBSERVED] !== true;

/** A promise costs a replay: each of these is Temporal's. */
export function temporalHost(measure: MeasureHistory = measureByServer): Host {
  return {
    now,
    uuid: uuid4,
    info: workflowInfo,
    measure,
    isReplaying: () => workflowInfo().unsafe.isReplaying,
    patched,
    ...handlersInOrder(),
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
    continueAsNew,
    isOtherBuildDue,
    upsertMemo,
    upsertSearchAttributes: (pairs) => upsertSearchAttributes(pairs),
    setCurrentDetails,
    ...(isObserved && { observer }),
  };
}

/**
 * A mark in history says that a moment's answer was yes; the worker gives the answer (client/temporal/deployments.ts). Workers without a
 * deployment have no such mark, and neither has what replays the end of a history.
 */
function isOtherBuildDue(moment: string): boolean {
  const { unsafe, currentDeploymentVersion } = workflowInfo();
  return (unsafe.isReplaying || Boolean(currentDeploymentVersion?.deploymentName)) && patched(`${UPGRADE_MARK}${moment}`);
}

/**
 * A run of a versioned worker is pinned to its build, and so is the one after it, but where its last task says that it is not. Servers from
 * 1.31 on are told so by the command; those before go by the task's behavior, for which the SDK has no call (measured with 1.29).
 */
async function continueAsNew(argument: object, build: 'current' | 'same'): Promise<never> {
  const isVersioned = Boolean(workflowInfo().currentDeploymentVersion?.deploymentName);
  if (build === 'same' || !isVersioned) return makeContinueAsNewFunc()(argument);
  const { __TEMPORAL_ACTIVATOR__: activator } = globalThis as { __TEMPORAL_ACTIVATOR__?: { versioningBehavior?: string } };
  if (activator) activator.versioningBehavior = 'AUTO_UPGRADE';
  return makeContinueAsNewFunc({ initialVersioningBehavior: 'AUTO_UPGRADE' })(argument);
}

/**
 * What came before its handlers Temporal hands out as they are set: all signals of one name, then all of the next. One handler for any name
 * hears them as they came (workflows/early-signals).
 */
function handlersInOrder(): Pick<Host, 'setHandler' | 'onOtherSignal'> {
  const signals = new Map<string, { readonly signal: SignalDefinition; readonly handle: Handle }>();
  let isHearing = false;
  return {
    setHandler: ((message: Described, handle: Handle, options?: Parameters<typeof describedHandler>[2]) => {
      if (message.type === 'signal' && !isHearing) signals.set(message.name, { signal: message, handle });
      else describedHandler(message, handle, options);
    }) as Host['setHandler'],
    onOtherSignal(handleOther) {
      isHearing = true;
      setDefaultSignalHandler((name, ...args) => {
        const known = signals.get(name);
        return known ? known.handle(...args) : handleOther(name);
      });
      for (const { signal, handle } of signals.values()) describedHandler(signal, handle);
    },
  };
}

type Described = UpdateDefinition<unknown> | SignalDefinition | QueryDefinition<unknown>;
type Handle = (...args: unknown[]) => void | Promise<void>;

/** With the words that Temporal's page shows. */
function describedHandler(message: Described, handle: Handle, options?: { readonly validator: () => void }): void {
  const known: Readonly<Record<string, string>> = DESCRIPTIONS[message.type];
  const description = known[message.name];
  setHandler(message as UpdateDefinition<unknown>, handle, { ...options, ...(description !== undefined && { description }) });
}

/** The time of the workflow task, which a replay sees again: the one place that asks for it. */
function now(): number {
  return Date.now();
}

const MAX_MS = 2_000;
/** Of all reducers of one workflow task, which the worker cuts off after 10 s. */
const MAX_TASK_MS = 7_000;
/** Between two looks at the time. */
const STEPS_AT_ONCE = 64;

type Reduce = ReturnType<typeof createReducerRegistry>;

/**
 * A reducer's code counts its steps (extensions/counted-loops.ts), and asks here for more of them: so true time can be looked at, without
 * anything of it coming into history.
 */
export function withLimits(reduce: Reduce): Reduce {
  const steps: Steps = { left: Infinity, spent: () => undefined };
  (globalThis as Record<symbol, unknown>)[STEPS] = steps;
  // Each task is done with a longer history than the one before, also on replay.
  let task = { length: -1, ms: 0 };
  return (event, view) => {
    const { unsafe, historyLength: length } = workflowInfo();
    if (task.length !== length) task = { length, ms: 0 };
    const begun = unsafe.now();
    const maxMs = Math.min(MAX_MS, MAX_TASK_MS - task.ms);
    let taken = 0;
    let exceeded: string | undefined;
    steps.left = STEPS_AT_ONCE;
    steps.spent = () => {
      taken += STEPS_AT_ONCE;
      if (taken >= MAX_STEPS) exceeded ??= `${MAX_STEPS.toLocaleString('en-US')} loops and calls`;
      else if (unsafe.now() - begun > maxMs) exceeded ??= `${maxMs} ms`;
      // Also again and again: it may catch this.
      if (exceeded !== undefined) throw new Error(exceeded);
      steps.left = STEPS_AT_ONCE;
    };
    const reduced = reduce(event, view);
    steps.left = Infinity;
    task.ms += unsafe.now() - begun;
    if (exceeded === undefined) return reduced;
    throw new Error(
      `the reducer of ${event.type} was stopped after ${exceeded}, at event ${event.id}: this conversation waits. ` +
        'Correct the reducer and start the workers again: the event is reduced then, without anything of this in history',
    );
  };
}
