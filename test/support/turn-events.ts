/** Live events of a turn in few words, and what the encoders get of them. */
import type { TurnResult } from '../../src/conversation/protocol/contract.js';
import { createAnswerParts } from '../../src/gateway/core/turns/answer-parts.js';
import type { TurnEvent } from '../../src/records/feed-event.js';
import { createToolCalls, type CallEvent } from '../../src/gateway/core/calls/tool-calls.js';

export const turn = 'turn_0001';
export const usage = { inputTokens: 10, cachedTokens: 0, outputTokens: 5, costUsd: null };
export const streamed = (kind: 'text' | 'thinking', call: string, attempt: string, text: string): TurnEvent => ({
  kind,
  turn,
  call,
  attempt,
  text,
});
export const finished = (text: string, more: Partial<TurnResult> = {}): TurnEvent => ({
  kind: 'turn-finished',
  turn,
  result: { turnId: turn, text, stopReason: 'end', usage, toolCalls: 0, ...more },
});
export const asked = (callId: string, what: 'approval' | 'question'): TurnEvent => ({
  kind: 'asked',
  turn,
  callId,
  name: 'pay',
  what,
  target: '',
  until: 1,
});
export const ended = (callId: string, outcome: string, preview: string): TurnEvent => ({
  kind: 'tool-finished',
  turn,
  callId,
  name: 'pay',
  outcome,
  preview,
});
export const started = (callId: string): TurnEvent => ({ kind: 'tool-started', turn, callId, name: 'pay', input: '{"to":"Ada"}' });

export async function callEvents(events: readonly TurnEvent[]): Promise<CallEvent[]> {
  const parts = createAnswerParts();
  const calls = createToolCalls({ history: () => Promise.resolve([]) }, 'c', turn);
  const all: CallEvent[] = [];
  for (const event of events) for (const one of parts.take(event)) all.push(...(await calls.expand(one)));
  return all;
}
