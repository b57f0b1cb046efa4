/**
 * What happened in one turn and when, as Temporal's history has it: bars on lanes, and marks where something broke or moved.
 *
 * H1. Temporal writes the start of an activity with its end, for the last attempt alone: what lies between scheduling and that start is
 *     lost time where there was an attempt before, and waiting for a worker where there was none.
 * H2. A quick tool rides on a model step: when it ran follows from how long it says it took.
 * H3. That a person is waited for is no event of Temporal's: it begins where the step ends that asked, and ends with the decision.
 * H4. What is of no turn (the store, compaction, healing) is of the one in whose time it was.
 */
import type { ModelStepInput, ModelStepResult } from '../conversation/activity-io/effects.js';
import type { RunToolInput, ToolFinished } from '../conversation/activity-io/tool-effects.js';
import type { Usage } from '../records/message.js';
import { turnNumber } from '../records/identity.js';
import { beginningOf, oneLine } from '../records/text.js';
import type { HistoryEvent } from '../heal/fetch-runs.js';

export const LANES = ['model', 'tool', 'sub-agent', 'person', 'retry', 'memory', 'store', 'healing'] as const;
export type Lane = (typeof LANES)[number];

export interface TimelineBar {
  /** Of the event that began it, in its run. */
  readonly id: string;
  readonly lane: Lane;
  readonly label: string;
  readonly detail: string;
  /** Epoch milliseconds. */
  readonly from: number;
  /** null: it goes on. */
  readonly to: number | null;
  /** Where the attempt began that counts; null where none has yet, or where there is no such thing. */
  readonly started: number | null;
  readonly attempt: number;
  /** Identity of the worker that had it last; null where Temporal does not say. */
  readonly worker: string | null;
  readonly outcome: 'ok' | 'failed' | 'timed-out' | 'canceled' | 'denied' | 'expired' | 'running';
  /** Of the attempt that counts, or of the one before it. */
  readonly failure: string | null;
  readonly usage: Usage | null;
  readonly model: string | null;
  /** Id of the tool call that it is about. */
  readonly callId: string | null;
  readonly conversation: string | null;
  readonly event: number;
  readonly endEvent: number | null;
  readonly run: string;
}

export interface TimelineMark {
  readonly kind: 'worker-died' | 'worker-changed' | 'handed-over' | 'message' | 'decided' | 'interrupted';
  readonly at: number;
  readonly words: string;
  readonly event: number;
  readonly run: string;
}

export interface TurnTimeline {
  readonly turn: string;
  /** Epoch milliseconds; null where history no longer has anything of it. */
  readonly from: number | null;
  /** null: it goes on. */
  readonly to: number | null;
  readonly bars: readonly TimelineBar[];
  readonly marks: readonly TimelineMark[];
  /** Of all that has ended. */
  readonly usage: Usage | null;
  readonly workers: readonly string[];
  /** False where a part of it has passed its retention. */
  readonly complete: boolean;
}

/** One run as Temporal has it. */
export interface RunHistory {
  readonly run: string;
  readonly events: readonly HistoryEvent[];
}

/** What Temporal says is under way; its start and attempts stand in no event yet (H1). */
export interface UnderWay {
  readonly id: string;
  readonly attempt: number;
  readonly startedAt: Date | null;
  readonly lastFailure: string | null;
  readonly worker: string | null;
}

const MAX_WORDS = 300;
/** More than a person can read; a turn ends at its limit of tools long before. */
const MAX_BARS = 2_000;
/** Signals and updates that a conversation has besides those to itself. */
const DECISIONS = new Set(['decide']);

/** `runs`: oldest first. `ended`: whether the turn has ended; `now` is where an open bar reaches for what comes after it. */
export function timelineOf(
  turn: string,
  runs: readonly RunHistory[],
  { pending, ended, complete }: { readonly pending: readonly UnderWay[]; readonly ended: boolean; readonly complete: boolean },
): TurnTimeline {
  const read = runs.map((run) => readRun(run, pending));
  const own = read.flatMap(({ bars }) => bars).filter((bar) => bar.turn === turn);
  const begins = [...own.map(({ bar }) => bar.from), ...read.flatMap(({ taken }) => taken.get(turn) ?? [])];
  const from = begins.length === 0 ? null : Math.min(...begins);
  const isOpen = !ended || own.some(({ bar }) => bar.to === null);
  const lastEnd = Math.max(from ?? 0, ...own.map(({ bar }) => bar.to ?? bar.from));
  const to = isOpen ? Infinity : lastEnd;
  // H4
  const within = (start: number, end: number | null): boolean => from !== null && start <= to && (end ?? Infinity) >= from;
  const beside = read.flatMap(({ bars }) => bars).filter(({ bar, turn: of }) => of === undefined && within(bar.from, bar.to));
  const found = [...own, ...beside].map(({ bar }) => bar);
  const bars = [...found, ...peopleIn(turn, read), ...retriesBetween(own.map(({ bar, answered }) => ({ bar, answered })))];
  const marks = read.flatMap((run) => run.marks).filter(({ at }) => within(at, at));
  const deaths = found.flatMap(deathOf);
  const sorted = bars.sort((a, b) => a.from - b.from || LANES.indexOf(a.lane) - LANES.indexOf(b.lane)).slice(0, MAX_BARS);
  return {
    turn,
    from,
    to: isOpen || from === null ? null : lastEnd,
    bars: sorted,
    marks: [...marks, ...deaths].sort((a, b) => a.at - b.at).slice(0, MAX_BARS),
    usage: sumOfUsage(found),
    workers: [...new Set(sorted.flatMap(({ worker }) => worker ?? []))],
    complete: complete || read.some(({ taken }) => taken.has(turn)),
  };
}

/** The highest turn that a run says anything of; undefined where it names none. By it a reader knows when it has gone back far enough. */
export function turnsNamedIn(run: RunHistory): { readonly lowest: number; readonly highest: number } | undefined {
  const numbers = readRun(run, []).bars.flatMap(({ turn }) => (turn === undefined ? [] : [turnNumber(turn)]));
  return numbers.length === 0 ? undefined : { lowest: Math.min(...numbers), highest: Math.max(...numbers) };
}

interface FoundBar {
  readonly bar: TimelineBar;
  /** Undefined: it is of no turn. */
  readonly turn: string | undefined;
  /** Of a model step: whether it came back with an answer. */
  readonly answered?: boolean;
  readonly asks?: readonly Asked[];
}

interface Asked {
  readonly callId: string;
  readonly name: string;
  readonly what: 'approval' | 'question' | 'client-tool' | 'wait';
}

interface ReadRun {
  readonly bars: readonly FoundBar[];
  readonly marks: readonly TimelineMark[];
  /** When the step began that took a message of that turn. */
  readonly taken: ReadonlyMap<string, number>;
  readonly decided: ReadonlyMap<string, { readonly at: number; readonly decision: string; readonly event: number }>;
  readonly run: string;
}

interface Open {
  readonly name: string;
  readonly input: unknown;
  readonly at: number;
  readonly event: number;
  readonly activityId: string;
  started?: { readonly at: number; readonly attempt: number; readonly worker: string | null; readonly failure: string | null };
}

function readRun({ run, events }: RunHistory, pending: readonly UnderWay[]): ReadRun {
  const open = new Map<string, Open>();
  const children = new Map<string, { readonly at: number; readonly event: number; readonly id: string; readonly title: string }>();
  const bars: FoundBar[] = [];
  const marks: TimelineMark[] = [];
  const taken = new Map<string, number>();
  const decided = new Map<string, { at: number; decision: string; event: number }>();
  let polled: string | undefined;
  for (const event of events) {
    const [id, at] = [Number(event.eventId), timeOf(event)];
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
      const failure = begun.lastFailure ? failureInWords(begun.lastFailure) : null;
      started.started = { at, attempt: begun.attempt ?? 1, worker: begun.identity || null, failure };
    }
    const end = endOf(event);
    const finished = end && open.get(end.begun);
    if (end && finished) {
      open.delete(end.begun);
      bars.push(toBar(finished, { at, event: id, ...end }, run));
    }
    const child = event.startChildWorkflowExecutionInitiatedEventAttributes;
    if (child) children.set(String(id), { at, event: id, id: child.workflowId ?? '', title: titleIn(decode(child.input)) });
    const childEnd = childEndOf(event);
    const childBegun = childEnd && children.get(childEnd.begun);
    if (childEnd && childBegun) {
      children.delete(childEnd.begun);
      bars.push(childBar(childBegun, { at, event: id, ...childEnd }, run));
    }
    const signal = event.workflowExecutionSignaledEventAttributes;
    const update = event.workflowExecutionUpdateAcceptedEventAttributes?.acceptedRequest?.input;
    const said = signal ? { name: signal.signalName, input: signal.input } : update && { name: update.name, input: update.args };
    if (said?.name && DECISIONS.has(said.name)) {
      const { callId, decision } = (decode(said.input) ?? {}) as { readonly callId?: unknown; readonly decision?: unknown };
      if (typeof callId === 'string' && !decided.has(callId)) {
        decided.set(callId, { at, decision: decision === 'deny' ? 'deny' : 'approve', event: id });
        mark('decided', `${decision === 'deny' ? 'denied' : 'allowed or answered'}: ${beginningOf(callId, 64)}`);
      }
    }
    if (said?.name === 'interrupt') mark('interrupted', 'a person asked it to stop');
    if (said?.name === 'message' || said?.name === 'send' || said?.name === 'enqueue') mark('message', 'a message came');
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

interface End {
  readonly begun: string;
  readonly outcome: TimelineBar['outcome'];
  readonly failure: string | null;
  readonly output: unknown;
}

function endOf(event: HistoryEvent): End | undefined {
  const completed = event.activityTaskCompletedEventAttributes;
  if (completed) return { begun: String(completed.scheduledEventId), outcome: 'ok', failure: null, output: decode(completed.result) };
  const failed = event.activityTaskFailedEventAttributes;
  if (failed)
    return { begun: String(failed.scheduledEventId), outcome: 'failed', failure: failureInWords(failed.failure), output: undefined };
  const late = event.activityTaskTimedOutEventAttributes;
  if (late) return { begun: String(late.scheduledEventId), outcome: 'timed-out', failure: failureInWords(late.failure), output: undefined };
  const canceled = event.activityTaskCanceledEventAttributes;
  if (canceled) return { begun: String(canceled.scheduledEventId), outcome: 'canceled', failure: null, output: undefined };
  return undefined;
}

function childEndOf(event: HistoryEvent): Pick<End, 'begun' | 'outcome' | 'failure'> | undefined {
  const of = (begun: unknown, outcome: End['outcome'], failure: string | null = null) => ({ begun: String(begun), outcome, failure });
  const completed = event.childWorkflowExecutionCompletedEventAttributes;
  if (completed) return of(completed.initiatedEventId, 'ok');
  const failed = event.childWorkflowExecutionFailedEventAttributes;
  if (failed) return of(failed.initiatedEventId, 'failed', failureInWords(failed.failure));
  const canceled = event.childWorkflowExecutionCanceledEventAttributes ?? event.childWorkflowExecutionTerminatedEventAttributes;
  if (canceled) return of(canceled.initiatedEventId, 'canceled');
  const late = event.childWorkflowExecutionTimedOutEventAttributes;
  return late ? of(late.initiatedEventId, 'timed-out') : undefined;
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
      return {
        turn,
        bar: {
          ...bar,
          label: words(tool ?? name),
          detail: words(target ?? ''),
          callId: callId ?? null,
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
        asks: calls.flatMap(({ callId: id, name }, at): Asked[] => {
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

/** H3. */
function peopleIn(turn: string, runs: readonly ReadRun[]): TimelineBar[] {
  const decided = new Map(runs.flatMap((run) => [...run.decided]));
  const all = runs.flatMap(({ bars }) => bars);
  return all.flatMap(({ bar, turn: of, asks = [] }) =>
    of !== turn || bar.to === null
      ? []
      : asks.map(({ callId, name, what }): TimelineBar => {
          const begun = bar.to ?? bar.from;
          const decision = what === 'wait' ? undefined : decided.get(callId);
          const ran = all.find((other) => other.bar.callId === callId && other.bar.lane === 'tool')?.bar.from;
          const next = all.find((other) => other.turn === turn && other.bar.lane === 'model' && other.bar.from > begun)?.bar.from;
          const to = decision?.at ?? ran ?? next ?? null;
          const outcome =
            to === null
              ? 'running'
              : decision === undefined && what !== 'wait' && ran === undefined
                ? 'expired'
                : decision?.decision === 'deny'
                  ? 'denied'
                  : 'ok';
          return {
            ...bar,
            id: `${bar.id}/${callId}`,
            lane: what === 'wait' ? 'retry' : 'person',
            label: words(name),
            detail: {
              approval: 'waits for a person to allow it',
              question: 'a question waits for its answer',
              'client-tool': 'waits for its client',
              wait: 'waits as it was asked to',
            }[what],
            from: begun,
            to,
            started: begun,
            attempt: 1,
            worker: null,
            outcome,
            failure: null,
            usage: null,
            model: null,
            callId,
            event: bar.endEvent ?? bar.event,
            endEvent: decision?.event ?? null,
          };
        }),
  );
}

/** Between a model step that failed and the next one it waits to try again. */
function retriesBetween(own: readonly { readonly bar: TimelineBar; readonly answered?: boolean }[]): TimelineBar[] {
  const steps = own.filter(({ bar }) => bar.lane === 'model').sort((a, b) => a.bar.from - b.bar.from);
  return steps.flatMap(({ bar, answered }, at): TimelineBar[] => {
    const next = steps[at + 1]?.bar;
    if (answered !== false || bar.outcome !== 'failed' || bar.to === null || next === undefined || next.from - bar.to < 5) return [];
    return [
      {
        ...bar,
        id: `${bar.id}/retry`,
        lane: 'retry',
        label: 'waits to try again',
        detail: bar.failure ?? '',
        from: bar.to,
        to: next.from,
        started: bar.to,
        attempt: 1,
        worker: null,
        outcome: 'ok',
        failure: null,
        event: bar.endEvent ?? bar.event,
        endEvent: next.event,
      },
    ];
  });
}

/** An attempt that nobody ended: its worker was gone. */
function deathOf({ attempt, failure, started, from, event, run, label }: TimelineBar): TimelineMark[] {
  if (attempt < 2 || failure === null || !/heartbeat|timed? ?out|timeout/i.test(failure)) return [];
  return [{ kind: 'worker-died', at: started ?? from, words: `${label}: attempt ${attempt - 1} was cut off (${failure})`, event, run }];
}

function noteTaken({ name, input, at }: Pick<Open, 'name' | 'input' | 'at'>, taken: Map<string, number>): void {
  if (name !== 'model-step' && name !== 'store-step') return;
  const { write } = (input ?? {}) as {
    readonly write?: { readonly messages?: readonly { readonly turn?: unknown; readonly ts?: unknown }[] };
  };
  for (const { turn, ts } of write?.messages ?? []) {
    if (typeof turn !== 'string') continue;
    const said = typeof ts === 'number' ? Math.round(ts * 1000) : at;
    taken.set(turn, Math.min(taken.get(turn) ?? Infinity, said));
  }
}

function sumOfUsage(bars: readonly TimelineBar[]): Usage | null {
  const spent = bars.flatMap(({ usage }) => usage ?? []);
  if (spent.length === 0) return null;
  return spent.reduce((sum, one) => ({
    ...sum,
    inputTokens: sum.inputTokens + one.inputTokens,
    cachedTokens: sum.cachedTokens + one.cachedTokens,
    outputTokens: sum.outputTokens + one.outputTokens,
    costUsd: sum.costUsd === null || one.costUsd === null ? null : sum.costUsd + one.costUsd,
  }));
}

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

function failureInWords(failure: Failure): string {
  const parts: string[] = [];
  for (let at: Failure = failure, depth = 0; at && depth < 5; at = at.cause, depth++) if (at.message) parts.push(at.message);
  return words(parts.join(': ') || 'no reason was given');
}

function titleIn(input: unknown): string {
  const { title } = (input ?? {}) as { readonly title?: unknown };
  return typeof title === 'string' ? title : '';
}

function words(text: string): string {
  return beginningOf(oneLine(text), MAX_WORDS);
}

function timeOf({ eventTime }: HistoryEvent): number {
  return Number(eventTime?.seconds ?? 0) * 1000 + Math.floor((eventTime?.nanos ?? 0) / 1e6);
}
