/**
 * Pending writes other than messages: settlements of effects that the turn no longer waits for, and events for watchers. The next step
 * writes them.
 *
 * @rule outbox/every-call-settled: A call that the turn stops waiting for is settled: fenced, and a tool call is answered with whether it
 *   ran. (test: test/conversation/turn/turns.test.ts)
 * @rule outbox/late-result-told: The one exception to the fence: a tool's result that comes after a person's stop amends the trace of its
 *   call, and is told as a notice in the next turn of the session: what the model has read stays as it was. A run that waits for one
 *   hands over at three times the length. (test: test/conversation/turn/turns.test.ts)
 */
import type { FeedEvent } from '../protocol/contract.js';
import type { Settlement } from './writes.js';
import type { ToolCall, Turn } from '../state/turn-state.js';
import { isBodyRef, lateResultNotice, shownText, type Entry, type LateResult, type ToolOutcome } from '../../records/message.js';
import type { ConversationState } from '../state.js';
import { turnId } from '../../records/identity.js';
import { listSlots, withSlot } from '../../records/slots.js';
import { estimateTokens } from '../../records/token-estimate.js';
import { truncate } from '../../records/text.js';
import { inTokens } from '../state/compaction-state.js';
import type { ToolFinished } from '../turn/model-step-effects.js';

const MAX_FEED = 64;

export function resultEntry(state: ConversationState, turn: Turn, call: ToolCall, outcome: ToolOutcome, text: string): Entry {
  const { id: callId, name, slot, seq } = call;
  const { session, now } = state;
  const message = { role: 'tool', callId, name, outcome, text } as const;
  return { v: 1, slot, session, turn: turnId(turn.number), seq, ts: now / 1000, message };
}

/** Adds a text of Perdura with the role `user`. As a separate entry it leaves the earlier prompt unchanged. */
export function addNotice(state: ConversationState, turn: Turn, name: string, text: string, late?: LateResult): ConversationState {
  const { session, now } = state;
  const slot = state.counters.slot + 1;
  const seq = turn.seq + 1;
  const id = turnId(turn.number);
  const message = { role: 'user', text, from: 'notice', ...(late && { late }) } as const;
  const entry: Entry = { v: 1, slot, session, turn: id, seq, ts: now / 1000, message };
  const counted = { ...state, counters: { ...state.counters, slot }, context: withSlot(state.context, slot), turn: { ...turn, seq } };
  return settle(counted, [{ effect: `${id}/${name}`, entry }]);
}

const MAX_LATE = 8;
const MAX_LATE_TEXT = 2_000;

/** (outbox/late-result-told) Nothing of a session that has ended, or of a turn that was cut. */
export function noteLateResult(state: ConversationState, result: ToolFinished): ConversationState {
  const { callId, name, outcome, session, slot, text } = result;
  const isOurs = state.abandoned.includes(callId) && session === state.session && listSlots(state.context).includes(slot);
  if (!isOurs || result.fenced !== true || outcome !== 'ok') return state;
  const late = { callId, name, text: truncate(shownText(text), MAX_LATE_TEXT), ...(isBodyRef(text) && { ref: text.ref }) };
  return { ...state, lateResults: [...(state.lateResults ?? []), late].slice(-MAX_LATE) };
}

export function tellLateResults(state: ConversationState): ConversationState {
  const { lateResults, ...told } = state;
  return (lateResults ?? []).reduce<ConversationState>((now, late) => {
    if (!now.turn) return now;
    const words = lateResultNotice(late);
    const noticed = addNotice(now, now.turn, `late-${late.callId}`, words, late);
    return { ...noticed, contextTokens: noticed.contextTokens + inTokens(noticed, estimateTokens(words)) };
  }, told);
}

export function settle(state: ConversationState, settlements: readonly Settlement[]): ConversationState {
  const pending = { ...state, outbox: { ...state.outbox, settle: [...state.outbox.settle, ...settlements] } };
  return settlements.reduce<ConversationState>((now, { entry }) => {
    if (entry?.message.role !== 'tool') return now;
    const { callId, name, outcome, text } = entry.message;
    const preview = typeof text === 'string' ? text : text.preview;
    return announce(now, { kind: 'tool-finished', turn: entry.turn, callId, name, outcome, preview });
  }, pending);
}

/** For watchers only: while the store is down for long, new events are dropped. `answer`: slot of the text that its result lacks. */
export function announce(state: ConversationState, event: FeedEvent, answer?: number | null): ConversationState {
  const { outbox, counters } = state;
  if (outbox.feed.length >= MAX_FEED) return state;
  const number = counters.feed + 1;
  const pending = { number, event, ...(typeof answer === 'number' && { answer }) };
  return { ...state, counters: { ...counters, feed: number }, outbox: { ...outbox, feed: [...outbox.feed, pending] } };
}
