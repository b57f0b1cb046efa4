/**
 * What observers receive beside the bare event (seed 004, EventProcessor: dispatch, reducer, state change). Made in the workflow, where
 * the state is, from what was before an event and what is after it; small, whatever the state is.
 */
import type { StopReason } from '../protocol/contract.js';
import type { ConversationEvent } from '../event.js';
import type { Usage } from '../../records/message.js';
import { queuedCount } from '../inbox/queue-editing.js';
import type { ConversationState } from '../state.js';
import type { ToolFinished } from '../turn/model-step-effects.js';
import { turnId } from '../../records/identity.js';
import type { EndedTurn, Turn } from '../state/turn-state.js';
import type { StepResult } from '../protocol/stepping.js';

/** Of what the next model call would see (the seed's MemoryState), and of what waits. */
export interface StateSummary {
  readonly session: number;
  readonly epoch: number;
  /** Number of the latest turn. */
  readonly turn: number;
  /** Entries in the context. */
  readonly chunks: number;
  readonly contextTokens: number;
  readonly queued: number;
}

/** What an event has changed; sent through the sink with it. */
export interface StateChange {
  readonly before: StateSummary;
  readonly after: StateSummary;
  /** True when the next model call would see something else. */
  readonly context: boolean;
  /** A step that has just been answered. */
  readonly step?: StepResult;
  /** A turn that has just begun or ended. */
  readonly turn?: TurnNews;
}

/** Where a workflow's events go: to observers, and to replays that rebuild what a store has lost. */
export type ConversationListener = {
  /** The state that a run begins with: empty, or carried over. */
  opened(state: ConversationState): void;
  /** With what it has changed, null where nothing observable has; and with its mark (`createMarks`). */
  event(event: ConversationEvent, change: StateChange | null, mark: string): void;
};

/** Set in the sandbox of a worker that has no listener. */
export const UNOBSERVED = Symbol.for('perdura.unobserved');

/** Tells a listener what happens in a run that begins with `opened`; without one, nothing. */
export function createReport(
  listener: ConversationListener | undefined,
  opened: ConversationState,
): (event: ConversationEvent, before: ConversationState, after: ConversationState) => void {
  if (!listener) return () => undefined;
  let summary = summaryOf(opened);
  const markOf = createMarks();
  listener.opened(opened);
  return (event, before, after) => {
    const change = changeOf(before, after, summary);
    if (change) summary = change.after;
    listener.event(event, change ?? null, markOf(event));
  };
}

/** A turn that has begun or ended, as observers are told. */
export interface TurnNews {
  readonly turnId: string;
  readonly agent: string;
  readonly model: string | null;
  readonly life: string;
  /** Whose memory it is: the whole name, with the tenant. */
  readonly scope: string;
  /** Of a sub-agent: the call that waits for it. */
  readonly parent?: { readonly conversation: string; readonly life: string; readonly callId: string };
  /** Ids of the messages that it answers, those that joined it too. */
  readonly messageIds: readonly string[];
  /** `traceparent` of the request that brought the first of them. */
  readonly traceparent?: string;
  readonly ended?: { readonly stopReason: StopReason; readonly usage: Usage; readonly toolCalls: number; readonly error?: string };
}

/** In the order of the seed's steps; an event gives none, one or several. */
export type Notification =
  /** Something has come into the queue. */
  | { readonly kind: 'event-dispatched'; readonly id: string; readonly type: string }
  /** `operations` of one that was reduced. */
  | {
      readonly kind: 'reducer-executed';
      readonly id: string;
      readonly outcome: 'reduced' | 'unreduced' | 'parked';
      readonly operations: number;
      readonly error?: string;
    }
  | { readonly kind: 'state-changed'; readonly before: StateSummary; readonly after: StateSummary }
  | {
      readonly kind: 'compaction';
      readonly epoch: number;
      readonly turns: readonly string[];
      readonly method: string;
      readonly compactor: string;
      readonly tokensBefore: number;
      readonly tokensAfter: number;
    }
  | { readonly kind: 'truncation'; readonly epoch: number; readonly entries: number; readonly tokens: number }
  | { readonly kind: 'step'; readonly result: StepResult };

export function summaryOf({ session, epoch, latestTurn, context, contextTokens, queue }: ConversationState): StateSummary {
  const chunks = context.reduce((sum, [first, last]) => sum + last - first + 1, 0);
  return { session, epoch, turn: latestTurn, chunks, contextTokens, queued: queuedCount(queue) };
}

/** Undefined where nothing of it has changed. `was` is the summary of `before`. */
export function changeOf(before: ConversationState, state: ConversationState, was: StateSummary): StateChange | undefined {
  const after = summaryOf(state);
  const context = before.context !== state.context || before.epoch !== state.epoch || before.compaction.base !== state.compaction.base;
  const step = newestStep(before, state);
  const turn = turnNews(before, state);
  const isSame = (Object.keys(after) as (keyof StateSummary)[]).every((name) => after[name] === was[name]);
  if (isSame && !context && !step && !turn) return undefined;
  return { before: was, after, context, ...(step && { step }), ...(turn && { turn }) };
}

/**
 * What distinguishes an event of a run from any other of it: its kind, whom it is about, and how often that was so. A workflow task that
 * the server did not take is done again, perhaps with more before it: what happens again has the same mark, in whatever order.
 */
export function createMarks(): (event: ConversationEvent) => string {
  const counted = new Map<string, number>();
  return (event) => {
    const of = `${event.kind}:${subjectOf(event)}`;
    const n = (counted.get(of) ?? 0) + 1;
    counted.set(of, n);
    return `${of}:${n}`;
  };
}

function subjectOf(event: ConversationEvent): string {
  if ('effect' in event) return `${event.effect}/${event.id}`;
  if ('requestId' in event) return event.requestId;
  if ('messageId' in event) return event.messageId;
  if ('id' in event) return event.id;
  return 'callId' in event ? event.callId : '';
}

/** As people and programs look for it: `message-received`, `model-step-started`, `run-tool-completed`. */
export function eventName(event: ConversationEvent): string {
  return 'effect' in event ? event.kind.replace('effect', event.effect) : event.kind;
}

/** What an event has brought of tools: one that ran by itself, or those that rode on a model step. */
export function finishedTools(event: ConversationEvent): readonly ToolFinished[] {
  if (event.kind !== 'effect-completed') return [];
  if (event.effect === 'run-tool') return [event.output];
  return event.effect === 'model-step' ? event.output.tools : [];
}

function turnNews(before: ConversationState, state: ConversationState): TurnNews | undefined {
  const { identity, parent, settings } = state;
  const of = (number: number, turn: Turn | null): TurnNews => ({
    turnId: turnId(number),
    agent: identity.agent,
    model: settings?.model ?? null,
    life: identity.life,
    scope: identity.scope,
    ...(parent && { parent: { conversation: parent.conversation, life: parent.life, callId: parent.callId } }),
    messageIds: turn?.messageIds ?? [],
    ...(turn?.traceparent !== undefined && { traceparent: turn.traceparent }),
  });
  const ended = state.turnsEnded > before.turnsEnded ? newest(before.ended, state.ended) : undefined;
  if (ended) return { ...of(ended.number, before.turn), ended: endOf(ended) };
  return state.turn && state.turn.number !== before.turn?.number ? of(state.turn.number, state.turn) : undefined;
}

function endOf({ stopReason, usage, toolCalls, error }: EndedTurn): NonNullable<TurnNews['ended']> {
  return { stopReason, usage, toolCalls, ...(error && { error: error.type }) };
}

function newestStep(before: ConversationState, state: ConversationState): StepResult | undefined {
  const [had, has] = [before.requests.answered, state.requests.answered];
  if (had === has) return undefined;
  const steps = has.flatMap((one) => (one.kind === 'step' ? [one.outcome] : []));
  const last = steps[steps.length - 1];
  return had.some((one) => one.outcome === last) ? undefined : last;
}

function newest<T>(before: readonly T[] | undefined, after: readonly T[] | undefined): T | undefined {
  const last = after?.[after.length - 1];
  return last === before?.[before.length - 1] ? undefined : last;
}
