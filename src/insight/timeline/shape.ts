/** A turn's timeline as people and programs get it, and what it is made from. */
import type { HistoryEvent } from '../../heal/fetch-runs.js';
import type { Usage } from '../../records/message.js';

export const LANES = ['model', 'tool', 'sub-agent', 'person', 'retry', 'memory', 'store', 'healing'] as const;
export type Lane = (typeof LANES)[number];

export interface TimelineBar {
  /** Of the event that began it, in its run. */
  readonly id: string;
  readonly lane: Lane;
  readonly label: string;
  readonly detail: string;
  /** Epoch milliseconds. */
  readonly from: number;
  /** null: it goes on. */
  readonly to: number | null;
  /** Where the attempt began that counts; null where none has yet, or where there is no such thing. */
  readonly started: number | null;
  readonly attempt: number;
  /** Identity of the worker that had it last; null where Temporal does not say. */
  readonly worker: string | null;
  readonly outcome: 'ok' | 'failed' | 'timed-out' | 'canceled' | 'denied' | 'expired' | 'running';
  /** Of the attempt that counts, or of the one before it. */
  readonly failure: string | null;
  readonly usage: Usage | null;
  readonly model: string | null;
  /** Id of the tool call that it is about. */
  readonly callId: string | null;
  readonly conversation: string | null;
  readonly event: number;
  readonly endEvent: number | null;
  readonly run: string;
}

export interface TimelineMark {
  readonly kind: 'worker-died' | 'worker-changed' | 'handed-over' | 'message' | 'decided' | 'interrupted';
  readonly at: number;
  readonly words: string;
  readonly event: number;
  readonly run: string;
}

/** What a turn has spent its time with. */
export interface TurnTimeline {
  readonly turn: string;
  /** Epoch milliseconds; null where history no longer has anything of it. */
  readonly from: number | null;
  /** null: it goes on. */
  readonly to: number | null;
  readonly bars: readonly TimelineBar[];
  readonly marks: readonly TimelineMark[];
  /** Of all that has ended. */
  readonly usage: Usage | null;
  readonly workers: readonly string[];
  /** False where a part of it has passed its retention. */
  readonly complete: boolean;
}

/** One run as Temporal has it. */
export interface RunHistory {
  readonly run: string;
  readonly events: readonly HistoryEvent[];
}

/** A running activity, by Temporal's word: no event has its start and attempts yet (timeline/lost-or-waiting). */
export interface UnderWay {
  readonly id: string;
  readonly attempt: number;
  readonly startedAt: Date | null;
  readonly lastFailure: string | null;
  readonly worker: string | null;
}
