/**
 * A tree that is stepped: mode and breakpoints go down it, what holds and why comes up. This is the parent's side; the sub-agent's is
 * delegation.ts.
 *
 * A parent derives its orders from the state and sends them whole, once for each difference, so that hand-overs and overtaking signals
 * change nothing.
 *
 * @rule stepping/tree-follows-parent: A sub-agent starts with its parent's mode and breakpoints and follows each change. (test:
 *   test/conversation/stepping/tree.test.ts)
 * @rule stepping/breakpoint-stops-tree: A sub-agent that stops at a breakpoint stops its parent, and so the whole tree; a report from
 *   before the parent's latest order stops nothing. (test: test/conversation/stepping/tree.test.ts)
 * @rule stepping/cost-of-tree: A breakpoint at a cost counts the whole tree: while there is one, each sub-agent reports what it and those
 *   below it have cost, after each call. (test: test/conversation/stepping/tree.test.ts)
 * @rule stepping/into-and-over: `into` is one step of one sub-agent; `over` lets the sub-agents go on until they report, wait for a person
 *   or stop at a breakpoint. (test: test/conversation/stepping/tree.test.ts)
 */
import type { ControlOrder, SubAgent } from '../protocol/stepping.js';
import type { EventOf } from '../event.js';
import { running } from '../effect.js';
import type { ConversationState } from '../state.js';
import type { SentOrder, ToolCall } from '../state/turn-state.js';
import { withToolCalls } from '../state/turn-access.js';

type Delegated = ToolCall & { readonly child: NonNullable<ToolCall['child']> };

export interface DueOrder extends SentOrder {
  readonly callId: string;
  readonly child: string;
  readonly order: ControlOrder;
  readonly capability?: string;
}

/** The calls that sub-agents work for now. */
export function delegatedCalls({ turn }: ConversationState): Delegated[] {
  if (turn?.phase.kind !== 'tools') return [];
  return turn.phase.calls.filter((call): call is Delegated => call.status === 'delegated' && call.child !== undefined);
}

/** What a sub-agent is to do now; undefined where it was never stepped through. */
export function orderFor(state: ConversationState, callId: string, number = 0): ControlOrder | undefined {
  const { control } = state;
  if (!control) return undefined;
  const { mode, breakpoints, changes = 0, lock } = control;
  const isOver = lock?.over === true && (lock.did === 'sub-agent' || lock.target === callId);
  const isInto = lock?.did === 'sub-agent' && !lock.over && lock.target === callId;
  return {
    number,
    changes,
    mode: isOver ? 'auto' : mode,
    breakpoints,
    spentUsd: spentInTree(state, callId),
    ...(isInto && { step: lock.id }),
  };
}

/** US dollars of this conversation and those below it, as far as they have told; `except`: without the one of that call. */
export function spentInTree(state: ConversationState, except?: string): number {
  const calls = delegatedCalls(state).filter(({ id }) => id !== except);
  return calls.reduce((sum, { child }) => sum + (child.control?.spentUsd ?? 0), state.usage.costUsd ?? 0);
}

/** A change of only the parent's usage makes no new order. */
export function keyOf({ changes, mode, breakpoints, step }: ControlOrder): string {
  return JSON.stringify([changes, mode, breakpoints, step ?? null]);
}

/** One that does not run yet would not get it. */
export function ordersDue(state: ConversationState): DueOrder[] {
  if (!state.control || state.turn?.stopping) return [];
  return delegatedCalls(state).flatMap(({ id: callId, child }): DueOrder[] => {
    const number = (child.ordered?.number ?? 0) + 1;
    const order = orderFor(state, callId, number);
    if (!order || keyOf(order) === child.ordered?.key || running(state, 'start-child', callId)) return [];
    const capability = state.subAgents?.find(([id]) => id === callId)?.[1];
    return [{ callId, child: child.id, number, key: keyOf(order), order, ...(capability !== undefined && { capability }) }];
  });
}

export function noteOrdered(state: ConversationState, { orders }: EventOf<'children-ordered'>): ConversationState {
  return withToolCalls(state, (call) => {
    const sent = orders.find(({ callId }) => callId === call.id);
    return sent && call.child ? { ...call, child: { ...call.child, ordered: { number: sent.number, key: sent.key } } } : call;
  });
}

/** Late news of an earlier moment are dropped. A breakpoint at a cost counts once for the whole tree. */
export function noteChildControl(state: ConversationState, { callId, control: news }: EventOf<'child-stepped'>): ConversationState {
  const isNews = delegatedCalls(state).some(({ id, child }) => id === callId && news.number > (child.control?.number ?? 0));
  if (!isNews) return state;
  const noted = withToolCalls(state, (call) =>
    call.id === callId && call.child ? { ...call, child: { ...call.child, control: news } } : call,
  );
  if (!news.reachedCost || !noted.control || noted.control.reachedCost) return noted;
  const { costUsd: _, ...breakpoints } = noted.control.breakpoints;
  return { ...noted, control: { ...noted.control, breakpoints, reachedCost: true } };
}

/** The first that holds, and what its step would do. */
export function holdingChild(state: ConversationState): { readonly callId: string; readonly words: string } | undefined {
  for (const { id: callId, child } of delegatedCalls(state))
    if (child.control && child.control.mode === 'stepping' && child.control.next !== null)
      return { callId, words: `in ${child.id}: ${child.control.next}` };
  return undefined;
}

/** The place of a breakpoint that has stopped one of them, and why (stepping/breakpoint-stops-tree). */
export function pausedChild(
  state: ConversationState,
  callId?: string,
): { readonly conversation: string; readonly why: string } | undefined {
  for (const { id, child } of delegatedCalls(state)) {
    const { control } = child;
    if (callId !== undefined && id !== callId) continue;
    if (control && control.pausedBy !== null && hasHeard(state, child))
      return { conversation: control.pausedIn ?? child.id, why: control.pausedBy };
  }
  return undefined;
}

function hasHeard({ control }: ConversationState, child: Delegated['child']): boolean {
  return child.control?.changes === (control?.changes ?? 0);
}

/** Nothing that was let go goes on by itself any more (stepping/into-and-over). */
export function isOverDone(state: ConversationState, callId?: string): boolean {
  const calls = delegatedCalls(state).filter(({ id }) => callId === undefined || id === callId);
  return pausedChild(state, callId) !== undefined || calls.every(({ child }) => child.asks.length > 0);
}

/** It has reported its status for the first time, which it does when it holds. */
export function hasBegun(state: ConversationState, callId: string): boolean {
  return delegatedCalls(state).some(({ id, child }) => id === callId && child.control !== undefined);
}

/** Each with those below it. One without a report goes on by itself, or has not begun. */
export function subAgentsOf(state: ConversationState): SubAgent[] {
  return delegatedCalls(state).flatMap(({ id, child }): SubAgent[] => {
    const { mode, next, pausedBy, pausedIn, subAgents } = child.control ?? {
      mode: orderFor(state, id)?.mode ?? 'auto',
      next: null,
      pausedBy: null,
      subAgents: [],
    };
    return [{ conversation: child.id, mode, next, pausedBy: pausedIn === undefined ? pausedBy : null }, ...subAgents];
  });
}
