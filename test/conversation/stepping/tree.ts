/**
 * A tree of conversations with signals between them that arrive in any order: each is the real state with the real `nextStep`, and what a
 * model answers is canned. The first delegates twice, each of these works and delegates once, and the last ones work.
 */
import { apply } from '../../../src/conversation/apply.js';
import type { ConversationEvent } from '../../../src/conversation/event.js';
import type { Effect } from '../../../src/conversation/effect.js';
import { nextStep, type Step } from '../../../src/conversation/next-step.js';
import { LATEST_RULES } from '../../../src/conversation/rules.js';
import { openConversation, type ConversationState } from '../../../src/conversation/state.js';
import { readCarriedState } from '../../../src/conversation/state/carried-state.js';
import { readParentOrder } from '../../../src/conversation/protocol/child-control.js';
import { readChildNews, readDelegation } from '../../../src/conversation/protocol/human-input.js';
import type { ToolPlan } from '../../../src/conversation/activity-io/tool-effects.js';
import type { ModelAnswer, ModelStepInput } from '../../../src/conversation/activity-io/effects.js';
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
  readonly problems: string[];
  at: number;
}

/** `asks`: one of the tools needs a person's approval. */
export function createTree({ asks = false }: { readonly asks?: boolean } = {}): Tree {
  const tree: Tree = { conversations: new Map([[ROOT, open()]]), flying: [], signals: [], works: [], problems: [], at: 2000 };
  approvals.set(tree, asks);
  return tree;
}

const approvals = new WeakMap<Tree, boolean>();

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
    const delegation = readDelegation(JSON.parse(JSON.stringify(options.delegation)));
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
  completed(outputOf(effect, { model: (input) => modelOf(tree, of, input) }));
}

function modelOf(tree: Tree, id: string, input: ModelStepInput): ModelAnswer {
  const depth = id.split(':').length === 1 ? 0 : (id.match(/:turn/g) ?? []).length;
  if (input.call.firstToolCall > 1) return answer(input, { usage: { inputTokens: 1, cachedTokens: 0, outputTokens: 1, costUsd: 0.01 } });
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
  return answer(input, { blocks, stop: 'tool-calls', plans, usage: { inputTokens: 1, cachedTokens: 0, outputTokens: 1, costUsd: 0.01 } });
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
