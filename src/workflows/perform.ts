/** Starts steps and turns what comes of them into events. Nothing here decides. */
import type { SignalDefinition } from '@temporalio/common';
import { policyOf } from '../conversation/effect-table.js';
import type { ConversationEvent } from '../conversation/event.js';
import type { ChildStart, Effect, Effects } from '../conversation/effect.js';
import type { Step } from '../conversation/next-step.js';
import type { createReducerRegistry } from '../conversation/context/reducers.js';
import { runActivity, type ActivityEffect, failureOf } from './activities.js';
import type { Handled } from './handlers.js';
import type { Host } from './host.js';
import { childSignal, decideSignal, interruptSignal, parentSignal, WORKFLOW_TYPE, toPairs } from './messages.js';
import { qualifiedScope, scopeAndTenant } from '../records/identity.js';
import { LIMITS, type TurnResult } from '../conversation/protocol/contract.js';
import type { EndedTurn } from '../conversation/state/turn-state.js';
import { NO_USAGE } from '../records/message.js';
import { truncate } from '../records/text.js';

type Performed = Exclude<Step, { kind: 'wait' | 'hand-over' | 'finish' | 'refuse' }>;

export interface Performer {
  start(step: Performed): void;
  /**
   * Whether the server has each signal to another conversation. A run that ends before takes it along: Temporal drops what a closed run
   * wanted to send (measured; a sub-agent's question was never sent).
   */
  hasSent(): boolean;
}

export function createPerformer(
  host: Host,
  dispatch: (event: ConversationEvent) => void,
  resultOf: Handled['resultOf'],
  reduce: ReturnType<typeof createReducerRegistry>,
): Performer {
  /** A stop is for all that is in flight; what starts after it has a new scope. */
  let scope = host.createScope();
  let sending = 0;

  const send = async <Args extends unknown[]>(workflowId: string, signal: SignalDefinition<Args>, ...args: Args): Promise<void> => {
    sending += 1;
    await signalOther(host, workflowId, signal, ...args);
    sending -= 1;
  };
  const stopChildren = (children: readonly string[]): void => {
    for (const child of children) void send(child, interruptSignal, { reason: 'its parent was stopped' });
  };
  const work = (effect: Effect): Promise<unknown> => {
    switch (effect.effect) {
      case 'start-child':
        return startSubAgent(host, effect.input, dispatch);
      case 'report':
        return report(host, effect.input, resultOf);
      default:
        return runActivity(host, effect as ActivityEffect);
    }
  };
  /** One promise and no more: a replay pays for each. */
  const perform = (effect: Effect): Promise<void> => {
    const { effect: name, id } = effect;
    return work(effect).then(
      // The activity of that name answers with this effect's output.
      (output) => dispatch({ kind: 'effect-completed', effect: name, id, output, at: host.now() } as ConversationEvent),
      (error: unknown) => dispatch({ kind: 'effect-failed', effect: name, id, failure: failureOf(error), at: host.now() }),
    );
  };

  return {
    hasSent: () => sending === 0,
    start(step) {
      const at = host.now();
      switch (step.kind) {
        case 'effect': {
          const { kind: _, ...effect } = step;
          dispatch({ kind: 'effect-started', ...effect, at });
          return void (policyOf(effect)?.isStoppable ? scope.run(() => perform(effect)) : perform(effect));
        }
        case 'begin-turn':
          return dispatch({ kind: 'turn-begun', at });
        case 'reduce':
          return dispatch({ kind: 'app-event-reduced', id: step.event.id, reduced: reduce(step.event, step.view), at });
        case 'stop':
          scope.cancel();
          scope = host.createScope();
          stopChildren(step.children);
          return dispatch({ kind: 'stop-sent', at });
        case 'stop-late':
          stopChildren(step.children);
          return dispatch({ kind: 'late-children-stopped', at });
        case 'upsert-attributes': {
          const { AgentStatus: status, AgentTurns: turns, AgentModel: model } = step.attributes;
          host.upsertSearchAttributes(toPairs(step.attributes));
          return dispatch({ kind: 'attributes-upserted', status, turns, ...(model !== undefined && { model }), at });
        }
        case 'upsert-title':
          host.upsertMemo({ title: step.title });
          return dispatch({ kind: 'title-upserted', at });
        case 'notify-children':
          for (const { child, decision } of step.decisions) void send(child, decideSignal, decision);
          return dispatch({ kind: 'children-notified', at });
        case 'order-children':
          for (const { child, order, capability } of step.orders)
            void send(child, parentSignal, capability === undefined ? order : { ...order, capability });
          return dispatch({
            kind: 'children-ordered',
            orders: step.orders.map(({ callId, number, key }) => ({ callId, number, key })),
            at,
          });
        case 'notify-parent': {
          const { parent, news } = step;
          void send(parent.conversation, childSignal, news);
          if (news.kind === 'control') return dispatch({ kind: 'parent-notified', control: news.control, at });
          return dispatch({ kind: 'parent-notified', asks: JSON.stringify(news.kind === 'asks' ? news.asks : []), at });
        }
        default:
          return step satisfies never;
      }
    },
  };
}

// Sub-agents and the parent: separate workflows that are started, notified and reported to.

/** A workflow that has ended needs no signal. Resolves once the server has it. */
function signalOther<Args extends unknown[]>(host: Host, workflowId: string, signal: SignalDefinition<Args>, ...args: Args): Promise<void> {
  return host.signal(workflowId, signal, args).catch(() => undefined);
}

/** Resolves once it runs. It reports by signal; that it ended without a report shows only here, while this run lasts. */
async function startSubAgent(
  host: Host,
  { callId, child, options }: ChildStart,
  dispatch: (event: ConversationEvent) => void,
): Promise<void> {
  const { agent = '', scope = '', tenant, title = '' } = options;
  const handle = await host.startChild(WORKFLOW_TYPE, {
    workflowId: child,
    args: [options],
    memo: { agent, ...scopeAndTenant(qualifiedScope(tenant, scope)), title },
    staticSummary: title,
  });
  handle.result().catch((error: unknown) => {
    const { type, message } = failureOf(error);
    const report = { text: '', stopReason: 'failed', usage: NO_USAGE, error: { type, message } } as const;
    dispatch({ kind: 'child-ended', callId, report, at: host.now() });
  });
}

/** How the one turn of this sub-agent ended. A signal in the task that completes the workflow is lost (measured), so this waits. */
async function report(
  host: Host,
  { parent, ended, context, capability }: Effects['report']['input'],
  resultOf: (ended: EndedTurn) => Promise<TurnResult | undefined>,
): Promise<void> {
  const result = await resultOf(ended);
  const text = truncate(result?.text ?? '(The store, which has its answer, does not answer now.)', LIMITS.reportBytes / 4);
  const { stopReason, usage, error } = ended;
  const report = { text, stopReason, usage, ...(error ? { error } : {}), ...(context && { context }) };
  const shown = capability === undefined ? {} : { capability };
  await signalOther(host, parent.conversation, childSignal, { callId: parent.callId, kind: 'ended', report, ...shown });
}
