/**
 * Every effect of a conversation: what it must not run beside, how Temporal is to run it, what people read of it, and what becomes of it.
 * A new effect is one entry here, one in `Effects` (effect.ts), a function that makes its input and one that takes its result.
 */
import { asCode, counted } from '../records/text.js';
import { acceptUndone, failUndo, acceptCompacted, failCompaction, nextMove, startCompaction } from './context/compaction.js';
import { noteLateResult } from './outbox/settlement.js';
import { payOnce } from './state/budget.js';
import { failChildStart, noteChildStarted, startChild, failLook } from './turn/delegation.js';
import type { Completed, Effect, EffectName, EffectOf, Effects, Failed, Started } from './effect.js';
import { acceptOrigin, failOpening, acceptRewound, failRewind, startRewind } from './lineage/lineage.js';
import type { JsonValue } from '../records/message.js';
import { acceptModelStep, failModelStep, payLateStep } from './turn/model-step.js';
import { acceptDelivering, DELIVER_RETRY, failDelivering } from './outbox/deliveries.js';
import { acceptStoreStep, failStoreStep } from './outbox/pending-writes.js';
import type { ConversationState } from './state.js';
import type { CallSettings, ConfigureRequest } from './state/settings.js';
import type { ToolPlan } from './turn/model-step-effects.js';
import { acceptLooked, acceptTool, endRoundIfDone, failTool } from './turn/tool-round.js';
import { acceptTruncated, failTruncation, startTruncation } from './context/truncation.js';
import { acceptEvicted, afterCompaction } from './session.js';
import { acceptAsked, failAsking, failEviction, startEviction } from './context/consolidation.js';
import { askedWords, acceptMadeTitle, startTitle, withoutBetterTitle } from './turn/title.js';

/**
 * `call` sees the context, `context` changes it inside a session, `past` changes what is active of all that was; `store` makes pending
 * writes; `tool` works for a turn; `beside` is nothing that another one waits for.
 */
export type Lane = 'call' | 'context' | 'past' | 'store' | 'tool' | 'beside';

/** Milliseconds. */
export interface Policy {
  readonly startToClose: number;
  /** How long it waits for a worker before it comes back; absent: for as long as it takes. */
  readonly scheduleToStart?: number;
  /** Absent: the conversation's. */
  readonly taskQueue?: string;
  /** It sends Temporal a heartbeat twice a second. */
  readonly beats: boolean;
  readonly firstRetry: number;
  readonly lastRetry?: number;
  /** Absent: it is tried until it succeeds. */
  readonly attempts?: number;
  /** A stop is answered with what it has by then. */
  readonly isStoppable?: boolean;
}

interface EffectKind<N extends EffectName> {
  readonly lane: Lane;
  /** It does not start while one of these runs. */
  readonly waitsFor: readonly Lane[];
  /** Absent: it is no activity (workflows/perform.ts). */
  readonly policy?: Policy | ((input: Effects[N]['input']) => Policy);
  readonly summary: (input: Effects[N]['input']) => string;
  /** Effects that wait together share one name; default: the effect's id. */
  readonly retriedAs?: string;
  readonly started?: (state: ConversationState, started: Started<N>) => ConversationState;
  readonly completed: (state: ConversationState, completed: Completed<N>) => ConversationState;
  readonly failed: (state: ConversationState, failed: Failed<N>) => ConversationState;
  /** Of one that was given up: what it cost. */
  readonly late?: (state: ConversationState, id: string, output: Effects[N]['output']) => ConversationState;
}

const MINUTES = 60_000;
/** Beyond what a tool is given, for what comes before and after it. */
const TOOL_END_MS = 15_000;

const SHORT: Policy = { startToClose: 30_000, beats: false, firstRetry: 500, attempts: 3 };
const LONG: Policy = { startToClose: 2 * MINUTES, beats: true, firstRetry: 500, lastRetry: 5_000, attempts: 3 };
/** How long a call waits for a worker of another task queue before that shows, and each time after that, as long as it waits. */
const PATIENCE_MS = [10_000, 60_000, 5 * MINUTES] as const;
const EVERYTHING: readonly Lane[] = ['call', 'context', 'past', 'store', 'tool'];

export const EFFECTS: { readonly [N in EffectName]: EffectKind<N> } = {
  'model-step': {
    lane: 'call',
    waitsFor: EVERYTHING,
    policy: { startToClose: 11 * MINUTES, beats: true, firstRetry: 1_000, lastRetry: 5_000, attempts: 4, isStoppable: true },
    summary: ({ configure, settings, turn, call, numbers, tools, write, showsWords }) =>
      `${modelAsked(configure, settings) ?? 'first call'} · ${nameOfTurn(turn)} step ${call.id.replace(/^.*\/m/, '')} · ~${thousands(numbers.contextTokens)}k in` +
      (tools.length === 0 ? '' : ` · after ${tools.map(({ name, target }) => named(name, target)).join(', ')}`) +
      (showsWords ? detail(askedWords(write.messages.find((message) => message.turn === turn)?.text)) : ''),
    completed: acceptModelStep,
    failed: failModelStep,
    late: (state, _id, output) => payLateStep(state, output),
  },
  'store-step': {
    lane: 'store',
    waitsFor: ['store', 'past'],
    policy: SHORT,
    summary: ({ write, rehydrate, part }) =>
      part
        ? 'store a part of a long message'
        : `store ${countOf(write)}${rehydrate.length > 0 ? `, read ${counted(rehydrate.length, 'queued message')}` : ''}`,
    retriedAs: 'store',
    completed: acceptStoreStep,
    failed: failStoreStep,
    late: (state, _id, { written }) => (written.committed ?? []).reduce((now, { effect, result }) => payOnce(now, effect, result), state),
  },
  'run-tool': {
    lane: 'tool',
    waitsFor: ['past'],
    policy: ({ plan, unserved }) => ({
      startToClose: plan.timeoutMs + TOOL_END_MS,
      ...(plan.taskQueue !== undefined && { taskQueue: plan.taskQueue, scheduleToStart: patienceFor(unserved) }),
      beats: true,
      firstRetry: 1_000,
      lastRetry: 5_000,
      attempts: attemptsOf(plan),
      isStoppable: true,
    }),
    summary: ({ name, target, plan: { taskQueue } }) => `${named(name, target)}${taskQueue === undefined ? '' : ` · ${taskQueue}`}`,
    completed: acceptTool,
    failed: failTool,
    late: (state, id, result) => payOnce(noteLateResult(state, result), id, result as unknown as JsonValue),
  },
  compact: {
    lane: 'context',
    waitsFor: ['call', 'context', 'past', 'store'],
    // Long enough for a slow model to read a long conversation, in pieces where it must, and its repair.
    policy: { startToClose: 15 * MINUTES, beats: true, firstRetry: 1_000, lastRetry: 5_000, attempts: 4 },
    summary: ({ model, cause, contextTokens }) => `${model} · compact (${cause}) · ~${thousands(contextTokens)}k`,
    started: startCompaction,
    completed: (state, completed) => afterCompaction(state, acceptCompacted(state, completed)),
    failed: (state, failed) => afterCompaction(state, failCompaction(state, failed)),
    late: (state, id, output) => payOnce(state, id, output as unknown as JsonValue),
  },
  truncate: {
    lane: 'context',
    waitsFor: ['call', 'context', 'past', 'store'],
    policy: LONG,
    summary: ({ excess }) => `leave ~${thousands(excess)}k out of the prompt`,
    started: startTruncation,
    completed: acceptTruncated,
    failed: failTruncation,
  },
  uncompact: {
    lane: 'context',
    waitsFor: ['call', 'context', 'past', 'store'],
    policy: SHORT,
    summary: ({ episode }) => `undo the compaction that made ${episode}`,
    started: nextMove,
    completed: acceptUndone,
    failed: failUndo,
  },
  evict: {
    lane: 'past',
    // The end of a session does not wait for a compaction, whose result will count for nothing.
    waitsFor: ['call', 'past', 'store', 'tool'],
    policy: SHORT,
    summary: ({ what }) => EVICTIONS[what.kind],
    retriedAs: 'evict',
    started: startEviction,
    completed: acceptEvicted,
    failed: failEviction,
  },
  heal: {
    lane: 'store',
    waitsFor: ['store', 'past'],
    policy: LONG,
    summary: () => 'rebuild from history what the store has lost',
    retriedAs: 'store',
    // Whether it helped shows when the store is read again.
    completed: noteHealed,
    failed: noteHealed,
  },
  'open-origin': {
    lane: 'past',
    waitsFor: EVERYTHING,
    // A conversation cannot be without its beginning: while the store is away it is tried again and again.
    policy: { startToClose: 2 * MINUTES, beats: true, firstRetry: 500, lastRetry: 30_000 },
    summary: ({ origin }) => `${origin.kind === 'fork' ? 'fork' : 'go on from'} ${origin.conversation} · ${origin.turn ?? 'its last turn'}`,
    completed: acceptOrigin,
    failed: failOpening,
  },
  rewind: {
    lane: 'past',
    waitsFor: EVERYTHING,
    policy: { ...LONG, attempts: 4 },
    summary: ({ to, before }) => `rewind to ${before ? 'before ' : ''}${to}`,
    started: startRewind,
    completed: acceptRewound,
    failed: failRewind,
  },
  'ask-memory': {
    lane: 'beside',
    waitsFor: [],
    policy: SHORT,
    summary: ({ identity, request }) => `memory:${identity.scope} · ${counted(request.messages, 'message')} (${request.why})`,
    completed: acceptAsked,
    failed: failAsking,
  },
  title: {
    lane: 'beside',
    waitsFor: [],
    // The activity gives up before that; the second attempt is for a worker that died.
    policy: { startToClose: 60_000, beats: true, firstRetry: 1_000, attempts: 2 },
    summary: ({ model }) => `${model} · title`,
    started: startTitle,
    completed: acceptMadeTitle,
    failed: withoutBetterTitle,
  },
  deliver: {
    lane: 'beside',
    waitsFor: [],
    policy: SHORT,
    summary: ({ events }) => `begin to deliver ${counted(events.length, 'event')}`,
    retriedAs: DELIVER_RETRY,
    completed: acceptDelivering,
    failed: failDelivering,
  },
  'look-after': {
    lane: 'beside',
    waitsFor: [],
    policy: SHORT,
    summary: ({ child }) => `is ${child} still there?`,
    completed: acceptLooked,
    failed: failLook,
  },
  'start-child': {
    lane: 'beside',
    waitsFor: [],
    summary: ({ options }) => options.title ?? '',
    started: startChild,
    completed: noteChildStarted,
    failed: (state, failed) => endRoundIfDone(failChildStart(state, failed)),
  },
  report: {
    lane: 'beside',
    waitsFor: [],
    summary: ({ parent }) => `report to ${parent.conversation}`,
    completed: noteReported,
    failed: noteReported,
  },
};

const EVICTIONS: Readonly<Record<Effects['evict']['input']['what']['kind'], string>> = {
  'session-end': 'end the session',
  overdue: 'write the last messages to HISTORY, as no summary came in time',
  trim: 'trim what long-term memory has',
};

/** Whether nothing that it must not run beside is in flight. */
export function isFree(state: Pick<ConversationState, 'inFlight'>, name: EffectName): boolean {
  const { waitsFor } = EFFECTS[name];
  return state.inFlight.every(({ effect }) => !waitsFor.includes(EFFECTS[effect].lane));
}

export function policyOf({ effect, input }: Effect): Policy | undefined {
  const { policy } = EFFECTS[effect] as EffectKind<EffectName>;
  return typeof policy === 'function' ? policy(input) : policy;
}

export function summaryOfEffect({ effect, input }: Effect | EffectOf<EffectName>): string {
  return (EFFECTS[effect] as EffectKind<EffectName>).summary(input);
}

function noteHealed(state: ConversationState): ConversationState {
  return { ...state, heal: state.heal && { ...state.heal, tried: true } };
}

function noteReported(state: ConversationState): ConversationState {
  return { ...state, parentNotified: { asks: '[]', ...state.parentNotified, reported: true } };
}

function patienceFor(unserved = 0): number {
  return PATIENCE_MS[Math.min(unserved, PATIENCE_MS.length - 1)] ?? MINUTES;
}

/** One more than the tool itself is given, so that a worker's death does not cost it one. */
function attemptsOf({ repeatable, verifiable, attempts = 1 }: ToolPlan): number {
  return repeatable || verifiable ? 3 + attempts : 1;
}

/** A step that reads the settings again may find another model in them: it begins with the first of the agent's list. */
function modelAsked(configure: ConfigureRequest | null, settings: CallSettings | null): string | undefined {
  if (configure === null) return settings?.model;
  return configure.fallback ?? configure.model ?? settings?.fallback?.first ?? settings?.model;
}

function detail(words: string | undefined): string {
  return words === undefined ? '' : ` · ${asCode(words)}`;
}

function nameOfTurn(turn: string): string {
  return `turn ${Number(turn.replace(/^turn_/, ''))}`;
}

function named(name: string, target: string): string {
  return target === '' ? name : `${name}: ${target}`;
}

function thousands(tokens: number): number {
  return Math.ceil(tokens / 1000);
}

function countOf({ messages, settle, entries, feed }: Effects['store-step']['input']['write']): string {
  const parts = [
    messages.length > 0 && counted(messages.length, 'message'),
    settle.length > 0 && counted(settle.length, 'outcome'),
    entries.length > 0 && counted(entries.length, 'pending entry', 'pending entries'),
  ].filter(Boolean);
  return parts.length > 0 ? parts.join(', ') : counted(feed.length, 'event');
}
