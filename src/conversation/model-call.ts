/**
 * Asking the model, and what becomes of its answer.
 *
 * T2  A result counts only for the call that is in flight; what comes later is dropped.
 */
import type { TurnError } from './contract.js';
import { withoutShown } from './citing.js';
import { MOST_SQUEEZES, notePrompt } from './compaction.js';
import { assistantEntry } from './entries.js';
import type { ConversationEvent } from './event.js';
import type { AssistantBlock } from './message.js';
import { retryAfter } from './retry.js';
import { announce, settle } from './settlement.js';
import { withSlot } from './slots.js';
import type { ConversationState } from './state.js';
import { turnId } from './turn-id.js';
import { addUsage } from './usage.js';
import { startRound } from './tool-round.js';
import { endTurn, nextModelCall } from './turn.js';
import { currentModelCall, spend, withModelCall, withTurn } from './turn-access.js';

type Of<Kind extends ConversationEvent['kind']> = Extract<ConversationEvent, { kind: Kind }>;

/** Rounds of waiting for a model that fails for passing reasons, each longer than the one before: about twenty minutes. */
const MAX_MODEL_FAILURES = 24;
/** A model's ways of saying that it was given too much. */
const TOO_FULL: readonly string[] = ['context-full', 'too-large'];
const CONTEXT_FULL: TurnError = {
  type: 'context-full',
  message:
    'The conversation no longer fits into the model, and making its older turns shorter did not help: ' +
    'send something shorter, or start a new session with /new.',
};

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
      if (answer.misfit !== undefined && !turn.stopping) return repair(spoken, answer.misfit);
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

/** The answer should have been data of a certain shape. The model is told once what is wrong with it, in an entry of its own. */
function repair(state: ConversationState, misfit: string): ConversationState {
  const { turn } = state;
  if (!turn) return state;
  if (turn.misfit !== undefined) {
    const message = `The answer does not fit message.output, also after it was corrected once: ${misfit}`;
    return endTurn(state, 'failed', { type: 'output-schema', message });
  }
  const slot = state.counters.slot + 1;
  const seq = turn.seq + 1;
  const text = `Your answer does not fit the schema: ${misfit}\nAnswer again, with the corrected JSON alone.`;
  const { session, now } = state;
  const entry = { v: 1, slot, session, turn: turnId(turn.number), seq, ts: now / 1000, message: { role: 'user', text } } as const;
  const told = settle({ ...state, counters: { ...state.counters, slot }, context: withSlot(state.context, slot) }, [
    { effect: `${turnId(turn.number)}/repair`, entry },
  ]);
  return nextModelCall(withTurn(told, (now) => ({ ...now, seq, misfit })));
}

/** The model was given too much: older turns become memory, and it is asked again. With `error` the turn ends when that is no help. */
function squeeze(state: ConversationState, error: TurnError): ConversationState {
  if (!state.turn || state.turn.stopping) return endTurn(state, 'interrupted');
  if (state.turn.squeezes >= MOST_SQUEEZES) return endTurn(state, 'failed', error);
  const counted = withTurn(state, (turn) => ({ ...turn, squeezes: turn.squeezes + 1 }));
  return nextModelCall({ ...counted, memory: { ...counted.memory, forced: error } });
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

function hasText(blocks: readonly AssistantBlock[]): boolean {
  return blocks.some((block) => block.kind === 'text');
}
