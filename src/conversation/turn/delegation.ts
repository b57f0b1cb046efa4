/**
 * Sub-agents: separate conversations, started by a call of this one (design section 3, Children).
 *
 * @rule turn/report-once: A sub-agent's end is reported once, to the call that waits for it; a later report is dropped. (test:
 *   test/conversation/turn/approvals.test.ts)
 * @rule turn/usage-counts-for-parent: A sub-agent's usage counts for its parent too: budgets hold for the whole tree, while it runs by
 *   their ledger (shared-budget.ts). (test: test/workflows/shared-budget.test.ts)
 * @rule turn/report-shows-capability: A message in a sub-agent's name counts only with the capability that the parent gave that sub-agent
 *   at its start. (test: test/workflows/sub-agents.test.ts)
 * @rule turn/stop-reaches-sub-agents: A stop of this conversation stops its sub-agents; a person sees their waits here. (test:
 *   test/workflows/sub-agents.test.ts)
 */
import { acceptChildUsage, budgetsForChildren, delegationLimits } from '../state/budget.js';
import { isHeld, type ConversationState, AUTO, breakpointsLeft } from '../state.js';
import { keyOf, orderFor, subAgentsOf } from '../stepping/sub-agents.js';
import type { EventOf } from '../event.js';
import { isRunning, type Failed, type Started, type ChildStart, type Completed } from '../effect.js';
import type { AppContextRef, WorkflowAction } from './model-step-effects.js';
import { turnId, type SharedMemory, scopeParts } from '../../records/identity.js';
import type { ToolCall, Looks } from '../state/turn-state.js';
import { NO_USAGE } from '../../records/message.js';
import { spend, withToolCalls } from '../state/turn-access.js';
import { approvalsOf, reply } from './approvals.js';
import type { ChildNews, ChildReport } from '../protocol/human-input.js';
import { type ChildControl, MAX_REPORTED, shortened } from '../protocol/stepping.js';
import { planned, setBreakpoints, setMode } from '../stepping/control.js';

/** As many as one turn may start (`delegation.maxChildren`): none that works is forgotten. */
const REMEMBERED = 1_000;

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
        ...(state.appContext && { appContext: seenFromElsewhere(state.appContext, { conversation, life: identity.life }) }),
      },
    },
  };
}

/** A tree that shares has one memory: that of the first conversation in it. */
export function sharedWith(
  { session, now, parent }: Pick<ConversationState, 'session' | 'now' | 'parent'>,
  { slot }: Pick<ToolCall, 'slot'>,
  memory: 'shared' | 'snapshot',
): SharedMemory {
  const shares = parent?.memory?.until === null ? parent.memory : undefined;
  const { conversation, life } = parent ?? {};
  const of = shares && conversation !== undefined && life !== undefined ? (shares.of ?? { conversation, life }) : undefined;
  const place = of && shares ? { of, session: shares.session } : { session };
  const at = shares ? shares.at : slot;
  return memory === 'shared'
    ? { ...place, until: null, ...(at !== undefined && { at }) }
    : { ...place, until: now, ...(of === undefined && { before: slot }) };
}

/** As a sub-agent can read it: in the store of the conversation that wrote it. */
function seenFromElsewhere({ changes, ...base }: AppContextRef, origin: NonNullable<AppContextRef['origin']>): AppContextRef {
  return { origin, ...base, ...(changes && { changes: changes.map((change) => ({ origin, ...change })) }) };
}

export function startChild(state: ConversationState, { input: { callId, child, options } }: Started<'start-child'>): ConversationState {
  const { capability, control } = options.delegation;
  const known: ConversationState =
    capability === undefined
      ? state
      : { ...state, subAgents: [...(state.subAgents ?? []), [callId, capability] as const].slice(-REMEMBERED) };
  return withToolCalls(known, (call) => {
    if (call.id !== callId) return call;
    const { plan } = call;
    // The sub-agent has its task now; here it would only be carried along.
    const workflowAction = plan.workflowAction?.kind === 'delegate' ? withoutSecrets(plan.workflowAction) : plan.workflowAction;
    return {
      ...call,
      plan: { ...plan, ...(workflowAction && { workflowAction }) },
      status: 'delegated',
      child: { id: child, asks: [], ...(control && { ordered: { number: 0, key: keyOf(control) } }) },
    };
  });
}

function withoutSecrets({ capability: _, ...action }: Delegating): Delegating {
  return { ...action, task: '' };
}

/**
 * Why a report counts for nothing (turn/report-shows-capability); undefined when it comes from the sub-agent that was started. A sub-agent
 * that cannot show its capability is looked after (turn/ended-sub-agent-noticed).
 */
export function newsRefusal(state: ConversationState, { callId, capability }: ChildNews): string | undefined {
  const known = state.subAgents?.find(([id]) => id === callId);
  if (known) return isSame(known[1], capability ?? '') ? undefined : `child.capability is not the one that ${callId} was started with`;
  return delegatedCall(state, callId)?.child
    ? `${callId} was started without a capability, so news in its name cannot be verified; Temporal is asked how its sub-agent ended`
    : `${callId} has started no sub-agent`;
}

/** As long for what is nearly right as for what is all wrong. */
function isSame(a: string, b: string): boolean {
  let differences = a.length ^ b.length;
  for (let i = 0; i < a.length; i++) differences |= a.charCodeAt(i) ^ (b.charCodeAt(i) || 0);
  return differences === 0;
}

/**
 * A stop that was sent while one was being started has reached no workflow. Its turn may have ended since, after the grace
 * (turn/stop-reaches-sub-agents).
 */
export function noteChildStarted(state: ConversationState, { input: { callId, child } }: Completed<'start-child'>): ConversationState {
  const { turn, ended, lateChildren = [] } = state;
  const isOf = ({ number }: { readonly number: number }): boolean => callId.startsWith(`${turnId(number)}/`);
  const isStopped = turn && isOf(turn) ? turn.stopping !== null : ended.some((one) => isOf(one) && one.stopReason !== 'end');
  return isStopped ? { ...state, lateChildren: [...lateChildren, child] } : state;
}

/** One that could not be started has ended. */
export function failChildStart(state: ConversationState, { input: { callId }, failure, at }: Failed<'start-child'>): ConversationState {
  const { type, message } = failure;
  const report = { text: '', stopReason: 'failed', usage: NO_USAGE, error: { type, message } } as const;
  return acceptReport(state, { kind: 'child-ended', callId, report, at });
}

export function noteChildAsks(state: ConversationState, { callId, asks }: EventOf<'child-asks'>): ConversationState {
  return withToolCalls(state, (call) => (call.id === callId && call.child ? { ...call, child: { ...call.child, asks } } : call));
}

/** The caller ends the round when this was its last call (turn/report-once, turn/usage-counts-for-parent). */
export function acceptReport(state: ConversationState, { callId, report }: EventOf<'child-ended'>): ConversationState {
  const call = delegatedCall(state, callId);
  if (!call) return state;
  const paid = spend(acceptChildUsage(state, report.usage), report.usage);
  const { child: _, ...rest } = call;
  const cleared = withToolCalls(paid, (other) => (other === call ? rest : other));
  return reply(cleared, call, { outcome: outcomeOf(report), text: textOf(report) });
}

/** Sub-agents that run for this conversation now. */
export function runningChildren({ turn }: ConversationState): string[] {
  if (turn?.phase.kind !== 'tools') return [];
  return turn.phase.calls.flatMap(({ status, child }) => (status === 'delegated' && child ? [child.id] : []));
}

/** The next notification to the parent: which approvals wait here, how it is stepped, then how the one turn ended. */
export function newsForParent(state: ConversationState): ChildNews | 'report' | undefined {
  const { parent, parentNotified, capability } = state;
  if (!parent || !parentNotified) return undefined;
  const known = { callId: parent.callId, ...(capability === undefined ? {} : { capability }) };
  const asks = approvalsOf(state);
  if (JSON.stringify(asks) !== parentNotified.asks) return { ...known, kind: 'asks', asks };
  const control = parentNotified.reported ? undefined : standingOf(state);
  if (control) return { ...known, kind: 'control', control };
  return !state.turn && state.ended.length > 0 && !parentNotified.reported && !isRunning(state, 'report') ? 'report' : undefined;
}

export function noteParentNotified(state: ConversationState, { asks, control }: EventOf<'parent-notified'>): ConversationState {
  const known = state.parentNotified ?? { asks: '[]', reported: false };
  const sent = {
    ...(asks !== undefined && { asks }),
    ...(control && { control: { sent: sentStanding(control), number: control.number } }),
  };
  return { ...state, parentNotified: { ...known, ...sent } };
}

function delegatedCall({ turn }: ConversationState, callId: string): ToolCall | undefined {
  if (turn?.phase.kind !== 'tools') return undefined;
  return turn.phase.calls.find(({ id, status }) => id === callId && status === 'delegated');
}

function outcomeOf({ stopReason }: ChildReport): 'ok' | 'error' {
  return stopReason === 'end' ? 'ok' : 'error';
}

function textOf({ text, stopReason, error }: ChildReport): string {
  if (stopReason === 'end' && !error) return text === '' ? '(The sub-agent ended without a word.)' : text;
  const why = error ? `${error.type}: ${error.message}` : stopReason;
  return `The sub-agent did not finish (${why}).${text === '' ? '' : ` It had said: ${text}`}`;
}

/**
 * Sub-agents after a hand-over. The run that started one learns from Temporal when it ends; later runs know its report alone, and one
 * that was terminated reports nothing. So the run asks Temporal about it, less and less often.
 *
 * @rule turn/ended-sub-agent-noticed: No call waits for ever for a sub-agent that has ended. (test:
 *   test/conversation/turn/approvals.test.ts)
 */

const FIRST_LOOK_MS = 60_000;
const LAST_LOOK_MS = 60 * 60_000;

/** A run has taken over: what it did not start itself, it looks after. */
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

/** Epoch milliseconds of the next look. */
export function nextLook(state: ConversationState): number | undefined {
  const { turn } = state;
  if (turn?.phase.kind !== 'tools' || isRunning(state, 'look-after')) return undefined;
  const times = turn.phase.calls.flatMap(({ status, child }) => (status === 'delegated' && child?.looks ? [child.looks.next] : []));
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

/** Temporal could not say: the run asks again later. */
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

/** A sub-agent follows its parent's order. What the order changes is changed, and nothing else: what a person has set here stays until then. Its step begins in control.ts. */
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
function standingOf(state: ConversationState): ChildControl | undefined {
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
function sentStanding({ number: _, ...standing }: ChildControl): string {
  return JSON.stringify(standing);
}
