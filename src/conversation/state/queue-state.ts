/** What waits its turn, as state. */
import type { Turn } from './turn-state.js';
import type { Delivery } from '../protocol/contract.js';
import type { JsonValue, MessageContent } from '../../records/message.js';
import type { SlotRange } from '../../records/slots.js';
import type { Writes } from '../outbox/writes.js';

export type QueueItem =
  | ({
      readonly kind: 'message';
      readonly number: number;
      readonly messageId: string;
      /** 0 for a steering message until it is known which turn it joins or becomes. */
      readonly turn: number;
      readonly slot: number;
      readonly session: number;
      readonly at: number;
      readonly bytes: number;
      /** By estimate, pictures and files with it. Absent in older histories. */
      readonly tokens?: number;
      readonly delivery: Delivery;
      /** Where these lie once recorded. */
      readonly outputRef?: string;
      readonly contextRef?: string;
      readonly toolsRef?: string;
      readonly recorded: boolean;
      /** Interrupted before it began: its turn ends as soon as it begins. */
      readonly stopped?: boolean;
      /** Trace of its turn that it is; 1 unless it joined a running one. */
      readonly seq?: number;
      /** Of a message that is too large for one input: its stored parts so far (outbox/large-message-in-parts). */
      readonly parts?: readonly string[];
      /** Of the request that brought it (W3C). */
      readonly traceparent?: string;
      /** Its text is one of Perdura's (outbox/text-until-written). */
      readonly isWithheld?: true;
      /** Its content is gone once it is recorded. */
    } & Partial<MessageContent>)
  /** An application event; `payload` stays in the queue until its reducer has seen it. */
  | {
      readonly kind: 'app';
      readonly number: number;
      readonly id: string;
      readonly type: string;
      readonly payload: JsonValue;
      /** UTF-8 bytes of the payload. */
      readonly bytes: number;
      readonly at: number;
    }
  /** For all requests of kind `reset` that have its number. */
  | { readonly kind: 'reset'; readonly number: number; readonly at: number }
  | SpilledMessages;

/** Recorded messages that lie in the store alone; `turns` are the lowest and the highest of their numbers. */
export interface SpilledMessages {
  readonly kind: 'spilled';
  readonly number: number;
  readonly at: number;
  readonly slots: readonly SlotRange[];
  readonly turns: readonly [lowest: number, highest: number];
}

export type QueuedMessage = Extract<QueueItem, { kind: 'message' }>;

/** By estimate. */
export function messageTokens({ tokens, bytes }: Pick<QueuedMessage, 'tokens' | 'bytes'>): number {
  return tokens ?? Math.ceil(bytes / 4);
}

/** Pending writes to the store, as state (pending-writes.ts). */
export interface Outbox extends Pick<Writes, 'settle' | 'feed' | 'entries' | 'limit'> {
  /** Messages that turns have taken. */
  readonly messages: readonly QueuedMessage[];
}

export const EMPTY_OUTBOX: Outbox = { messages: [], settle: [], feed: [], entries: [] };

/** Whether the store has everything that was decided so far; what a running step carries is not there yet. */
export function isStoreUpToDate({ outbox }: { readonly outbox: Outbox }): boolean {
  return outbox.messages.length + outbox.settle.length + outbox.entries.length + outbox.feed.length === 0;
}

export type QueuedAppEvent = Extract<QueueItem, { kind: 'app' }>;

/** The event whose turn it is: at the head of the queue, or while a turn runs the first of them (context/events-between-effects). */
export function nextAppEvent({
  turn,
  queue,
}: {
  readonly turn: Pick<Turn, 'stopping'> | null;
  readonly queue: readonly QueueItem[];
}): QueuedAppEvent | undefined {
  if (!turn) return queue[0]?.kind === 'app' ? queue[0] : undefined;
  if (turn.stopping) return undefined;
  const first = queue.find(({ kind }) => kind === 'app' || kind === 'reset');
  return first?.kind === 'app' ? first : undefined;
}

/** As outside names an item of the queue. */
export function queuedId({ number }: QueueItem): string {
  return `qevt_${String(number).padStart(6, '0')}`;
}
