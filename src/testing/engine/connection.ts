/**
 * Perdura's workflows in memory, as Temporal's client sees a server: the part of its service that conversations are started, spoken to, described and listed
 * by. Any other call fails and says that it needs Temporal.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { ConnectionLike } from '@temporalio/client';
import {
  ApplicationFailure,
  DefaultFailureConverter,
  defaultPayloadConverter,
  mapToPayloads,
  WorkflowExecutionAlreadyStartedError,
  type Payload,
} from '@temporalio/common';
import { encodeUnifiedSearchAttributes } from '@temporalio/common/lib/converter/payload-search-attributes.js';
import { msNumberToTs } from '@temporalio/common/lib/time.js';
import { temporal } from '@temporalio/proto';
import { errorMessage } from '../../platform/errors.js';
import { orAborted } from '../../platform/promises.js';
import { payloadConverter } from '../../workflows/payload-converter.js';
import { SEARCH_ATTRIBUTES } from '../../workflows/messages.js';
import { createReducerRegistry, type Reducers } from '../../conversation/context/reducers.js';
import { converse } from '../../workflows/conversation.js';
import { keepMemory } from '../../workflows/memory.js';
import { deliverWebhook } from '../../workflows/webhook.js';
import { createClock, type ClockOptions } from './clock.js';
import { createEngine, type Engine, type EngineOptions, type Execution, type StartRequest, type Status, type Update } from './engine.js';

const GRPC = { cancelled: 1, invalidArgument: 3, deadlineExceeded: 4, notFound: 5, alreadyExists: 6, unimplemented: 12 };

/** Temporal's `WorkflowExecutionStatus`. */
const STATUS: Readonly<Record<Status, number>> = {
  RUNNING: 1,
  COMPLETED: 2,
  FAILED: 3,
  CANCELED: 4,
  TERMINATED: 5,
  CONTINUED_AS_NEW: 6,
};
/** `UpdateWorkflowExecutionLifecycleStage`. */
const STAGE = { accepted: 2, completed: 3 };
const USE_EXISTING = 2;
const REJECT_DUPLICATE = 3;
const SCHEDULED = 1;
const STARTED = 2;

interface Named {
  readonly workflowId: string;
  readonly runId?: string | null;
}

/** Requests as the client makes them, of which we read this. */
interface Payloads {
  readonly payloads?: readonly Payload[] | null;
}
interface StartWorkflow {
  readonly workflowId: string;
  readonly workflowType: { readonly name: string };
  readonly taskQueue: { readonly name: string };
  readonly input: Payloads;
  readonly memo?: { readonly fields: Record<string, Payload> };
  readonly workflowIdReusePolicy?: number;
  readonly workflowIdConflictPolicy?: number;
}
interface HistoryRequest {
  readonly execution: Named;
  readonly waitNewEvent?: boolean;
  readonly maximumPageSize?: number;
  readonly nextPageToken?: Uint8Array;
}
interface UpdateWorkflow {
  readonly workflowExecution: Named;
  readonly waitPolicy: { readonly lifecycleStage: number };
  readonly request: { readonly meta: { readonly updateId: string }; readonly input: { readonly name: string; readonly args: Payloads } };
}

const { HistoryEvent } = temporal.api.history.v1;
const failures = new DefaultFailureConverter();
const toFailure = (error: Error) => failures.errorToFailure(error, defaultPayloadConverter);
const toPayloads = (value: unknown): Payloads => ({ payloads: [defaultPayloadConverter.toPayload(value)] });
const fromPayloads = ({ payloads }: Payloads = {}): unknown[] => (payloads ?? []).map((payload) => payloadConverter.fromPayload(payload));
const long = (count: number) => ({ toNumber: () => count });

class GrpcError extends Error {
  readonly metadata = { get: () => [] };
  constructor(
    readonly code: number,
    readonly details: string,
  ) {
    super(details);
  }
}

function createMemoryConnection(engine: Engine): ConnectionLike {
  const limits = new AsyncLocalStorage<AbortSignal>();

  const running = ({ workflowId, runId }: Named): Execution => {
    const execution = found({ workflowId, runId: runId ?? null });
    if (execution.status !== 'RUNNING') throw new GrpcError(GRPC.notFound, 'workflow execution already completed');
    return execution;
  };
  const found = ({ workflowId, runId }: Named): Execution => {
    const execution = engine.find(workflowId, runId || undefined);
    if (!execution) throw new GrpcError(GRPC.notFound, `workflow not found for ID: ${workflowId}`);
    return execution;
  };

  const start = (call: StartWorkflow): { readonly runId: string; readonly started: boolean } => {
    const { workflowId, workflowType, taskQueue, input, memo } = call;
    const before = engine.find(workflowId);
    if (before?.status === 'RUNNING' && call.workflowIdConflictPolicy === USE_EXISTING) return { runId: before.runId, started: false };
    if (before && call.workflowIdReusePolicy === REJECT_DUPLICATE) throw new GrpcError(GRPC.alreadyExists, 'already started');
    const request: StartRequest = {
      ...{ workflowId, type: workflowType.name, taskQueue: taskQueue.name, args: fromPayloads(input) },
      memo: Object.fromEntries(Object.entries(memo?.fields ?? {}).map(([key, value]) => [key, payloadConverter.fromPayload(value)])),
    };
    try {
      return { runId: engine.start(request).runId, started: true };
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) throw new GrpcError(GRPC.alreadyExists, error.message);
      throw error;
    }
  };

  const answerOf = async (execution: Execution, updateId: string, update: Update, stage: number) => {
    const place = { updateRef: { workflowExecution: { workflowId: execution.workflowId, runId: execution.runId }, updateId } };
    const settled = update.outcome.then((outcome) => ({
      ...place,
      stage: STAGE.completed,
      outcome: 'failure' in outcome ? { failure: toFailure(outcome.failure) } : { success: toPayloads(outcome.result) },
    }));
    if (stage >= STAGE.completed) return settled;
    return Promise.race([settled, update.accepted.then(() => ({ ...place, stage: STAGE.accepted }))]);
  };
  const update = (call: UpdateWorkflow) => {
    const { meta, input } = call.request;
    const execution = running(call.workflowExecution);
    const made = engine.update(execution, meta.updateId, input.name, fromPayloads(input.args));
    return answerOf(execution, meta.updateId, made, call.waitPolicy.lifecycleStage);
  };

  const methods: Readonly<Record<string, (request: never) => unknown>> = {
    startWorkflowExecution: start,
    signalWorkflowExecution(call: { workflowExecution: Named; signalName: string; input?: Payloads }) {
      running(call.workflowExecution).run.deliver({ kind: 'signal', name: call.signalName, args: fromPayloads(call.input) });
      return {};
    },
    signalWithStartWorkflowExecution(call: StartWorkflow & { signalName: string; signalInput?: Payloads }) {
      const { runId } = start({ ...call, workflowIdConflictPolicy: USE_EXISTING });
      engine.signal(call.workflowId, call.signalName, fromPayloads(call.signalInput));
      return { runId };
    },
    updateWorkflowExecution: update,
    async executeMultiOperation({
      operations: [first, second],
    }: {
      operations: [{ startWorkflow: StartWorkflow }, { updateWorkflow: UpdateWorkflow }];
    }) {
      const startWorkflow = start(first.startWorkflow);
      return { responses: [{ startWorkflow }, { updateWorkflow: await update(second.updateWorkflow) }] };
    },
    pollWorkflowExecutionUpdate(call: { updateRef: { workflowExecution: Named; updateId: string } }) {
      const { workflowExecution, updateId } = call.updateRef;
      const execution = found(workflowExecution);
      const known = execution.updates.get(updateId);
      if (!known) throw new GrpcError(GRPC.notFound, `update "${updateId}" not found`);
      return answerOf(execution, updateId, known, STAGE.completed);
    },
    async queryWorkflow(call: { execution: Named; query: { queryType: string; queryArgs: Payloads } }) {
      let execution = found(call.execution);
      await execution.run.taken();
      // It may have handed over meanwhile.
      if (!call.execution.runId) execution = found(call.execution);
      await execution.run.taken();
      try {
        return { queryResult: toPayloads(execution.run.query(call.query.queryType, fromPayloads(call.query.queryArgs))) };
      } catch (error) {
        throw new GrpcError(GRPC.invalidArgument, errorMessage(error));
      }
    },
    describeWorkflowExecution(call: { execution: Named }) {
      const execution = found(call.execution);
      return { workflowExecutionInfo: infoOf(execution), pendingActivities: [...execution.pending].map(pendingOf), executionConfig: {} };
    },
    listWorkflowExecutions({ query = '' }: { query?: string }) {
      return { executions: engine.executions().filter(filterOf(query)).map(infoOf), nextPageToken: new Uint8Array() };
    },
    async getWorkflowExecutionHistory(call: HistoryRequest) {
      const execution = found(call.execution);
      if (call.waitNewEvent) {
        await execution.closed;
        return { history: { events: [closeEventOf(execution)] } };
      }
      await execution.run.taken();
      const from = Number(Buffer.from(call.nextPageToken ?? []).toString() || 0);
      const all = execution.run.events();
      const to = from + (call.maximumPageSize || all.length);
      const events = all.slice(from, to).map((event) => HistoryEvent.fromObject(event));
      return { history: { events }, nextPageToken: to < all.length ? Buffer.from(String(to)) : new Uint8Array() };
    },
    terminateWorkflowExecution(call: { workflowExecution: Named; reason?: string }) {
      engine.terminate(running(call.workflowExecution), call.reason ?? '');
      return {};
    },
    requestCancelWorkflowExecution(call: { workflowExecution: Named }) {
      running(call.workflowExecution).run.cancel();
      return {};
    },
    deleteWorkflowExecution(call: { workflowExecution: Named }) {
      engine.delete(found(call.workflowExecution).runId);
      return {};
    },
    describeTaskQueue: () => ({
      pollers: engine.isServed() ? [{ identity: 'memory', lastAccessTime: msNumberToTs(Date.now()) }] : [],
    }),
    // As a dev server keeps what has ended.
    describeNamespace: () => ({ config: { workflowExecutionRetentionTtl: msNumberToTs(86_400_000) } }),
  };

  /** Ends a call whose caller does not wait any longer. */
  const endWithCaller = async (call: () => unknown): Promise<unknown> => {
    const signal = limits.getStore();
    if (!signal) return call();
    try {
      signal.throwIfAborted();
      return await orAborted(signal, (async () => call())());
    } catch (error) {
      throw signal.aborted && !(error instanceof GrpcError) ? new GrpcError(GRPC.cancelled, 'the caller has stopped waiting') : error;
    }
  };

  const workflowService = new Proxy({} as ConnectionLike['workflowService'], {
    get: (_, name) => {
      if (typeof name !== 'string' || name === 'then') return undefined;
      const method = methods[name];
      if (method) return (request: never) => endWithCaller(async () => method(request));
      return () => Promise.reject(new GrpcError(GRPC.unimplemented, `${name} needs Temporal: these workflows run in memory`));
    },
  });

  return {
    workflowService,
    operatorService: workflowService as unknown as ConnectionLike['operatorService'],
    plugins: [],
    close: () => Promise.resolve(),
    ensureConnected: () => Promise.resolve(),
    async withDeadline(deadline, call) {
      const stop = new AbortController();
      const ms = Number(deadline) - Date.now();
      const timer = setTimeout(() => stop.abort(new GrpcError(GRPC.deadlineExceeded, 'Deadline exceeded')), Math.min(ms, 2 ** 31 - 1));
      timer.unref();
      return limits.run(stop.signal, call).finally(() => clearTimeout(timer));
    },
    withMetadata: (_metadata, call) => call(),
    withAbortSignal: (signal, call) => limits.run(signal, call),
  };
}

function infoOf(execution: Execution) {
  const { workflowId, runId, type, taskQueue, status, startedAt, closedAt, memo, attributes, firstRunId, parent, run } = execution;
  const known = Object.values(SEARCH_ATTRIBUTES).flatMap((key) => {
    const value = attributes[key.name];
    return value === undefined ? [] : [{ key, value } as never];
  });
  return {
    execution: { workflowId, runId },
    type: { name: type },
    taskQueue,
    status: STATUS[status],
    historyLength: long(run.historyLength()),
    historySizeBytes: long(run.historyLength() * 200),
    startTime: msNumberToTs(startedAt),
    executionTime: msNumberToTs(startedAt),
    ...(closedAt !== undefined && { closeTime: msNumberToTs(closedAt) }),
    memo: { fields: mapToPayloads(defaultPayloadConverter, memo) },
    searchAttributes: { indexedFields: encodeUnifiedSearchAttributes(undefined, known) },
    ...(parent && { parentExecution: parent }),
    firstRunId,
  };
}

function pendingOf({
  id,
  name,
  attempt,
  scheduledAt,
  nextAttemptAt,
  lastFailure,
}: Execution['pending'] extends Set<infer One> ? One : never) {
  return {
    activityId: id,
    activityType: { name },
    state: nextAttemptAt === undefined ? STARTED : SCHEDULED,
    attempt,
    scheduledTime: msNumberToTs(scheduledAt),
    ...(nextAttemptAt !== undefined && { nextAttemptScheduleTime: msNumberToTs(nextAttemptAt) }),
    ...(lastFailure !== undefined && { lastFailure: { message: lastFailure } }),
  };
}

function closeEventOf({ status, result, failure = ApplicationFailure.nonRetryable('unknown'), nextRunId }: Execution) {
  switch (status) {
    case 'COMPLETED':
      return { workflowExecutionCompletedEventAttributes: { result: toPayloads(result) } };
    case 'CONTINUED_AS_NEW':
      return { workflowExecutionContinuedAsNewEventAttributes: { newExecutionRunId: nextRunId } };
    case 'CANCELED':
      return { workflowExecutionCanceledEventAttributes: {} };
    case 'TERMINATED':
      return { workflowExecutionTerminatedEventAttributes: { reason: failure.message } };
    default:
      return { workflowExecutionFailedEventAttributes: { failure: toFailure(failure), retryState: 0 } };
  }
}

// The part of Temporal's list queries that lists here are made with: comparisons of a field with a text, joined by AND, OR and brackets.

type Filter = (execution: Execution) => boolean;

const WORD = /\s*(?:('(?:[^']|'')*')|([(),])|(!=|<=|>=|=|<|>)|([A-Za-z_][\w.]*|-?\d+(?:\.\d+)?))/y;

const FIELDS: Readonly<Record<string, (execution: Execution) => unknown>> = {
  WorkflowId: ({ workflowId }) => workflowId,
  WorkflowType: ({ type }) => type,
  RunId: ({ runId }) => runId,
  TaskQueue: ({ taskQueue }) => taskQueue,
  ExecutionStatus: ({ status }) => STATUS_NAMES[status],
};
const STATUS_NAMES: Readonly<Record<Execution['status'], string>> = {
  ...{ RUNNING: 'Running', COMPLETED: 'Completed', FAILED: 'Failed', CANCELED: 'Canceled', TERMINATED: 'Terminated' },
  CONTINUED_AS_NEW: 'ContinuedAsNew',
};

/** Throws for what needs Temporal. */
function filterOf(query: string): Filter {
  if (query.trim() === '') return () => true;
  const words = wordsOf(query);
  let at = 0;
  const next = (): string => words[at++] ?? refuse(query);
  const isNext = (word: string): boolean => words[at]?.toUpperCase() === word && ++at > 0;

  const all = (): Filter => {
    const parts = [one()];
    while (isNext('AND')) parts.push(one());
    return (execution) => parts.every((part) => part(execution));
  };
  const any = (): Filter => {
    const parts = [all()];
    while (isNext('OR')) parts.push(all());
    return (execution) => parts.some((part) => part(execution));
  };
  const one = (): Filter => {
    if (isNext('(')) {
      const inner = any();
      return next() === ')' ? inner : refuse(query);
    }
    const name = next();
    const read = FIELDS[name] ?? (name.startsWith('Agent') ? ({ attributes }: Execution) => attributes[name] : refuse(query));
    const operator = next().toUpperCase();
    if (operator === 'IS') {
      const isNot = isNext('NOT');
      next();
      return (execution) => ((read(execution) ?? null) === null) !== isNot;
    }
    const value = valueOf(next());
    switch (operator) {
      case '=':
        return (execution) => read(execution) === value;
      case '!=':
        return (execution) => read(execution) !== value;
      case 'STARTS_WITH':
        return (execution) => String(read(execution) ?? '').startsWith(String(value));
      default:
        return refuse(query);
    }
  };

  const filter = any();
  return at === words.length ? filter : refuse(query);
}

function wordsOf(query: string): string[] {
  const words: string[] = [];
  const word = new RegExp(WORD);
  while (word.lastIndex < query.trimEnd().length) {
    const found = word.exec(query);
    if (!found) return refuse(query);
    words.push(found[0].trim());
  }
  return words;
}

function valueOf(word: string): string | number {
  return word.startsWith("'") ? word.slice(1, -1).replaceAll("''", "'") : Number(word);
}

function refuse(query: string): never {
  throw new Error(`the list query ${JSON.stringify(query)} needs Temporal`);
}

export interface MemoryTemporal extends Engine {
  readonly connection: ConnectionLike;
}

export interface MemoryTemporalOptions extends ClockOptions, Pick<EngineOptions, 'namespace' | 'observe' | 'playing'> {
  readonly reducers?: Reducers;
}

export function startMemoryTemporal({ reducers = {}, namespace, observe, playing, ...clock }: MemoryTemporalOptions): MemoryTemporal {
  const reduce = createReducerRegistry(reducers);
  const engine = createEngine({
    ...{ clock: createClock(clock), namespace, ...(observe && { observe }), ...(playing && { playing }) },
    workflows: {
      conversation: (host, argument) => converse(host, argument, reduce),
      memory: keepMemory,
      webhook: deliverWebhook,
    },
  });
  return { ...engine, connection: createMemoryConnection(engine) };
}
