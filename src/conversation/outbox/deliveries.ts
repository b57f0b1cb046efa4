/**
 * Events for webhooks. The state notes each one when it happens and hands it to a separate workflow (workflows/webhook.ts), which retries
 * for hours while the conversation goes on.
 *
 * @rule outbox/event-noted-once: An event is noted once, at its change of state, and only if the turn's settings ask for it. (test:
 *   test/conversation/outbox/deliveries.test.ts)
 * @rule outbox/event-until-delivery: An event leaves the state when its delivery has begun. Until then the conversation retries, and a
 *   hand-over carries the event. (test: test/workflows/webhooks.test.ts)
 * @rule outbox/events-in-order: Events go out in order. A wait that is over by then is left out; the store has an answer before its event
 *   goes out. (test: test/conversation/outbox/deliveries.test.ts)
 * @rule outbox/no-turn-of-sub-agent: A sub-agent's waits are events, its turns are not: its parent reports the turn. (test:
 *   test/conversation/outbox/deliveries.test.ts)
 */
import type { DeliverInput, DueEvent } from './webhook-effects.js';
import { isRunning, type Completed, type Failed } from '../effect.js';
import { turnId } from '../../records/identity.js';
import type { WebhookEventType } from '../../records/turn-end.js';
import { isResting, retryAfter, withoutRetry, withRetry } from '../state/turn-access.js';
import type { ConversationState } from '../state.js';
import type { EndedTurn, ToolCall } from '../state/turn-state.js';

/** Key in `state.retries`. */
export const DELIVER_RETRY = 'deliver';
/** Events per activity. */
const MAX_BATCH = 20;
/** Events that wait while no delivery can begin. Beyond it the oldest are dropped; receivers see the gap in the numbers. */
const MAX_DUE = 500;
/** Attempts to begin deliveries before a closing conversation ends without them. */
const MAX_TRIES_AT_CLOSE = 6;

type News =
  | Omit<Extract<DueEvent, { readonly kind: 'turn-ended' }>, 'number' | 'at'>
  | Omit<Extract<DueEvent, { readonly kind: 'waiting' }>, 'number' | 'at'>;

/** `wanted`: the event types, if there are no settings because the agent is unusable. */
export function noteTurnEnd(state: ConversationState, ended: EndedTurn, wanted = state.settings?.webhooks): ConversationState {
  if (state.parent) return state; // (outbox/no-turn-of-sub-agent)
  return note(state, { kind: 'turn-ended', turn: turnId(ended.number), ended }, wanted);
}

/** Notes that a call waits for a person. The client knows about its tools' calls already. */
export function noteWait(
  state: ConversationState,
  { id: callId, name: tool, askedIn, plan }: ToolCall,
  request: PersonRequest,
): ConversationState {
  if (request.kind === 'client-tool') return state;
  const turn = turnId(state.turn?.number ?? 0);
  const { fingerprint: hash = '' } = plan;
  const wait = { kind: 'waiting', turn, callId, what: request.kind, tool, hash, askedIn, until: request.until } as const;
  return note(state, wait, state.settings?.webhooks);
}

type PersonRequest = NonNullable<ToolCall['asked']>;

/** (outbox/event-noted-once) */
function note(state: ConversationState, news: News, wanted: readonly WebhookEventType[] = []): ConversationState {
  if (!wanted.includes(webhookTypeOf(news))) return state;
  const { count, due } = state.deliveries ?? { count: 0, due: [] };
  const event = { ...news, number: count + 1, at: state.now } as DueEvent;
  return { ...state, deliveries: { count: count + 1, due: [...due, event].slice(-MAX_DUE) } };
}

export function webhookTypeOf(event: News): WebhookEventType {
  if (event.kind === 'waiting') return `${event.what}.waiting`;
  return event.ended.stopReason === 'failed' ? 'turn.failed' : 'turn.finished';
}

/** The next events to hand over; undefined if none can go now. */
export function deliverInput(state: ConversationState): DeliverInput | undefined {
  if (state.deliveries === undefined || isRunning(state, 'deliver') || isResting(state, DELIVER_RETRY)) return undefined;
  const live = liveEvents(state);
  const early = live.findIndex((event) => !isStored(state, event));
  const events = live.slice(0, Math.min(MAX_BATCH, early === -1 ? MAX_BATCH : early));
  if (events.length === 0) return undefined;
  const { identity, title, parent } = state;
  return { identity, title, ...(parent && { parent }), events };
}

export function acceptDelivering(state: ConversationState, { input }: Completed<'deliver'>): ConversationState {
  return withoutEvents(state, input);
}

/** A deleted conversation sends no more events (outbox/event-until-delivery). */
export function failDelivering(state: ConversationState, { input, failure, at }: Failed<'deliver'>): ConversationState {
  if (failure.type === 'deleted') return withoutRetry(withoutEvents(state, input), DELIVER_RETRY);
  return withRetry(state, DELIVER_RETRY, retryAfter(failure, (state.retries[DELIVER_RETRY]?.attempts ?? 0) + 1, at));
}

/** True if a closing conversation need not wait for its webhooks. */
export function areDeliveriesBegun(state: ConversationState): boolean {
  return liveEvents(state).length === 0 || (state.retries[DELIVER_RETRY]?.attempts ?? 0) >= MAX_TRIES_AT_CLOSE;
}

/** Removes these events, and earlier ones, which were skipped. */
function withoutEvents(state: ConversationState, { events }: DeliverInput): ConversationState {
  const last = events[events.length - 1];
  if (!state.deliveries || !last) return state;
  const { count, due } = state.deliveries;
  return { ...state, deliveries: { count, due: due.filter(({ number }) => number > last.number) } };
}

/** (outbox/events-in-order) */
function liveEvents({ deliveries, turn }: ConversationState): readonly DueEvent[] {
  const asking = turn?.phase.kind === 'tools' ? turn.phase.calls.filter(({ status }) => status === 'asking') : [];
  return (deliveries?.due ?? []).filter((event) => event.kind === 'turn-ended' || asking.some(({ id }) => id === event.callId));
}

/** (outbox/events-in-order) */
function isStored({ outbox }: ConversationState, event: DueEvent): boolean {
  const slot = event.kind === 'waiting' ? event.askedIn : event.ended.answerSlot;
  return !outbox.entries.some((entry) => entry.slot === slot);
}
