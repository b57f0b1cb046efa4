/**
 * One turn: begin, call the model, run tools, end. The model's part is in model-call.ts, the tools' in tool-round.ts.
 *
 * T1  A turn that began ends exactly once, and every message that became or joined it is answered by that end.
 * T5  A slot is given once; one whose effect failed stays empty and out of the context.
 */
import { LIMITS, type StopReason, type TurnError } from './contract.js';
import { overBudget } from './budget.js';
import type { ConversationEvent } from './event.js';
import { announce, answerFor, settle } from './settlement.js';
import { withSlot } from './slots.js';
import type { QueuedMessage } from './queue-state.js';
import type { ConversationState } from './state.js';
import { estimateTokens } from './token-usage.js';
import { turnId } from './turn-id.js';
import { NO_USAGE } from './usage.js';
import { runningChildren } from './delegation.js';
import { withHint } from './hint.js';
import { joinSteering, steeringBecomesNext } from './steering.js';
import { callsInFlight, closeRound, withTurn } from './turn-access.js';
import { noteTurn } from './window.js';

type Of<Kind extends ConversationEvent['kind']> = Extract<ConversationEvent, { kind: Kind }>;

/** Milliseconds that what is in flight has to stop by itself; the contract promises two seconds. */
export const STOP_GRACE_MS = 1_500;

export function beginTurn(state: ConversationState, item: QueuedMessage): ConversationState {
  const begun: ConversationState = {
    ...state,
    queue: state.queue.filter((other) => other !== item),
    latestTurn: Math.max(state.latestTurn, item.turn),
    ...(item.contextRef === undefined ? {} : { appContext: { ref: item.contextRef } }),
    context: withSlot(state.context, item.slot),
    contextTokens: state.contextTokens + estimateTokens(item.bytes),
    turn: {
      number: item.turn,
      messageIds: [item.messageId],
      firstSlot: item.slot,
      seq: 1,
      rounds: 0,
      squeezes: 0,
      modelCalls: 0,
      toolCalls: 0,
      usage: NO_USAGE,
      answerSlot: null,
      doing: { kind: 'tools', calls: [] },
      stopping: null,
      ...(item.outputRef === undefined ? {} : { outputRef: item.outputRef }),
    },
  };
  return item.stopped ? endTurn(begun, 'interrupted') : nextModelCall(begun);
}

/** Ends the running turn. What is still open must have been settled before. */
export function endTurn(state: ConversationState, stopReason: StopReason, error?: TurnError): ConversationState {
  const { turn } = state;
  if (!turn) return state;
  const ended = {
    number: turn.number,
    stopReason,
    usage: turn.usage,
    toolCalls: turn.toolCalls,
    answerSlot: turn.answerSlot,
    ...(turn.outputRef !== undefined && stopReason === 'end' && !error ? { fits: true } : {}),
    ...(error ? { error } : {}),
  };
  const after = steeringBecomesNext({
    ...noteTurn(state, turn),
    turn: null,
    turnsEnded: state.turnsEnded + 1,
    ended: [...state.ended, ended].slice(-LIMITS.rememberedTurns),
  });
  // A complete answer announces its own end (activities/call-model.ts), so that the usual turn costs no extra step.
  if (stopReason === 'end' && !error) return after;
  const id = turnId(turn.number);
  const { usage, toolCalls } = turn;
  return announce(after, {
    kind: 'turn-finished',
    turn: id,
    result: { turnId: id, text: '', stopReason, usage, toolCalls, ...(error ? { error } : {}) },
  });
}

export function nextModelCall(state: ConversationState): ConversationState {
  const spent = overBudget(state);
  if (spent) return endTurn(state, 'budget', spent);
  const hinted = withHint(state);
  if (hinted !== state) return nextModelCall(hinted);
  const slot = state.counters.slot + 1;
  const numbered: ConversationState = { ...state, counters: { ...state.counters, slot } };
  return withTurn(joinSteering(numbered), (turn) => ({
    ...turn,
    modelCalls: turn.modelCalls + 1,
    doing: {
      kind: 'model',
      call: { id: `${turnId(turn.number)}/m${turn.modelCalls + 1}`, slot, seq: turn.seq + 1, inFlight: false, failures: 0, retry: null },
    },
  }));
}

/** Asks what is in flight to stop; with nothing in flight the turn ends here. */
export function stopTurn(state: ConversationState, reason: string | null, at: number): ConversationState {
  const { turn } = state;
  if (!turn || turn.stopping) return state;
  const stopping: ConversationState = { ...state, turn: { ...turn, stopping: { reason, at, sentAt: null } } };
  return endIfStopped(stopping);
}

export function sendStop(state: ConversationState, event: Of<'stop-sent'>): ConversationState {
  const { turn } = state;
  return turn?.stopping ? { ...state, turn: { ...turn, stopping: { ...turn.stopping, sentAt: event.at } } } : state;
}

/** After the grace, what has not stopped is settled and the turn ends without it. */
export function passTime(state: ConversationState): ConversationState {
  const sentAt = state.turn?.stopping?.sentAt;
  if (sentAt === undefined || sentAt === null || state.now < sentAt + STOP_GRACE_MS) return state;
  return endStopped(state);
}

export function endIfStopped(state: ConversationState): ConversationState {
  return state.turn?.stopping && callsInFlight(state).length + runningChildren(state).length === 0 ? endStopped(state) : state;
}

/** T4: everything open is settled, whatever became of it, and the turn ends. */
export function endStopped(state: ConversationState): ConversationState {
  const { turn } = state;
  if (!turn) return state;
  if (turn.doing.kind === 'model') {
    const { call } = turn.doing;
    const tried = call.inFlight || call.failures > 0;
    return endTurn(tried ? settle(state, [{ effect: call.id, entry: null }]) : state, 'interrupted');
  }
  return endWithOpenCalls(state, 'interrupted');
}

/** The turn ends in the middle of a round: each call is answered all the same (T4). */
export function endWithOpenCalls(state: ConversationState, stopReason: StopReason, error?: TurnError): ConversationState {
  const { turn } = state;
  if (turn?.doing.kind !== 'tools') return state;
  const { calls } = turn.doing;
  const open = calls.filter((call) => call.status !== 'done').map((call) => answerFor(state, turn, call, null));
  return endTurn(closeRound(settle(state, open), calls), stopReason, error);
}
