/**
 * What `perdura whatif` reports: recorded conversations beside what they became with something changed. Written as lines of JSON (header, one
 * line for each conversation, totals), so that no report has to fit into memory; what people see of it is made from these lines.
 */
import type { ToolOutcome } from '../records/message.js';

export const REPORT_VERSION = 1;
/** UTF-16 units of a text in a report; longer ones are shortened in their middle. */
export const MAX_REPORT_TEXT = 4_096;

/** What was played: the recorded configuration again, so that a model's noise is known, or the changed one. */
export type Lane = 'baseline' | 'candidate';

export interface ReportHeader {
  readonly kind: 'header';
  readonly version: typeof REPORT_VERSION;
  /** ISO time. */
  readonly madeAt: string;
  /** What is different in the candidate, a line each: `model: anthropic/claude-opus-5`. */
  readonly changes: readonly string[];
  readonly policy: ToolPolicy;
  readonly memory: 'recorded' | 'candidate';
  readonly lanes: readonly Lane[];
  /** `provider/model` of the judge; absent: none. */
  readonly judge?: string;
}

/** For a call that no recording answers: end the conversation there, answer by the schema or the project's function, or run it. */
export type ToolPolicy = 'stop' | 'stub' | 'live';

export interface ReportedConversation {
  readonly kind: 'conversation';
  readonly id: string;
  readonly agent: string;
  /** Why nothing of it was played. */
  readonly skipped?: string;
  /** What could not be played as it was: forgotten texts, runs past their retention. */
  readonly gaps: readonly string[];
  /** Turns that were recorded. */
  readonly turns: number;
  readonly lanes: Readonly<Partial<Record<Lane, PlayedLane>>>;
  /** Of the whole conversation, by the judge. */
  readonly verdict?: Verdict;
}

export interface PlayedLane {
  /** The first thing that differs; what was changed on purpose shows here as well. */
  readonly divergence: Divergence | null;
  /** The first answer that differs, where that is not the first thing. */
  readonly answerDivergence?: Divergence;
  /** Oldest first. */
  readonly turns: readonly ComparedTurn[];
  /** It was not played to its end: which call no recording answers, or what failed. */
  readonly stopped?: { readonly turn: string; readonly why: string };
  readonly sum: PlayedSum;
  readonly recordedSum: PlayedSum;
}

/** The first thing that differs. */
export interface Divergence {
  /** `turn_0003` */
  readonly turn: string;
  /** Number of the model call in its turn, from 1. */
  readonly call: number;
  /** The sub-agent whose call it is; `turn` is the one in which it works. Absent: the conversation's. */
  readonly of?: string;
  /**
   * Of the request: what stands before the messages (`system`), the tools that are offered, a message. Of the answer: its calls, its text, how
   * it ended. `missing`: one side has no such call.
   */
  readonly what: 'system' | 'tools' | 'messages' | 'model' | 'tool-calls' | 'text' | 'stop' | 'missing';
  /** The parts that differ, shortened. */
  readonly recorded: string;
  readonly played: string;
}

export interface ComparedTurn {
  readonly turn: string;
  /** What the person sent, shortened. */
  readonly message: string;
  /** Absent where one side does not have this turn. */
  readonly recorded?: TurnSide;
  readonly played?: TurnSide;
}

export interface TurnSide {
  readonly text: string;
  readonly stopReason: string;
  readonly calls: readonly ReportedCall[];
  readonly sum: PlayedSum;
}

export interface ReportedCall {
  readonly name: string;
  /** JSON, shortened. */
  readonly input: string;
  /** Absent: it never ended. */
  readonly outcome?: ToolOutcome;
  /** Shortened. */
  readonly result: string;
  /** Where the result came from. */
  readonly source: 'recording' | 'product' | 'stub' | 'live' | 'none';
}

export interface PlayedSum {
  readonly modelCalls: number;
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  /** null: no price is known. */
  readonly costUsd: number | null;
  /** Milliseconds in the model. */
  readonly modelMs: number;
}

export interface Verdict {
  readonly better: 'recorded' | 'candidate' | 'same' | 'unreadable';
  readonly why: string;
  /** It answered twice, with the two in both orders. */
  readonly agreesWithItself: boolean;
  /** US dollars that the judge took for it, in no other sum; null: no price is known; absent: written before this was counted. */
  readonly costUsd?: number | null;
}

export interface ReportTotals {
  readonly kind: 'totals';
  readonly conversations: number;
  readonly skipped: number;
  readonly lanes: Readonly<Partial<Record<Lane, LaneTotals>>>;
  readonly judged?: {
    readonly better: number;
    readonly worse: number;
    readonly same: number;
    readonly unreadable: number;
    readonly agreement: number;
    /** Of all verdicts, as in `Verdict`. */
    readonly costUsd?: number | null;
  };
}

export interface LaneTotals {
  readonly diverged: number;
  readonly stopped: number;
  /** Of a conversation: played less recorded, with its 95 % interval. Those that were stopped are left out: they cost less since they are shorter. */
  readonly change: Readonly<Record<'inputTokens' | 'outputTokens' | 'costUsd' | 'modelMs' | 'modelCalls' | 'toolCalls', Interval | null>>;
  /** Turns by how they ended, and calls by tool: recorded and played; of a conversation that was stopped the turns before that. */
  readonly stopReasons: Readonly<Record<string, readonly [recorded: number, played: number]>>;
  readonly tools: Readonly<Record<string, readonly [recorded: number, played: number]>>;
}

export interface Interval {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}

export type ReportLine = ReportHeader | ReportedConversation | ReportTotals;
