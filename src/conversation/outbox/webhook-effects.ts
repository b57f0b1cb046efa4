/** What the delivery of events to webhooks asks of activities, and what these answer. */
import type { ConversationIdentity, ParentLink } from '../../records/identity.js';
import type { WebhookEventType } from '../../records/turn-end.js';
import type { EndedTurn } from '../state/turn-state.js';

/** `number` counts the events of this life: a receiver sees by it which came first. `at`: epoch milliseconds. */
export type DueEvent = { readonly number: number; readonly at: number; readonly turn: string } & (
  | { readonly kind: 'turn-ended'; readonly ended: EndedTurn }
  | {
      readonly kind: 'waiting';
      readonly callId: string;
      readonly what: 'approval' | 'question';
      readonly tool: string;
      /** Of its name and arguments: a decision that names it counts for these very arguments. */
      readonly hash: string;
      readonly askedIn: number;
      readonly until: number;
    }
);

/** `deliver`: a separate workflow delivers each of these, for as long as that takes. */
export interface DeliverInput {
  readonly identity: ConversationIdentity;
  readonly title: string | null;
  readonly parent?: ParentLink;
  readonly events: readonly DueEvent[];
}

/** The start argument of the workflow `webhook`, which delivers one event. */
export interface WebhookDelivery {
  /** The same over all attempts, for receivers that drop repeats: `webhook-id`. */
  readonly id: string;
  readonly type: WebhookEventType;
  /** Whose endpoint it goes to; where that is and what signs it, the settings of the worker that posts say. */
  readonly identity: ConversationIdentity;
  readonly conversation: string;
  /** JSON, byte by byte what is signed. */
  readonly body: string;
  /** The wait that it is about: one that is over is not delivered any more. `until`: epoch milliseconds. */
  readonly wait?: { readonly callId: string; readonly until: number };
}

/** `gone`: the receiver answered 410. `over`: the wait had ended before the receiver took the event. */
export interface WebhookOutcome {
  readonly outcome: 'delivered' | 'gone' | 'over';
  readonly status?: number;
}
