/**
 * Sub-agents: separate conversations, started by a call of this one (design section 3, Children).
 *
 * @rule turn/report-once: A sub-agent's end is reported once, to the call that waits for it; a later report is dropped. (test:
 *   test/conversation/turn/approvals.test.ts)
 * @rule turn/usage-counts-for-parent: A sub-agent's usage counts for its parent too, so budgets cover the whole tree; while it runs, a
 *   ledger counts it (shared-budget.ts). (test: test/workflows/shared-budget.test.ts)
 * @rule turn/context-flows-back: What a sub-agent's tools have changed of the values that an application shares with them is its parent's
 *   too once it ends, by that report alone; what others have changed meanwhile stays. (test: test/workflows/sub-agents.test.ts)
 * @rule turn/report-shows-capability: A message in a sub-agent's name counts only with the capability that the parent gave that sub-agent
 *   at its start. (test: test/workflows/sub-agents.test.ts)
 * @rule turn/stop-reaches-sub-agents: A stop of this conversation stops its sub-agents; a person sees their waits here. (test:
 *   test/workflows/sub-agents.test.ts)
 * @rule turn/ended-sub-agent-noticed: No call waits for ever for a sub-agent that has ended. (test:
 *   test/conversation/turn/approvals.test.ts)
 */
import { acceptChildUsage, budgetsForChildren, delegationLimits } from '../state/budget.js';
import { isHeld, type ConversationState, AUTO, breakpointsLeft } from '../state.js';
import { keyOf, orderFor, spentInTree, subAgentsOf } from '../stepping/sub-agents.js';
import type { EventOf } from '../event.js';
import { isRunning, type Failed, type Started, type ChildStart, type Completed } from '../effect.js';
import type { AppContextRef } from '../outbox/writes.js';
import type { WorkflowAction } from './model-step-effects.js';
import { turnId, type MemoryThen, type SharedMemory, scopeParts } from '../../records/identity.js';
import type { ToolCall, Looks } from '../state/turn-state.js';
import { NO_USAGE } from '../../records/message.js';
import { contextAfter, spend, withToolCalls } from '../state/turn-access.js';
import { approvalsOf, reply } from './approvals.js';
import type { ChildNews, ChildReport } from '../protocol/human-input.js';
import { type ChildControl, MAX_REPORTED, shortened } from '../protocol/stepping.js';
import { planned, setBreakpoints, setMode } from '../stepping/control.js';

/** At least as many as one turn may start (`delegation.maxChildren`), so that no running sub-agent's capability is forgotten. */
const MAX_CAPABILITIES = 1_000;

type Delegating = Extract<WorkflowAction, { kind: 'delegate' }>;

/** The next sub-agent to start. */
export function childToStart(state: ConversationState): ChildStart | undefined {
  const { turn, identity, parent, conversation } = state;
  if (turn?.phase.kind !== 'tools') return undefined;
  const call = turn.phase.calls.find(
    ({ id, status, plan }) => status === 'waiting' && plan.workflowAction?.kind === 'delegate' && !isHeld(state, 'tool-run', id),
  );
  if (!call || call.plan.workflowAction?.kind !== 'delegate') return undefined;
  const { agent, task, title, budget, memory, capability } = call.plan.workflowAction;
  const { total, share } = delegationLimits(state, call.plan.workflowAction);
  const budgets = budgetsForChildren(state);
  const control = orderFor(state, call.id);
  return {
    callId: call.id,
    child: `${conversation}:${turnId(turn.number)}:${call.id.replace(/^.*\/c/, '')}`,
    options: {
      agent,
      ...scopeParts(identity.scope),
      title,
      ...(budget && Object.keys(budget).length > 0 && { budget }),
      delegation: {
        parent: {
          conversation,
          life: identity.life,
          callId: call.id,
          depth: (parent?.depth ?? 0) + 1,
          ...(total !== Infinity && { share }),
          ...(budgets.length > 0 && { budgets }),
          ...(memory && { memory: sharedWith(state, call, memory) }),
        },
        task,
        ...(capability === undefined ? {} : { capability }),
        ...(control && { control }),
        ...(state.appContext && { appContext: withOrigin(state.appContext, { conversation, life: identity.life }) }),
      },
    },
  };
}

/**
 * In a tree with shared memory, all conversations use the memory of the root. What the parent sees only as it was (a snapshot, and with one
 * for this sub-agent the items of its life), this sub-agent sees so too.
 */
export function sharedWith(
  { session, now, parent, conversation, identity }: Pick<ConversationState, 'session' | 'now' | 'parent' | 'conversation' | 'identity'>,
  { slot }: Pick<ToolCall, 'slot'>,
  memory: 'shared' | 'snapshot',
): SharedMemory {
  const seen = parent?.memory;
  const of = parent && (seen?.of ?? { conversation: parent.conversation, life: parent.life });
  const { besides = [], calls: above = [] } = seen ?? {};
  const withBesides = (all: readonly MemoryThen[]): Pick<SharedMemory, 'besides'> => (all.length > 0 ? { besides: all } : {});
  if (seen?.until !== null || !of) {
    const place = { session, ...withBesides(seen && of ? [toSnapshot(seen, of), ...besides] : []) };
    return memory === 'shared' ? { ...place, until: null, at: slot } : { ...place, until: now, before: slot };
  }
  const { at } = seen;
  const parents = { of: { conversation, life: identity.life }, session, until: now, before: slot };
  const place = { of, session: seen.session, calls: [...above, { life: identity.life, slot }] };
  return memory === 'shared'
    ? { ...place, ...withBesides(besides), until: null, ...(at !== undefined && { at }) }
    : { ...place, ...withBesides([parents, ...besides]), until: now, ...(at !== undefined && { before: at }) };
}

function toSnapshot({ session, until, before, calls }: SharedMemory, of: MemoryThen['of']): MemoryThen {
  return { of, session, until: until ?? 0, ...(before !== undefined && { before }), ...(calls && { calls }) };
}

/** Adds the conversation that stored the values, so that a sub-agent can read them. */
function withOrigin({ changes, ...base }: AppContextRef, origin: NonNullable<AppContextRef['origin']>): AppContextRef {
  return { origin, ...base, ...(changes && { changes: changes.map((change) => ({ origin, ...change })) }) };
}

export function startChild(state: ConversationState, { input: { callId, child, options } }: Started<'start-child'>): ConversationState {
  const { capability, control } = options.delegation;
  const known: ConversationState =
    capability === undefined
      ? state
      : { ...state, subAgents: [...(state.subAgents ?? []), [callId, capability] as const].slice(-MAX_CAPABILITIES) };
  return withToolCalls(known, (call) => {
    if (call.id !== callId) return call;
    const { plan } = call;
    // The sub-agent has its task now, so this state need not carry it.
    const workflowAction = plan.workflowAction?.kind === 'delegate' ? withoutSecrets(plan.workflowAction) : plan.workflowAction;
    return {
      ...call,
      plan: { ...plan, ...(workflowAction && { workflowAction }) },
      status: 'delegated',
      child: {
        id: child,
        asks: [],
        ...(state.appContext && { given: state.appContext }),
        ...(control && { ordered: { number: 0, key: keyOf(control) } }),
      },
    };
  });
}

function withoutSecrets({ capability: _, ...action }: Delegating): Delegating {
  return { ...action, task: '' };
}

/**
 * Why a message of a sub-agent is refused (turn/report-shows-capability); undefined if its capability is right. Temporal is polled about a
 * sub-agent without a capability (turn/ended-sub-agent-noticed).
 */
export function newsRefusal(state: ConversationState, { callId, capability }: ChildNews): string | undefined {
  const known = state.subAgents?.find(([id]) => id === callId);
  if (known) return isSame(known[1], capability ?? '') ? undefined : `child.capability is not the one that ${callId} was started with`;
  return delegatedCall(state, callId)?.child
    ? `${callId} was started without a capability, so news in its name cannot be verified; Temporal is asked how its sub-agent ended`
    : `${callId} has started no sub-agent`;
}

/** Compares in constant time. */
function isSame(a: string, b: string): boolean {
  let differences = a.length ^ b.length;
  for (let i = 0; i < a.length; i++) differences |= a.charCodeAt(i) ^ (b.charCodeAt(i) || 0);
  return differences === 0;
}

/**
 * A stop does not reach a sub-agent that is still being started, so it is stopped here (turn/stop-reaches-sub-agents). Its turn may have
 * ended since.
 */
export function noteChildStarted(state: ConversationState, { input: { callId, child } }: Completed<'start-child'>): ConversationState {
  const { turn, ended, lateChildren = [] } = state;
  const startedCall = ({ number }: { readonly number: number }): boolean => callId.startsWith(`${turnId(number)}/`);
  const isStopped = turn && startedCall(turn) ? turn.stopping !== null : ended.some((one) => startedCall(one) && one.stopReason !== 'end');
  return isStopped ? { ...state, lateChildren: [...lateChildren, child] } : state;
}

/** A sub-agent that could not start counts as ended. */
export function failChildStart(state: ConversationState, { input: { callId }, failure, at }: Failed<'start-child'>): ConversationState {
  const { type, message } = failure;
  const report = { text: '', stopReason: 'failed', usage: NO_USAGE, error: { type, message } } as const;
  return acceptReport(state, { kind: 'child-ended', callId, report, at });
}

export function noteChildAsks(state: ConversationState, { callId, asks }: EventOf<'child-asks'>): ConversationState {
  return withToolCalls(state, (call) => (call.id === callId && call.child ? { ...call, child: { ...call.child, asks } } : call));
}

/** The caller ends the round if this was its last open call (turn/report-once, turn/usage-counts-for-parent). */
export function acceptReport(state: ConversationState, { callId, report }: EventOf<'child-ended'>): ConversationState {
  const call = delegatedCall(state, callId);
  if (!call) return state;
  const paid = spend(acceptChildUsage(state, report.usage), report.usage);
  const { child, ...rest } = call;
  const { context } = report;
  const on = child?.given ?? null;
  const told: ConversationState = context
    ? { ...paid, appContext: contextAfter(paid.appContext, { ref: context.ref }, { ref: context.change, on }) }
    : paid;
  const cleared = withToolCalls(told, (other) => (other === call ? rest : other));
  return reply(cleared, call, { outcome: report.stopReason === 'end' ? 'ok' : 'error', text: renderReport(report) });
}

/** Sub-agents that run for this conversation now. */
export function runningChildren({ turn }: ConversationState): string[] {
  if (turn?.phase.kind !== 'tools') return [];
  return turn.phase.calls.flatMap(({ status, child }) => (status === 'delegated' && child ? [child.id] : []));
}

/** The next message to the parent, in this order: waiting approvals, stepping status, the report of the only turn. */
export function newsForParent(state: ConversationState): ChildNews | 'report' | undefined {
  const { parent, parentNotified, capability } = state;
  if (!parent || !parentNotified) return undefined;
  const known = { callId: parent.callId, ...(capability === undefined ? {} : { capability }) };
  const asks = approvalsOf(state);
  if (JSON.stringify(asks) !== parentNotified.asks) return { ...known, kind: 'asks', asks };
  const control = parentNotified.reported ? undefined : unreportedStatus(state);
  if (control) return { ...known, kind: 'control', control };
  return !state.turn && state.ended.length > 0 && !parentNotified.reported && !isRunning(state, 'report') ? 'report' : undefined;
}

export function noteParentNotified(state: ConversationState, { asks, control }: EventOf<'parent-notified'>): ConversationState {
  const known = state.parentNotified ?? { asks: '[]', reported: false };
  const sent = {
    ...(asks !== undefined && { asks }),
    ...(control && { control: { sent: serializeStatus(control), number: control.number } }),
  };
  return { ...state, parentNotified: { ...known, ...sent } };
}

function delegatedCall({ turn }: ConversationState, callId: string): ToolCall | undefined {
  if (turn?.phase.kind !== 'tools') return undefined;
  return turn.phase.calls.find(({ id, status }) => id === callId && status === 'delegated');
}

function renderReport({ text, stopReason, error }: ChildReport): string {
  if (stopReason === 'end' && !error) return text === '' ? '(The sub-agent ended without a word.)' : text;
  const why = error ? `${error.type}: ${error.message}` : stopReason;
  return `The sub-agent did not finish (${why}).${text === '' ? '' : ` It had said: ${text}`}`;
}

// Sub-agents after a hand-over. Temporal reports a sub-agent's end only to the run that started it. Later runs depend on its report, and a
// terminated sub-agent sends none, so they poll Temporal at growing intervals.

const FIRST_LOOK_MS = 60_000;
const LAST_LOOK_MS = 60 * 60_000;

/** Makes a new run poll the sub-agents that earlier runs started. */
export function lookAfterChildren(state: ConversationState): ConversationState {
  if (runningChildren(state).length === 0) return state;
  return withLooks(state, undefined, () => ({ next: state.now + FIRST_LOOK_MS, count: 0 }));
}

interface Look {
  readonly callId: string;
  readonly child: string;
}

export function lookDue(state: ConversationState): Look | undefined {
  const { turn, now } = state;
  if (turn?.phase.kind !== 'tools' || turn.stopping || isRunning(state, 'look-after')) return undefined;
  const call = turn.phase.calls.find(({ status, child }) => status === 'delegated' && child?.looks && now >= child.looks.next);
  return call?.child && { callId: call.id, child: call.child.id };
}

/** When to poll next, in epoch milliseconds. */
export function nextLook(state: ConversationState): number | undefined {
  const { turn } = state;
  if (turn?.phase.kind !== 'tools' || isRunning(state, 'look-after')) return undefined;
  const times = turn.phase.calls.flatMap(({ status, child }) => (status === 'delegated' && child?.looks ? [child.looks.next] : []));
  return times.length === 0 ? undefined : Math.min(...times);
}

/**
 * A sub-agent sends its report before it ends, so after its end none can arrive. The caller ends the round if this was its last open call.
 */
export function acceptLook(state: ConversationState, { id: callId, output: status, at }: Completed<'look-after'>): ConversationState {
  if (status !== 'RUNNING') {
    const error = { type: 'sub-agent-lost', message: `the sub-agent has ended (${status}) without a report` };
    return acceptReport(state, { kind: 'child-ended', callId, report: { text: '', stopReason: 'failed', usage: NO_USAGE, error }, at });
  }
  return lookLater(state, callId, at);
}

/** Temporal did not answer: the run polls again later. */
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

/**
 * Applies an order of the parent: it overwrites only what changed since the last order, so a person's settings here stay until then.
 * control.ts begins its step.
 */
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

/** The stepping status, if the parent does not know it yet; undefined while a step runs, since its end is reported. */
function unreportedStatus(state: ConversationState): ChildControl | undefined {
  const { control, parentNotified } = state;
  if (!control || control.lock || control.order?.step !== undefined) return undefined;
  const { mode, breakpoints, pausedBy, pausedIn, reachedCost, order, ordered } = control;
  const next = mode === 'stepping' ? (planned(state)?.words ?? null) : null;
  const subAgents = subAgentsOf(state).slice(0, MAX_REPORTED);
  const status = {
    changes: order?.changes ?? 0,
    mode,
    next: next && shortened(next),
    pausedBy: pausedBy && shortened(pausedBy),
    ...(pausedIn !== undefined && { pausedIn }),
    ...(reachedCost && { reachedCost }),
    ...(breakpoints.costUsd !== undefined && { spentUsd: spentInTree(state) }),
    ...(ordered && { step: { ...ordered, words: shortened(ordered.words) } }),
    subAgents,
  };
  const known = parentNotified?.control;
  // A sub-agent that was never stepped reports nothing, but what it costs where that counts (stepping/cost-of-tree).
  const isFree = !known && mode === 'auto' && !status.spentUsd;
  if (isFree && !subAgents.some((one) => one.mode === 'stepping')) return undefined;
  const sent = JSON.stringify(status);
  return sent === known?.sent ? undefined : { number: (known?.number ?? 0) + 1, ...status };
}

/** Without the number, which differs in each report. */
function serializeStatus({ number: _, ...status }: ChildControl): string {
  return JSON.stringify(status);
}
