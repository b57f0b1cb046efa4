/**
 * Workflows without Temporal: what is started, signalled, queried and ended, in this process, with a clock that can be moved. What one
 * says to another, what a run hands to the next, and what activities take and answer goes through JSON, as Temporal's does.
 */
import { randomUUID } from 'node:crypto';
import {
  CancelledFailure,
  ChildWorkflowFailure,
  DefaultFailureConverter,
  defaultPayloadConverter,
  TerminatedFailure,
  WorkflowExecutionAlreadyStartedError,
  type ActivityOptions,
} from '@temporalio/common';
import type { Activities } from '../../activities/index.js';
import { STOP_GRACE_MS } from '../../conversation/turn/turn.js';
import type { ConversationEvent } from '../../conversation/event.js';
import type { ConversationState } from '../../conversation/state.js';
import type { ConversationListener } from '../../conversation/views/observation.js';
import type { Host } from '../../workflows/host.js';
import type { Clock } from './clock.js';
import { createRun, gone, type AskedUpdate, type Job, type Run } from './memory-host.js';
import { asJson, runActivity } from './run-activity.js';

// Taken before a test replaces the globals.
const { setTimeout: later } = globalThis;

export type Status = 'RUNNING' | 'COMPLETED' | 'FAILED' | 'CANCELED' | 'TERMINATED' | 'CONTINUED_AS_NEW';

export interface StartRequest {
  readonly workflowId: string;
  readonly type: string;
  readonly taskQueue: string;
  readonly args: readonly unknown[];
  readonly memo: Readonly<Record<string, unknown>>;
}

/** A run of a workflow, as Temporal would describe it. */
export interface Execution extends StartRequest {
  readonly runId: string;
  readonly firstRunId: string;
  readonly continuedFrom?: string;
  readonly parent?: { readonly workflowId: string; readonly runId: string };
  readonly startedAt: number;
  memo: Record<string, unknown>;
  attributes: Record<string, unknown>;
  status: Status;
  closedAt?: number;
  result?: unknown;
  failure?: Error;
  nextRunId?: string;
  readonly updates: Map<string, Update>;
  readonly pending: Set<PendingActivity>;
  readonly run: Run;
  /** Resolves once it is closed. */
  readonly closed: Promise<void>;
}

export interface PendingActivity {
  readonly id: string;
  readonly name: string;
  readonly scheduledAt: number;
  attempt: number;
  nextAttemptAt?: number | undefined;
  lastFailure?: string | undefined;
}

/** `outcome` of one that was refused: its refusal. */
export interface Update {
  readonly accepted: Promise<void>;
  readonly outcome: Promise<{ readonly result: unknown } | { readonly failure: Error }>;
}

export type MemoryWorkflow = (host: Host, ...args: never[]) => Promise<unknown>;

export interface EngineOptions {
  readonly clock: Clock;
  readonly namespace: string;
  readonly workflows: Readonly<Record<string, MemoryWorkflow>>;
  /** Of the run that begins. */
  readonly observe?: (execution: Pick<Execution, 'workflowId' | 'runId' | 'firstRunId'>) => ConversationListener;
  readonly playing?: Playing;
}

/** Conversations that happened before, and are played again. */
export interface Playing {
  /** What its first run was called: what it wrote is found under that. Undefined: any name will do. */
  readonly lifeFor: (workflowId: string) => string | undefined;
  /** The state that its first run began with. */
  readonly openedAs: (workflowId: string) => ConversationState | undefined;
  /** Whether its run is to end now; undefined: as it would. */
  readonly handsOver: (workflowId: string) => boolean | undefined;
  /**
   * An activity has ended, another workflow has sent a signal of that name, or a `timer` is due: the workflow hears of it once this
   * resolves; so begins a `next-run`. Time may pass meanwhile.
   */
  readonly hold: (workflowId: string, name: string, input: unknown) => Promise<void>;
}

export interface Engine {
  readonly clock: Clock;
  readonly namespace: string;
  /** Latest started first. */
  executions(): readonly Execution[];
  /** The latest of that id, or that run. */
  find(workflowId: string, runId?: string): Execution | undefined;
  /** Throws `WorkflowExecutionAlreadyStartedError`. */
  start(request: StartRequest): Execution;
  /** Throws where it does not run. */
  signal(workflowId: string, name: string, args: readonly unknown[]): void;
  update(execution: Execution, id: string, name: string, args: readonly unknown[]): Update;
  /** To a conversation that is played again: all of it in one activation. */
  bring(workflowId: string, events: readonly ConversationEvent[]): void;
  /** How the workflow ended, over all its runs; rejects for one that did not complete. */
  result(execution: Execution): Promise<unknown>;
  terminate(execution: Execution, reason: string): void;
  delete(runId: string): void;
  /** Does the activities of all workflows, until what this returns is called. */
  serve(activities: Activities): () => void;
  isServed(): boolean;
}

const SILENT: ConversationListener = { opened: () => undefined, event: () => undefined };
const failures = new DefaultFailureConverter();

export function createEngine({ clock, namespace, workflows, observe, playing }: EngineOptions): Engine {
  const executions = new Map<string, Execution>();
  const latest = new Map<string, Execution>();
  let workers: Activities[] = [];
  const awaitingWorker: (() => void)[] = [];

  const begin = (
    request: StartRequest,
    links: Pick<Execution, 'parent' | 'continuedFrom'> & { readonly firstRunId?: string; readonly attributes?: Record<string, unknown> },
  ): Execution => {
    const workflow = workflows[request.type];
    if (!workflow) throw new Error(`there is no workflow ${request.type} in memory`);
    const runId = (links.continuedFrom === undefined ? playing?.lifeFor(request.workflowId) : undefined) ?? randomUUID();
    let close!: () => void;
    const { firstRunId = runId, attributes = {}, ...more } = links;
    const execution: Omit<Execution, 'run'> & { run?: Run } = {
      ...{ ...request, ...more, runId, firstRunId, attributes: { ...attributes }, memo: { ...request.memo } },
      ...{ startedAt: clock.now(), status: 'RUNNING', updates: new Map(), pending: new Set() },
      closed: new Promise<void>((go) => (close = go)),
    };
    const made = execution as Execution;
    executions.set(runId, made);
    latest.set(request.workflowId, made);
    const end = (status: Status, rest: Partial<Pick<Execution, 'result' | 'failure' | 'nextRunId'>>): void => {
      Object.assign(made, { status, closedAt: clock.now(), ...rest });
      close();
    };
    ends.set(made, end);
    let isHeld = playing !== undefined && links.continuedFrom !== undefined;
    execution.run = createRun((host) => workflow(host, ...(asJson(request.args) as never[])), {
      clock,
      info: () => ({
        workflowId: request.workflowId,
        ...{ runId, firstExecutionRunId: firstRunId, memo: made.memo },
        ...(links.continuedFrom !== undefined && { continuedFromExecutionRunId: links.continuedFrom }),
        ...(links.parent && { parent: links.parent }),
      }),
      started: {
        input: { payloads: request.args.map((one) => defaultPayloadConverter.toPayload(one)) },
        ...{ attempt: 1, firstExecutionRunId: firstRunId, originalExecutionRunId: runId },
        ...(links.continuedFrom !== undefined && { continuedExecutionRunId: links.continuedFrom }),
      },
      observer: observe?.(made) ?? SILENT,
      opened: links.continuedFrom === undefined ? playing?.openedAs(request.workflowId) : undefined,
      isServed: () => workers.length > 0 && !isHeld,
      ...(playing && { handsOver: () => playing.handsOver(request.workflowId) }),
      ...(playing && { timerHeld: () => playing.hold(request.workflowId, 'timer', null) }),
      runActivity: (name, input, options, stop) => perform(made, name, input, options, stop),
      startChild(type, { workflowId, args, memo }) {
        const parent = { workflowId: request.workflowId, runId };
        const child = start({ workflowId, type, taskQueue: request.taskQueue, args, memo }, { parent });
        const ended = result(child).catch((error: unknown) => {
          throw new ChildWorkflowFailure(namespace, { workflowId }, type, 'NON_RETRYABLE_FAILURE', error as Error);
        });
        return { ended };
      },
      signal: sendBetween,
      continueAsNew(argument, left) {
        const { firstRunId: first, attributes: kept, memo, parent } = made;
        const next = begin(
          { ...request, args: [argument], memo },
          { firstRunId: first, attributes: kept, continuedFrom: runId, ...(parent && { parent }) },
        );
        end('CONTINUED_AS_NEW', { nextRunId: next.runId });
        next.run.deliverAll(left);
        return next.runId;
      },
      upsertMemo: (memo) => void Object.assign(made.memo, memo),
      upsertSearchAttributes(pairs) {
        for (const { key, value } of pairs) made.attributes[key.name] = value;
      },
      ended(how) {
        if ('result' in how) return end('COMPLETED', how);
        if (how.error instanceof CancelledFailure) return end('CANCELED', { failure: how.error });
        end('FAILED', { failure: overTheWire(how.error) });
      },
    });
    if (isHeld) {
      void playing?.hold(request.workflowId, 'next-run', null).then(() => {
        isHeld = false;
        made.run.wake();
      });
    }
    return made;
  };
  const ends = new WeakMap<Execution, (status: Status, rest: Partial<Pick<Execution, 'failure'>>) => void>();

  const start = (request: StartRequest, links: Pick<Execution, 'parent'> = {}): Execution => {
    const { workflowId, type } = request;
    if (latest.get(workflowId)?.status === 'RUNNING')
      throw new WorkflowExecutionAlreadyStartedError('Workflow execution already started', workflowId, type);
    return begin({ ...request, args: asJson(request.args), memo: asJson(request.memo) }, links);
  };

  const signal = (workflowId: string, name: string, args: readonly unknown[]): void => {
    const execution = latest.get(workflowId);
    if (execution?.status !== 'RUNNING') throw new Error(`workflow not found: ${workflowId}`);
    execution.run.deliver({ kind: 'signal', name, args });
  };

  /** What comes after the end of its receiver is dropped. */
  const sendBetween: typeof signal = (workflowId, name, args) => {
    if (!playing) return signal(workflowId, name, args);
    if (latest.get(workflowId)?.status !== 'RUNNING') throw new Error(`workflow not found: ${workflowId}`);
    void playing.hold(workflowId, name, args[0]).then(() => {
      if (latest.get(workflowId)?.status === 'RUNNING') signal(workflowId, name, args);
    });
  };

  const result = async (execution: Execution): Promise<unknown> => {
    let at = execution;
    for (;;) {
      await at.closed;
      const next = at.nextRunId === undefined ? undefined : executions.get(at.nextRunId);
      if (!next) break;
      at = next;
    }
    if (at.failure) throw at.failure;
    return at.result;
  };

  const perform = async (of: Execution, name: keyof Activities, input: unknown, options: ActivityOptions, stop: AbortSignal) => {
    const pending: PendingActivity = { id: randomUUID(), name, scheduledAt: clock.now(), attempt: 1 };
    of.pending.add(pending);
    while (workers.length === 0) await new Promise<void>((go) => awaitingWorker.push(go));
    let end = clock.begin();
    // Time goes on without what hears no stop, as it does outside.
    const leave = (): void => void later(() => end(), STOP_GRACE_MS).unref();
    stop.addEventListener('abort', leave, { once: true });
    const held = async (): Promise<void> => {
      if (!playing) return;
      end();
      await playing.hold(of.workflowId, name, input);
      end = clock.begin();
    };
    try {
      const attempted = await runActivity({
        ...{ activities: workers.at(-1) as Activities, name, input, options, stop, now: clock.now },
        info: {
          workflowNamespace: namespace,
          workflowExecution: { workflowId: of.workflowId, runId: of.runId },
          ...{ workflowType: of.type, taskQueue: of.taskQueue },
        },
        pause: async (ms, failed, attempt) => {
          Object.assign(pending, { attempt: attempt + 1, lastFailure: failed.message, nextAttemptAt: clock.now() + ms });
          end();
          await pauseUnlessStopped(clock, ms, name, stop);
          end = clock.begin();
          delete pending.nextAttemptAt;
        },
      });
      await held();
      return attempted;
    } catch (error) {
      await held();
      throw overTheWire(error);
    } finally {
      stop.removeEventListener('abort', leave);
      of.pending.delete(pending);
      // After the run has been told.
      setImmediate(end);
    }
  };

  return {
    clock,
    namespace,
    executions: () => [...executions.values()].reverse(),
    find: (workflowId, runId) => (runId ? executions.get(runId) : latest.get(workflowId)),
    start,
    signal,
    update(execution, id, name, args) {
      const known = execution.updates.get(id);
      if (known) return known;
      let accept!: () => void;
      let settle!: (outcome: Awaited<Update['outcome']>) => void;
      const update: Update = {
        accepted: new Promise((go) => (accept = go)),
        outcome: new Promise((go) => (settle = go)),
      };
      const pendingUpdate: AskedUpdate = {
        ...{ id, name, args, accept },
        complete: (value) => settle({ result: asJson(value) }),
        fail: (error) => settle({ failure: overTheWire(error) }),
      };
      execution.updates.set(id, update);
      void execution.closed.then(() => {
        // One that was not taken goes on to the next run, and is settled there.
        if (execution.status !== 'CONTINUED_AS_NEW') settle({ failure: gone() });
      });
      execution.run.deliver({ kind: 'update', update: pendingUpdate } satisfies Job);
      return update;
    },
    bring(workflowId, events) {
      latest.get(workflowId)?.run.deliver({ kind: 'recorded', events });
    },
    result,
    terminate(execution, reason) {
      if (execution.status !== 'RUNNING') return;
      execution.run.close();
      ends.get(execution)?.('TERMINATED', { failure: new TerminatedFailure(reason) });
    },
    delete(runId) {
      const execution = executions.get(runId);
      executions.delete(runId);
      if (execution && latest.get(execution.workflowId) === execution) latest.delete(execution.workflowId);
    },
    serve(activities) {
      workers = [...workers, activities];
      for (const go of awaitingWorker.splice(0)) go();
      for (const { run, status } of executions.values()) if (status === 'RUNNING') run.wake();
      return () => {
        workers = workers.filter((one) => one !== activities);
      };
    },
    isServed: () => workers.length > 0,
  };
}

/** A stop ends the wait too. */
function pauseUnlessStopped(clock: Clock, ms: number, name: string, stop: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stopped = (): void => {
      forget();
      reject(new CancelledFailure('it was stopped'));
    };
    const forget = clock.at(clock.now() + ms, `another attempt of ${name}`, () => {
      stop.removeEventListener('abort', stopped);
      resolve();
    });
    stop.addEventListener('abort', stopped, { once: true });
  });
}

/** As it arrives on the other side: classes are gone, names and words remain. */
function overTheWire(error: unknown): Error {
  return failures.failureToError(failures.errorToFailure(error, defaultPayloadConverter), defaultPayloadConverter);
}
