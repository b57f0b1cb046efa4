/**
 * Tool calls that wait for a result from elsewhere: a person's approval or answer, the client, a point in time, or a sub-agent.
 *
 * @rule turn/approved-before-run: A call that needs approval starts only after a person has approved these very arguments; a decision
 *   counts once. (test: test/conversation/turn/approvals.test.ts)
 * @rule turn/approval-expires: An approval expires at the time that the plan sets; the call then does not run, and its result says so.
 *   (test: test/conversation/turn/approvals.test.ts)
 * @rule turn/repeated-call-stops: A call that was made in `MAX_REPEATS` rounds in a row does not run again; one more round with it ends the
 *   turn. (test: test/conversation/turn/approvals.test.ts)
 * @rule turn/denied-stays-denied: A call that the agent's rules deny does not run, and a call without `same` cannot get a standing
 *   approval. (test: test/conversation/turn/standing-approvals.test.ts)
 * @rule turn/approval-ends-with-session: A standing approval ends with the session, and no fork, resumed life or sub-agent inherits it.
 *   (test: test/conversation/turn/standing-approvals.test.ts)
 */
import { inTokens } from '../state/compaction-state.js';
import { delegationLimits } from '../state/budget.js';
import { resultText } from '../protocol/message.js';
import type { WaitKind } from '../protocol/contract.js';
import type { Approval, Decision } from '../protocol/human-input.js';
import type { EventOf } from '../event.js';
import { NO_USAGE, type Body, type ToolOutcome } from '../../records/message.js';
import { noteWait } from '../outbox/deliveries.js';
import { announce, resultEntry, settle } from '../outbox/settlement.js';
import { request } from '../requests.js';
import type { ConversationState } from '../state.js';
import { estimateTokens } from '../../records/token-estimate.js';
import { turnId } from '../../records/identity.js';
import type { ToolCall, Turn } from '../state/turn-state.js';
import { withTurn, withToolCalls } from '../state/turn-access.js';
import { isoTime } from '../../records/text.js';

const MAX_REPEATS = 3;
/** Limit, in characters, of the client's answers that the state holds until the store has them. */
const MAX_UNWRITTEN = 512 * 1024;

/** The result of a call that no activity ran. */
interface Reply {
  readonly outcome: ToolOutcome;
  readonly text: string;
}

/** Starts, holds back or refuses each call of a new round. */
export function admit(state: ConversationState): ConversationState {
  const phase = state.turn?.phase;
  if (!state.turn || phase?.kind !== 'tools') return state;
  const counted = countRepeats(state, phase.calls);
  const together = phase.calls.filter((call) => startsAtClient(counted, call)).map(({ id }) => id);
  return phase.calls.reduce((now, call) => {
    const refusal = findRefusal(now, call);
    if (refusal) return reply(now, call, refusal);
    const { approval } = call.plan;
    if (approval?.policy === 'ask')
      return isAllowed(now, call) ? beginStanding(now, call, together) : ask(now, call, 'approval', approval.expiresMs);
    return begin(now, call, together);
  }, counted);
}

/** True if the model repeats a call that was refused as a repetition. */
export function isCircling({ turn }: ConversationState): boolean {
  return turn?.repeats?.some(([, rounds]) => rounds > MAX_REPEATS + 1) === true;
}

/** Applies a decision that the caller has checked with `decisionRefusal`. */
export function decide(state: ConversationState, { decision, at }: EventOf<'decided'>): ConversationState {
  const call = askingCall(state, decision);
  if (!call?.asked) return forward(state, decision);
  const { kind } = call.asked;
  const question = kind === 'question';
  const announced = announce(state, {
    kind: 'decided',
    turn: turnId(state.turn?.number ?? 0),
    callId: call.id,
    name: call.name,
    decision: kind !== 'approval' && decision.decision === 'approve' ? 'answer' : decision.decision,
  });
  const { note = '' } = decision;
  if (decision.decision === 'deny') {
    const what = { question: 'Nobody answers this.', approval: 'Not run: a person did not allow this call.', 'client-tool': 'Not run.' }[
      kind
    ];
    return reply(announced, call, { outcome: 'rejected', text: note === '' ? what : `${what} They say: ${note}` });
  }
  if (question)
    return reply(announced, call, { outcome: 'ok', text: note === '' ? '(They confirmed, without words.)' : toAnswer(call, note) });
  if (kind === 'client-tool') {
    const { output = note, isError, wishes } = decision;
    // A choice among tools holds for the next model call alone.
    const wished = wishes ? withTurn(announced, (turn) => ({ ...turn, ...wishes, callsBefore: turn.toolCalls })) : announced;
    return reply(wished, call, { outcome: isError ? 'error' : 'ok', text: resultText(output) });
  }
  const { input } = decision;
  const person = { ...(note === '' ? {} : { note }), ...(input === undefined ? {} : { input }) };
  const allowed = change(announced, call, ({ asked: _, ...rest }) => ({ ...rest, ...(Object.keys(person).length > 0 && { person }) }));
  const begun = begin({ ...allowed, now: Math.max(allowed.now, at) }, call);
  return decision.always === true ? beginSame(allowAlways(begun, call)) : begun;
}

/** Starts other waiting calls that a new standing approval covers. */
function beginSame(state: ConversationState): ConversationState {
  if (state.turn?.phase.kind !== 'tools') return state;
  const asking = state.turn.phase.calls.filter((call) => call.status === 'asking' && call.asked?.kind === 'approval');
  return asking.filter((call) => isAllowed(state, call)).reduce((now, call) => beginStanding(now, call), state);
}

/** True if the call waits for the client from the beginning of the round. */
function startsAtClient(state: ConversationState, call: ToolCall): boolean {
  const { approval, workflowAction } = call.plan;
  const isFree = approval?.policy !== 'ask' || isAllowed(state, call);
  return workflowAction?.kind === 'ask-client' && isFree && !findRefusal(state, call);
}

function beginStanding(state: ConversationState, call: ToolCall, together?: readonly string[]): ConversationState {
  return begin(
    change(state, call, ({ asked: _, ...rest }) => ({ ...rest, person: { standing: true } })),
    call,
    together,
  );
}

function toAnswer({ plan: { workflowAction } }: ToolCall, note: string): string {
  return workflowAction?.kind === 'ask-person' ? chosenOption(workflowAction.options ?? [], note) : note;
}

/** Why a decision is refused; undefined if it fits a call that waits here or in a sub-agent. */
export function decisionRefusal(state: ConversationState, decision: Decision): string | undefined {
  const waiting = approvalsOf(state).find(
    ({ callId, conversation }) => callId === decision.callId && conversation === (decision.conversation ?? state.conversation),
  );
  const { callId } = decision;
  if (!waiting)
    return `${callId} does not wait for a decision: it was decided, has expired, or was never asked; the query "approvals" lists what waits`;
  if (decision.hash !== undefined && decision.hash !== waiting.hash)
    return `${callId} was asked with other arguments than decision.hash names; look at it again`;
  const call = askingCall(state, decision);
  if (waiting.kind === 'client-tool') return clientAnswerRefusal(state, decision);
  if (decision.output !== undefined || decision.isError || decision.wishes)
    return `${callId} is no tool of the client: decision.output does not answer it`;
  if (decision.input !== undefined && (waiting.kind === 'question' || call?.plan.workflowAction))
    return `the arguments of ${callId} cannot be edited; deny it with a note`;
  if (decision.always && !waiting.mayAlways) return `${callId} cannot be allowed for good: a person is asked about it each time`;
  return undefined;
}

function clientAnswerRefusal(
  { outbox }: ConversationState,
  { callId, decision, output, note, input, always }: Decision,
): string | undefined {
  if (input !== undefined || always) return `${callId} waits for the client tool's result: send it as decision.output`;
  if (decision === 'approve' && output === undefined && note === undefined)
    return `${callId} waits for the client tool's result: send it as decision.output, or as text in decision.note`;
  const unwritten = outbox.settle.reduce((sum, { entry }) => sum + (entry?.message.role === 'tool' ? lengthOf(entry.message.text) : 0), 0);
  if (unwritten > MAX_UNWRITTEN) return `${callId} cannot be answered now: the store does not have the earlier answers yet; try again`;
  return undefined;
}

function lengthOf(text: Body): number {
  return typeof text === 'string' ? text.length : 0;
}

/** Calls that wait for a person or for the client, here and in sub-agents. */
export function approvalsOf(state: ConversationState): Approval[] {
  const { turn } = state;
  if (turn?.phase.kind !== 'tools') return [];
  return turn.phase.calls.flatMap((call): Approval[] => {
    if (call.child) return [...call.child.asks];
    if (call.status !== 'asking' || !call.asked) return [];
    const { id: callId, name: tool, target, askedIn, asked, plan } = call;
    const why = plan.approval?.why;
    return [
      {
        conversation: state.conversation,
        callId,
        turnId: turnId(turn.number),
        kind: asked.kind,
        tool,
        target,
        hash: plan.fingerprint ?? '',
        askedIn,
        ...(why === undefined ? {} : { why }),
        ...(asked.kind === 'approval' && approvalKey(call) !== undefined && { mayAlways: true }),
        askedAt: asked.at,
        expiresAt: asked.until,
      },
    ];
  });
}

/** When the next wait ends, in epoch milliseconds, and what it waits for. */
export function nextWait({ turn }: ConversationState): { readonly until: number; readonly why: string } | undefined {
  if (turn?.phase.kind !== 'tools') return undefined;
  return turn.phase.calls
    .flatMap((call) => {
      if (call.status === 'asking' && call.asked)
        return [{ until: call.asked.until, why: `${call.asked.kind === 'client-tool' ? 'the client' : 'a person'}: ${call.name}` }];
      return call.status === 'sleeping' && call.sleepsUntil !== undefined
        ? [{ until: call.sleepsUntil, why: `the time that ${call.name} names` }]
        : [];
    })
    .sort((a, b) => a.until - b.until)[0];
}

/** Ends requests that have expired (turn/approval-expires), and sleeps that are over. */
export function endWaits(state: ConversationState): ConversationState {
  const { turn, now } = state;
  if (turn?.phase.kind !== 'tools') return state;
  return turn.phase.calls.reduce((after, call) => {
    if (call.status === 'sleeping' && call.sleepsUntil !== undefined && now >= call.sleepsUntil) {
      return reply(after, call, { outcome: 'ok', text: `It is ${isoTime(now)} now.` });
    }
    if (call.status !== 'asking' || !call.asked || now < call.asked.until) return after;
    const announced = announce(after, {
      kind: 'decided',
      turn: turnId(turn.number),
      callId: call.id,
      name: call.name,
      decision: 'expired',
    });
    const until = isoTime(call.asked.until);
    if (call.asked.kind === 'client-tool')
      return reply(announced, call, {
        outcome: 'unknown',
        text: `The client did not answer until ${until}: whether it ran this is unknown.`,
      });
    const what = call.asked.kind === 'question' ? 'Nobody answered' : 'Not run: nobody allowed it';
    return reply(announced, call, { outcome: 'rejected', text: `${what} until ${until}.` });
  }, state);
}

/** Answers a call; the next step writes the result's entry. */
export function reply(state: ConversationState, call: ToolCall, { outcome, text }: Reply): ConversationState {
  if (!state.turn) return state;
  const settled = settle(state, [{ effect: call.id, entry: resultEntry(state, state.turn, call, outcome, text) }]);
  return change({ ...settled, contextTokens: settled.contextTokens + inTokens(settled, estimateTokens(text)) }, call, (now) => ({
    ...now,
    status: 'done',
  }));
}

function findRefusal(state: ConversationState, call: ToolCall): Reply | undefined {
  const { approval, workflowAction, fingerprint } = call.plan;
  const rounds = state.turn?.repeats?.find(([known]) => known === fingerprint)?.[1] ?? 0;
  if (rounds > MAX_REPEATS) {
    const text = `Not run: this very call was made in ${MAX_REPEATS} rounds in a row. Do something else, or say what is in the way.`;
    return { outcome: 'rejected', text };
  }
  if (approval?.policy === 'deny') return { outcome: 'rejected', text: `Not run: ${approval.why}` };
  if (workflowAction?.kind !== 'delegate') return undefined;
  const depth = state.parent?.depth ?? 0;
  if (depth >= workflowAction.maxDepth) {
    return {
      outcome: 'rejected',
      text: `Not run: sub-agents go ${workflowAction.maxDepth} levels deep at most (delegation.maxDepth). Do it yourself.`,
    };
  }
  if ((state.turn?.delegations ?? 0) >= workflowAction.maxChildren) {
    return {
      outcome: 'rejected',
      text: `Not run: this turn has had its ${workflowAction.maxChildren} sub-agents (delegation.maxChildren).`,
    };
  }
  const { total, share } = delegationLimits(state, workflowAction);
  if (((state.turn?.delegations ?? 0) + 1) * (1 + share) > total) {
    return {
      outcome: 'rejected',
      text: `Not run: no more sub-agents may work on this, ${total} in all with theirs (delegation.maxTotal). Do it yourself.`,
    };
  }
  return undefined;
}

/** Makes a call ready to run, or does in the workflow what its plan says instead. */
function begin(state: ConversationState, call: ToolCall, together: readonly string[] = [call.id]): ConversationState {
  const { workflowAction } = call.plan;
  if (workflowAction?.kind === 'ask-person') return ask(state, call, 'question', workflowAction.expiresMs);
  if (workflowAction?.kind === 'ask-client') return ask(state, call, 'client-tool', workflowAction.expiresMs, together);
  if (workflowAction?.kind === 'compact') {
    return reply(request(state, { kind: 'compact', id: call.id }), call, {
      outcome: 'ok',
      text: 'The older turns become memory before your next step; what was said last stays.',
    });
  }
  if (workflowAction?.kind === 'wait-until') return sleep(state, call, workflowAction.until);
  if (workflowAction?.kind === 'wait-for') return sleep(state, call, state.now + workflowAction.ms);
  const ready = change(state, call, (now) => ({ ...now, status: 'waiting' }));
  if (workflowAction?.kind !== 'delegate') return ready;
  return withTurn(ready, (turn) => ({ ...turn, delegations: (turn.delegations ?? 0) + 1 }));
}

function sleep(state: ConversationState, call: ToolCall, sleepsUntil: number): ConversationState {
  return change(state, call, (now) => ({ ...now, status: 'sleeping', sleepsUntil }));
}

/** `together`: ids of the client-tool calls that begin to wait at the same time, including this one. */
function ask(
  state: ConversationState,
  call: ToolCall,
  kind: WaitKind,
  expiresMs: number,
  together: readonly string[] = [],
): ConversationState {
  const until = state.now + expiresMs;
  const { id: callId, name, target, askedIn } = call;
  const isLast = together.at(-1) === callId;
  const calls = isLast && { calls: { ids: together, askedIn, usage: state.turn?.usage ?? NO_USAGE } };
  const wait = { kind, at: state.now, until } as const;
  const asking = change(state, call, (now) => ({ ...now, status: 'asking', asked: wait }));
  const turn = turnId(state.turn?.number ?? 0);
  return announce(noteWait(asking, call, wait), { kind: 'asked', turn, callId, name, what: kind, target, until, ...calls });
}

function askingCall(state: ConversationState, { callId, conversation }: Decision): ToolCall | undefined {
  const { turn } = state;
  const isHere = conversation === undefined || conversation === state.conversation;
  if (!isHere || turn?.phase.kind !== 'tools') return undefined;
  return turn.phase.calls.find((call) => call.id === callId && call.status === 'asking');
}

/** Passes the decision on to the sub-agent whose call it is for; the sub-agent reports the outcome. */
function forward(state: ConversationState, decision: Decision): ConversationState {
  const { conversation: child, ...direct } = decision;
  if (child === undefined) return state;
  const via = findDirectChild(state, child);
  if (via === undefined) return state;
  return { ...state, childDecisions: [...(state.childDecisions ?? []), { child: via, decision: via === child ? direct : decision }] };
}

/** The direct sub-agent that is `conversation`, or an ancestor of it. */
function findDirectChild({ turn }: ConversationState, conversation: string): string | undefined {
  if (turn?.phase.kind !== 'tools') return undefined;
  return turn.phase.calls.find(({ child }) => child && (child.id === conversation || conversation.startsWith(`${child.id}:`)))?.child?.id;
}

/** Equal calls in one round count once (turn/repeated-call-stops). */
function countRepeats(state: ConversationState, calls: readonly ToolCall[]): ConversationState {
  const before = new Map(state.turn?.repeats);
  const fingerprints = new Set(calls.flatMap(({ plan }) => plan.fingerprint ?? []));
  if (fingerprints.size === 0) return state;
  const repeats = [...fingerprints].map((one) => [one, (before.get(one) ?? 0) + 1] as const);
  return withTurn(state, (turn: Turn) => ({ ...turn, repeats }));
}

function change(state: ConversationState, { id }: ToolCall, to: (call: ToolCall) => ToolCall): ConversationState {
  return withToolCalls(state, (call) => (call.id === id ? to(call) : call));
}

/**
 * The option that a person's answer names by its text, its number from 1 on, or the beginning of its text; case is ignored. An answer that
 * fits no option, or several, stays as it is.
 */
export function chosenOption(options: readonly string[], answer: string): string {
  const word = folded(answer);
  if (word === '') return answer;
  const exact = options.find((option) => folded(option) === word);
  if (exact !== undefined) return exact;
  const numbered = /^\d{1,3}$/.exec(word) ? options[Number(word) - 1] : undefined;
  if (numbered !== undefined) return numbered;
  const [match, ...others] = options.filter((option) => folded(option).startsWith(word));
  return match !== undefined && others.length === 0 ? match : answer;
}

function folded(text: string): string {
  return text.trim().toLowerCase();
}

// Standing approvals of this conversation. The worker decides which calls are the same (`plan.approval.same`).
//
// A standing approval covers the call that the person saw: a call with another argument, or whose path leads elsewhere, needs a new
// approval.

/** Beyond this number the oldest standing approval is forgotten. */
const MAX_ALLOWED = 100;

/** (turn/denied-stays-denied) */
function approvalKey({ plan: { approval } }: Pick<ToolCall, 'plan'>): string | undefined {
  return approval?.policy === 'ask' ? approval.same : undefined;
}

function isAllowed({ allowedCalls = [] }: ConversationState, call: ToolCall): boolean {
  const same = approvalKey(call);
  return same !== undefined && allowedCalls.some((one) => one.same === same);
}

function allowAlways(state: ConversationState, call: ToolCall): ConversationState {
  const same = approvalKey(call);
  if (same === undefined || isAllowed(state, call)) return state;
  const { name: tool, target, id: callId } = call;
  return { ...state, allowedCalls: [...(state.allowedCalls ?? []), { same, tool, target, callId }].slice(-MAX_ALLOWED) };
}

/** (turn/approval-ends-with-session) */
export function forgetAllowed({ allowedCalls: _, ...state }: ConversationState): ConversationState {
  return state;
}
