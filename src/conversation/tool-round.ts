/**
 * The tool calls of one answer: run together, and answered together.
 *
 * T2  A result counts only for the call that is in flight; what comes later is dropped.
 * T3  Before the next model call, every tool call of an answer in the context has its result in the context.
 */
import { toolEntry } from './entries.js';
import { countResult } from './citing.js';
import type { ConversationEvent } from './event.js';
import type { AssistantBlock, JsonValue } from './message.js';
import type { AppContextRef, ToolFinished } from './tool-effects.js';
import { answerFor, resultEntry, settle } from './settlement.js';
import type { ConversationState } from './state.js';
import type { ToolCall } from './turn-state.js';
import { addUsage } from './usage.js';
import { beginningOf } from './text.js';
import { endIfStopped, endStopped, endTurn, endWithOpenCalls, nextModelCall } from './turn.js';
import { acceptReport } from './delegation.js';
import { acceptLook } from './looking-after.js';
import { admit, decide, endWaits, isCircling, refuseDecision } from './waiting.js';
import { rejectInput } from './arrivals.js';
import { closeRound, runningTool, spend, withToolCalls, withTurn } from './turn-access.js';

type Of<Kind extends ConversationEvent['kind']> = Extract<ConversationEvent, { kind: Kind }>;

export function startRound(
  state: ConversationState,
  askedIn: number,
  blocks: readonly Extract<AssistantBlock, { kind: 'tool-call' }>[],
  plans: Of<'model-answered'>['answer']['plans'],
): ConversationState {
  const { turn } = state;
  if (!turn) return state;
  const calls = blocks.map((block, i): ToolCall => ({
    id: block.callId,
    name: block.name,
    slot: state.counters.slot + 1 + i,
    seq: turn.seq + 1 + i,
    askedIn,
    target: targetOf(block.input),
    plan: plans[i] ?? { local: false, repeatable: false, timeoutMs: 60_000 },
    status: 'waiting',
  }));
  const numbered: ConversationState = {
    ...state,
    counters: { ...state.counters, slot: state.counters.slot + calls.length },
    lastTool: calls[calls.length - 1]?.name ?? state.lastTool,
  };
  const asked = withTurn(numbered, (now) => ({
    ...now,
    seq: now.seq + calls.length,
    doing: { kind: 'tools', calls },
  }));
  if (calls.length === 0) return endTurn(asked, 'end');
  if (turn.stopping) return endStopped(asked);
  const limit = state.settings?.maxToolRounds ?? Infinity;
  if (turn.rounds >= limit) {
    const rejected = settle(
      asked,
      calls.map((call) => ({
        effect: call.id,
        entry: resultEntry(state, turn, call, 'rejected', `Not run: this turn has used its ${limit} rounds of tools.`),
      })),
    );
    return endTurn(closeRound(rejected, calls), 'tool-limit', {
      type: 'tool-limit',
      message: `Stopped after ${limit} rounds of tools (limits.maxToolRounds of agent "${state.identity.agent}"); say "continue" to go on.`,
    });
  }
  const admitted = admit(withTurn(asked, (now) => ({ ...now, rounds: now.rounds + 1 })));
  if (!isCircling(admitted)) return endRoundIfDone(admitted);
  return endWithOpenCalls(admitted, 'tool-limit', {
    type: 'repeated-call',
    message: 'Stopped: the model made the same call again and again, after it had been told not to. Say what it should do instead.',
  });
}

/** A person has decided: what is not run now has its answer. */
export function acceptDecision(state: ConversationState, event: Of<'decided'>): ConversationState {
  const refused = refuseDecision(state, event.decision);
  if (refused !== undefined) return rejectInput(state, { kind: 'input-rejected', name: 'decide', reason: refused, at: event.at });
  return endRoundIfDone(decide(state, event));
}

export function acceptChildEnd(state: ConversationState, event: Of<'child-ended'>): ConversationState {
  return endRoundIfDone(acceptReport(state, event));
}

export function acceptLooked(state: ConversationState, event: Of<'looked'>): ConversationState {
  return endRoundIfDone(acceptLook(state, event));
}

/** What nobody has decided in time, and what has slept long enough. */
export function passWaits(state: ConversationState): ConversationState {
  const after = endWaits(state);
  return after === state ? state : endRoundIfDone(after);
}

export function startTools(state: ConversationState, event: Of<'tools-started'>): ConversationState {
  return withToolCalls(state, (call) => (event.callIds.includes(call.id) ? { ...call, status: 'running' } : call));
}

export function finishTool(state: ConversationState, event: Of<'tool-finished'>): ConversationState {
  const { result } = event;
  const { turn } = state;
  const call = runningTool(state, result.callId);
  if (!turn || !call) return state; // T2
  const paid = result.usage ? spend({ ...state, usage: addUsage(state.usage, result.usage) }, result.usage) : state;
  const counted = countResult(paid, result);
  const done: ConversationState = {
    ...counted,
    unpersisted: result.persisted ? state.unpersisted : [...state.unpersisted, toolEntry(result, call.seq)],
    ...(result.appContext ? { appContext: contextAfter(state.appContext, result.appContext, result.contextChange) } : {}),
    ...(result.task ? { memory: { ...counted.memory, task: result.task } } : {}),
  };
  return endRoundIfDone(withToolCalls(done, (other) => (other === call ? { ...call, status: 'done' } : other)));
}

/** Tools that run side by side see the same values: each changes what it has changed, and takes nothing back. */
function contextAfter(now: AppContextRef | undefined, whole: AppContextRef, change: ToolFinished['contextChange']): AppContextRef {
  const isAsItWas = JSON.stringify(now ?? null) === JSON.stringify(change?.on ?? null);
  if (!change || !now || isAsItWas) return whole;
  return { ...now, changes: [...(now.changes ?? []), { ref: change.ref }] };
}

export function failTool(state: ConversationState, event: Of<'tool-run-failed'>): ConversationState {
  const call = runningTool(state, event.callId);
  if (!call || !state.turn) return state; // T2
  const settled = settle(state, [answerFor(state, state.turn, call, event.failure)]);
  return endRoundIfDone(withToolCalls(settled, (other) => (other === call ? { ...call, status: 'done' } : other)));
}

function endRoundIfDone(state: ConversationState): ConversationState {
  const doing = state.turn?.doing;
  if (doing?.kind !== 'tools' || !doing.calls.every((call) => call.status === 'done')) return endIfStopped(state);
  const closed = closeRound(state, doing.calls);
  return closed.turn?.stopping ? endTurn(closed, 'interrupted') : nextModelCall(closed);
}

/** The first text among the arguments: a path, a query, an address. */
function targetOf(input: JsonValue): string {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return '';
  const text = Object.values(input).find((value) => typeof value === 'string');
  return text === undefined ? '' : beginningOf(text.replace(/[\p{C}\s]+/gu, ' ').trim(), 60);
}
