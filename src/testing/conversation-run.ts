/**
 * One conversation without Temporal: the workflow's loop (workflows/conversation.ts). `nextStep` decides; what it starts runs in this
 * process. It never hands over to a next run, and its time is the clock of the test.
 */
import { randomUUID } from 'node:crypto';
import { apply } from '../conversation/apply.js';
import type { ActivityEffect } from '../workflows/activities.js';
import { createAnswers } from '../workflows/answers.js';
import { failureOf } from '../workflows/failure.js';
import type { ConversationEvent } from '../conversation/event.js';
import type { ChildStart, Effect, Effects } from '../conversation/effect.js';
import { readParentOrder } from '../conversation/protocol/child-control.js';
import { LIMITS, type ConversationOutcome, type TurnResult } from '../conversation/protocol/contract.js';
import { readChildNews, readDecision } from '../conversation/protocol/human-input.js';
import { readConsolidationNews } from '../conversation/protocol/memory-input.js';
import { nextStep, type Step } from '../conversation/next-step.js';
import { createReducerRegistry, type Reducers } from '../conversation/inbox/reducers.js';
import { policyOf, type Policy } from '../conversation/effect-table.js';
import type { ConversationState } from '../conversation/state.js';
import type { EndedTurn } from '../conversation/state/turn-state.js';
import { newsRefusal } from '../conversation/turn/delegation.js';
import { resultOf } from '../conversation/views/view.js';
import { turnId } from '../records/identity.js';
import { NO_USAGE } from '../records/message.js';
import { beginningOf } from '../records/text.js';

/** What one conversation says to another. */
export type Signal = 'decide' | 'child' | 'parent' | 'interrupt' | 'consolidated';

/** What it has around it: the clock, the worker, and other conversations. */
export interface Surroundings {
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly reducers: Reducers;
  readonly runActivity: (effect: ActivityEffect, policy: Policy, stop: AbortSignal) => Promise<unknown>;
  /** Throws where it cannot be started. */
  readonly startChild: (start: ChildStart, onEnded: (report: EffectsReport) => void) => void;
  /** To one that has ended: nothing. */
  readonly signal: (conversation: string, signal: Signal, payload: unknown) => void;
  /** Given everything that must have ended before nothing more happens by itself. */
  readonly track: (work: Promise<void>) => void;
  readonly changed: () => void;
}

export type EffectsReport = Extract<ConversationEvent, { kind: 'child-ended' }>['report'];

export interface ConversationRun {
  readonly id: string;
  readonly state: () => ConversationState;
  readonly events: readonly ConversationEvent[];
  dispatch(event: ConversationEvent): void;
  receive(signal: Signal, payload: unknown): void;
  /** With the answer's text. */
  resultOf(ended: EndedTurn): TurnResult;
  /** Epoch milliseconds at which it goes on by itself, where nothing happens before. */
  readonly until: () => number | undefined;
  /** How it has ended. */
  readonly end: () => { readonly outcome: ConversationOutcome } | { readonly refused: string } | undefined;
}

/** Far more than any event leads to at once. */
const MAX_STEPS = 10_000;

export function createConversationRun(id: string, first: ConversationState, around: Surroundings): ConversationRun {
  const { now, signal } = around;
  const reduce = createReducerRegistry(around.reducers);
  const answers = createAnswers();
  const events: ConversationEvent[] = [];
  let state = first;
  let stop = new AbortController();
  let until: number | undefined;
  let end: ReturnType<ConversationRun['end']>;
  let isStepping = false;

  const dispatch = (event: ConversationEvent): void => {
    answers.note(event);
    events.push(event);
    state = apply(state, event);
    step();
    around.changed();
  };

  const textOf = (ended: EndedTurn): TurnResult => {
    const known = answers.of(turnId(ended.number));
    return known ? resultOf(ended, known.text, known.textRef) : resultOf(ended, '');
  };

  const stopChildren = (children: readonly string[]): void => {
    for (const child of children) signal(child, 'interrupt', { reason: 'its parent was stopped' });
  };

  const report = ({ parent, ended, capability }: Effects['report']['input']): void => {
    const { stopReason, usage, error } = ended;
    const text = beginningOf(textOf(ended).text, LIMITS.reportBytes / 4);
    const told = { text, stopReason, usage, ...(error ? { error } : {}) };
    signal(parent.conversation, 'child', {
      ...{ callId: parent.callId, kind: 'ended', report: told },
      ...(capability === undefined ? {} : { capability }),
    });
  };

  const startChild = (start: ChildStart): void =>
    around.startChild(start, (told) => dispatch({ kind: 'child-ended', callId: start.callId, report: told, at: now() }));

  const work = async (effect: Effect): Promise<unknown> => {
    if (effect.effect === 'start-child') return startChild(effect.input);
    if (effect.effect === 'report') return report(effect.input);
    const policy = policyOf(effect);
    if (!policy) throw new Error(`${effect.effect} is no activity`);
    // One that cannot be stopped has a signal that is never aborted.
    const stopped = policy.isStoppable ? stop.signal : new AbortController().signal;
    return around.runActivity(effect as ActivityEffect, policy, stopped);
  };

  const perform = (effect: Effect): Promise<void> => {
    const { effect: name, id: effectId } = effect;
    return work(effect).then(
      (output) => dispatch({ kind: 'effect-completed', effect: name, id: effectId, output, at: now() } as ConversationEvent),
      (error: unknown) => dispatch({ kind: 'effect-failed', effect: name, id: effectId, failure: failureOf(error), at: now() }),
    );
  };

  const start = (one: Exclude<Step, { kind: 'wait' | 'hand-over' | 'finish' | 'refuse' }>): void => {
    const at = now();
    switch (one.kind) {
      case 'effect': {
        const { kind: _, ...effect } = one;
        dispatch({ kind: 'effect-started', ...effect, at });
        return around.track(perform(effect));
      }
      case 'begin-turn':
        return dispatch({ kind: 'turn-begun', at });
      case 'reduce':
        return dispatch({ kind: 'app-event-reduced', id: one.event.id, reduced: reduce(one.event, one.view), at });
      case 'stop':
        stop.abort();
        stop = new AbortController();
        stopChildren(one.children);
        return dispatch({ kind: 'stop-sent', at });
      case 'stop-late':
        stopChildren(one.children);
        return dispatch({ kind: 'late-children-stopped', at });
      case 'upsert-attributes': {
        const { AgentStatus: status, AgentTurns: turns, AgentModel: model } = one.attributes;
        return dispatch({ kind: 'attributes-upserted', status, turns, ...(model !== undefined && { model }), at });
      }
      case 'upsert-title':
        return dispatch({ kind: 'title-upserted', at });
      case 'notify-children':
        for (const { child, decision } of one.decisions) signal(child, 'decide', decision);
        return dispatch({ kind: 'children-notified', at });
      case 'order-children': {
        for (const { child, order, capability } of one.orders)
          signal(child, 'parent', capability === undefined ? order : { ...order, capability });
        const orders = one.orders.map(({ callId, number, key }) => ({ callId, number, key }));
        return dispatch({ kind: 'children-ordered', orders, at });
      }
      case 'notify-parent': {
        const { parent, news } = one;
        signal(parent.conversation, 'child', news);
        if (news.kind === 'control') return dispatch({ kind: 'parent-notified', control: news.control, at });
        return dispatch({ kind: 'parent-notified', asks: JSON.stringify(news.kind === 'asks' ? news.asks : []), at });
      }
      default:
        return one satisfies never;
    }
  };

  /** All that can start now. What a step dispatches comes back here, to the loop that runs already. */
  const step = (): void => {
    if (isStepping || end !== undefined) return;
    isStepping = true;
    try {
      for (let steps = 0; steps < MAX_STEPS; steps++) {
        const next = nextStep(state);
        switch (next.kind) {
          case 'wait':
            until = next.until;
            return;
          case 'finish':
            end = { outcome: next.outcome };
            return;
          case 'refuse':
            end = { refused: next.message };
            return;
          case 'hand-over':
            throw new Error('a conversation in memory hands over to no next run');
          default:
            start(next);
        }
      }
      throw new Error(`${id} has made ${MAX_STEPS} steps without waiting for anything`);
    } finally {
      isStepping = false;
    }
  };

  const reject = (name: string, reason: string): void => dispatch({ kind: 'input-rejected', name, reason, at: now() });

  const receive = (name: Signal, payload: unknown): void => {
    const at = now();
    switch (name) {
      case 'decide': {
        const decision = readDecision(payload);
        return decision.ok ? dispatch({ kind: 'decided', decision: decision.value, at }) : reject(name, decision.reason);
      }
      case 'child': {
        const news = readChildNews(payload);
        if (!news.ok) return reject(name, news.reason);
        const refused = newsRefusal(state, news.value);
        if (refused !== undefined) return reject(name, refused);
        const { callId } = news.value;
        if (news.value.kind === 'asks') return dispatch({ kind: 'child-asks', callId, asks: news.value.asks, at });
        if (news.value.kind === 'control') return dispatch({ kind: 'child-stepped', callId, control: news.value.control, at });
        return dispatch({ kind: 'child-ended', callId, report: news.value.report, at });
      }
      case 'parent': {
        const read = readParentOrder(payload);
        if (!read.ok) return reject(name, read.reason);
        const { order, capability } = read.value;
        if (!state.parent || capability !== state.capability) return reject(name, 'parent.capability is not the one of its start');
        return dispatch({ kind: 'parent-ordered', order, at });
      }
      case 'consolidated': {
        const news = readConsolidationNews(payload);
        if (!news.ok) return reject(name, news.reason);
        return news.value.life === state.identity.life ? dispatch({ kind: 'consolidation-ended', ...news.value, at }) : undefined;
      }
      case 'interrupt':
        return dispatch({ kind: 'interrupt-requested', reason: (payload as { readonly reason?: string }).reason ?? null, at });
      default:
        return name satisfies never;
    }
  };

  step();
  return { id, state: () => state, events, dispatch, receive, resultOf: textOf, until: () => until, end: () => end };
}

/** Of a sub-agent that could not be what its parent has asked for. */
export function failedReport(message: string): EffectsReport {
  return { text: '', stopReason: 'failed', usage: NO_USAGE, error: { type: 'InvalidStart', message } };
}

export function newLife(): string {
  return randomUUID();
}
