/**
 * The tool calls of one answer: run together, and answered together.
 *
 * @rule turn/results-before-next-call: Before the next model call, every tool call of an answer in the context has its result in the
 *   context. (test: test/conversation/turn/turns.test.ts)
 * @rule turn/waits-for-its-worker: A call whose task queue no worker serves waits for one as long as it takes, where people see it, and a
 *   stop ends the wait. (test: test/chaos/tool-queue.slow.test.ts)
 */
import { abandon } from '../state/budget.js';
import { toolEntry, type AssistantBlock, type JsonValue, addUsage } from '../../records/message.js';
import { unspecificRequests } from '../context/chosen-chunks.js';
import { countResult } from '../context/citing.js';
import type { EventOf } from '../event.js';
import type { Completed, Failed } from '../effect.js';
import type { ToolFinished, ModelAnswer } from './model-step-effects.js';
import { obstacleTo } from '../context/call-gate.js';
import { numbersOf } from '../context/compaction.js';
import { resultEntry, settle } from '../outbox/settlement.js';
import type { ConversationState } from '../state.js';
import type { ToolCall } from '../state/turn-state.js';
import { pinnedAgain } from '../../records/episodes.js';
import { truncate, counted } from '../../records/text.js';
import { answerFor, endIfStopped, endStopped, endTurn, endWithOpenCalls, nextModelCall } from './turn.js';
import { acceptReport, acceptLook } from './delegation.js';
import { admit, decide, endWaits, isCircling, decisionRefusal } from './approvals.js';
import { rejectInput } from '../inbox/arrivals.js';
import { contextAfter, closeRound, openToolCalls, spend, withToolCalls, withTurn } from '../state/turn-access.js';
import { isRecord } from '../../platform/json.js';

/** In a larger round no call rides: each has a separate activity. */
const MAX_RIDING = 16;

export function startRound(
  state: ConversationState,
  askedIn: number,
  blocks: readonly Extract<AssistantBlock, { kind: 'tool-call' }>[],
  plans: NonNullable<ModelAnswer['plans']>,
): ConversationState {
  const { turn } = state;
  if (!turn) return state;
  const calls = blocks.map((block, i): ToolCall => ({
    id: block.callId,
    name: block.name,
    slot: state.counters.slot + 1 + i,
    seq: turn.seq + 1 + i,
    askedIn,
    target: findTarget(block.input),
    plan: plans[i] ?? { rides: false, repeatable: false, timeoutMs: 60_000 },
    status: 'waiting',
  }));
  const numbered: ConversationState = {
    ...state,
    counters: { ...state.counters, slot: state.counters.slot + calls.length },
    lastTool: toLastTool(calls) ?? state.lastTool,
  };
  const requested = withTurn(numbered, (now) => ({
    ...now,
    seq: now.seq + calls.length,
    phase: { kind: 'tools', calls },
  }));
  if (calls.length === 0) return endTurn(requested, 'end');
  if (turn.stopping) return endStopped(requested);
  const limit = state.settings?.maxToolRounds ?? Infinity;
  if (turn.rounds >= limit) {
    const rejected = settle(
      requested,
      calls.map((call) => ({
        effect: call.id,
        entry: resultEntry(state, turn, call, 'rejected', `Not run: this turn has used its ${counted(limit, 'round')} of tools.`),
      })),
    );
    return endTurn(closeRound(rejected, calls), 'tool-limit', {
      type: 'tool-limit',
      message: `Stopped after ${counted(limit, 'round')} of tools (limits.maxToolRounds of agent "${state.identity.agent}"); say "continue" to go on.`,
    });
  }
  const admitted = admit(withTurn(requested, (now) => ({ ...now, rounds: now.rounds + 1 })));
  if (!isCircling(admitted)) return ridesWhole(admitted) ? ride(admitted) : endRoundIfDone(admitted);
  return endWithOpenCalls(admitted, 'tool-limit', {
    type: 'repeated-call',
    message: 'Stopped: the model made the same call again and again, after it had been told not to. Say what it should do instead.',
  });
}

/** Applies a person's decision, or notes why it is refused. */
export function acceptDecision(state: ConversationState, event: EventOf<'decided'>): ConversationState {
  const refused = decisionRefusal(state, event.decision);
  if (refused !== undefined) return rejectInput(state, { kind: 'input-rejected', name: 'decide', reason: refused, at: event.at });
  return endRoundIfDone(decide(state, event));
}

export function acceptChildEnd(state: ConversationState, event: EventOf<'child-ended'>): ConversationState {
  return endRoundIfDone(acceptReport(state, event));
}

export function acceptLooked(state: ConversationState, event: Completed<'look-after'>): ConversationState {
  return endRoundIfDone(acceptLook(state, event));
}

/** Ends the waits whose time is over. */
export function passWaits(state: ConversationState): ConversationState {
  const after = endWaits(state);
  return after === state ? state : endRoundIfDone(after);
}

export function acceptTool(state: ConversationState, { output }: Completed<'run-tool'>): ConversationState {
  return endRoundIfDone(acceptToolResult(state, output));
}

/** Accepts the result of a separate or a riding call. The caller ends the round if it was the last. */
export function acceptToolResult(state: ConversationState, result: ToolFinished): ConversationState {
  const call = openToolCalls(state).find(({ id }) => id === result.callId);
  if (!state.turn || !call) return state; // (turn/result-of-flight-counts)
  const paid = result.usage ? spend({ ...state, usage: addUsage(state.usage, result.usage) }, result.usage) : state;
  const counted = countResult(paid, result);
  const done: ConversationState = {
    ...counted,
    outbox: result.persisted ? state.outbox : { ...state.outbox, entries: [...state.outbox.entries, toolEntry(result, call.seq)] },
    lastTool: { name: call.name, target: call.target, outcome: result.outcome },
    ...(result.appContext ? { appContext: contextAfter(state.appContext, result.appContext, result.contextChange) } : {}),
    ...(result.task && { compaction: { ...counted.compaction, task: pinnedAgain(counted.compaction.task, result.task) } }),
  };
  return withToolCalls(done, (other) => (other === call ? { ...call, status: 'done' } : other));
}

export function failTool(state: ConversationState, { id, failure }: Failed<'run-tool'>): ConversationState {
  const call = openToolCalls(state).find((one) => one.id === id);
  if (!call || !state.turn) return state; // (turn/result-of-flight-counts)
  if (failure.type === 'timeout' && failure.unbegun && !state.turn.stopping) return waitForWorker(state, call); // (turn/waits-for-its-worker)
  const settled = settle(state, [answerFor(state, state.turn, call, failure)]);
  // It may have committed before it was lost; its fence then returns the cost.
  const given = abandon(settled, [id]);
  return endRoundIfDone(withToolCalls(given, (other) => (other === call ? { ...call, status: 'done' } : other)));
}

/** The next step asks for a worker again. */
function waitForWorker(state: ConversationState, call: ToolCall): ConversationState {
  const { since = state.now, times = 0 } = call.unserved ?? {};
  return withToolCalls(state, (other) => (other === call ? { ...call, unserved: { since, times: times + 1 } } : other));
}

/**
 * Whether all calls of the round may ride on the model step that needs their results: each is quick and allowed, none is done by the
 * conversation itself, and no person steps through them or has set a breakpoint.
 */
function ridesWhole(state: ConversationState): boolean {
  const { turn, control, settings } = state;
  if (turn?.phase.kind !== 'tools' || turn.phase.calls.length > MAX_RIDING) return false;
  const { calls } = turn.phase;
  if (!calls.every(({ plan, status }) => status === 'waiting' && plan.rides && !plan.approval && !plan.workflowAction)) return false;
  if (control && (control.mode === 'stepping' || control.breakpoints.onError || control.breakpoints.costUsd !== undefined)) return false;
  if (calls.some(({ name }) => control?.breakpoints.tools?.includes(name))) return false;
  return settings !== null && obstacleTo(numbersOf(state), settings) === undefined && unspecificRequests(state, 'compact').length === 0;
}

/** Counts the results as in the context; the model step, or the end of the turn, produces them. */
function ride(state: ConversationState): ConversationState {
  const calls = openToolCalls(state);
  return nextModelCall(closeRound(state, calls), calls);
}

function toLastTool(calls: readonly ToolCall[]): ConversationState['lastTool'] | undefined {
  const last = calls[calls.length - 1];
  return last && { name: last.name, target: last.target };
}

export function endRoundIfDone(state: ConversationState): ConversationState {
  const phase = state.turn?.phase;
  if (phase?.kind !== 'tools' || !phase.calls.every((call) => call.status === 'done')) return endIfStopped(state);
  const closed = closeRound(state, phase.calls);
  return closed.turn?.stopping ? endTurn(closed, 'interrupted') : nextModelCall(closed);
}

/** The first text among the arguments: a path, a query, an address. */
function findTarget(input: JsonValue): string {
  if (!isRecord(input)) return '';
  const text = Object.values(input).find((value) => typeof value === 'string');
  return text === undefined ? '' : truncate(text.replace(/[\p{C}\s]+/gu, ' ').trim(), 60);
}
