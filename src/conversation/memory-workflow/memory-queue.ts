/**
 * What the workflow `memory:<scope>` has to do, as a value: pure, plain JSON, carried through continue-as-new.
 *
 * @rule memory-workflow/request-once: A request is done once: the queue remembers its id afterwards, and the store knows it for longer.
 *   (test: test/conversation/memory-workflow/memory-queue.test.ts)
 * @rule memory-workflow/failure-blocks-none: The workflow does one request at a time, in order of arrival; a failed one rests, and those
 *   behind it go on. (test: test/conversation/memory-workflow/memory-queue.test.ts)
 */
import * as v from 'valibot';
import type { Consolidation } from '../protocol/contract.js';
import type { Remembered, RememberInput, WrittenMemory, Consolidated } from '../context/compaction-effects.js';
import type { StepFailure } from '../outbox/writes.js';
import type { Retry } from '../state/turn-state.js';
import { type AskedConsolidation, type DeletedNotice, type MemoryStatus, readConsolidationRequest } from '../protocol/memory-contract.js';
import { type Usage, addUsage, NO_USAGE } from '../../records/message.js';
import { retryAfter } from '../state/turn-access.js';
import { asCode, truncate, counted } from '../../records/text.js';
import { isoTime } from '../../records/text.js';
import { LIMITS } from '../protocol/limits.js';
import { bool, flag, is, json, list, object, part, read, refuse, text, time, usage, type Checked } from '../protocol/schema.js';

export interface MemoryQueue {
  readonly v: 1;
  readonly scope: string;
  readonly requests: readonly QueuedRequest[];
  /** Ids of the last ones that were done. */
  readonly done: readonly string[];
  readonly consolidated: number;
  readonly fallbacks: number;
  readonly usage: Usage;
  readonly last: MemoryStatus['last'];
  /** Absent: nothing was remembered yet. */
  readonly written?: WrittenMemory;
}

export interface QueuedRequest {
  readonly request: AskedConsolidation;
  readonly running: boolean;
  readonly retry: Retry | null;
  /** Its conversation was deleted while it ran: what comes of it is not remembered. */
  readonly dropped?: true;
}

const FIRST_REST_MS = 60_000;
const MAX_REST_MS = 6 * 3_600_000;
const REMEMBERED_IDS = 1_000;
const SHOWN = 10;
const MAX_WORDS = 500;
/** UTF-16 units of what waits: it is carried to the next run, and the server ends a workflow that carries 2 MiB. */
const MAX_QUEUED = 500_000;

export function emptyQueue(scope: string): MemoryQueue {
  return { v: 1, scope, requests: [], done: [], consolidated: 0, fallbacks: 0, usage: NO_USAGE, last: [] };
}

export function addRequest(queue: MemoryQueue, request: AskedConsolidation): MemoryQueue {
  const known = queue.done.includes(request.id) || queue.requests.some((one) => one.request.id === request.id);
  return known ? queue : { ...queue, requests: [...queue.requests, { request, running: false, retry: null }] };
}

/** True while one more request would not fit; its conversation waits in vain, and its last messages go to HISTORY as they are. */
export function isQueueFull({ requests }: MemoryQueue): boolean {
  return requests.reduce((sum, one) => sum + sizeOf(one), 0) > MAX_QUEUED;
}

function sizeOf({ request, retry }: QueuedRequest): number {
  const { id, requestId, conversation, life, model, taskQueue, slots, task } = request;
  const texts = [
    id,
    requestId,
    conversation,
    life,
    model,
    taskQueue,
    retry?.failure.message ?? '',
    task?.goal ?? '',
    ...(task?.openTasks ?? []),
  ];
  return texts.reduce((sum, text) => sum + text.length, 200 + 20 * slots.length);
}

/**
 * Of those that do not rest the one that has failed least often, and of these the first: a request that fails for long holds no other up
 * (memory-workflow/failure-blocks-none).
 */
export function nextRequest(queue: MemoryQueue, now: number): QueuedRequest | undefined {
  const ready = queue.requests.filter(({ running, retry }) => !running && (retry === null || retry.until <= now));
  const attemptsOf = ({ retry }: QueuedRequest): number => retry?.attempts ?? 0;
  return ready.reduce<QueuedRequest | undefined>((best, one) => (best && attemptsOf(best) <= attemptsOf(one) ? best : one), undefined);
}

/** When the first of those that rest may go on; undefined while none rests. */
export function nextRetryAt(queue: MemoryQueue): number | undefined {
  const times = queue.requests.flatMap(({ retry }) => (retry ? [retry.until] : []));
  return times.length === 0 ? undefined : Math.min(...times);
}

export function startRequest(queue: MemoryQueue, id: string): MemoryQueue {
  return withRequest(queue, id, (one) => ({ ...one, running: true }));
}

export function postponeRequest(queue: MemoryQueue, id: string, failure: StepFailure, at: number): MemoryQueue {
  return withRequest(queue, id, (one) => {
    const attempts = (one.retry?.attempts ?? 0) + 1;
    const soon = retryAfter(failure, attempts, at);
    // A key that is refused, a file that cannot be used: a person must see to it, and is given time.
    const until = failure.transient ? soon.until : at + Math.min(MAX_REST_MS, FIRST_REST_MS * 2 ** Math.min(attempts - 1, 20));
    return { ...one, running: false, retry: { ...soon, until } };
  });
}

export function finishRequest(
  queue: MemoryQueue,
  id: string,
  how: { consolidation: Consolidation; usage: Usage | null; at: number },
): MemoryQueue {
  const found = queue.requests.find(({ request }) => request.id === id);
  if (!found) return queue;
  const { conversation, messages, why } = found.request;
  const fallback = how.consolidation === 'raw-fallback' ? 1 : 0;
  const done = {
    ...queue,
    requests: queue.requests.filter((one) => one !== found),
    done: [...queue.done, id].slice(-REMEMBERED_IDS),
    consolidated: queue.consolidated + 1,
    fallbacks: queue.fallbacks + fallback,
    usage: withUsage(queue, how.usage ?? undefined).usage,
  };
  return noteDone(done, how.at, `${conversation}: ${counted(messages, 'message')} (${why}), ${how.consolidation}`);
}

/** Of a conversation that was deleted nothing is remembered any more. What runs is dropped at its end. */
export function dropRequests(queue: MemoryQueue, { conversation, lives }: DeletedNotice, at: number): MemoryQueue {
  const isOfIt = ({ request }: QueuedRequest): boolean => request.conversation === conversation && lives.includes(request.life);
  const dropped = queue.requests
    .filter((one) => isOfIt(one) && !one.running)
    .reduce((now, { request }) => dropRequest(now, request.id, at), queue);
  return { ...dropped, requests: dropped.requests.map((one) => (isOfIt(one) ? { ...one, dropped: true as const } : one)) };
}

export function isDropped({ requests }: MemoryQueue, id: string): boolean {
  return requests.some(({ request, dropped }) => request.id === id && dropped === true);
}

/** `usage`: what it has cost all the same. */
export function dropRequest(queue: MemoryQueue, id: string, at: number, usage: Usage | null = null): MemoryQueue {
  const found = queue.requests.find(({ request }) => request.id === id);
  if (!found) return queue;
  const { conversation, messages, why } = found.request;
  const left = {
    ...queue,
    requests: queue.requests.filter((one) => one !== found),
    done: [...queue.done, id].slice(-REMEMBERED_IDS),
    usage: usage ? addUsage(queue.usage, usage) : queue.usage,
  };
  return noteDone(left, at, `${conversation}: ${messages} messages (${why}), dropped: the conversation was deleted`);
}

export function noteWritten(queue: MemoryQueue, { history }: RememberInput, { version }: Remembered): MemoryQueue {
  return { ...queue, written: { version, summary: queue.written?.summary === true || history?.kind === 'summary' } };
}

/** Usage of the model calls for the scope itself. */
export function withUsage(queue: MemoryQueue, usage: Usage | undefined): MemoryQueue {
  return usage ? { ...queue, usage: addUsage(queue.usage, usage) } : queue;
}

/** For people who look: the latest things that were done. */
export function noteDone(queue: MemoryQueue, at: number, what: string): MemoryQueue {
  return { ...queue, last: [...queue.last, { at, what: truncate(what, MAX_WORDS) }].slice(-SHOWN) };
}

export function memoryStatusOf(queue: MemoryQueue, historyEvents: number): MemoryStatus {
  const { scope, requests, consolidated, fallbacks, usage, last } = queue;
  const running = requests.find((one) => one.running);
  const resting = requests.find((one) => one.retry !== null);
  const failure = resting?.retry;
  return {
    scope,
    phase: running ? 'consolidating' : failure ? 'waiting-to-retry' : 'idle',
    ...(failure && !running
      ? { waitingFor: `${failure.failure.type}: ${failure.failure.message}; trying again at ${isoTime(failure.until)}` }
      : {}),
    queued: requests.map(({ request, retry }) => ({
      conversation: request.conversation,
      messages: request.messages,
      why: request.why,
      attempts: retry?.attempts ?? 0,
    })),
    consolidated,
    fallbacks,
    usage,
    last,
    historyEvents,
  };
}

/** Its card in the Temporal UI: Markdown, small, never a word that anyone else wrote as more than code. */
export function memoryDetailsOf(queue: MemoryQueue): string {
  const status = memoryStatusOf(queue, 0);
  const running = queue.requests.find((one) => one.running)?.request;
  return [
    `**memory of ${asCode(status.scope)}** · ${status.phase}${status.queued.length > 0 ? ` · ${status.queued.length} waiting or running` : ''}`,
    running && `**consolidating** ${counted(running.messages, 'message')} of ${asCode(running.conversation)} (${running.why})`,
    status.waitingFor && `**waiting for** ${asCode(status.waitingFor)}`,
    `**done** ${status.consolidated}, ${status.fallbacks} of them without a model · ${status.usage.inputTokens} tokens in, ${status.usage.outputTokens} out`,
    ...[...status.last].reverse().map(({ at, what }) => `- ${isoTime(at)} ${asCode(what)}`),
  ]
    .filter((line) => line !== undefined && line !== '')
    .join('\n\n');
}

function withRequest(queue: MemoryQueue, id: string, change: (one: QueuedRequest) => QueuedRequest): MemoryQueue {
  return { ...queue, requests: queue.requests.map((one) => (one.request.id === id ? change(one) : one)) };
}

/** The outcome of a consolidation, for the conversation that requested it. */
export function outcomeOf(result: Consolidated): { consolidation: Consolidation; usage: Usage | null; handover?: string } {
  switch (result.kind) {
    case 'done':
      return { consolidation: 'model', usage: result.usage, ...(result.handover !== undefined && { handover: result.handover }) };
    case 'unusable':
      return { consolidation: 'raw-fallback', usage: result.usage };
    case 'nothing-to-do':
      return { consolidation: 'nothing-to-do', usage: null };
  }
}

/** What of it the memory is to write; undefined where that is nothing. */
export function toRemember(scope: string, id: string, result: Consolidated): RememberInput | undefined {
  if (result.kind === 'nothing-to-do') return undefined;
  const common = { scope, id, cause: 'consolidation' } as const;
  if (result.kind === 'unusable') {
    return { ...common, history: { kind: 'raw-fallback', text: result.fallback }, update: null, proposed: [] };
  }
  const { history, update, proposed } = result;
  return { ...common, history: history === null ? null : { kind: 'summary', text: history }, update, proposed };
}

// What a run of a memory is handed by the one before it, looked at before it is used (opening.ts says why).

const MOST = { depth: LIMITS.depth, values: 500_000 };

const number = is<number>('a number', Number.isFinite);
const failure = part({ type: text, message: text, transient: bool });
const queueSchema = part({
  v: v.literal(1, 'must be 1'),
  scope: text,
  requests: list(
    part({ request: json, running: bool, retry: v.nullable(part({ until: time, attempts: number, failure })), dropped: flag }),
  ),
  done: list(text),
  consolidated: number,
  fallbacks: number,
  usage,
  last: list(part({ at: time, what: text })),
  written: v.optional(object),
});

/** A request that is none is left out: the others go on. */
export function readCarriedQueue(value: unknown, scope: string): Checked<MemoryQueue> {
  const queue = read(queueSchema, value, 'carried', MOST);
  if (!queue.ok) return queue;
  if (queue.value.scope !== scope) return refuse(`carried.scope must be ${scope}`);
  const carried = value as MemoryQueue;
  const requests = carried.requests.flatMap((one) => {
    const request = readConsolidationRequest(one.request);
    return request.ok ? [{ ...one, request: request.value }] : [];
  });
  return { ok: true, value: { ...carried, requests } };
}
