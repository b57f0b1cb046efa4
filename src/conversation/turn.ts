/**
 * One turn: begin, call the model, run tools, end.
 *
 * T1  A turn that began ends exactly once, and every message that became or joined it is answered by that end.
 * T2  A result counts only for the call that is in flight; what comes later is dropped.
 * T3  Before the next model call, every tool call of an answer in the context has its result in the context.
 * T4  A call that nobody waits for any more is settled: fenced, and for a tool call answered in words that say whether it ran.
 * T5  A slot is given once; one whose effect failed stays empty and out of the context.
 */
import { LIMITS, type StopReason, type TurnError } from './contract.js';
import { MOST_SQUEEZES, notePrompt } from './compaction.js';
import { countResult, withoutShown } from './citing.js';
import type { ConversationEvent } from './event.js';
import type { Settlement, StepFailure } from './effects.js';
import { assistantEntry, toolEntry } from './entries.js';
import type { AssistantBlock, Entry, JsonValue, ToolOutcome } from './message.js';
import { retryAfter } from './retry.js';
import { withSlot } from './slots.js';
import {
  addUsage,
  estimateTokens,
  NO_USAGE,
  turnId,
  type ConversationState,
  type ModelCall,
  type QueuedMessage,
  type ToolCall,
  type Turn,
} from './state.js';
import { beginningOf } from './text.js';
import { noteTurn } from './window.js';

type Of<Kind extends ConversationEvent['kind']> = Extract<ConversationEvent, { kind: Kind }>;

/** Milliseconds that what is in flight has to stop by itself; the contract promises two seconds. */
export const STOP_GRACE_MS = 1_500;
/** Rounds of waiting for a model that fails for passing reasons, each longer than the one before: about twenty minutes. */
const MAX_MODEL_FAILURES = 24;
const MAX_FACTS = 64;
/** A model's ways of saying that it was given too much. */
const TOO_FULL: readonly string[] = ['context-full', 'too-large'];
const CONTEXT_FULL: TurnError = {
  type: 'context-full',
  message:
    'The conversation no longer fits into the model, and making its older turns shorter did not help: ' +
    'send something shorter, or start a new session with /new.',
};

export function beginTurn(state: ConversationState, item: QueuedMessage): ConversationState {
  const begun: ConversationState = {
    ...state,
    queue: state.queue.filter((other) => other !== item),
    latestTurn: Math.max(state.latestTurn, item.turn),
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

export function callsInFlight(state: ConversationState): string[] {
  const doing = state.turn?.doing;
  if (!doing) return [];
  if (doing.kind === 'model') return doing.call.inFlight ? [doing.call.id] : [];
  return doing.calls.filter((call) => call.status === 'running').map((call) => call.id);
}

export function startModelCall(state: ConversationState, event: Of<'model-call-started'>): ConversationState {
  return withModelCall(state, event.call, (call) => ({ ...call, inFlight: true, retry: null }));
}

export function acceptAnswer(state: ConversationState, event: Of<'model-answered'>): ConversationState {
  const { answer } = event;
  // Paid is paid, also when it comes too late to count for anything else.
  const paid: ConversationState = { ...state, usage: addUsage(state.usage, answer.usage) };
  const call = currentModelCall(paid, answer.call);
  const { turn } = paid;
  if (!call || !turn) return paid; // T2
  if (answer.fenced) return endTurn(spend(paid, answer.usage), 'interrupted');

  const calls = answer.blocks.filter((block) => block.kind === 'tool-call');
  const said = hasText(answer.blocks);
  const entry = assistantEntry(answer, call.seq);
  const { inputTokens, outputTokens } = answer.usage;
  const seen = entry ? withoutShown(paid) : paid;
  const shown = seen === paid ? 0 : (paid.memory.shownOnce ?? 0);
  const heard: ConversationState = {
    ...notePrompt(spend(seen, answer.usage), Math.max(0, inputTokens - shown), answer.prefix),
    context: entry ? withSlot(paid.context, answer.slot) : paid.context,
    contextTokens: inputTokens > 0 ? Math.max(0, inputTokens - shown) + outputTokens : seen.contextTokens,
    unpersisted: entry && !answer.persisted ? [...paid.unpersisted, entry] : paid.unpersisted,
  };
  const spoken = withTurn(heard, (now) => ({
    ...now,
    seq: now.seq + (said ? 1 : 0) + calls.length,
    answerSlot: said ? answer.slot : now.answerSlot,
    toolCalls: now.toolCalls + calls.length,
  }));

  switch (answer.stop) {
    case 'tool-calls':
      return startRound(spoken, answer.slot, calls, answer.plans);
    case 'pause':
      return turn.stopping ? endTurn(spoken, 'interrupted') : countRound(spoken, nextModelCall);
    case 'end':
      return endTurn(spoken, turn.stopping ? 'interrupted' : 'end');
    case 'interrupted':
      return endTurn(spoken, 'interrupted');
    case 'max-tokens':
      return endTurn(spoken, 'end', {
        type: 'max-tokens',
        message: `The answer was cut at ${state.settings?.maxTokens ?? 'its'} tokens; say "continue", or raise maxTokens of agent "${state.identity.agent}".`,
      });
    case 'refusal':
      return endTurn(spoken, 'refused', {
        type: 'refusal',
        message: 'The model declined to answer this; put it differently and send it again.',
      });
    case 'context-full':
      return squeeze(spoken, CONTEXT_FULL);
  }
}

export function failModelCall(state: ConversationState, event: Of<'model-call-failed'>): ConversationState {
  const call = currentModelCall(state, event.call);
  if (!call || !state.turn) return state; // T2
  const { failure } = event;
  const failures = call.failures + 1;
  if (state.turn.stopping) return endTurn(settle(state, [{ effect: call.id, entry: null }]), 'interrupted');
  if (TOO_FULL.includes(failure.type)) {
    return squeeze(settle(state, [{ effect: call.id, entry: null }]), { type: failure.type, message: failure.message });
  }
  if (failure.transient && failures < MAX_MODEL_FAILURES) {
    const retry = retryAfter(failure, failures, event.at);
    const waiting = withModelCall(state, call.id, (now) => ({ ...now, inFlight: false, failures, retry }));
    return announce(waiting, {
      kind: 'waiting',
      turn: turnId(state.turn.number),
      for: `${failure.type}: ${failure.message}`,
      until: retry.until,
    });
  }
  return endTurn(settle(state, [{ effect: call.id, entry: null }]), 'failed', { type: failure.type, message: failure.message });
}

/** The model was given too much: older turns become memory, and it is asked again. With `error` the turn ends when that is no help. */
function squeeze(state: ConversationState, error: TurnError): ConversationState {
  if (!state.turn || state.turn.stopping) return endTurn(state, 'interrupted');
  if (state.turn.squeezes >= MOST_SQUEEZES) return endTurn(state, 'failed', error);
  const counted = withTurn(state, (turn) => ({ ...turn, squeezes: turn.squeezes + 1 }));
  return nextModelCall({ ...counted, memory: { ...counted.memory, forced: error } });
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
    ...(result.task ? { memory: { ...counted.memory, task: result.task } } : {}),
  };
  return endRoundIfDone(withToolCalls(done, (other) => (other === call ? { ...call, status: 'done' } : other)));
}

export function failTool(state: ConversationState, event: Of<'tool-run-failed'>): ConversationState {
  const call = runningTool(state, event.callId);
  if (!call || !state.turn) return state; // T2
  const settled = settle(state, [answerFor(state, state.turn, call, event.failure)]);
  return endRoundIfDone(withToolCalls(settled, (other) => (other === call ? { ...call, status: 'done' } : other)));
}

/** Steering messages that wait join the turn; they come after the tool results and before the next model call. */
function joinSteering(state: ConversationState): ConversationState {
  return state.queue.reduce((now, item) => {
    if (item.kind !== 'message' || item.turn !== 0 || !now.turn) return now;
    const { number, seq, messageIds } = now.turn;
    return {
      ...now,
      turn: { ...now.turn, seq: seq + 1, messageIds: [...messageIds, item.messageId] },
      queue: now.queue.map((other) => (other === item ? { ...item, turn: number, session: now.session, joinedAs: seq + 1 } : other)),
      seen: now.seen.map((pair) => (pair[0] === item.messageId ? ([item.messageId, number] as const) : pair)),
    };
  }, state);
}

function steeringBecomesNext(state: ConversationState): ConversationState {
  const unused = state.queue.filter((item): item is QueuedMessage => item.kind === 'message' && item.turn === 0);
  if (unused.length === 0) return state;
  const first = state.counters.turn + 1;
  const next = unused.map((item, i): QueuedMessage => ({ ...item, turn: first + i, session: state.session, delivery: 'queue' }));
  const turns = new Map(next.map((item) => [item.messageId, item.turn]));
  return {
    ...state,
    counters: { ...state.counters, turn: state.counters.turn + unused.length },
    queue: [...next, ...state.queue.filter((item) => !unused.includes(item as QueuedMessage))],
    seen: state.seen.map(([id, turn]) => [id, turns.get(id) ?? turn] as const),
  };
}

function nextModelCall(state: ConversationState): ConversationState {
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

function startRound(
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
  return withTurn(asked, (now) => ({ ...now, rounds: now.rounds + 1 }));
}

function countRound(state: ConversationState, go: (state: ConversationState) => ConversationState): ConversationState {
  const limit = state.settings?.maxToolRounds ?? Infinity;
  if ((state.turn?.rounds ?? 0) >= limit) {
    return endTurn(state, 'tool-limit', {
      type: 'tool-limit',
      message: `The model paused more than ${limit} times; say "continue" to go on.`,
    });
  }
  return go(withTurn(state, (turn) => ({ ...turn, rounds: turn.rounds + 1 })));
}

function endRoundIfDone(state: ConversationState): ConversationState {
  const doing = state.turn?.doing;
  if (doing?.kind !== 'tools' || !doing.calls.every((call) => call.status === 'done')) return endIfStopped(state);
  const closed = closeRound(state, doing.calls);
  return closed.turn?.stopping ? endTurn(closed, 'interrupted') : nextModelCall(closed);
}

/** T3: results enter the context together and in the order of their calls. */
function closeRound(state: ConversationState, calls: readonly ToolCall[]): ConversationState {
  return { ...state, context: calls.reduce((ranges, call) => withSlot(ranges, call.slot), state.context) };
}

function endIfStopped(state: ConversationState): ConversationState {
  return state.turn?.stopping && callsInFlight(state).length === 0 ? endStopped(state) : state;
}

/** T4: everything open is settled, whatever became of it, and the turn ends. */
function endStopped(state: ConversationState): ConversationState {
  const { turn } = state;
  if (!turn) return state;
  if (turn.doing.kind === 'model') {
    const { call } = turn.doing;
    const tried = call.inFlight || call.failures > 0;
    return endTurn(tried ? settle(state, [{ effect: call.id, entry: null }]) : state, 'interrupted');
  }
  const { calls } = turn.doing;
  const open = calls.filter((call) => call.status !== 'done').map((call) => answerFor(state, turn, call, null));
  return endTurn(closeRound(settle(state, open), calls), 'interrupted');
}

/** What the model is told of a call without a result of its own. */
function answerFor(state: ConversationState, turn: Turn, call: ToolCall, failure: StepFailure | null): Settlement {
  const [outcome, text]: [ToolOutcome, string] =
    call.status === 'waiting'
      ? ['cancelled', 'Cancelled before it started: the person stopped this turn.']
      : failure && call.plan.repeatable
        ? ['error', `The tool did not finish: ${failure.message}`]
        : ['unknown', `Interrupted, outcome unknown: ${failure ? failure.message : 'the person stopped this turn while it ran'}.`];
  return { effect: call.id, entry: resultEntry(state, turn, call, outcome, text) };
}

function resultEntry(state: ConversationState, turn: Turn, call: ToolCall, outcome: ToolOutcome, text: string): Entry {
  const { id: callId, name, slot, seq } = call;
  const { session, now } = state;
  const message = { role: 'tool', callId, name, outcome, text } as const;
  return { v: 1, slot, session, turn: turnId(turn.number), seq, ts: now / 1000, message };
}

function settle(state: ConversationState, settlements: readonly Settlement[]): ConversationState {
  const owed = { ...state, outbox: { ...state.outbox, settle: [...state.outbox.settle, ...settlements] } };
  return settlements.reduce<ConversationState>((now, { entry }) => {
    if (entry?.message.role !== 'tool') return now;
    const { callId, name, outcome, text } = entry.message;
    const preview = typeof text === 'string' ? text : text.preview;
    return announce(now, { kind: 'tool-finished', turn: entry.turn, callId, name, outcome, preview });
  }, owed);
}

/** Facts are for watchers only: with the store away for long, the newest are let go. */
export function announce(state: ConversationState, fact: ConversationState['outbox']['facts'][number]): ConversationState {
  if (state.outbox.facts.length >= MAX_FACTS) return state;
  return { ...state, outbox: { ...state.outbox, facts: [...state.outbox.facts, fact] } };
}

function spend(state: ConversationState, usage: Turn['usage']): ConversationState {
  return withTurn(state, (turn) => ({ ...turn, usage: addUsage(turn.usage, usage) }));
}

function withTurn(state: ConversationState, change: (turn: Turn) => Turn): ConversationState {
  return state.turn ? { ...state, turn: change(state.turn) } : state;
}

function currentModelCall(state: ConversationState, id: string): ModelCall | undefined {
  const doing = state.turn?.doing;
  return doing?.kind === 'model' && doing.call.id === id && doing.call.inFlight ? doing.call : undefined;
}

function withModelCall(state: ConversationState, id: string, change: (call: ModelCall) => ModelCall): ConversationState {
  return withTurn(state, (turn) =>
    turn.doing.kind === 'model' && turn.doing.call.id === id ? { ...turn, doing: { kind: 'model', call: change(turn.doing.call) } } : turn,
  );
}

function runningTool(state: ConversationState, callId: string): ToolCall | undefined {
  const doing = state.turn?.doing;
  return doing?.kind === 'tools' ? doing.calls.find((call) => call.id === callId && call.status === 'running') : undefined;
}

function withToolCalls(state: ConversationState, change: (call: ToolCall) => ToolCall): ConversationState {
  return withTurn(state, (turn) =>
    turn.doing.kind === 'tools' ? { ...turn, doing: { kind: 'tools', calls: turn.doing.calls.map(change) } } : turn,
  );
}

/** The first text among the arguments: a path, a query, an address. */
function targetOf(input: JsonValue): string {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return '';
  const text = Object.values(input).find((value) => typeof value === 'string');
  return text === undefined ? '' : beginningOf(text.replace(/[\p{C}\s]+/gu, ' ').trim(), 60);
}

function hasText(blocks: readonly AssistantBlock[]): boolean {
  return blocks.some((block) => block.kind === 'text');
}
