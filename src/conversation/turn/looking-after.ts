/**
 * Sub-agents after a hand-over. The run that started one is told by Temporal when it ends; later runs know its report alone, and one
 * that was terminated reports nothing. So it is asked after, less and less often.
 *
 * D4  No call waits for ever for a sub-agent that has ended.
 */
import { acceptReport, runningChildren } from './delegation.js';
import { isRunning, type Completed, type Failed } from '../lifecycle.js';
import type { ConversationState } from '../state.js';
import type { Looks } from '../state/turn-state.js';
import { NO_USAGE } from '../../records/usage.js';
import { withToolCalls } from './turn-access.js';

const FIRST_LOOK_MS = 60_000;
const LAST_LOOK_MS = 60 * 60_000;

/** A run has taken over: what it did not start itself, it looks after. */
export function lookAfterChildren(state: ConversationState): ConversationState {
  if (runningChildren(state).length === 0) return state;
  return withLooks(state, undefined, () => ({ next: state.now + FIRST_LOOK_MS, count: 0 }));
}

export interface Look {
  readonly callId: string;
  readonly child: string;
}

export function lookDue(state: ConversationState): Look | undefined {
  const { turn, now } = state;
  if (turn?.doing.kind !== 'tools' || turn.stopping || isRunning(state, 'look-after')) return undefined;
  const call = turn.doing.calls.find(({ status, child }) => status === 'delegated' && child?.looks && now >= child.looks.next);
  return call?.child && { callId: call.id, child: call.child.id };
}

/** Epoch milliseconds of the next look. */
export function nextLook(state: ConversationState): number | undefined {
  const { turn } = state;
  if (turn?.doing.kind !== 'tools' || isRunning(state, 'look-after')) return undefined;
  const times = turn.doing.calls.flatMap(({ status, child }) => (status === 'delegated' && child?.looks ? [child.looks.next] : []));
  return times.length === 0 ? undefined : Math.min(...times);
}

/** The caller ends the round when this was its last call. A report is sent before its sender ends, so none is on its way any more. */
export function acceptLook(state: ConversationState, { id: callId, output: status, at }: Completed<'look-after'>): ConversationState {
  if (status !== 'RUNNING') {
    const error = { type: 'sub-agent-lost', message: `the sub-agent has ended (${status}) without a report` };
    return acceptReport(state, { kind: 'child-ended', callId, report: { text: '', stopReason: 'failed', usage: NO_USAGE, error }, at });
  }
  return lookLater(state, callId, at);
}

/** Temporal could not say: it is asked again later. */
export function failLook(state: ConversationState, { id, at }: Failed<'look-after'>): ConversationState {
  return lookLater(state, id, at);
}

function lookLater(state: ConversationState, callId: string, at: number): ConversationState {
  return withLooks(state, callId, ({ count }) => ({
    next: at + Math.min(LAST_LOOK_MS, FIRST_LOOK_MS * 2 ** (count + 1)),
    count: count + 1,
  }));
}

function withLooks(state: ConversationState, callId: string | undefined, to: (looks: Looks) => Looks): ConversationState {
  return withToolCalls(state, (call) => {
    const { child } = call;
    if (!child || call.status !== 'delegated' || (callId !== undefined && call.id !== callId)) return call;
    return { ...call, child: { ...child, looks: to(child.looks ?? { next: 0, count: 0 }) } };
  });
}
