/** The parts of a running turn: how they are found, and changed. */
import type { ConversationState } from './state.js';
import type { ModelCall, ToolCall, Turn } from './turn-state.js';
import { addUsage } from './usage.js';
import { withSlot } from './slots.js';

export function callsInFlight(state: ConversationState): string[] {
  const doing = state.turn?.doing;
  if (!doing) return [];
  if (doing.kind === 'model') return doing.call.inFlight ? [doing.call.id] : [];
  return doing.calls.filter((call) => call.status === 'running').map((call) => call.id);
}

export function withTurn(state: ConversationState, change: (turn: Turn) => Turn): ConversationState {
  return state.turn ? { ...state, turn: change(state.turn) } : state;
}

export function spend(state: ConversationState, usage: Turn['usage']): ConversationState {
  return withTurn(state, (turn) => ({ ...turn, usage: addUsage(turn.usage, usage) }));
}

export function currentModelCall(state: ConversationState, id: string): ModelCall | undefined {
  const doing = state.turn?.doing;
  return doing?.kind === 'model' && doing.call.id === id && doing.call.inFlight ? doing.call : undefined;
}

export function withModelCall(state: ConversationState, id: string, change: (call: ModelCall) => ModelCall): ConversationState {
  return withTurn(state, (turn) =>
    turn.doing.kind === 'model' && turn.doing.call.id === id ? { ...turn, doing: { kind: 'model', call: change(turn.doing.call) } } : turn,
  );
}

export function runningTool(state: ConversationState, callId: string): ToolCall | undefined {
  const doing = state.turn?.doing;
  return doing?.kind === 'tools' ? doing.calls.find((call) => call.id === callId && call.status === 'running') : undefined;
}

export function withToolCalls(state: ConversationState, change: (call: ToolCall) => ToolCall): ConversationState {
  return withTurn(state, (turn) =>
    turn.doing.kind === 'tools' ? { ...turn, doing: { kind: 'tools', calls: turn.doing.calls.map(change) } } : turn,
  );
}

/** T3: results enter the context together and in the order of their calls. */
export function closeRound(state: ConversationState, calls: readonly ToolCall[]): ConversationState {
  return { ...state, context: calls.reduce((ranges, call) => withSlot(ranges, call.slot), state.context) };
}
