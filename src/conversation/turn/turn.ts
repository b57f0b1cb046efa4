/**
 * One turn: begin, call the model, run tools, end. The model's part is in model-step.ts, the tools' in tool-round.ts.
 *
 * A slot is assigned once; if its effect failed, it stays empty and out of the context.
 *
 * @rule turn/ends-once: A turn that began ends exactly once, and its end answers every message that became or joined it. (test:
 *   test/conversation/lives/own.test.ts)
 */
import { messageTokens } from '../state/queue-state.js';
import { inTokens } from '../state/compaction-state.js';
import { LIMITS, type StopReason, type TurnError } from '../protocol/contract.js';
import type { EventOf } from '../event.js';
import { receiveMessage, joinSteering, steeringBecomesNext } from '../inbox/arrivals.js';
import { budgetOf, abandon } from '../state/budget.js';
import { overBudget } from '../context/call-gate.js';
import { runningChildren } from './delegation.js';
import {
  withoutRetry,
  callsInFlight,
  closeRound,
  currentModelCall,
  fallbackOf,
  isRunningTool,
  openToolCalls,
  wasTried,
  withToolCalls,
  modelOf,
  withTurn,
} from '../state/turn-access.js';
import { noteTurnEnd } from '../outbox/deliveries.js';
import { addNotice, announce, resultEntry, settle, tellLateResults } from '../outbox/settlement.js';
import type { Settlement, StepFailure } from '../outbox/writes.js';
import { withSlot } from '../../records/slots.js';
import type { ConversationState } from '../state.js';
import { assistantEntry, NO_USAGE, type Entry, type ToolOutcome } from '../../records/message.js';
import { estimateTokens } from '../../records/token-estimate.js';
import { noteGap } from './pace.js';
import { turnId } from '../../records/identity.js';
import type { ModelCall, ToolCall, Turn } from '../state/turn-state.js';
import { noteTurn } from '../context/consolidation.js';
import { withPassing } from '../context/truncation.js';
import { citeTurn, compactsAt, suggestsCompaction, TOO_FULL } from '../context/compaction.js';
import type { AgentSettings } from '../state/settings.js';

/** Milliseconds that running effects have to stop by themselves; the contract promises two seconds. */
export const STOP_GRACE_MS = 1_500;

/** Queues a message. An interrupting one also stops the running turn, unless it was rejected. */
export function acceptMessage(state: ConversationState, event: EventOf<'message-received'>): ConversationState {
  const queued = receiveMessage(state, event);
  const isInterrupting = event.delivery === 'interrupt' && queued.queue !== state.queue;
  return isInterrupting && state.turn ? stopTurn(queued, 'a newer message', event.at) : queued;
}

/** Stops the turn at a person's request. A turn that has not begun ends as it begins. */
export function requestInterrupt(state: ConversationState, event: EventOf<'interrupt-requested'>): ConversationState {
  if (state.turn) return stopTurn(state, event.reason, event.at);
  const [head, ...rest] = state.queue;
  return head?.kind === 'message' ? { ...state, queue: [{ ...head, stopped: true }, ...rest] } : state;
}

/** The message at the head of the queue becomes a turn; its first step writes what the store does not have yet. */
export function beginTurn(state: ConversationState): ConversationState {
  const [item, ...queue] = state.queue;
  if (state.turn || item?.kind !== 'message') return state;
  const tokens = inTokens(state, messageTokens(item));
  const begun: ConversationState = {
    ...noteGap(state),
    queue,
    outbox: item.recorded ? state.outbox : { ...state.outbox, messages: [...state.outbox.messages, item] },
    latestTurn: Math.max(state.latestTurn, item.turn),
    ...(item.contextRef === undefined ? {} : { appContext: { ref: item.contextRef } }),
    context: withSlot(state.context, item.slot),
    contextTokens: state.contextTokens + tokens,
    turn: {
      number: item.turn,
      messageIds: [item.messageId],
      firstSlot: item.slot,
      messageTokens: tokens,
      isConfigured: false,
      deferred: [],
      seq: 1,
      rounds: 0,
      overflowRecoveries: 0,
      modelCalls: 0,
      toolCalls: 0,
      usage: NO_USAGE,
      answerSlot: null,
      phase: { kind: 'tools', calls: [] },
      stopping: null,
      ...(item.outputRef === undefined ? {} : { outputRef: item.outputRef }),
      ...(item.toolsRef === undefined ? {} : { toolsRef: item.toolsRef }),
      ...(item.stop && { stop: item.stop }),
      ...(item.traceparent !== undefined && { traceparent: item.traceparent }),
    },
  };
  return item.stopped ? endTurn(begun, 'interrupted') : nextModelCall(begun);
}

/** Ends the running turn. The caller has settled all open calls. */
export function endTurn(state: ConversationState, stopReason: StopReason, error?: TurnError): ConversationState {
  const { turn } = state;
  if (!turn) return state;
  const fallback = fallbackOf(turn);
  const ended = {
    number: turn.number,
    stopReason,
    usage: turn.usage,
    toolCalls: turn.toolCalls,
    answerSlot: turn.answerSlot,
    ...(fallback && { fallback }),
    ...(turn.outputRef !== undefined && stopReason === 'end' && !error ? { fits: true } : {}),
    ...(error ? { error } : {}),
  };
  const call = currentModelCall(state);
  const cited = error && TOO_FULL.includes(error.type) ? citeTurn(state, turn) : state;
  const after = steeringBecomesNext({
    ...noteTurn(noteTurnEnd(call ? withoutRetry(cited, call.id) : cited, ended), turn),
    turn: null,
    turnsEnded: state.turnsEnded + 1,
    ended: [...state.ended, ended].slice(-LIMITS.rememberedTurns),
  });
  // A complete answer announces its end (activities/model-step/call-model.ts), so that the usual turn costs no extra step.
  if (stopReason === 'end' && !error) return after;
  const id = turnId(turn.number);
  const { usage, toolCalls, answerSlot } = turn;
  const result = { turnId: id, text: '', stopReason, usage, toolCalls, ...(fallback && { fallback }), ...(error ? { error } : {}) };
  return announce(after, { kind: 'turn-finished', turn: id, result }, answerSlot);
}

/** Begins the next model call. Its step runs the `riding` calls, whose results count as in the context from here on. */
export function nextModelCall(state: ConversationState, riding: readonly ToolCall[] = []): ConversationState {
  // The agent's budget may have changed since the last turn: the first step of this one checks it (call-gate.ts).
  const isSet = state.budget !== undefined && state.budget.within === undefined;
  const isKnown = isSet || state.turn?.isConfigured === true;
  const spent = isKnown ? overBudget(state.usage, budgetOf(state)) : undefined;
  if (spent) return endWithOpenCalls(state, 'budget', spent);
  const hinted = withHint(state.lateResults ? tellLateResults(state) : state);
  if (hinted !== state) return nextModelCall(hinted, riding);
  const slot = state.counters.slot + 1;
  const numbered: ConversationState = { ...state, counters: { ...state.counters, slot } };
  return withTurn(joinSteering(numbered), (turn) => ({
    ...turn,
    modelCalls: turn.modelCalls + 1,
    phase: { kind: 'model', riding, call: { id: `${turnId(turn.number)}/m${turn.modelCalls + 1}`, slot, seq: turn.seq + 1, failures: 0 } },
  }));
}

/** Asks running effects to stop; if there are none, the turn ends at once. */
export function stopTurn(state: ConversationState, reason: string | null, at: number): ConversationState {
  const { turn } = state;
  if (!turn || turn.stopping) return state;
  const stopping: ConversationState = { ...state, turn: { ...turn, stopping: { reason, at, sentAt: null } } };
  return endIfStopped(stopping);
}

export function sendStop(state: ConversationState, at: number): ConversationState {
  const { turn } = state;
  return turn?.stopping ? { ...state, turn: { ...turn, stopping: { ...turn.stopping, sentAt: at } } } : state;
}

/** After the grace period, settles what has not stopped and ends the turn. */
export function passTime(state: ConversationState): ConversationState {
  const sentAt = state.turn?.stopping?.sentAt;
  if (sentAt === undefined || sentAt === null || state.now < sentAt + STOP_GRACE_MS) return state;
  return endStopped(state);
}

export function endIfStopped(state: ConversationState): ConversationState {
  return state.turn?.stopping && callsInFlight(state).length + runningChildren(state).length === 0 ? endStopped(state) : state;
}

/** Settles every open call and ends the turn (outbox/every-call-settled). */
export function endStopped(state: ConversationState): ConversationState {
  return endWithOpenCalls(state, 'interrupted');
}

/**
 * Ends the turn early: answers each open tool call (outbox/every-call-settled), and gives up and fences running ones. `answer`: what takes
 * the place of the model's answer.
 */
export function endWithOpenCalls(
  state: ConversationState,
  stopReason: StopReason,
  error?: TurnError,
  answer: Entry | null = null,
): ConversationState {
  const { turn } = state;
  if (!turn) return state;
  const call = currentModelCall(state);
  const tried = wasTried(state) ? call : undefined;
  const open = openToolCalls(state);
  const settled = settle(state, [
    ...(tried ? [{ effect: tried.id, entry: answer }] : []),
    ...open.map((one) => answerFor(state, turn, one, null)),
  ]);
  const ran = open.filter((one) => mayHaveRun(state, turn, one)).map(({ id }) => id);
  const given = giveUp(settled, tried ? [tried.id, ...ran] : ran);
  const closed = turn.phase.kind === 'tools' ? closeRound(given, turn.phase.calls) : given;
  return endTurn(
    withToolCalls(closed, (one) => ({ ...one, status: 'done' })),
    stopReason,
    error,
  );
}

/** The words of a model before it failed for good are its answer, as far as they go: people have read them, and it can go on from there. */
export function endFailed(state: ConversationState, { slot, seq }: ModelCall, { type, message, words }: StepFailure): ConversationState {
  const { turn, session, now } = state;
  const error = { type, message };
  if (!turn || words === undefined) return endWithOpenCalls(state, 'failed', error);
  const shown = typeof words === 'string' ? words : words.preview;
  const place = { slot, session, turn: turnId(turn.number), ts: now / 1000 };
  const entry = assistantEntry(
    { ...place, blocks: [{ kind: 'text', text: words }], model: modelOf(state) ?? '', stop: 'interrupted' },
    seq,
  );
  const contextTokens = state.contextTokens + inTokens(state, estimateTokens(shown));
  const ended = { ...turn, seq: turn.seq + 1, answerSlot: slot };
  return endWithOpenCalls({ ...state, context: withSlot(state.context, slot), contextTokens, turn: ended }, 'failed', error, entry);
}

/** Their fence or their late result reports the cost, once; also for a failed effect that had committed. */
function giveUp(state: ConversationState, ids: readonly string[]): ConversationState {
  const inFlight = state.inFlight.filter(({ effect }) => effect !== 'model-step' && effect !== 'run-tool');
  const tools = state.inFlight.flatMap(({ effect, id }) => (effect === 'run-tool' ? [id] : []));
  return abandon({ ...state, inFlight, ...(tools.length > 0 && { stoppedTools: [...(state.stoppedTools ?? []), ...tools] }) }, ids);
}

/** Seed 004, soft threshold: tells the model once per epoch that its context is filling up. */
function withHint(state: ConversationState): ConversationState {
  const { turn, settings, compaction, epoch } = state;
  if (!turn || !settings || compaction.hintedIn === epoch || !suggestsCompaction(state)) return state;
  const text =
    `[Here the context had about ${state.contextTokens} tokens; ${whatComes(settings)}. ` +
    'When a task has just been completed, compact_context does it at a better moment.]';
  const hinted = addNotice(state, turn, `hint-${epoch}`, text);
  return {
    ...hinted,
    contextTokens: hinted.contextTokens + estimateTokens(text),
    compaction: { ...hinted.compaction, hintedIn: epoch, passing: withPassing(state, { slot: hinted.counters.slot, epoch }) },
  };
}

/** Without automatic compaction the oldest messages leave the prompt at the truncation threshold. */
function whatComes(settings: AgentSettings): string {
  const { thresholds } = settings;
  if (thresholds.autoCompact === false) return `beyond ${thresholds.truncation} its oldest messages are left out of the prompt`;
  return `from ${compactsAt(settings)} on its older turns become memory by themselves`;
}

/** The answer that the model reads for a call without a result. */
export function answerFor(state: ConversationState, turn: Turn, call: ToolCall, failure: StepFailure | null): Settlement {
  const hasRun = failure !== null ? !isUnbegun(call, failure) : mayHaveRun(state, turn, call);
  const [outcome, text]: [ToolOutcome, string] =
    call.status === 'delegated'
      ? ['unknown', 'Interrupted: the sub-agent was told to stop, and did not report in time. What it has done is unknown.']
      : call.asked?.kind === 'client-tool' && call.status === 'asking'
        ? ['unknown', 'Interrupted before the client had answered: whether it ran this is unknown.']
        : !hasRun
          ? ['cancelled', 'Cancelled before it started: the person stopped this turn.']
          : failure && call.plan.repeatable
            ? ['error', `The tool did not finish: ${failure.message}`]
            : ['unknown', `Interrupted, outcome unknown: ${failure ? failure.message : 'the person stopped this turn while it ran'}.`];
  return { effect: call.id, entry: resultEntry(state, turn, call, outcome, text) };
}

/** An earlier attempt at one that may be repeated may have begun. */
function isUnbegun({ plan }: ToolCall, { unbegun }: StepFailure): boolean {
  return unbegun === true && !plan.repeatable && plan.verifiable !== true;
}

/** True if the call runs, or rides on a step that was attempted. */
function mayHaveRun(state: ConversationState, { phase }: Turn, { id }: ToolCall): boolean {
  const hasRidden = wasTried(state) && phase.kind === 'model' && phase.riding.some((call) => call.id === id);
  return isRunningTool(state, id) || hasRidden;
}
