/** Stepping, as people and programs ask for it and see it (seed 004). */

/** Seed 004: `auto` goes on by itself, `stepping` does one thing for each `step`. */
export type ControlMode = 'auto' | 'stepping';

/** In `auto`: stop before a tool of these names, before an event of these types (`message`, `reset`, an application's own), on an error, at a cost. */
export interface Breakpoints {
  readonly tools?: readonly string[];
  readonly events?: readonly string[];
  readonly onError?: boolean;
  readonly costUsd?: number;
}

export type StepKind = 'event' | 'truncation' | 'compaction' | 'model-call' | 'tool-run' | 'nothing';

/** Seed 004, StepResult; and in words what was done, and what would be next. */
export interface StepResult {
  readonly stepId: string;
  readonly did: StepKind;
  readonly words: string;
  readonly dispatchResult: DispatchResult | null;
  readonly eventProcessed: boolean;
  readonly compactionPerformed: boolean;
  readonly truncationPerformed: boolean;
  readonly hasPendingOperations: boolean;
  readonly queuedEventCount: number;
  readonly next: string | null;
}

/** Ids are those of the query `context`; at most 200 of each. */
export interface DispatchResult {
  readonly addedChunks: readonly string[];
  readonly removedChunkIds: readonly string[];
  readonly contextTokens: { readonly before: number; readonly after: number };
}

/** Answer of `setMode` and `setBreakpoints`. */
export interface ControlStatus {
  readonly mode: ControlMode;
  readonly stepLock: string | null;
  readonly breakpoints: Breakpoints;
  readonly pausedBy: string | null;
  readonly next: string | null;
}

/** Answer of the query `control`: what a debugger shows beside `status`, `queue` and `context`. */
export interface ControlView extends ControlStatus {
  /** What the running step does. */
  readonly running: string | null;
  /** Tokens; null until the first turn, and for settings of an earlier version. */
  readonly thresholds: {
    readonly soft: number;
    readonly hard: number;
    readonly truncation: number;
    readonly autoCompact: boolean;
  } | null;
  readonly turn: {
    readonly id: string;
    /** Of the model call that is next or under way; null while tools run. */
    readonly modelCall: { readonly id: string; readonly inFlight: boolean; readonly failures: number } | null;
    readonly calls: readonly { readonly id: string; readonly name: string; readonly target: string; readonly status: string }[];
  } | null;
  /** Entries that were left out of the prompt and wait for the next compaction. */
  readonly leftOut: number;
}
