/**
 * One run of a workflow without Temporal: what comes to it is taken in activations, as a workflow task brings it, and what it waits for is
 * looked at when nothing of an activation is left to do.
 */
import { randomUUID } from 'node:crypto';
import {
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  defaultPayloadConverter,
  mapToPayloads,
  type ActivityOptions,
  type QueryDefinition,
  type SignalDefinition,
  type UpdateDefinition,
} from '@temporalio/common';
import { msNumberToTs } from '@temporalio/common/lib/time.js';
import type { Activities } from '../../activities/index.js';
import type { ConversationEvent } from '../../conversation/event.js';
import type { ConversationState } from '../../conversation/state.js';
import type { ConversationListener } from '../../conversation/views/observation.js';
import type { ChildStartOptions, Host, HostInfo, Scope } from '../../workflows/host.js';
import type { Clock } from './clock.js';
import { asJson, type Attempted } from './run-activity.js';

/** An update on its way: what is settled from outside goes through the engine. */
export interface AskedUpdate {
  readonly id: string;
  readonly name: string;
  readonly args: readonly unknown[];
  accept(): void;
  complete(result: unknown): void;
  fail(error: unknown): void;
}

type Job =
  | { readonly kind: 'signal'; readonly name: string; readonly args: readonly unknown[] }
  | { readonly kind: 'update'; readonly update: AskedUpdate }
  /** What had come to a conversation that is played again. */
  | { readonly kind: 'recorded'; readonly events: readonly ConversationEvent[] }
  /** Of what this run itself has begun. */
  | { readonly kind: 'internal'; readonly apply: () => void };

/** What the engine does for a run. */
export interface RunEngine {
  readonly clock: Clock;
  info(): Omit<HostInfo, 'historyLength'>;
  /** How its history begins. */
  readonly started: object;
  readonly observer: ConversationListener;
  /** Of a conversation that is played again: the state that this run begins with. */
  readonly opened?: ConversationState | undefined;
  /** Whether a worker is there. */
  isServed(): boolean;
  /** Whether it is to end now; absent, or undefined: when it is long enough. */
  readonly handsOver?: () => boolean | undefined;
  /** A timer is due: its run hears of it once this resolves. Absent: at once. */
  readonly timerHeld?: () => Promise<void>;
  runActivity(name: keyof Activities, input: unknown, options: ActivityOptions, stop: AbortSignal): Promise<Attempted>;
  startChild(type: string, options: ChildStartOptions): { readonly ended: Promise<unknown> };
  /** Throws where it does not run. */
  signal(workflowId: string, name: string, args: readonly unknown[]): void;
  /** Given what has come and was not taken; answers the next run's id. */
  continueAsNew(argument: unknown, left: readonly Job[]): string;
  upsertMemo(memo: Record<string, unknown>): void;
  upsertSearchAttributes(pairs: Parameters<Host['upsertSearchAttributes']>[0]): void;
  ended(how: { readonly result: unknown } | { readonly error: unknown }): void;
}

export interface Run {
  deliver(job: Job): void;
  deliverAll(jobs: readonly Job[]): void;
  /** Throws if there is no handler of that name. */
  query(name: string, args: readonly unknown[]): unknown;
  cancel(): void;
  /** Nothing more happens to it. */
  close(): void;
  historyLength(): number;
  /** What has happened to it, in the words of Temporal's history. */
  events(): readonly RecordedEvent[];
  /** A worker has come. */
  wake(): void;
  /** Resolves once it has taken what has come. */
  taken(): Promise<void>;
}

/** An event of history as far as a store is healed from it, and people look at it; no run can be replayed from these. */
export type RecordedEvent = { readonly eventId?: string } & Readonly<Record<string, unknown>>;

interface Condition {
  readonly isSo: () => boolean;
  readonly go: (isSo: boolean) => void;
}

/** Of the events of a workflow task itself. */
const TASK_EVENTS = 3;
const BYTES_OF_EVENT = 200;
const METADATA_QUERY = '__temporal_workflow_metadata';
const { setImmediate: soon } = globalThis;

export function createRun(workflow: (host: Host) => Promise<unknown>, engine: RunEngine): Run {
  const { clock } = engine;
  const signals = new Map<string, (...args: never[]) => unknown>();
  const queries = new Map<string, (...args: never[]) => unknown>();
  const updates = new Map<string, { handle: (...args: never[]) => unknown; validate?: ((...args: never[]) => void) | undefined }>();
  let otherSignal: ((name: string) => void) | undefined;
  let otherUpdate: ((name: string) => never) | undefined;
  const cancelled: ((error: Error) => void)[] = [];
  let conditions: Condition[] = [];
  let queue: Job[] = [];
  let begun = false;
  let closed = false;
  let scheduled = false;
  let handling = 0;
  let time = clock.now();
  const events: RecordedEvent[] = [];
  let tasks = 0;
  let bytes = 0;
  let currentDetails = '';
  let scope: AbortController | undefined;
  let listened = (): void => undefined;
  let dispatch: ((event: ConversationEvent) => void) | undefined;
  const runEnd = new AbortController();
  const timers = new Set<() => void>();
  const waitingForTasks: (() => void)[] = [];

  const note = (event: RecordedEvent): string => {
    const eventId = String(events.length + 1);
    events.push({ eventId, eventTime: msNumberToTs(clock.now()), ...event });
    return eventId;
  };
  const length = (): number => events.length + TASK_EVENTS * tasks + TASK_EVENTS - 1;
  const resume = (event: RecordedEvent, apply: () => void): void =>
    deliver({
      kind: 'internal',
      apply() {
        note(event);
        apply();
      },
    });

  const update = ({ name, args, accept, complete, fail }: AskedUpdate): void => {
    const handler = updates.get(name);
    try {
      if (handler) handler.validate?.(...(args as never[]));
      else if (!otherUpdate) throw new ReferenceError(`Update handler missing for ${name}`);
    } catch (error) {
      return fail(error);
    }
    note({ workflowExecutionUpdateAcceptedEventAttributes: { acceptedRequest: { input: { name } } } });
    accept();
    handling += 1;
    const answer = new Promise((go) => go(handler ? handler.handle(...(args as never[])) : otherUpdate?.(name)));
    void answer.then(complete, fail).then(() => (handling -= 1));
  };

  const apply = (job: Job): void => {
    switch (job.kind) {
      case 'internal':
        return job.apply();
      case 'update':
        return update(job.update);
      case 'recorded':
        return job.events.forEach((event) => dispatch?.(event));
      default: {
        note({ workflowExecutionSignaledEventAttributes: { signalName: job.name, input: toPayloads(job.args[0]) } });
        const handle = signals.get(job.name);
        if (!handle) return otherSignal?.(job.name);
        handling += 1;
        void new Promise((go) => go(handle(...(job.args as never[])))).then(() => (handling -= 1), broken);
      }
    }
  };

  /** Temporal would fail the workflow task again and again. */
  const broken = (error: unknown): void => {
    if (closed) return;
    close();
    engine.ended({ error });
  };

  /** What comes with its beginning is heard before it does anything, as signals are by Temporal's. */
  const begin = (jobs: Job[]): void => {
    begun = true;
    listened = () => {
      const early = jobs.filter(({ kind }) => kind === 'recorded');
      for (const job of early) jobs.splice(jobs.indexOf(job), 1);
      early.forEach(apply);
    };
    note({ workflowExecutionStartedEventAttributes: engine.started });
    void workflow(host).then((result) => {
      if (closed) return;
      close();
      engine.ended({ result: asJson(result) });
    }, broken);
  };

  const activate = (end: () => void): void => {
    const jobs = queue;
    queue = [];
    time = clock.now();
    bytes += jobs.reduce((sum, job) => sum + bytesOf(job), 0);
    if (!begun) begin(jobs);
    for (const job of jobs.splice(0)) if (!closed) apply(job);
    const look = (): void => {
      const ready = closed ? [] : conditions.filter(({ isSo }) => isSo());
      if (ready.length > 0) {
        conditions = conditions.filter((one) => !ready.includes(one));
        for (const { go } of ready) go(true);
        // What goes on now may make others so.
        return void soon(look);
      }
      tasks += 1;
      scheduled = false;
      if (queue.length > 0) schedule();
      else for (const go of waitingForTasks.splice(0)) go();
      end();
    };
    soon(look);
  };

  const schedule = (): void => {
    if (scheduled || closed || !engine.isServed()) return;
    scheduled = true;
    const end = clock.begin();
    soon(() => activate(end));
  };

  const deliver = (job: Job): void => {
    if (closed) return;
    queue.push(job);
    schedule();
  };

  const close = (): void => {
    closed = true;
    conditions = [];
    for (const forget of timers) forget();
    runEnd.abort();
    for (const job of queue.splice(0)) if (job.kind === 'update') job.update.fail(gone());
    for (const go of waitingForTasks.splice(0)) go();
  };

  const condition = (isSo: () => boolean, ms?: number, options?: { readonly summary: string }): Promise<never> => {
    if (isSo()) return Promise.resolve(true as never);
    return new Promise((resolve) => {
      const timer: { forget?: () => void } = {};
      const go = (was: boolean): void => {
        timer.forget?.();
        if (timer.forget) timers.delete(timer.forget);
        resolve(was as never);
      };
      const one: Condition = { isSo, go };
      conditions.push(one);
      if (ms === undefined) return;
      note({ timerStartedEventAttributes: {} });
      const fire = (): void =>
        resume({ timerFiredEventAttributes: {} }, () => {
          if (!conditions.includes(one)) return;
          conditions = conditions.filter((other) => other !== one);
          one.go(false);
        });
      const due = (): void => (engine.timerHeld ? void engine.timerHeld().then(fire) : fire());
      timer.forget = clock.at(time + ms, options?.summary ?? '', due);
      timers.add(timer.forget);
    });
  };

  /** Done at once, and heard of in a separate activation. */
  const settled = <T>(event: string, work: () => T): Promise<T> =>
    new Promise((resolve, reject) => {
      const resumed = (go: () => void): void => resume({ [event]: {} }, go);
      try {
        const value = work();
        resumed(() => resolve(value));
      } catch (error) {
        resumed(() => reject(error as Error));
      }
    });

  const host: Host = {
    now: () => time,
    uuid: randomUUID,
    info: () => ({ ...engine.info(), historyLength: length() }),
    measure() {
      const isDue = engine.handsOver?.();
      if (isDue !== undefined) return { events: isDue ? Infinity : 0, bytes: 0 };
      return { events: length(), bytes: length() * BYTES_OF_EVENT + bytes };
    },
    isReplaying: () => false,
    patched: () => true,
    isOtherBuildDue: () => false,
    setHandler(
      message: UpdateDefinition<unknown, never[]> | SignalDefinition<never[]> | QueryDefinition<unknown, never[]>,
      handle: (...args: never[]) => unknown,
      options?: { readonly validator: (...args: never[]) => void },
    ) {
      if (message.type === 'signal') signals.set(message.name, handle);
      else if (message.type === 'query') queries.set(message.name, handle);
      else updates.set(message.name, { handle, validate: options?.validator });
    },
    onOtherSignal: (handle) => void (otherSignal = handle),
    onOtherUpdate: (handle) => void (otherUpdate = handle),
    allHandlersFinished: () => handling === 0,
    condition: condition as Host['condition'],
    onCancelled: (listen) => void cancelled.push(listen),
    createScope(): Scope {
      const controller = new AbortController();
      return {
        run(work) {
          const before = scope;
          scope = controller;
          try {
            return work();
          } finally {
            scope = before;
          }
        },
        cancel: () => controller.abort(),
      };
    },
    activity(name, input, options) {
      const given = asJson(input);
      const scheduledEventId = note({
        activityTaskScheduledEventAttributes: { activityType: { name }, input: toPayloads(given) },
        ...(options.summary !== undefined && { userMetadata: { summary: defaultPayloadConverter.toPayload(options.summary) } }),
      });
      const stop = AbortSignal.any([...(scope ? [scope.signal] : []), runEnd.signal]);
      const ended = (attempt: number, event: RecordedEvent, settle: () => void): void =>
        resume({ activityTaskStartedEventAttributes: { scheduledEventId, attempt } }, () => {
          note(event);
          settle();
        });
      return new Promise((resolve, reject) => {
        engine.runActivity(name, given, options, stop).then(
          ({ output, attempt }) =>
            ended(attempt, { activityTaskCompletedEventAttributes: { scheduledEventId, result: toPayloads(output) } }, () =>
              resolve(output),
            ),
          (error: Error) =>
            ended(1, { activityTaskFailedEventAttributes: { scheduledEventId, failure: { message: error.message } } }, () =>
              reject(new ActivityFailure('Activity task failed', name, undefined, 'NON_RETRYABLE_FAILURE', '', error)),
            ),
        );
      });
    },
    startChild(type, options) {
      note({ startChildWorkflowExecutionInitiatedEventAttributes: { workflowId: options.workflowId } });
      return settled('childWorkflowExecutionStartedEventAttributes', () => {
        const { ended } = engine.startChild(type, options);
        const result = ended.then(
          (value) => settled('childWorkflowExecutionCompletedEventAttributes', () => value),
          (error: unknown) =>
            settled('childWorkflowExecutionFailedEventAttributes', () => {
              throw error;
            }),
        );
        result.catch(() => undefined);
        return { result: () => result };
      });
    },
    signal(workflowId, { name }, args) {
      note({ signalExternalWorkflowExecutionInitiatedEventAttributes: { signalName: name } });
      return settled('externalWorkflowExecutionSignaledEventAttributes', () => engine.signal(workflowId, name, asJson(args) as unknown[]));
    },
    continueAsNew(argument) {
      const left = queue.splice(0).filter(({ kind }) => kind !== 'internal');
      close();
      const newExecutionRunId = engine.continueAsNew(asJson(argument), left);
      note({ workflowExecutionContinuedAsNewEventAttributes: { newExecutionRunId } });
      return new Promise<never>(() => undefined);
    },
    upsertMemo(memo) {
      note({ workflowPropertiesModifiedEventAttributes: { upsertedMemo: { fields: mapToPayloads(defaultPayloadConverter, memo) } } });
      engine.upsertMemo(asJson(memo));
    },
    upsertSearchAttributes(pairs) {
      note({ upsertWorkflowSearchAttributesEventAttributes: {} });
      engine.upsertSearchAttributes(pairs);
    },
    setCurrentDetails: (details) => void (currentDetails = details),
    observer: engine.observer,
    played: {
      ...(engine.opened && { opened: engine.opened }),
      listen(hear) {
        dispatch = hear;
        listened();
      },
    },
  };

  schedule();
  return {
    deliver,
    deliverAll: (jobs) => jobs.forEach(deliver),
    query(name, args) {
      if (name === METADATA_QUERY) return { currentDetails };
      const handle = queries.get(name);
      if (!handle) throw new ReferenceError(`Workflow did not register a handler for ${name}`);
      return asJson(handle(...(args as never[])));
    },
    cancel: () =>
      resume({ workflowExecutionCancelRequestedEventAttributes: {} }, () => {
        for (const listen of cancelled) listen(new CancelledFailure('Workflow canceled'));
      }),
    close,
    historyLength: length,
    events: () => events,
    wake: schedule,
    taken: () => new Promise((go) => (begun && !scheduled && queue.length === 0 ? go() : closed ? go() : waitingForTasks.push(go))),
  };
}

/** To who waits for the answer of a run that is no more. */
export function gone(): ApplicationFailure {
  return ApplicationFailure.nonRetryable('the workflow ended before this update was answered', 'AcceptedUpdateCompletedWorkflow');
}

function toPayloads(value: unknown) {
  return { payloads: [defaultPayloadConverter.toPayload(value)] };
}

function bytesOf(job: Job): number {
  if (job.kind === 'internal' || job.kind === 'recorded') return 0;
  return JSON.stringify(job.kind === 'update' ? job.update.args : job.args).length;
}

export type { Job };
