/** One run's events, read once in their order, with what their payloads carry. */
import type { HistoryEvent } from '../../heal/fetch-runs.js';
import { turnNumber } from '../../records/identity.js';
import { truncate, oneLine } from '../../records/text.js';
import type { RunHistory, TimelineMark, UnderWay, Lane, TimelineBar } from './shape.js';
import type { ModelStepInput, ModelStepResult, RunToolInput, ToolFinished } from '../../conversation/turn/model-step-effects.js';
import type { Usage } from '../../records/message.js';

/** Signals and updates that a conversation has besides those to itself. */
const DECISIONS = new Set(['decide']);

export interface ReadRun {
  readonly bars: readonly FoundBar[];
  readonly marks: readonly TimelineMark[];
  /** When the step began that took a message of that turn. */
  readonly taken: ReadonlyMap<string, number>;
  readonly decided: ReadonlyMap<string, { readonly at: number; readonly decision: string; readonly event: number }>;
  readonly run: string;
}

export function readRun({ run, events }: RunHistory, pending: readonly UnderWay[]): ReadRun {
  const open = new Map<string, Open>();
  const children = new Map<string, { readonly at: number; readonly event: number; readonly id: string; readonly title: string }>();
  const bars: FoundBar[] = [];
  const marks: TimelineMark[] = [];
  const taken = new Map<string, number>();
  const decided = new Map<string, { at: number; decision: string; event: number }>();
  let polled: string | undefined;
  for (const event of events) {
    const [id, at] = [Number(event.eventId), readTime(event)];
    const mark = (kind: TimelineMark['kind'], words: string): void => void marks.push({ kind, at, words, event: id, run });
    const scheduled = event.activityTaskScheduledEventAttributes;
    if (scheduled) {
      const activity = { name: scheduled.activityType?.name ?? '', input: decode(scheduled.input), at, event: id };
      open.set(String(id), { ...activity, activityId: scheduled.activityId ?? '' });
      noteTaken(activity, taken);
    }
    const begun = event.activityTaskStartedEventAttributes;
    const started = begun && open.get(String(begun.scheduledEventId));
    if (begun && started) {
      const failure = begun.lastFailure ? describeFailure(begun.lastFailure) : null;
      started.started = { at, attempt: begun.attempt ?? 1, worker: begun.identity || null, failure };
    }
    const end = findEnd(event);
    const finished = end && open.get(end.begun);
    if (end && finished) {
      open.delete(end.begun);
      bars.push(toBar(finished, { at, event: id, ...end }, run));
    }
    const child = event.startChildWorkflowExecutionInitiatedEventAttributes;
    if (child) children.set(String(id), { at, event: id, id: child.workflowId ?? '', title: titleIn(decode(child.input)) });
    const childEnd = findChildEnd(event);
    const childBegun = childEnd && children.get(childEnd.begun);
    if (childEnd && childBegun) {
      children.delete(childEnd.begun);
      bars.push(childBar(childBegun, { at, event: id, ...childEnd }, run));
    }
    const signal = event.workflowExecutionSignaledEventAttributes;
    const update = event.workflowExecutionUpdateAcceptedEventAttributes?.acceptedRequest?.input;
    const received = signal ? { name: signal.signalName, input: signal.input } : update && { name: update.name, input: update.args };
    if (received?.name && DECISIONS.has(received.name)) {
      const { callId, decision } = (decode(received.input) ?? {}) as { readonly callId?: unknown; readonly decision?: unknown };
      if (typeof callId === 'string' && !decided.has(callId)) {
        decided.set(callId, { at, decision: decision === 'deny' ? 'deny' : 'approve', event: id });
        mark('decided', `${decision === 'deny' ? 'denied' : 'allowed or answered'}: ${truncate(callId, 64)}`);
      }
    }
    if (received?.name === 'interrupt') mark('interrupted', 'a person asked it to stop');
    if (received?.name === 'message' || received?.name === 'send' || received?.name === 'enqueue')
      mark('message', `by the ${signal ? 'signal' : 'update'} ${received.name}`);
    const task = event.workflowTaskStartedEventAttributes;
    if (task?.identity) {
      if (polled !== undefined && polled !== task.identity) mark('worker-changed', `${polled} → ${task.identity}`);
      polled = task.identity;
    }
    if (event.workflowTaskTimedOutEventAttributes) {
      mark('worker-died', 'a worker did not answer for a decision: another one took over');
    }
    if (event.workflowExecutionContinuedAsNewEventAttributes) mark('handed-over', 'the run ended, and the next one went on where it was');
  }
  for (const one of open.values()) {
    const way = pending.find(({ id }) => id === one.activityId);
    if (way) {
      one.started = way.startedAt
        ? { at: way.startedAt.getTime(), attempt: way.attempt, worker: way.worker, failure: way.lastFailure }
        : undefined;
    }
    bars.push(toBar(one, undefined, run, way));
  }
  for (const one of children.values()) bars.push(childBar(one, undefined, run));
  return { bars, marks, taken, decided, run };
}

/** The highest turn that a run says anything of; undefined where it names none. By it a reader knows when it has gone back far enough. */
export function turnsNamedIn(run: RunHistory): { readonly lowest: number; readonly highest: number } | undefined {
  const numbers = readRun(run, []).bars.flatMap(({ turn }) => (turn === undefined ? [] : [turnNumber(turn)]));
  return numbers.length === 0 ? undefined : { lowest: Math.min(...numbers), highest: Math.max(...numbers) };
}

function findEnd(event: HistoryEvent): End | undefined {
  const completed = event.activityTaskCompletedEventAttributes;
  if (completed) return { begun: String(completed.scheduledEventId), outcome: 'ok', failure: null, output: decode(completed.result) };
  const failed = event.activityTaskFailedEventAttributes;
  if (failed)
    return { begun: String(failed.scheduledEventId), outcome: 'failed', failure: describeFailure(failed.failure), output: undefined };
  const late = event.activityTaskTimedOutEventAttributes;
  if (late)
    return { begun: String(late.scheduledEventId), outcome: 'timed-out', failure: describeFailure(late.failure), output: undefined };
  const canceled = event.activityTaskCanceledEventAttributes;
  if (canceled) return { begun: String(canceled.scheduledEventId), outcome: 'canceled', failure: null, output: undefined };
  return undefined;
}

function findChildEnd(event: HistoryEvent): Pick<End, 'begun' | 'outcome' | 'failure'> | undefined {
  const of = (begun: unknown, outcome: End['outcome'], failure: string | null = null) => ({ begun: String(begun), outcome, failure });
  const completed = event.childWorkflowExecutionCompletedEventAttributes;
  if (completed) return of(completed.initiatedEventId, 'ok');
  const failed = event.childWorkflowExecutionFailedEventAttributes;
  if (failed) return of(failed.initiatedEventId, 'failed', describeFailure(failed.failure));
  const canceled = event.childWorkflowExecutionCanceledEventAttributes ?? event.childWorkflowExecutionTerminatedEventAttributes;
  if (canceled) return of(canceled.initiatedEventId, 'canceled');
  const late = event.childWorkflowExecutionTimedOutEventAttributes;
  return late ? of(late.initiatedEventId, 'timed-out') : undefined;
}

function noteTaken({ name, input, at }: Pick<Open, 'name' | 'input' | 'at'>, taken: Map<string, number>): void {
  if (name !== 'model-step' && name !== 'store-step') return;
  const { write } = (input ?? {}) as {
    readonly write?: { readonly messages?: readonly { readonly turn?: unknown; readonly ts?: unknown }[] };
  };
  for (const { turn, ts } of write?.messages ?? []) {
    if (typeof turn !== 'string') continue;
    const takenAt = typeof ts === 'number' ? Math.round(ts * 1000) : at;
    taken.set(turn, Math.min(taken.get(turn) ?? Infinity, takenAt));
  }
}

// Bars of activities and sub-agents, from their events.

interface FoundBar {
  readonly bar: TimelineBar;
  /** Undefined: it is of no turn. */
  readonly turn: string | undefined;
  /** Of a model step: whether it came back with an answer. */
  readonly answered?: boolean;
  readonly asks?: readonly PendingWait[];
}

interface PendingWait {
  readonly callId: string;
  readonly name: string;
  readonly what: 'approval' | 'question' | 'client-tool' | 'wait';
}

interface Open {
  readonly name: string;
  readonly input: unknown;
  readonly at: number;
  readonly event: number;
  readonly activityId: string;
  started?: { readonly at: number; readonly attempt: number; readonly worker: string | null; readonly failure: string | null };
}

interface End {
  readonly begun: string;
  readonly outcome: TimelineBar['outcome'];
  readonly failure: string | null;
  readonly output: unknown;
}

const LANE_OF: Readonly<Record<string, Lane>> = {
  'model-step': 'model',
  'run-tool': 'tool',
  compact: 'memory',
  truncate: 'memory',
  uncompact: 'memory',
  evict: 'memory',
  'ask-memory': 'memory',
  heal: 'healing',
  'look-after': 'healing',
};

function toBar(
  { name, input, at, event, started }: Open,
  end: (End & { readonly at: number; readonly event: number }) | undefined,
  run: string,
  way?: UnderWay,
): FoundBar {
  const bar: TimelineBar = {
    id: `${run}/${event}`,
    lane: LANE_OF[name] ?? 'store',
    label: name,
    detail: '',
    from: at,
    to: end?.at ?? null,
    started: started?.at ?? null,
    attempt: started?.attempt ?? way?.attempt ?? 1,
    worker: started?.worker ?? null,
    outcome: end?.outcome ?? 'running',
    failure: end?.failure ?? started?.failure ?? way?.lastFailure ?? null,
    usage: null,
    model: null,
    callId: null,
    conversation: null,
    event,
    endEvent: end?.event ?? null,
    run,
  };
  switch (name) {
    case 'model-step':
      return modelBar(bar, input as Partial<ModelStepInput> | undefined, end?.output as ModelStepResult | undefined);
    case 'run-tool': {
      const { turn, name: tool, target, callId } = (input ?? {}) as Partial<RunToolInput>;
      const result = end?.output as Partial<ToolFinished> | undefined;
      const isBad = result?.outcome !== undefined && result.outcome !== 'ok';
      // Its task queue had no worker, so it is scheduled again.
      const isUnserved = end?.outcome === 'timed-out' && started === undefined;
      return {
        turn,
        bar: {
          ...bar,
          label: words(tool ?? name),
          detail: isUnserved ? 'waits for a worker of its task queue' : words(target ?? ''),
          callId: callId ?? null,
          ...(isUnserved && { lane: 'retry' as const }),
          ...(isBad && { outcome: 'failed' as const, failure: `the tool ended with: ${words(String(result.outcome))}` }),
        },
      };
    }
    default: {
      const output = end?.output as { readonly usage?: Usage } | undefined;
      return { turn: undefined, bar: { ...bar, usage: output?.usage ?? null } };
    }
  }
}

function modelBar(bar: TimelineBar, input: Partial<ModelStepInput> | undefined, output: ModelStepResult | undefined): FoundBar {
  const common = { turn: input?.turn, bar: { ...bar, label: input?.call?.id.replace(/^.*\/m/, 'call ') ?? bar.label } };
  switch (output?.kind) {
    case 'answered': {
      const { model, usage, blocks, plans = [], stop } = output.answer;
      const calls = blocks.flatMap((block) => (block.kind === 'tool-call' ? [block] : []));
      return {
        ...common,
        answered: true,
        bar: {
          ...common.bar,
          model,
          usage,
          detail: calls.length === 0 ? words(stop) : words(`asks for ${calls.map(({ name }) => name).join(', ')}`),
        },
        asks: calls.flatMap(({ callId: id, name }, at): PendingWait[] => {
          const plan = plans[at];
          if (plan?.approval?.policy === 'ask') return [{ callId: id, name, what: 'approval' }];
          const kind = plan?.workflowAction?.kind;
          if (kind === 'ask-person') return [{ callId: id, name, what: 'question' }];
          if (kind === 'ask-client') return [{ callId: id, name, what: 'client-tool' }];
          return kind === 'wait-for' || kind === 'wait-until' ? [{ callId: id, name, what: 'wait' }] : [];
        }),
      };
    }
    case 'failed':
      return {
        ...common,
        answered: false,
        bar: { ...common.bar, outcome: 'failed', failure: words(`${output.failure.type}: ${output.failure.message}`) },
      };
    case 'deferred':
      return { ...common, answered: false, bar: { ...common.bar, detail: `not asked: ${words(output.reason)}` } };
    default:
      return common;
  }
}

function childBar(
  { at, event, id, title }: { readonly at: number; readonly event: number; readonly id: string; readonly title: string },
  end: (Pick<End, 'outcome' | 'failure'> & { readonly at: number; readonly event: number }) | undefined,
  run: string,
): FoundBar {
  const [, of] = /:(turn_\d+):\d+$/.exec(id) ?? [];
  return {
    turn: of,
    bar: {
      id: `${run}/${event}`,
      lane: 'sub-agent',
      label: words(title || id),
      detail: '',
      from: at,
      to: end?.at ?? null,
      started: at,
      attempt: 1,
      worker: null,
      outcome: end?.outcome ?? 'running',
      failure: end?.failure ?? null,
      usage: null,
      model: null,
      callId: null,
      conversation: id,
      event,
      endEvent: end?.event ?? null,
      run,
    },
  };
}

// What Temporal's events carry, as JSON and in words.

const MAX_WORDS = 300;

type Payloads = { readonly payloads?: readonly { readonly data?: Uint8Array | null }[] | null } | null | undefined;

/** Undefined for what is no JSON: what is in history may be from another program. */
function decode(payloads: Payloads): unknown {
  const data = payloads?.payloads?.[0]?.data;
  if (!data || data.length === 0) return undefined;
  try {
    return JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('utf8'));
  } catch {
    return undefined;
  }
}

type Failure = { readonly message?: string | null; readonly cause?: Failure | null } | null | undefined;

function describeFailure(failure: Failure): string {
  const parts: string[] = [];
  for (let at: Failure = failure, depth = 0; at && depth < 5; at = at.cause, depth++) if (at.message) parts.push(at.message);
  return words(parts.join(': ') || 'no reason was given');
}

function titleIn(input: unknown): string {
  const { title } = (input ?? {}) as { readonly title?: unknown };
  return typeof title === 'string' ? title : '';
}

export function words(text: string): string {
  return truncate(oneLine(text), MAX_WORDS);
}

function readTime({ eventTime }: HistoryEvent): number {
  return Number(eventTime?.seconds ?? 0) * 1000 + Math.floor((eventTime?.nanos ?? 0) / 1e6);
}
