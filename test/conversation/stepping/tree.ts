/**
 * A tree of conversations with signals between them that arrive in any order: each is the real state with the real `nextStep`, and what a
 * model answers is canned. The first delegates twice, each of these works and delegates once, and the last ones work.
 */
import type { TurnError } from '../../../src/conversation/protocol/contract.js';
import type { Origin } from '../../../src/conversation/protocol/input.js';
import { withOrigin } from '../../../src/conversation/lineage/lineage.js';
import { leftOf } from '../../../src/conversation/state/budget.js';
import { turnId, turnNumber } from '../../../src/records/identity.js';
import { apply } from '../../../src/conversation/apply.js';
import type { ConversationEvent } from '../../../src/conversation/event.js';
import type { Effect } from '../../../src/conversation/effect.js';
import { nextStep, type Step } from '../../../src/conversation/next-step.js';
import { LATEST_RULES, readCarriedState } from '../../../src/conversation/opening.js';
import { openConversation, type ConversationState } from '../../../src/conversation/state.js';
import { readParentOrder } from '../../../src/conversation/protocol/stepping.js';
import { read } from '../../../src/conversation/protocol/schema.js';
import { delegationSchema, readChildNews } from '../../../src/conversation/protocol/human-input.js';
import type { ToolPlan, ModelAnswer, ModelStepInput } from '../../../src/conversation/turn/model-step-effects.js';
import { answer, deferred, open, ORDINARY, outputOf, said } from '../drive.js';

export const ROOT = 'chat';

interface Signal {
  readonly to: string;
  readonly event: ConversationEvent;
}

export interface Tree {
  readonly conversations: Map<string, ConversationState>;
  readonly flying: { readonly of: string; readonly effect: Effect }[];
  readonly signals: Signal[];
  /** What has begun of what a step is: calls of models and runs of tools. */
  readonly works: string[];
  /** By the life of a tree's first conversation: tokens that it and its sub-agents have paid. */
  readonly paid: Map<string, number>;
  readonly problems: string[];
  at: number;
}

/** `asks`: one of the tools needs a person's approval. */
export function createTree({ asks = false }: { readonly asks?: boolean } = {}): Tree {
  const tree: Tree = {
    conversations: new Map([[ROOT, open()]]),
    flying: [],
    signals: [],
    works: [],
    paid: new Map(),
    problems: [],
    at: 2000,
  };
  approvals.set(tree, asks);
  return tree;
}

const approvals = new WeakMap<Tree, boolean>();

/** Tokens of each answer. */
export const CALL_TOKENS = 2;
const USAGE = { inputTokens: 1, cachedTokens: 0, outputTokens: 1, costUsd: 0.01 };

/** A fork of it, or its next life, with what is left of its budget. */
export function begin(tree: Tree, id: string, kind: 'fork' | 'resume', from: ConversationState): void {
  const { conversation, identity, budget, usage, counters, session, latestTurn } = from;
  const life = `${id}-${++tree.at}`;
  const origin: Origin = { kind, conversation, life: identity.life, turn: turnId(latestTurn) };
  const left = budget && leftOf(budget, usage);
  const opened = openConversation({
    ...{ identity: { ...identity, life }, conversation: id, title: null, model: null, rules: LATEST_RULES, at: tree.at },
    ...(left && { budget: left }),
  });
  tree.conversations.set(id, withOrigin(opened, origin));
  shared.set(life, { slot: counters.slot, session, turn: latestTurn });
  tell(tree, id, { kind: 'time-passed', at: ++tree.at });
}

const shared = new Map<string, { readonly slot: number; readonly session: number; readonly turn: number }>();

/** Of the tree that it belongs to. */
export function lifeOf(tree: Tree, id: string): string {
  return stateOf(tree, id.split(':')[0] ?? id).identity.life;
}

function pay(tree: Tree, id: string): void {
  const life = lifeOf(tree, id);
  tree.paid.set(life, (tree.paid.get(life) ?? 0) + CALL_TOKENS);
}

/** As the ledger of a shared budget answers, which knows at once what each of the tree has paid. */
function overBudget(tree: Tree, id: string, { shares }: ModelStepInput): TurnError | undefined {
  const limit = stateOf(tree, id.split(':')[0] ?? id).budget?.maxTokens;
  if (!shares || limit === undefined || (tree.paid.get(lifeOf(tree, id)) ?? 0) < limit) return undefined;
  return { type: 'budget', message: 'used up' };
}

function outcomeOf(tree: Tree, { of, effect }: Tree['flying'][number]): unknown {
  switch (effect.effect) {
    case 'open-origin': {
      const { origin, identity } = effect.input;
      const { slot, session, turn } = shared.get(identity.life) ?? { slot: 0, session: 1, turn: 0 };
      const { conversation, life } = origin;
      const beginning = { v: 1, kind: origin.kind, of: { conversation, life }, turn, shared: [], archived: [] };
      const nothing = { context: [], task: null, episodes: [], window: [], compactions: 0, tokens: 1, attributes: 'missing' };
      return { life: identity.life, beginning, ...nothing, slot, session, turns: turn, inContext: 0 };
    }
    case 'rewind': {
      const { requestId: id, branch, session, to, identity } = effect.input;
      const cut = { v: 1, id, branch, to: turnNumber(to), begun: 1, since: 1, slot: 1, at: 1, session, slots: [] };
      return { life: identity.life, cut, turns: 1, session, context: [], task: null, episodes: [], compactions: 0, tokens: 1 };
    }
    case 'model-step': {
      const usedUp = overBudget(tree, of, effect.input);
      if (usedUp) return { ...deferred(effect.input, 'budget'), usedUp };
      pay(tree, of);
      return outputOf(effect, { model: (input) => modelOf(tree, of, input) });
    }
    default:
      return outputOf(effect);
  }
}

export function rootOf(tree: Tree): ConversationState {
  return stateOf(tree, ROOT);
}

function stateOf({ conversations }: Tree, id: string): ConversationState {
  const state = conversations.get(id);
  if (!state) throw new Error(`${id} is not there`);
  return state;
}

/** Applies it, and starts what is next until that one waits. */
export function tell(tree: Tree, id: string, event: ConversationEvent): void {
  if (!tree.conversations.has(id)) return;
  dispatch(tree, id, event);
  for (let i = 0; i < 1000 && tree.conversations.has(id); i++) if (!start(tree, id, nextStep(stateOf(tree, id)))) return;
}

function dispatch(tree: Tree, id: string, event: ConversationEvent): void {
  tree.conversations.set(id, apply(stateOf(tree, id), event));
}

function start(tree: Tree, id: string, step: Step): boolean {
  const at = ++tree.at;
  switch (step.kind) {
    case 'effect': {
      const { kind: _, ...effect } = step;
      if (effect.effect === 'model-step' || effect.effect === 'run-tool') tree.works.push(`${id} ${effect.id}`);
      dispatch(tree, id, { kind: 'effect-started', ...effect, at });
      tree.flying.push({ of: id, effect });
      return true;
    }
    case 'begin-turn':
      dispatch(tree, id, { kind: 'turn-begun', at });
      return true;
    case 'stop':
      for (const child of step.children) tree.signals.push({ to: child, event: { kind: 'interrupt-requested', reason: null, at } });
      dispatch(tree, id, { kind: 'stop-sent', at });
      return true;
    case 'stop-late':
      for (const child of step.children) tree.signals.push({ to: child, event: { kind: 'interrupt-requested', reason: null, at } });
      dispatch(tree, id, { kind: 'late-children-stopped', at });
      return true;
    case 'upsert-attributes':
      dispatch(tree, id, { kind: 'attributes-upserted', status: 'running', turns: 0, at });
      return true;
    case 'upsert-title':
      dispatch(tree, id, { kind: 'title-upserted', at });
      return true;
    case 'notify-children':
      for (const { child, decision } of step.decisions) tree.signals.push({ to: child, event: { kind: 'decided', decision, at } });
      dispatch(tree, id, { kind: 'children-notified', at });
      return true;
    case 'order-children':
      for (const { child, order } of step.orders) {
        const read = readParentOrder(JSON.parse(JSON.stringify(order)));
        if (read.ok) tree.signals.push({ to: child, event: { kind: 'parent-ordered', order: read.value.order, at } });
        else tree.problems.push(read.reason);
      }
      dispatch(tree, id, { kind: 'children-ordered', orders: step.orders, at });
      return true;
    case 'notify-parent': {
      const read = readChildNews(JSON.parse(JSON.stringify(step.news)));
      const news = read.ok ? read.value : undefined;
      const { conversation: to } = step.parent;
      if (news?.kind === 'asks') {
        tree.signals.push({ to, event: { kind: 'child-asks', callId: news.callId, asks: news.asks, at } });
        dispatch(tree, id, { kind: 'parent-notified', asks: JSON.stringify(news.asks), at });
      } else if (news?.kind === 'control' && step.news.kind === 'control') {
        tree.signals.push({ to, event: { kind: 'child-stepped', callId: news.callId, control: news.control, at } });
        dispatch(tree, id, { kind: 'parent-notified', control: step.news.control, at });
      } else tree.problems.push(`the parent would not take ${JSON.stringify(step.news)}`);
      return true;
    }
    case 'hand-over': {
      const carried = readCarriedState(JSON.parse(JSON.stringify(stateOf(tree, id))), stateOf(tree, id).identity.life);
      if (!carried.ok) {
        tree.problems.push(carried.reason);
        return false;
      }
      tree.conversations.set(id, carried.value);
      dispatch(tree, id, { kind: 'run-continued', at });
      return true;
    }
    case 'finish':
    case 'refuse':
      tree.conversations.delete(id);
      return false;
    case 'reduce':
    case 'wait':
      return false;
  }
}

/** The n-th signal under way arrives. */
export function deliver(tree: Tree, which: number): void {
  const [signal] = tree.signals.splice(which % Math.max(1, tree.signals.length), 1);
  if (signal) tell(tree, signal.to, { ...signal.event, at: ++tree.at });
}

/** The n-th effect in flight ends. */
export function end(tree: Tree, which: number): void {
  const [one] = tree.flying.splice(which % Math.max(1, tree.flying.length), 1);
  if (!one) return;
  const { of, effect } = one;
  const state = tree.conversations.get(of);
  const at = ++tree.at;
  const completed = (output: unknown): void =>
    tell(tree, of, { kind: 'effect-completed', effect: effect.effect, id: effect.id, output, at } as ConversationEvent);
  if (effect.effect === 'start-child') {
    const { child, options } = effect.input;
    const delegation = read(delegationSchema, JSON.parse(JSON.stringify(options.delegation)), 'start.delegation');
    if (!delegation.ok) return void tree.problems.push(delegation.reason);
    const opened = openConversation({
      ...{
        identity: { life: child, agent: 'a', scope: 'default' },
        conversation: child,
        title: null,
        model: null,
        rules: LATEST_RULES,
        at,
      },
      delegation: delegation.value,
    });
    tree.conversations.set(child, opened);
    dispatch(tree, child, said('task', { at }));
    tell(tree, child, { kind: 'close-requested', at });
    return completed(undefined);
  }
  if (effect.effect === 'report') {
    const { parent, ended } = effect.input;
    const report = { text: `done by ${of}`, stopReason: ended.stopReason, usage: ended.usage };
    tree.signals.push({ to: parent.conversation, event: { kind: 'child-ended', callId: parent.callId, report, at } });
    return completed(undefined);
  }
  if (effect.effect === 'ask-memory') {
    completed(undefined);
    return tell(tree, of, { kind: 'consolidation-ended', requestId: effect.id, consolidation: 'model', usage: null, at });
  }
  if (effect.effect === 'look-after') return completed(tree.conversations.has(effect.input.child) ? 'RUNNING' : 'COMPLETED');
  if (effect.effect === 'model-step' && typeof state?.turn?.stopping?.sentAt === 'number')
    return completed(deferred(effect.input, 'stopped'));
  if (!state) return;
  completed(outcomeOf(tree, one));
}

function modelOf(tree: Tree, id: string, input: ModelStepInput): ModelAnswer {
  const depth = id.split(':').length === 1 ? 0 : (id.match(/:turn/g) ?? []).length;
  if (input.call.firstToolCall > 1) return answer(input, { usage: USAGE });
  const delegates: ToolPlan = {
    ...ORDINARY,
    workflowAction: { kind: 'delegate', agent: 'a', task: 't', title: 't', maxDepth: 5, maxChildren: 5, capability: 'c'.repeat(32) },
  };
  const works: ToolPlan = approvals.get(tree) ? { ...ORDINARY, approval: { policy: 'ask', expiresMs: 1e9 } } : ORDINARY;
  const plans = depth === 0 ? [delegates, delegates] : depth === 1 ? [ORDINARY, delegates] : [works];
  const names = depth === 0 ? ['delegate', 'delegate'] : depth === 1 ? ['look', 'delegate'] : ['work'];
  const blocks = names.map((name, i) => ({
    ...{ kind: 'tool-call' as const, callId: `${input.turn}/c${input.call.firstToolCall + i}`, name, input: {} },
  }));
  return answer(input, { blocks, stop: 'tool-calls', plans, usage: USAGE });
}

/** All signals arrive and all that is in flight ends, in an order that `seed` chooses. */
export function rest(tree: Tree, seed = 0): void {
  let n = seed;
  for (let i = 0; i < 5_000; i++) {
    if (tree.signals.length === 0 && tree.flying.length === 0) return;
    n = (n * 1_103_515_245 + 12_345) % 2_147_483_648;
    if (tree.flying.length === 0 || (tree.signals.length > 0 && n % 3 > 0)) deliver(tree, n);
    else end(tree, n);
  }
  tree.problems.push('it never comes to rest');
}
