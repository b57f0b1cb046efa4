/**
 * Stepping (seed 004): in that mode each thing that the conversation does by itself is done when somebody asks for it, one at a time.
 *
 * G1  One step at a time: `lock` is set from the request until the one thing is done, and lies in the state, so that no crash holds it.
 * G2  What is done is what auto would have done next: the same `nextStep`, held back where a step begins.
 * G3  While a turn runs no further event is taken; then comes truncation, then compaction, then the model or a tool (design section 4).
 *     Between turns events come first, then truncation, then compaction.
 * G4  A breakpoint stops before what it names, and is passed by the next step or by going on.
 */
import type { StepKind, StepResult } from '../protocol/stepping.js';
import { AUTO, type StepLock, type ConversationState } from '../state.js';
import { usageOf } from '../activity-io/call-gate.js';
import { compactionCause, isChangingContext, numbersOf, truncationDue } from '../context/compaction.js';
import type { ConversationEvent, EventOf } from '../event.js';
import { isRunning } from '../lifecycle.js';
import { stayingTokens } from '../context/citing.js';
import { announce } from '../outbox/settlement.js';
import { modelOf } from '../turn/chosen-model.js';
import { isRunningTool, openToolCalls } from '../turn/turn-access.js';
import { slotsOf } from '../../records/slots.js';
import { queuedCount } from '../inbox/spill.js';
import type { QueueItem } from '../state/queue-state.js';
import { turnId } from '../../records/identity.js';
import type { ToolCall } from '../state/turn-state.js';

export interface Planned {
  readonly did: Exclude<StepKind, 'nothing'>;
  readonly target: string;
  readonly words: string;
}

/** In place of the id of a call. */
const BETWEEN_TURNS = 'between-turns';
const REMEMBERED_RESULTS = 16;
const MAX_CHUNKS = 200;

/** Whether this has to wait until somebody asks for it. */
export function isHeld({ control }: ConversationState, did: Planned['did'], target?: string): boolean {
  if (control?.mode !== 'stepping') return false;
  const { lock } = control;
  return lock?.did !== did || (target !== undefined && lock.target !== target);
}

export function setMode(state: ConversationState, { mode }: EventOf<'mode-set'>): ConversationState {
  const control = state.control ?? AUTO;
  if (mode === control.mode) return state;
  const passed = mode === 'auto' ? (planned(state)?.target ?? null) : null;
  return { ...state, control: { ...control, mode, pausedBy: null, passed, ...(mode === 'auto' ? { lock: null } : {}) } };
}

export function setBreakpoints(state: ConversationState, { breakpoints }: EventOf<'breakpoints-set'>): ConversationState {
  return { ...state, control: { ...(state.control ?? AUTO), breakpoints, passed: null } };
}

/** Somebody asks for the next thing. With nothing to do the answer is there at once. */
export function startStep(state: ConversationState, { id }: EventOf<'step-requested'>): ConversationState {
  const control = state.control ?? AUTO;
  if (stepRefusal(state, id) !== undefined) return state;
  const next = planned(state);
  if (!next) {
    const words = nothingInWords(state);
    return withResult(state, { ...emptyResult(state, id), did: 'nothing', words });
  }
  const before = { slots: slotsOf(state.context), count: countOf(state, next), contextTokens: state.contextTokens };
  const locked = { ...state, control: { ...control, pausedBy: null, lock: { id, ...next, before } } };
  return next.target === BETWEEN_TURNS ? askFor(locked, next.did, `step ${id}`) : locked;
}

/** Between turns the context is changed only on request, and a step is one. */
function askFor(state: ConversationState, did: Planned['did'], requestId: string): ConversationState {
  const { compaction } = state;
  const { asked, truncationAsked = [] } = compaction;
  const request = did === 'truncation' ? { truncationAsked: [...truncationAsked, requestId] } : { asked: [...asked, requestId] };
  return { ...state, compaction: { ...compaction, ...request } };
}

/** Why a step cannot be asked for now; undefined when it can, or when its answer is known. */
export function stepRefusal({ control }: ConversationState, id: string): string | undefined {
  if (control?.results.some(({ stepId }) => stepId === id)) return undefined;
  if (control?.mode !== 'stepping') return 'the conversation runs by itself (mode auto): set its mode to stepping first';
  return control.lock && control.lock.id !== id ? `step ${control.lock.id} is running: ${control.lock.words}` : undefined;
}

/** After every event: a step that is done is answered, and a breakpoint that is reached stops what would come next. */
export function advanceControl(before: ConversationState, state: ConversationState, event: ConversationEvent): ConversationState {
  const { control } = state;
  if (!control) return state;
  if (control.lock) return isDone(state, control.lock) ? endStep(state, control.lock) : state;
  if (control.mode === 'stepping') return state;
  const hit = breakpointHit(before, state, event);
  if (hit === undefined) return state;
  const { costUsd: _, ...others } = control.breakpoints;
  const breakpoints = hit.isCost ? others : control.breakpoints;
  return announce(
    { ...state, control: { ...control, mode: 'stepping', pausedBy: hit.words, breakpoints } },
    {
      kind: 'paused',
      turn: turnId(state.turn?.number ?? state.latestTurn),
      why: hit.words,
    },
  );
}

/** What the next step would do; undefined while something is in flight, or nothing is to be done. */
export function planned(state: ConversationState): Planned | undefined {
  const { turn } = state;
  if (!turn) return plannedEvent(state.queue[0]) ?? plannedUpkeep(state);
  if (turn.stopping) return undefined;
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
      words: `${ridingInWords(riding)}call ${modelOf(state) ?? 'the model'} (${call.id})`,
    };
  }
  const waiting = turn.phase.calls.find(({ id, status }) => status === 'waiting' && !isRunningTool(state, id));
  return (
    waiting && {
      did: 'tool-run',
      target: waiting.id,
      words: `run ${waiting.name}${waiting.target === '' ? '' : `: ${waiting.target}`} (${waiting.id})`,
    }
  );
}

/** Quick tools that were bound for this step before somebody wanted to see each one. */
function ridingInWords(riding: readonly ToolCall[]): string {
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

export function queuedId({ number }: QueueItem): string {
  return `qevt_${String(number).padStart(6, '0')}`;
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
      return !call || call.status !== 'waiting';
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
  const now = slotsOf(state.context);
  const [had, has] = [new Set(before.slots), new Set(now)];
  const released: ConversationState = { ...state, control: { ...control, lock: null } };
  return withResult(released, {
    ...emptyResult(released, stepId),
    did,
    words: `${words}${endingInWords(state, lock)}`,
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

function endingInWords(state: ConversationState, { did, target }: StepLock): string {
  if (did !== 'model-call' && did !== 'tool-run') return '';
  const phase = state.turn?.phase;
  if (!state.turn) return `; ${turnId(state.latestTurn)} ended: ${state.ended[state.ended.length - 1]?.stopReason ?? 'end'}`;
  if (phase?.kind === 'model' && phase.call.id === target)
    return `; it failed (${state.retries[target]?.failure.type ?? 'unknown'}), another step tries again`;
  const [reason] = did === 'model-call' && phase?.kind === 'model' ? state.turn.deferred.slice(-1) : [];
  if (reason !== undefined) return `; it came back before the call (${reason})`;
  return did === 'model-call' && phase?.kind === 'tools' ? `; it asks for ${phase.calls.map(({ name }) => name).join(', ')}` : '';
}

/** Of the working flow: one entry of the conversation. */
export function chunkId(slot: number): string {
  return `chunk_${slot}`;
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
    hasPendingOperations: truncationDue(state) || compactionCause(state) !== undefined || plannedUpkeep(state) !== undefined,
    queuedEventCount: queuedCount(state.queue),
    next: next?.words ?? null,
  };
}

function withResult(state: ConversationState, result: StepResult): ConversationState {
  const control = state.control ?? AUTO;
  return { ...state, control: { ...control, results: [...control.results, result].slice(-REMEMBERED_RESULTS) } };
}

function nothingInWords({ turn }: ConversationState): string {
  if (!turn) return 'there is nothing to do: the queue is empty';
  return 'there is nothing to start: what was begun is still on its way, or waits for a person, a time or a sub-agent';
}

interface Hit {
  readonly words: string;
  readonly isCost?: boolean;
}

function breakpointHit(before: ConversationState, state: ConversationState, event: ConversationEvent): Hit | undefined {
  const { breakpoints, passed } = state.control ?? AUTO;
  const { tools = [], events = [], onError, costUsd } = breakpoints;
  if (costUsd !== undefined && (state.usage.costUsd ?? 0) >= costUsd)
    return { words: `cost: $${(state.usage.costUsd ?? 0).toFixed(4)} of $${costUsd}`, isCost: true };
  const failed = onError === true ? errorIn(before, state, event) : undefined;
  if (failed !== undefined) return { words: `error: ${failed}` };
  const { turn } = state;
  if (turn?.phase.kind === 'tools') {
    const call = turn.phase.calls.find(
      ({ id, name, status }) => status === 'waiting' && !isRunningTool(state, id) && id !== passed && tools.includes(name),
    );
    if (call) return { words: `tool: ${call.name} (${call.id})` };
  }
  const [head] = state.queue;
  if (turn || !head || queuedId(head) === passed) return undefined;
  const type = head.kind === 'app' ? head.type : head.kind;
  return events.includes(type) ? { words: `event: ${type} (${queuedId(head)})` } : undefined;
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
