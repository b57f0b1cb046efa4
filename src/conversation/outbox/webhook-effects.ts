/** Inputs and results of webhook delivery. */
import type { ConversationIdentity, ParentLink } from '../../records/identity.js';
import type { WebhookEventType } from '../../records/turn-end.js';
import type { EndedTurn } from '../state/turn-state.js';

/** `number` counts the events of this life, so that receivers can order them. `at`: epoch milliseconds. */
export type DueEvent = { readonly number: number; readonly at: number; readonly turn: string } & (
  | { readonly kind: 'turn-ended'; readonly ended: EndedTurn }
  | {
      readonly kind: 'waiting';
      readonly callId: string;
      readonly what: 'approval' | 'question';
      readonly tool: string;
      /** Hash of name and arguments: a decision with this hash applies to these arguments only. */
      readonly hash: string;
      readonly askedIn: number;
      readonly until: number;
    }
);

/** `deliver`: starts a separate workflow for each event. */
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
  /** Selects the endpoint; its URL and signing key are in the settings of the worker that posts. */
  readonly identity: ConversationIdentity;
  readonly conversation: string;
  /** JSON, byte by byte what is signed. */
  readonly body: string;
  /** The wait that the event reports: once it is over, the event is not delivered. `until`: epoch milliseconds. */
  readonly wait?: { readonly callId: string; readonly until: number };
}

/** `gone`: the receiver answered 410. `over`: the wait had ended before the receiver took the event. */
export interface WebhookOutcome {
  readonly outcome: 'delivered' | 'gone' | 'over';
  readonly status?: number;
}

/** What a run of the workflow `gc` has done. */
export interface GcOutcome {
  /** Conversations that were told to end, since they were idle for as long as they say. */
  readonly closed: number;
  /** Of which something was archived. */
  readonly archived: number;
  readonly entries: number;
  readonly bodies: number;
  /** Of the texts that were archived, and of the archive that was written. */
  readonly plainBytes: number;
  readonly bytes: number;
  /** Parts of archives that a run which was killed had left: removed with their conversation, and taken into the index. */
  readonly removed: number;
  readonly adopted: number;
  /** Of conversations that the store does not know: left as they are. */
  readonly unknown: number;
}

/** What a run of the workflow `retention` has done. */
export interface RetentionOutcome {
  readonly deleted: number;
  /** Due, and still there: a fork reads their turns, or they could not be closed. */
  readonly kept: number;
}
