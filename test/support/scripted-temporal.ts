/**
 * Temporal's own client (@temporalio/client 1.24) on a service whose answers are an argument: no server, no worker, no port. What leaves
 * our client is seen as the server would see it, and what comes back goes through the SDK's own conversion into errors. The answers have
 * the form of temporal.api.workflowservice.v1; status codes and their texts are those of Temporal 1.29, as our own tests on a real server
 * meet them (test/temporal, test/workflows).
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { Client, type ConnectionLike } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import { msToTs } from '@temporalio/common/lib/time.js';
import { timeoutSignal } from '../../src/platform/promises.js';

/** One call of the service, as the server sees it. */
export interface Heard {
  readonly method: string;
  /** Of an update or query, or of a signal. */
  readonly name?: string;
  readonly updateId?: string;
  readonly workflowId?: string;
  /** Decoded. */
  readonly args: readonly unknown[];
  readonly request: Record<string, unknown>;
}

/** What a call is answered with; an error rejects it. */
export type Answer = object | Error | ((heard: Heard) => unknown);

export interface ScriptedTemporal {
  readonly client: Client;
  readonly heard: readonly Heard[];
  /** Methods that were called, in their order, with the name of what was said. */
  said(): string[];
  /** Answers of a method, one after the other; the last one for ever. */
  on(method: string, ...answers: readonly Answer[]): ScriptedTemporal;
}

const CODES = {
  CANCELLED: 1,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  INTERNAL: 13,
  UNAVAILABLE: 14,
} as const;

/** As grpc-js throws it. */
export function grpcError(code: keyof typeof CODES, details: string = code): Error {
  return Object.assign(new Error(`${CODES[code]} ${code}: ${details}`), { code: CODES[code], details, metadata: { get: () => [] } });
}

export function scriptedTemporal(): ScriptedTemporal {
  const heard: Heard[] = [];
  const script = new Map<string, Answer[]>();
  const limits = new AsyncLocalStorage<AbortSignal>();
  const call = async (method: string, request: Record<string, unknown>): Promise<unknown> => {
    const one = toHeard(method, request);
    heard.push(one);
    const answers = script.get(method);
    const answer = answers !== undefined && answers.length > 1 ? answers.shift() : answers?.[0];
    if (answer === undefined) throw new Error(`nothing was to reach Temporal, but ${method} did`);
    if (answer instanceof Error) throw answer;
    return orCancelled(limits.getStore(), Promise.resolve(typeof answer === 'function' ? answer(one) : answer));
  };
  // Each method is there as soon as it is asked for; `then` would make a promise of the service.
  const service = new Proxy(
    {},
    {
      get: (_, method) =>
        typeof method === 'string' && method !== 'then' ? (request: Record<string, unknown>) => call(method, request) : undefined,
    },
  );
  const connection = {
    ...{ workflowService: service, operatorService: service, plugins: [] },
    withDeadline: (deadline: number | Date, doing: () => Promise<unknown>) =>
      limits.run(timeoutSignal(Math.max(0, Number(deadline) - Date.now())), doing),
    withAbortSignal: (signal: AbortSignal, doing: () => Promise<unknown>) => limits.run(signal, doing),
    withMetadata: (_: unknown, doing: () => Promise<unknown>) => doing(),
    close: () => Promise.resolve(),
    ensureConnected: () => Promise.resolve(),
  } as unknown as ConnectionLike;
  const temporal: ScriptedTemporal = {
    client: new Client({ connection, namespace: 'default', identity: 'test' }),
    heard,
    said: () => heard.map(({ method, name }) => (name === undefined ? method : `${method} ${name}`)),
    on(method, ...answers) {
      script.set(method, [...answers]);
      return temporal;
    },
  };
  return temporal;
}

/** A call whose caller gives up ends at once, whatever becomes of it at the server. */
function orCancelled<T>(signal: AbortSignal | undefined, answer: Promise<T>): Promise<T> {
  if (signal === undefined) return answer;
  return new Promise((resolve, reject) => {
    const cancel = (): void => reject(grpcError('CANCELLED', 'Call cancelled'));
    if (signal.aborted) cancel();
    signal.addEventListener('abort', cancel, { once: true });
    answer.then(resolve, reject);
  });
}

interface Request {
  readonly request?: {
    readonly meta?: { readonly updateId?: string };
    readonly input?: { readonly name?: string; readonly args?: Payloads };
  };
  readonly query?: { readonly queryType?: string; readonly queryArgs?: Payloads };
  readonly operations?: readonly { readonly startWorkflow?: Request; readonly updateWorkflow?: Request }[];
  readonly workflowExecution?: { readonly workflowId?: string };
  readonly execution?: { readonly workflowId?: string };
  readonly workflowId?: string;
  readonly signalName?: string;
  readonly input?: Payloads;
}

interface Payloads {
  readonly payloads?: readonly Parameters<typeof defaultPayloadConverter.fromPayload>[0][];
}

function toHeard(method: string, request: Record<string, unknown>): Heard {
  const whole = request as Request;
  const said = whole.operations?.[1]?.updateWorkflow ?? whole;
  const name = said.request?.input?.name ?? said.query?.queryType ?? said.signalName;
  const args = said.request?.input?.args ?? said.query?.queryArgs ?? said.input;
  const updateId = said.request?.meta?.updateId;
  const workflowId = said.workflowExecution?.workflowId ?? said.execution?.workflowId ?? said.workflowId;
  return {
    ...{ method, request, args: (args?.payloads ?? []).map((payload) => defaultPayloadConverter.fromPayload(payload)) },
    ...(name !== undefined && { name }),
    ...(updateId !== undefined && { updateId }),
    ...(workflowId !== undefined && { workflowId }),
  };
}

const payloadsOf = (value: unknown): object => ({ payloads: [defaultPayloadConverter.toPayload(value)] });
const updateRef = { workflowExecution: { workflowId: 'c', runId: 'run-1' }, updateId: 'u' };

/** Stages of temporal.api.enums.v1.UpdateWorkflowExecutionLifecycleStage. */
const [ACCEPTED, COMPLETED] = [2, 3];

export const updated = (value: unknown): object => ({ stage: COMPLETED, updateRef, outcome: { success: payloadsOf(value) } });
/** Durable, and not done yet: its outcome is polled for. */
export const accepted = { stage: ACCEPTED, updateRef };
/** By the workflow, with an `ApplicationFailure` of that type. */
export const refused = (type: string, message: string = type): object => ({
  ...{ stage: COMPLETED, updateRef },
  outcome: { failure: { message, source: 'TypeScriptSDK', applicationFailureInfo: { type, nonRetryable: true } } },
});
export const startedWith = (update: object): object => ({ responses: [{ startWorkflow: { runId: 'run-1' } }, { updateWorkflow: update }] });
export const answeredWith = (value: unknown): object => ({ queryResult: payloadsOf(value) });

/** Of temporal.api.enums.v1.WorkflowExecutionStatus. */
export const STATUS = { RUNNING: 1, COMPLETED: 2, FAILED: 3, CANCELED: 4, TERMINATED: 5, CONTINUED_AS_NEW: 6, TIMED_OUT: 7 } as const;

export interface ToldExecution {
  readonly id: string;
  readonly runId?: string;
  readonly status?: keyof typeof STATUS;
  readonly memo?: Readonly<Record<string, unknown>>;
  readonly attributes?: Readonly<Record<string, readonly [type: 'Keyword' | 'Int' | 'Double', value: unknown]>>;
  readonly more?: object;
}

/** One of a list; a description has it as `workflowExecutionInfo`. */
export function execution({
  id,
  runId = `run of ${id}`,
  status = 'RUNNING',
  memo = {},
  attributes = {},
  more = {},
}: ToldExecution): object {
  const fields = Object.fromEntries(Object.entries(memo).map(([name, value]) => [name, defaultPayloadConverter.toPayload(value)]));
  const indexed = Object.entries(attributes).map(([name, [type, value]]) => {
    const payload = defaultPayloadConverter.toPayload(value);
    return [name, { ...payload, metadata: { ...payload.metadata, type: Buffer.from(type) } }];
  });
  return {
    ...{
      execution: { workflowId: id, runId },
      type: { name: 'conversation' },
      taskQueue: 'perdura',
      status: STATUS[status],
      firstRunId: runId,
    },
    ...{ historyLength: long(12), historySizeBytes: long(3_000), startTime: msToTs(1_000_000) },
    ...{ memo: { fields }, searchAttributes: { indexedFields: Object.fromEntries(indexed) as object } },
    ...more,
  };
}

export const described = (told: ToldExecution, more: object = {}): object => ({ workflowExecutionInfo: execution(told), ...more });

/** As protobuf.js gives 64 bits. */
function long(value: number): object {
  return { toNumber: () => value };
}

/** Pollers of a task queue, as seen so many milliseconds ago. */
export const pollers = (...seen: readonly (readonly [identity: string, agoMs?: number])[]): object => ({
  pollers: seen.map(([identity, agoMs = 0]) => ({ identity, lastAccessTime: msToTs(Date.now() - agoMs) })),
});
