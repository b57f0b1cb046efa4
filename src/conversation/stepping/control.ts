/**
 * Stepping (seed 004): in that mode the conversation does by itself only one thing at a time, each when a client requests it.
 *
 * A step does what auto would do next: the same `nextStep`, held back where a step begins. While a turn runs the conversation takes no
 * further message, but events of the application (context/events-between-effects); then comes truncation, then compaction, then the model or
 * a tool (design section 4). Between turns events come first, then truncation, then compaction.
 *
 * @rule stepping/one-step-at-a-time: A conversation does one step at a time: `lock` is set from the request until the one thing is done,
 *   and is part of the state, so that no crash holds it. (test: test/conversation/stepping/control.test.ts)
 * @rule stepping/breakpoint-before: A breakpoint stops before the thing that it names; the next step, or going on, passes it. (test:
 *   test/conversation/stepping/control.test.ts)
 */
import type { ControlMode, StepKind, StepOfChild, StepResult } from '../protocol/stepping.js';
import { AUTO, breakpointsLeft, type Control, type StepLock, type ConversationState } from '../state.js';
import { usageOf } from '../context/call-gate.js';
import { compactionCause, numbersOf, truncationDue } from '../context/compaction.js';
import { isChangingContext, isRunning } from '../effect.js';
import type { ConversationEvent, EventOf } from '../event.js';
import { answer, isKnown, request } from '../requests.js';
import { stayingTokens } from '../context/citing.js';
import { announce } from '../outbox/settlement.js';
import { modelOf, isRunningTool, openToolCalls } from '../state/turn-access.js';
import { listSlots } from '../../records/slots.js';
import { queuedCount } from '../inbox/queue-editing.js';
import { nextAppEvent, queuedId, type QueueItem } from '../state/queue-state.js';
import { chunkId } from '../context/reducers.js';
import { turnId } from '../../records/identity.js';
import type { ToolCall } from '../state/turn-state.js';
import { delegatedCalls, hasBegun, holdingChild, isOverDone, pausedChild, spentInTree } from './sub-agents.js';

export interface Planned {
  readonly did: Exclude<StepKind, 'nothing'>;
  readonly target: string;
  readonly words: string;
}

/** In place of the id of a call. */
const BETWEEN_TURNS = 'between-turns';
const MAX_CHUNKS = 200;

/** What the agent or the worker says, where neither the start nor a person has. */
export function takeMode({ isModeOpen, ...state }: ConversationState, mode: ControlMode = 'auto'): ConversationState {
  return isModeOpen && mode === 'stepping' ? { ...state, control: { ...(state.control ?? AUTO), mode } } : state;
}

export function setMode({ isModeOpen: _open, ...state }: ConversationState, { mode }: EventOf<'mode-set'>): ConversationState {
  const control = state.control ?? AUTO;
  const changes = (control.changes ?? 0) + 1;
  if (mode === control.mode) {
    // Sub-agents that were set by hand follow again.
    return delegatedCalls(state).length === 0 ? state : { ...state, control: { ...control, changes } };
  }
  const passed = mode === 'auto' ? (planned(state)?.target ?? null) : null;
  const { pausedIn: _, ...rest } = control;
  return { ...state, control: { ...rest, mode, changes, pausedBy: null, passed, ...(mode === 'auto' ? { lock: null } : {}) } };
}

export function setBreakpoints(state: ConversationState, { breakpoints }: EventOf<'breakpoints-set'>): ConversationState {
  const { reachedCost: _, ...control } = state.control ?? AUTO;
  return { ...state, control: { ...control, breakpoints, passed: null } };
}

/** A client requests the next step. With nothing to do the answer is there at once. */
export function startStep(state: ConversationState, { id, scope }: EventOf<'step-requested'>): ConversationState {
  const { pausedIn: _, ...control } = state.control ?? AUTO;
  if (control.lock?.id === id || isKnown(state, 'step', id) || stepRefusal(state, id) !== undefined) return state;
  const plannedStep = (scope === 'into' ? plannedInChild(state) : undefined) ?? planned(state);
  if (!plannedStep) {
    const words = describeNothingToDo(state);
    return withResult(state, { ...emptyResult(state, id), did: 'nothing', words });
  }
  const isOver = scope === 'over' && (plannedStep.did === 'sub-agent' || isDelegating(state, plannedStep));
  const next = isOver ? { ...plannedStep, words: `${plannedStep.words}, and on until it has reported` } : plannedStep;
  const before = { slots: listSlots(state.context), count: countOf(state, next), contextTokens: state.contextTokens };
  const changes = (control.changes ?? 0) + (isOver ? 1 : 0);
  const lock: StepLock = { id, ...next, before, ...(isOver && { over: true }) };
  const locked = { ...state, control: { ...control, ...(changes > 0 && { changes }), pausedBy: null, lock } };
  // Between turns the context is changed only on request, and a step is one.
  const isRequest = next.target === BETWEEN_TURNS;
  return isRequest ? request(locked, { kind: next.did === 'truncation' ? 'truncate' : 'compact', id: `step ${id}` }) : locked;
}

function isDelegating({ turn }: ConversationState, { did, target }: Planned): boolean {
  if (did !== 'tool-run' || turn?.phase.kind !== 'tools') return false;
  return turn.phase.calls.some(({ id, plan }) => id === target && plan.workflowAction?.kind === 'delegate');
}

/** Why a step cannot be requested now; undefined when it can, or when its answer is known. */
export function stepRefusal(state: ConversationState, id: string): string | undefined {
  const { control } = state;
  if (isKnown(state, 'step', id)) return undefined;
  if (control?.mode !== 'stepping') return 'the conversation runs by itself (mode auto): set its mode to stepping first';
  return control.lock && control.lock.id !== id ? `step ${control.lock.id} is running: ${control.lock.words}` : undefined;
}

/**
 * After every event: a step that is done is answered, one that the parent waits for begins, and a breakpoint that is reached stops what
 * would come next.
 */
export function advanceControl(before: ConversationState, state: ConversationState, event: ConversationEvent): ConversationState {
  const { control } = state;
  if (!control) return state;
  const answered = control.lock && isDone(state, control.lock) ? endStep(state, control.lock) : state;
  const stepped = startOrdered(answered);
  if (control.lock || stepped.control?.mode !== 'auto') return stepped;
  const hit = breakpointHit(before, stepped, event);
  return hit === undefined ? stepped : pause(stepped, hit);
}

/** The parent's step waits for it: there is an answer in any case. */
function startOrdered(state: ConversationState): ConversationState {
  const { control } = state;
  const id = control?.order?.step;
  if (!control || id === undefined || control.lock) return state;
  if (control.mode === 'stepping') return startStep(state, { kind: 'step-requested', id, at: state.now });
  const words = 'nothing: it was set to go on by itself';
  return withResult(state, { ...emptyResult(state, id), did: 'nothing', words });
}

function pause(state: ConversationState, { words, where, isCost }: Hit): ConversationState {
  const control = state.control ?? AUTO;
  const { costUsd: _, ...others } = control.breakpoints;
  const breakpoints = isCost ? others : control.breakpoints;
  const paused: Control = {
    ...control,
    mode: 'stepping',
    pausedBy: words,
    breakpoints,
    changes: (control.changes ?? 0) + 1,
    ...(where !== undefined && { pausedIn: where }),
    ...(isCost && { reachedCost: true }),
  };
  const why = where === undefined ? words : `${words} in ${where}`;
  return announce({ ...state, control: paused }, { kind: 'paused', turn: turnId(state.turn?.number ?? state.latestTurn), why });
}

/** What the next step would do; undefined while something is in flight, or nothing is to be done. */
export function planned(state: ConversationState): Planned | undefined {
  const { turn } = state;
  if (!turn) return plannedEvent(state.queue[0]) ?? plannedUpkeep(state);
  if (turn.stopping) return undefined;
  const event = isRunning(state, 'model-step') || isChangingContext(state) ? undefined : nextAppEvent(state);
  if (event) return plannedEvent(event);
  if (turn.phase.kind === 'model') {
    const { call } = turn.phase;
    if (isRunning(state, 'model-step') || isChangingContext(state)) return undefined;
    const riding = openToolCalls(state);
    const isRiding = riding.length > 0;
    if (!isRiding && truncationDue(state))
      return { did: 'truncation', target: call.id, words: 'leave the oldest of the working flow out of the prompt' };
    const cause = isRiding ? undefined : compactionCause(state);
    if (cause) return { did: 'compaction', target: call.id, words: `make memory of the older turns (${cause})` };
    return {
      did: 'model-call',
      target: call.id,
      words: `${describeRiding(riding)}call ${modelOf(state) ?? 'the model'} (${call.id})`,
    };
  }
  const waiting = turn.phase.calls.find(({ id, status }) => status === 'waiting' && !isRunningTool(state, id));
  if (!waiting) return plannedInChild(state);
  const { id: target, name } = waiting;
  return { did: 'tool-run', target, words: `run ${name}${waiting.target === '' ? '' : `: ${waiting.target}`} (${target})` };
}

function plannedInChild(state: ConversationState): Planned | undefined {
  const child = state.turn?.stopping ? undefined : holdingChild(state);
  return child && { did: 'sub-agent', target: child.callId, words: child.words };
}

/** Quick tools that were bound for this step before a client wanted to see each one. */
function describeRiding(riding: readonly ToolCall[]): string {
  return riding.length === 0 ? '' : `run ${riding.map(({ name }) => name).join(', ')} and `;
}

function plannedEvent(head: QueueItem | undefined): Planned | undefined {
  if (!head || head.kind === 'spilled') return undefined;
  const target = queuedId(head);
  if (head.kind === 'reset') return { did: 'event', target, words: 'clear the session' };
  if (head.kind === 'app') return { did: 'event', target, words: `reduce the event ${head.type}` };
  return { did: 'event', target, words: `take message ${head.messageId} (${head.bytes} bytes) as ${turnId(head.turn)}` };
}

/** With nothing in the queue (seed 004): what the next model call would have to do first. */
function plannedUpkeep(state: ConversationState): Planned | undefined {
  const { settings, queue, compaction } = state;
  if (!settings || queue.length > 0 || isChangingContext(state)) return undefined;
  const { needsTruncation, forceCompaction } = usageOf(numbersOf(state), settings);
  const [tokens, tried] = [stayingTokens(state), compaction.truncationRest];
  if (needsTruncation && !(tried?.turn === state.latestTurn && tokens <= tried.tokens))
    return { did: 'truncation', target: BETWEEN_TURNS, words: 'leave the oldest of the working flow out of the prompt' };
  return forceCompaction && tokens >= (compaction.rest?.tokens ?? 0)
    ? { did: 'compaction', target: BETWEEN_TURNS, words: 'make memory of the older turns (hard)' }
    : undefined;
}

function isDone(state: ConversationState, lock: StepLock): boolean {
  const phase = state.turn?.phase;
  const isOver = !state.turn && lock.target !== BETWEEN_TURNS;
  switch (lock.did) {
    case 'event':
      return !state.queue.some((item) => queuedId(item) === lock.target);
    case 'truncation':
      return isOver || (state.compaction.truncations ?? 0) > lock.before.count;
    case 'compaction':
      return isOver || (state.compaction.attempts > lock.before.count && !isRunning(state, 'compact'));
    case 'model-call':
      return phase?.kind !== 'model' || phase.call.id !== lock.target || attemptsOf(state) > lock.before.count;
    case 'tool-run': {
      const call = phase?.kind === 'tools' ? phase.calls.find(({ id }) => id === lock.target) : undefined;
      if (call?.status !== 'delegated') return call?.status !== 'waiting';
      return lock.over ? isOverDone(state, lock.target) : hasBegun(state, lock.target);
    }
    case 'sub-agent': {
      if (lock.over) return isOverDone(state);
      const call = delegatedCalls(state).find(({ id }) => id === lock.target);
      return !call || call.child.control?.step?.stepId === lock.id;
    }
  }
}

function countOf(state: ConversationState, { did }: Planned): number {
  if (did === 'truncation') return state.compaction.truncations ?? 0;
  if (did === 'compaction') return state.compaction.attempts;
  return attemptsOf(state);
}

/** That have failed: at the model, or before it at the store. */
function attemptsOf({ turn, retries }: ConversationState): number {
  return turn?.phase.kind === 'model' ? Math.max(turn.phase.call.failures, retries[turn.phase.call.id]?.attempts ?? 0) : 0;
}

function endStep(state: ConversationState, lock: StepLock): ConversationState {
  const control = state.control ?? AUTO;
  const { did, id: stepId, words, before } = lock;
  const now = listSlots(state.context);
  const [had, has] = [new Set(before.slots), new Set(now)];
  const paused = pausedUnder(state, lock);
  const released: ConversationState = {
    ...state,
    control: {
      ...control,
      lock: null,
      ...(lock.over && { changes: (control.changes ?? 0) + 1 }),
      ...(paused && { pausedBy: paused.why, pausedIn: paused.conversation }),
    },
  };
  const child = lock.did === 'sub-agent' && !lock.over ? stepOfChild(state, lock) : undefined;
  return withResult(released, {
    ...emptyResult(released, stepId),
    ...(child && { child }),
    did,
    words: `${words}${describeEnding(state, lock)}`,
    eventProcessed: did === 'event',
    compactionPerformed: did === 'compaction',
    truncationPerformed: did === 'truncation',
    dispatchResult: {
      addedChunks: now
        .filter((slot) => !had.has(slot))
        .map(chunkId)
        .slice(0, MAX_CHUNKS),
      removedChunkIds: before.slots
        .filter((slot) => !has.has(slot))
        .map(chunkId)
        .slice(0, MAX_CHUNKS),
      contextTokens: { before: before.contextTokens, after: state.contextTokens },
    },
  });
}

function stepOfChild(state: ConversationState, { id, target }: StepLock): StepOfChild | undefined {
  const taken = delegatedCalls(state).find((call) => call.id === target)?.child.control?.step;
  if (taken?.stepId !== id) return undefined;
  const { stepId: _, ...step } = taken;
  return step;
}

function pausedUnder(state: ConversationState, { over, did, target }: StepLock): ReturnType<typeof pausedChild> {
  return over ? pausedChild(state, did === 'sub-agent' ? undefined : target) : undefined;
}

/** What has become of those that were let go, or of the one that took a step. */
function endingOfChildren(state: ConversationState, lock: StepLock): string {
  const paused = pausedUnder(state, lock);
  if (paused) return `; ${paused.conversation} stopped by ${paused.why}`;
  const asking = lock.over ? delegatedCalls(state).find(({ child }) => child.asks.length > 0) : undefined;
  if (asking) return `; ${asking.child.id} waits for a person`;
  const taken = lock.over ? undefined : stepOfChild(state, lock);
  if (taken) return `; ${taken.conversation} did ${taken.did}: ${taken.words}`;
  return delegatedCalls(state).some(({ id }) => id === lock.target) ? '' : '; it has reported';
}

function describeEnding(state: ConversationState, lock: StepLock): string {
  const { did, target } = lock;
  if (did === 'sub-agent' || lock.over) return endingOfChildren(state, lock);
  if (did !== 'model-call' && did !== 'tool-run') return '';
  const phase = state.turn?.phase;
  if (!state.turn) return `; ${turnId(state.latestTurn)} ended: ${state.ended[state.ended.length - 1]?.stopReason ?? 'end'}`;
  if (phase?.kind === 'model' && phase.call.id === target)
    return `; it failed (${state.retries[target]?.failure.type ?? 'unknown'}), another step tries again`;
  const [reason] = did === 'model-call' && phase?.kind === 'model' ? state.turn.deferred.slice(-1) : [];
  if (reason !== undefined) return `; it came back before the call (${reason})`;
  return did === 'model-call' && phase?.kind === 'tools' ? `; it asks for ${phase.calls.map(({ name }) => name).join(', ')}` : '';
}

function emptyResult(state: ConversationState, stepId: string): StepResult {
  const next = planned(state);
  return {
    stepId,
    did: 'nothing',
    words: '',
    dispatchResult: null,
    eventProcessed: false,
    compactionPerformed: false,
    truncationPerformed: false,
    hasPendingOperations:
      state.queue.length > 0 || truncationDue(state) || compactionCause(state) !== undefined || plannedUpkeep(state) !== undefined,
    queuedEventCount: queuedCount(state.queue),
    next: next?.words ?? null,
  };
}

function withResult(state: ConversationState, result: StepResult): ConversationState {
  const control = state.control ?? AUTO;
  const answered = answer({ ...state, control }, 'step', [result.stepId], result);
  if (control.order?.step !== result.stepId) return answered;
  const { step: _, ...order } = control.order;
  const { stepId, did, words } = result;
  const ordered = { stepId, ...(result.child ?? { conversation: state.conversation, did, words }) };
  return { ...answered, control: { ...control, order, ordered } };
}

function describeNothingToDo({ turn }: ConversationState): string {
  if (!turn) return 'there is nothing to do: the queue is empty';
  return 'there is nothing to start: what was begun is still on its way, or waits for a person, a time or a sub-agent';
}

interface Hit {
  readonly words: string;
  /** The sub-agent that has stopped there; absent: it is reached here. */
  readonly where?: string;
  readonly isCost?: boolean;
}

function breakpointHit(before: ConversationState, state: ConversationState, event: ConversationEvent): Hit | undefined {
  const { breakpoints, passed } = state.control ?? AUTO;
  const { tools = [], events = [], onError, costUsd } = breakpoints;
  const spent = spentInTree(state);
  if (costUsd !== undefined && spent >= costUsd) return { words: describeCost(state, spent, costUsd), isCost: true };
  const failed = onError === true ? errorIn(before, state, event) : undefined;
  if (failed !== undefined) return { words: `error: ${failed}` };
  const { turn } = state;
  const child = pausedChild(state);
  if (child) return { words: child.why, where: child.conversation };
  if (turn?.phase.kind === 'tools') {
    const call = turn.phase.calls.find(
      ({ id, name, status }) => status === 'waiting' && !isRunningTool(state, id) && id !== passed && tools.includes(name),
    );
    if (call) return { words: `tool: ${call.name} (${call.id})` };
  }
  const head = turn ? nextAppEvent(state) : state.queue[0];
  if (!head || queuedId(head) === passed) return undefined;
  const type = head.kind === 'app' ? head.type : head.kind;
  return events.includes(type) ? { words: `event: ${type} (${queuedId(head)})` } : undefined;
}

/** A sub-agent stops at what its parent had left, and names the whole. */
function describeCost({ control }: ConversationState, spent: number, costUsd: number): string {
  const { order } = control ?? AUTO;
  const ofParent = order && breakpointsLeft(order).costUsd === costUsd ? order : undefined;
  return `cost: ${inDollars(spent + (ofParent?.spentUsd ?? 0))} of ${inDollars(ofParent?.breakpoints.costUsd ?? costUsd)}`;
}

/** With cents; of less than a cent, its parts too. */
function inDollars(usd: number): string {
  return `$${usd.toFixed(usd < 0.01 ? 4 : 2)}`;
}

function errorIn(before: ConversationState, state: ConversationState, event: ConversationEvent): string | undefined {
  if (event.kind === 'effect-failed' && (event.effect === 'model-step' || event.effect === 'run-tool'))
    return `${event.failure.type}: ${event.failure.message}`;
  if (event.kind === 'effect-completed' && event.effect === 'model-step' && event.output.kind === 'failed')
    return `${event.output.failure.type}: ${event.output.failure.message}`;
  const result = event.kind === 'effect-completed' && event.effect === 'run-tool' ? event.output : undefined;
  if (result && result.outcome !== 'ok') return `${result.name} answered ${result.outcome}`;
  const last = state.ended[state.ended.length - 1];
  return state.turnsEnded > before.turnsEnded && last?.error ? `${last.error.type}: ${last.error.message}` : undefined;
}
