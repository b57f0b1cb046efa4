/** How a sub-agent follows its parent's orders, and what it reports of itself (sub-agents.ts). */
import type { ChildControl } from '../protocol/stepping.js';
import { MAX_REPORTED, shortened } from '../protocol/stepping.js';
import { AUTO, breakpointsLeft, type ConversationState } from '../state.js';
import type { EventOf } from '../event.js';
import { planned, setBreakpoints, setMode } from './control.js';
import { subAgentsOf } from './sub-agents.js';

/** What the order changes is changed, and nothing else: what a person has set here stays until then. Its step begins in control.ts. */
export function acceptOrder(state: ConversationState, { order, at }: EventOf<'parent-ordered'>): ConversationState {
  const control = state.control ?? AUTO;
  const before = control.order;
  if (!state.parent || order.number <= (before?.number ?? 0)) return state;
  const { changes, mode, breakpoints, step } = order;
  const isTaken = step !== undefined && control.ordered?.stepId === step;
  const { step: _, ...withoutStep } = order;
  const known: ConversationState = { ...state, control: { ...control, order: isTaken ? withoutStep : order } };
  const isSame = JSON.stringify(breakpoints) === JSON.stringify(before?.breakpoints ?? {});
  const bounded = isSame ? known : setBreakpoints(known, { kind: 'breakpoints-set', breakpoints: breakpointsLeft(order), at });
  return changes > (before?.changes ?? 0) ? setMode(bounded, { kind: 'mode-set', mode, at }) : bounded;
}

/** For its parent, when it differs from what that one knows; while a step runs nothing is reported, since its end will be. */
export function standingOf(state: ConversationState): ChildControl | undefined {
  const { control, parentNotified } = state;
  if (!control || control.lock || control.order?.step !== undefined) return undefined;
  const { mode, pausedBy, pausedIn, reachedCost, order, ordered } = control;
  const next = mode === 'stepping' ? (planned(state)?.words ?? null) : null;
  const subAgents = subAgentsOf(state).slice(0, MAX_REPORTED);
  const standing = {
    changes: order?.changes ?? 0,
    mode,
    next: next && shortened(next),
    pausedBy: pausedBy && shortened(pausedBy),
    ...(pausedIn !== undefined && { pausedIn }),
    ...(reachedCost && { reachedCost }),
    ...(ordered && { step: { ...ordered, words: shortened(ordered.words) } }),
    subAgents,
  };
  const known = parentNotified?.control;
  // One that has gone on by itself all the time has nothing to say.
  if (!known && mode === 'auto' && !subAgents.some((one) => one.mode === 'stepping')) return undefined;
  const sent = JSON.stringify(standing);
  return sent === known?.sent ? undefined : { number: (known?.number ?? 0) + 1, ...standing };
}

/** As it is remembered: without its number. */
export function sentStanding({ number: _, ...standing }: ChildControl): string {
  return JSON.stringify(standing);
}
