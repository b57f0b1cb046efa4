/**
 * The workflow `memory:<scope>`: the only writer of a scope's MEMORY.md (design section 4). It takes consolidations from any number of
 * conversations, one at a time and in order, and reports to each how its consolidation ended.
 *
 * A call of the model writes nothing; history has its answer before anything is written.
 *
 * @rule workflows/kept-until-done: A request is kept until it is done, whatever dies meanwhile; the workflow retries a model that is away.
 *   (test: test/workflows/remembering.test.ts)
 * @rule workflows/one-memory-write: One write at a time: a person's decision waits for a write, never for a model. (test:
 *   test/workflows/remembering.test.ts)
 * @rule workflows/nothing-of-the-deleted: Of a deleted conversation nothing is sent to a model or written any more. (test:
 *   test/workflows/deleting.test.ts)
 */
import { ApplicationFailure } from '@temporalio/common';
import { counted } from '../records/text.js';
import { isScope } from '../conversation/protocol/limits.js';
import type { RememberInput } from '../conversation/context/compaction-effects.js';
import {
  readCare,
  readConsolidationRequest,
  readDeletedNotice,
  readForget,
  readMemoryStart,
  readReview,
  memoryWorkflowId,
  type Cared,
  type Forgotten,
  type MemoryStart,
  type Reviewed,
  type AskedConsolidation,
} from '../conversation/protocol/memory-contract.js';
import {
  addRequest,
  dropRequest,
  dropRequests,
  emptyQueue,
  finishRequest,
  isDropped,
  isQueueFull,
  memoryDetailsOf,
  memoryStatusOf,
  nextRequest,
  nextRetryAt,
  noteDone,
  withUsage,
  noteWritten,
  postponeRequest,
  startRequest,
  type MemoryQueue,
  outcomeOf,
  toRemember,
  readCarriedQueue,
} from '../conversation/memory-workflow/memory-queue.js';
import { handedOver } from '../conversation/protocol/state-seal.js';
import { createChangeNotifier, accepted } from './requests.js';
import { failureOf, memoryActivities } from './activities.js';
import { refusedSeal, type Host } from './host.js';
import {
  careSignal,
  careUpdate,
  consolidatedSignal,
  deletedSignal,
  consolidateSignal,
  FAILURES,
  forgetSignal,
  forgetUpdate,
  memoryStatusQuery,
  reviewSignal,
  reviewUpdate,
  upgradeSignal,
} from './messages.js';

/** The start argument, or what a run hands to the next. */
export type MemoryArgument = MemoryStart & { readonly carried?: MemoryQueue };

/** A run hands over well before Temporal's limits. */
const MAX_EVENTS = 5_000;
const MAX_BYTES = 4 * 1024 * 1024;

/** The workflow `memory:<scope>`: the one writer of a scope's long-term memory. */
export async function keepMemory(host: Host, argument: MemoryArgument): Promise<never> {
  const { scope, handOver = MAX_EVENTS } = begin(host, argument);
  let queue = carriedQueue(host, argument, scope);
  let leaving = false;
  let cares = 0;
  let rounds = 0;
  let cancelled: Error | undefined;
  const notifier = createChangeNotifier();
  const writing = createTurnstile();
  const change = (next: MemoryQueue): void => {
    queue = next;
    host.setCurrentDetails(memoryDetailsOf(queue));
    notifier.notify();
  };
  host.onCancelled((error) => {
    cancelled = error;
    notifier.notify();
  });

  const remember = async (activities: ReturnType<typeof memoryActivities>, input: RememberInput): Promise<void> => {
    const remembered = await writing(() => activities.remember(input));
    change(noteWritten(queue, input, remembered));
  };
  /** A person reads what went wrong, not that an activity did. */
  const withPlainErrors = <T>(work: () => Promise<T>): Promise<T> =>
    work().catch((error: unknown) => {
      const { type, message } = failureOf(error);
      throw ApplicationFailure.nonRetryable(message, type);
    });
  const decide = <T>(work: () => Promise<T>): Promise<T> => withPlainErrors(() => writing(work));
  const forget = async (payload: unknown): Promise<Forgotten> => {
    const request = accepted(readForget(payload));
    const gone = await decide(() => memoryActivities(host, undefined).forget({ scope, ...request, at: host.now() }));
    const counts = [
      counted(gone.lines.length, 'line'),
      counted(gone.facts.length, 'fact'),
      counted(gone.proposals.length, 'proposal'),
    ].join(', ');
    change(noteDone(queue, host.now(), `forgotten: ${counts}`));
    return gone;
  };
  const review = async (payload: unknown): Promise<Reviewed> => {
    const request = accepted(readReview(payload));
    const reviewed = await decide(() => memoryActivities(host, undefined).review({ scope, ...request }));
    change(noteDone(queue, host.now(), `${reviewed.id} ${reviewed.state}`));
    return reviewed;
  };
  const care = async (payload?: unknown): Promise<Cared> => {
    const { agent = scope } = accepted(readCare(payload));
    const activities = memoryActivities(host, undefined);
    const found = await withPlainErrors(() => activities.care({ scope, agent }));
    const id = `care/${host.info().runId}/${++cares}`;
    if (found.update) {
      const { update } = found;
      await remember(activities, { scope, id, cause: 'care', history: null, update, proposed: [] });
    }
    const { kind, bytesBefore, bytesAfter, facts, usage } = found;
    change(
      noteDone(
        withUsage(queue, usage),
        host.now(),
        kind === 'cared' ? `cared for: ${bytesBefore} to ${bytesAfter} bytes` : 'cared for: nothing to do',
      ),
    );
    return { kind, bytesBefore, bytesAfter, facts, ...(usage && { usage }) };
  };
  /** A signal has no answer; the details show how it ended. */
  const unheard = (handle: (payload: unknown) => Promise<unknown>) => {
    return async (payload: unknown): Promise<void> => {
      await handle(payload).catch((error: unknown) => change(noteDone(queue, host.now(), `failed: ${failureOf(error).message}`)));
    };
  };

  host.setHandler(upgradeSignal, () => {
    leaving = true;
    notifier.notify();
  });
  host.setHandler(consolidateSignal, (payload: unknown) => {
    const request = readConsolidationRequest(payload);
    if (!request.ok) change(noteDone(queue, host.now(), `refused: ${request.reason}`));
    else if (isQueueFull(queue)) change(noteDone(queue, host.now(), `refused: ${queue.requests.length} requests wait already`));
    else change(addRequest(queue, request.value));
  });
  host.setHandler(deletedSignal, (payload: unknown) => {
    const deleted = readDeletedNotice(payload);
    change(deleted.ok ? dropRequests(queue, deleted.value, host.now()) : noteDone(queue, host.now(), `refused: ${deleted.reason}`));
  });
  host.setHandler(forgetSignal, unheard(forget));
  host.setHandler(reviewSignal, unheard(review));
  host.setHandler(careSignal, unheard(care));
  host.onOtherSignal((name) => change(noteDone(queue, host.now(), `refused: no signal "${name}"`)));
  host.setHandler(forgetUpdate, forget, { validator: (payload: unknown) => void accepted(readForget(payload)) });
  host.setHandler(reviewUpdate, review, { validator: (payload: unknown) => void accepted(readReview(payload)) });
  host.setHandler(careUpdate, care, { validator: (payload?: unknown) => void accepted(readCare(payload)) });
  host.setHandler(memoryStatusQuery, () => memoryStatusOf(queue, host.info().historyLength));
  host.setCurrentDetails(memoryDetailsOf(queue));

  const serve = async (request: AskedConsolidation): Promise<void> => {
    const { id, conversation, requestId, life, taskQueue } = request;
    change(startRequest(queue, id));
    const activities = memoryActivities(host, taskQueue);
    let ended: ReturnType<typeof outcomeOf>;
    try {
      const summary = `${conversation} · ${counted(request.messages, 'message')} (${request.why})`;
      const { written } = queue;
      const result = await activities.consolidate({ scope, request, ...(written && { written }) }, summary);
      ended = outcomeOf(result);
      if (isDropped(queue, id)) return change(dropRequest(queue, id, host.now(), ended.usage)); // (workflows/nothing-of-the-deleted)
      const input = toRemember(scope, id, result);
      if (input) await remember(activities, input);
    } catch (error) {
      if (cancelled !== undefined) throw cancelled;
      const failure = failureOf(error);
      // (workflows/nothing-of-the-deleted)
      if (isDropped(queue, id) || failure.type === 'deleted') return change(dropRequest(queue, id, host.now()));
      return change(postponeRequest(queue, id, failure, host.now())); // (workflows/kept-until-done)
    }
    // Who is gone does not have to know; the news of another life is not this one's.
    await host.signal(conversation, consolidatedSignal, [{ requestId, life, ...ended }]).catch(() => undefined);
    change(finishRequest(queue, id, { ...ended, at: host.now() }));
  };

  for (;;) {
    if (cancelled !== undefined) throw cancelled;
    const { events, bytes } = host.measure();
    leaving ||= events >= handOver || bytes >= MAX_BYTES || host.isOtherBuildDue(`${++rounds}`);
    if (leaving) {
      await host.condition(host.allHandlersFinished);
      return host.continueAsNew(handedOver({ ...argument, scope, carried: queue }), 'current');
    }
    const next = nextRequest(queue, host.now());
    if (next) {
      await serve(next.request);
      continue;
    }
    const before = queue;
    const changed = (): boolean => queue !== before || leaving || cancelled !== undefined;
    const retryAt = nextRetryAt(queue);
    if (retryAt === undefined) await notifier.until(changed);
    else await host.condition(changed, Math.max(1, retryAt - host.now()), { summary: 'a consolidation that failed is tried again' });
  }
}

function begin(host: Host, argument: MemoryArgument | undefined): MemoryStart {
  const start = readMemoryStart(argument);
  if (!start.ok) throw ApplicationFailure.nonRetryable(`cannot start a memory: ${start.reason}`, FAILURES.invalidStart);
  const { scope } = start.value;
  const { workflowId } = host.info();
  const id = memoryWorkflowId(scope);
  // With another task queue behind it where two of them share a scope's name.
  if (isScope(scope) && (workflowId === id || workflowId.startsWith(`${id}:`))) return start.value;
  throw ApplicationFailure.nonRetryable(`the memory of ${scope} has the workflow id memory:${scope}`, FAILURES.invalidStart);
}

/** Only an earlier run may carry a queue in, and a start argument can claim to be one. */
function carriedQueue(host: Host, argument: MemoryArgument, scope: string): MemoryQueue {
  const { carried } = argument;
  if (carried === undefined || !host.info().continuedFromExecutionRunId) return emptyQueue(scope);
  const unsealed = refusedSeal(host, argument);
  if (unsealed !== undefined)
    throw ApplicationFailure.nonRetryable(
      `the run before this memory handed over a queue that no worker of ours has signed (${unsealed}); start it anew: MEMORY.md is in the store`,
      FAILURES.invalidStart,
    );
  const read = readCarriedQueue(carried, scope);
  if (read.ok) return read.value;
  throw ApplicationFailure.nonRetryable(
    `the run before this memory handed over what no memory has (${read.reason}); start it anew: MEMORY.md is in the store`,
    FAILURES.invalidStart,
  );
}

/** One at a time, in the order of coming. */
function createTurnstile(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work, work);
    last = mine.catch(() => undefined);
    return mine;
  };
}
