/** Live events of a turn in few words, and what the encoders get of them. */
import type { TurnResult } from '../../src/conversation/protocol/contract.js';
import type { TurnEvent } from '../../src/records/feed-event.js';
import type { TurnEventAt } from '../../src/client/turns/follow-turn.js';
import { createToolCalls } from '../../src/gateway/core/interactive-turn.js';
import { turnStream, type Change, type TurnDelta } from '../../src/gateway/core/turn-stream.js';

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

export async function* feedOf(events: readonly TurnEvent[]): AsyncGenerator<TurnEventAt, void> {
  for (const event of events) yield { cursor: null, event };
}

export async function deltasOf(events: readonly TurnEvent[]): Promise<TurnDelta[]> {
  const deltas: TurnDelta[] = [];
  for await (const delta of turnStream(feedOf(events))) deltas.push(delta);
  return deltas;
}

export async function changesOf(events: readonly TurnEvent[]): Promise<Change[]> {
  const calls = createToolCalls({ history: () => Promise.resolve([]) }, 'c', turn);
  const all: Change[] = [];
  for (const { changes } of await deltasOf(events)) for (const change of changes) all.push(...(await calls.expand(change)));
  return all;
}
