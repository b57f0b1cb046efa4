/**
 * Sub-agents after a hand-over. The run that started one is told by Temporal when it ends; later runs know its report alone, and one
 * that was terminated reports nothing. So it is asked after, less and less often.
 *
 * D4  No call waits for ever for a sub-agent that has ended.
 */
import { acceptReport, runningChildren } from './delegation.js';
import type { ConversationEvent } from './event.js';
import type { ConversationState } from './state.js';
import type { Looks } from './turn-state.js';
import { NO_USAGE } from './usage.js';
import { withToolCalls } from './turn-access.js';

type Of<Kind extends ConversationEvent['kind']> = Extract<ConversationEvent, { kind: Kind }>;

const FIRST_LOOK_MS = 60_000;
const LAST_LOOK_MS = 60 * 60_000;

/** A run has taken over: what it did not start itself, it looks after. */
export function lookAfterChildren(state: ConversationState): ConversationState {
  if (runningChildren(state).length === 0) return state;
  return withLooks(state, undefined, () => ({ next: state.now + FIRST_LOOK_MS, count: 0, isLooking: false }));
}

export interface Look {
  readonly callId: string;
  readonly child: string;
}

export function lookDue({ turn, now }: ConversationState): Look | undefined {
  if (turn?.doing.kind !== 'tools' || turn.stopping) return undefined;
  const call = turn.doing.calls.find(
    ({ status, child }) => status === 'delegated' && child?.looks && !child.looks.isLooking && now >= child.looks.next,
  );
  return call?.child && { callId: call.id, child: call.child.id };
}

/** Epoch milliseconds of the next look. */
export function nextLook({ turn }: ConversationState): number | undefined {
  if (turn?.doing.kind !== 'tools') return undefined;
  const times = turn.doing.calls.flatMap(({ status, child }) =>
    status === 'delegated' && child?.looks && !child.looks.isLooking ? [child.looks.next] : [],
  );
  return times.length === 0 ? undefined : Math.min(...times);
}

export function isLooking({ turn }: ConversationState): boolean {
  return turn?.doing.kind === 'tools' && turn.doing.calls.some(({ child }) => child?.looks?.isLooking === true);
}

export function startLook(state: ConversationState, { callId }: Of<'look-started'>): ConversationState {
  return withLooks(state, callId, (looks) => ({ ...looks, isLooking: true }));
}

/** The caller ends the round when this was its last call. A report is sent before its sender ends, so none is on its way any more. */
export function acceptLook(state: ConversationState, { callId, status, at }: Of<'looked'>): ConversationState {
  if (status !== null && status !== 'RUNNING') {
    const error = { type: 'sub-agent-lost', message: `the sub-agent has ended (${status}) without a report` };
    return acceptReport(state, { kind: 'child-ended', callId, report: { text: '', stopReason: 'failed', usage: NO_USAGE, error }, at });
  }
  return withLooks(state, callId, ({ count }) => ({
    next: at + Math.min(LAST_LOOK_MS, FIRST_LOOK_MS * 2 ** (count + 1)),
    count: count + 1,
    isLooking: false,
  }));
}

function withLooks(state: ConversationState, callId: string | undefined, to: (looks: Looks) => Looks): ConversationState {
  return withToolCalls(state, (call) => {
    const { child } = call;
    if (!child || call.status !== 'delegated' || (callId !== undefined && call.id !== callId)) return call;
    return { ...call, child: { ...child, looks: to(child.looks ?? { next: 0, count: 0, isLooking: false }) } };
  });
}
