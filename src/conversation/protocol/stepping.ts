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

/** What a step has done. */
export type StepKind = 'event' | 'truncation' | 'compaction' | 'model-call' | 'tool-run' | 'sub-agent' | 'nothing';

/**
 * Where a step goes when sub-agents are about: `into` takes the next step of one that holds; `over` lets them go on until they have
 * reported, wait for a person or stop at a breakpoint. Without it: what the conversation itself does next, then a sub-agent's next step.
 */
export type StepScope = 'into' | 'over';

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
  /** Of a step into a sub-agent: which one took it, at any depth, and what it was. */
  readonly child?: StepOfChild;
}

/** A step that a sub-agent has made. */
export interface StepOfChild {
  readonly conversation: string;
  readonly did: StepKind;
  readonly words: string;
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
  /** Sub-agents at work, each before its own; absent where there are none. */
  readonly subAgents?: readonly SubAgent[];
}

/** A sub-agent at work, as its parent knows it. It holds when `next` says what its step would do. */
export interface SubAgent {
  readonly conversation: string;
  readonly mode: ControlMode;
  readonly next: string | null;
  readonly pausedBy: string | null;
}

/**
 * Payload of the signal `parent`, and in a sub-agent's start: how it goes on. An order is whole, so the one with the highest number counts
 * in whatever order they arrive.
 */
export interface ControlOrder {
  readonly number: number;
  /** Of the parent's decisions about its mode: a sub-agent that was set by hand is set again only by the next of them. */
  readonly changes: number;
  readonly mode: ControlMode;
  readonly breakpoints: Breakpoints;
  /** What the parent has cost so far, in US dollars: a breakpoint at a cost counts for both. */
  readonly spentUsd: number;
  /** Id of the step that it is to take. */
  readonly step?: string;
}

/** How a sub-agent stands, with those below it. */
export interface ChildControl extends Omit<SubAgent, 'conversation'> {
  readonly number: number;
  /** Of the last order that it has heard. */
  readonly changes: number;
  /** The conversation below it where the breakpoint is; absent: it is its own. */
  readonly pausedIn?: string;
  /** A breakpoint at a cost was reached: it counts once for the whole tree. */
  readonly reachedCost?: true;
  /** The last step that its parent has asked for. */
  readonly step?: StepOfChild & { readonly stepId: string };
  readonly subAgents: readonly SubAgent[];
}

/** What a reducer has made of an event. `not-known`: it was taken out of the queue, or that was too long ago. */
export type AppEventOutcome =
  | ({ readonly kind: 'reduced' } & DispatchResult)
  | { readonly kind: 'unreduced' }
  | { readonly kind: 'parked'; readonly error: string }
  | { readonly kind: 'not-known' };

/** Answer of `dispatch`; `result` for one that waits for it. */
export interface DispatchedEvent {
  readonly id: string;
  /** How many came before it. */
  readonly position: number;
  readonly result?: AppEventOutcome;
}
