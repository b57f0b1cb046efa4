/**
 * A conversation as a value: plain JSON, versioned, small, carried through continue-as-new. Indexes and counters only:
 * a text is here from its arrival until it is recorded, or while the store cannot take it.
 */
import type { AppEvents } from './app-events.js';
import type { AgentStatus } from './attributes.js';
import type {
  Approval,
  CompactionOutcome,
  Consolidation,
  ControlMode,
  Decision,
  Delegation,
  Delivery,
  FeedEvent,
  RejectedInput,
  ResetResult,
  StopReason,
  TurnError,
} from './contract.js';
import type { AgentSettings, Budget, ConversationIdentity, ParentLink, Settlement, StepFailure } from './effects.js';
import type { AppContextRef, ApprovedWith, ToolPlan } from './tool-effects.js';
import type { AskMemoryInput } from './memory-effects.js';
import type { Task } from './compaction-effects.js';
import { AUTO, type Control } from './control-state.js';
import type { Entry, JsonObject, JsonValue, MediaSource, Usage } from './message.js';
import type { LineageState, RewindState } from './lineage-state.js';
import type { SlotRange } from './slots.js';

export interface ConversationState {
  readonly v: 1;
  /** Which `nextStep` this run follows; a hand-over adopts the newest. */
  readonly rules: number;
  readonly identity: ConversationIdentity;
  /** Its own workflow id. Absent in states of earlier versions until a run of this one carries them on. */
  readonly conversation?: string;
  /** Absent, as all that follow with a question mark: a state of an earlier version, or none. Here: nobody's sub-agent. */
  readonly parent?: ParentLink;
  /** What it has told its parent: which approvals wait, and how it ended. */
  readonly parentTold?: { readonly asks: string; readonly report: 'no' | 'running' | 'yes' };
  /** As the start or `raiseBudget` said; the agent's own otherwise. */
  readonly budget?: Budget;
  readonly appContext?: AppContextRef;
  /** Values for tools that a start has brought, until they are recorded. */
  readonly startContext?: JsonObject;
  /** What sub-agents are still to be told. */
  readonly toChildren?: readonly { readonly child: string; readonly decision: Decision }[];
  readonly notifying?: boolean;
  /** Of the application's own (app-events.ts). */
  readonly appEvents?: AppEvents;
  /** Ids of the last such events, also of those that are reduced by now. */
  readonly seenEvents?: readonly string[];
  /** Absent: it runs by itself, and nothing stops it (control.ts). */
  readonly control?: Control;
  readonly title: string | null;
  readonly modelOverride: string | null;
  /** Epoch milliseconds of the latest event. */
  readonly now: number;
  readonly settings: AgentSettings | null;
  readonly session: number;
  readonly epoch: number;
  /** The last numbers given out. They never go back within a life. */
  readonly counters: { readonly turn: number; readonly slot: number; readonly queued: number };
  readonly queue: readonly QueueItem[];
  readonly turn: Turn | null;
  /** Entries that the next model call sees, in order. */
  readonly context: readonly SlotRange[];
  /** The last reported prompt and answer, plus an estimate of what came since. */
  readonly contextTokens: number;
  readonly memory: MemoryState;
  readonly window: WindowState;
  readonly usage: Usage;
  readonly turnsEnded: number;
  /** Highest turn number begun. */
  readonly latestTurn: number;
  /** Message ids of the last arrivals and the turn that each became (0: none yet). */
  readonly seen: readonly (readonly [messageId: string, turn: number])[];
  readonly ended: readonly EndedTurn[];
  /** `result` is null for one that was taken out of the queue. */
  readonly resets: readonly { readonly resetId: string; readonly result: ResetResult | null }[];
  /** What the next `record` step takes along; `sent` says how much of it a running step has. */
  readonly outbox: {
    readonly settle: readonly Settlement[];
    readonly facts: readonly FeedEvent[];
    readonly sent: { readonly settle: number; readonly facts: number };
  };
  readonly unpersisted: readonly Entry[];
  readonly recording: boolean;
  readonly persisting: boolean;
  /** The store did not take a write: not tried again before `until`. */
  readonly storeRetry: Retry | null;
  readonly rejected: { readonly count: number; readonly last: readonly RejectedInput[] };
  readonly closing: 'no' | 'running-out' | 'consolidated';
  readonly handOver: string | null;
  /** Slots of queued messages that the store has lost; `tried` once healing has not brought them back. */
  readonly heal: { readonly slots: readonly number[]; readonly doing: 'due' | 'running' | 'tried' } | null;
  /** Where this life comes from; absent in one of its own. */
  readonly lineage?: LineageState;
  /** Absent where nothing was ever rewound. */
  readonly rewinds?: RewindState;
  /** Name of the last tool that was asked for, for people. */
  readonly lastTool: string | null;
  /** Whether this run may tell search attributes, and what any run told last. */
  readonly attributes: {
    readonly known: 'unknown' | 'registered' | 'missing';
    readonly told: { readonly status: AgentStatus; readonly turns: number } | null;
  };
}

/** What the context stands on, and what is being done about it (compaction.ts). */
export interface MemoryState {
  /** Reference to the text that stands before this epoch's messages: what is left of the earlier ones, and the facts. */
  readonly base: string | null;
  readonly baseTokens: number;
  /** null until the agent has said it, or the first compaction has taken it from the session's first message. */
  readonly task: Task | null;
  /** Prompt tokens as the provider last counted them; null once that count is no longer true. */
  readonly reported: number | null;
  /** Of `contextTokens`, what leaves after the next answer: results that are shown whole once (citing.ts). Absent: nothing does. */
  readonly shownOnce?: number;
  /** Of this life, those taken back included. */
  readonly compactions: number;
  /** The model call before which nothing more is dropped: there was nothing, or it has just been done. */
  readonly restingFromTruncation?: number;
  /** Of this life (truncation.ts). */
  readonly truncations?: number;
  /** Requests of people that wait for an answer. */
  readonly truncationAsked?: readonly string[];
  /** Left out of the prompt, for the next compaction to take up. */
  readonly leftOut?: readonly SlotRange[];
  /** The epoch in which the model was told that its context fills. */
  readonly hintedIn?: number;
  /** Begun in this life, those that failed or found nothing included: each is an effect of its own. */
  readonly attempts: number;
  readonly doing: {
    readonly kind: 'compact' | 'uncompact' | 'truncate';
    readonly epoch: number;
    /** As it was when that began. */
    readonly context: readonly SlotRange[];
    readonly contextTokens: number;
  } | null;
  /** Requests of people that wait for an answer. */
  readonly asked: readonly string[];
  readonly undoAsked: readonly string[];
  /** The model has said that it was given too much: what the turn ends with when nothing helps. */
  readonly forced: TurnError | null;
  /** Number of the turn in which no other is tried: it failed, found nothing, or has just been done. */
  readonly restingIn: number | null;
  /** What an undo brings back. */
  readonly before: {
    /** The epoch that the compaction began. */
    readonly epoch: number;
    readonly base: string | null;
    readonly baseTokens: number;
    readonly context: readonly SlotRange[];
    readonly contextTokens: number;
    /** How many entries of the present context were kept from it. */
    readonly kept: number;
    readonly episode: string;
    readonly archived: readonly SlotRange[];
  } | null;
  readonly outcomes: readonly { readonly requestId: string; readonly outcome: CompactionOutcome }[];
  /** Hash of the bytes that each prompt begins with: a cache is lost when it changes. */
  readonly prefix: {
    readonly hash: string | null;
    readonly epoch: number;
    readonly changes: number;
    readonly cause: 'new epoch' | 'memory' | 'agent or tools' | null;
    /** Version of MEMORY.md in it; absent in states of earlier versions. */
    readonly memory?: string;
  };
}

/** Which messages long-term memory does not have yet, and what is being done about it (window.ts). */
export interface WindowState {
  /** Epoch milliseconds of the session's beginning. */
  readonly since: number;
  /** Turns of this session that wait for a consolidation, oldest first; those of a pending one are still among them. */
  readonly turns: readonly WindowTurn[];
  /** Consolidation of the first `turns` turns while the session goes on; nobody waits for it. */
  readonly pending: (AwaitedConsolidation & { readonly turns: number }) | null;
  /** The session's end is waited for: a reset at the head of the queue, or a close. */
  readonly ending: { readonly until: number; readonly awaited: readonly AwaitedConsolidation[] } | null;
  /** What the memory workflow has not been told yet. */
  readonly owed: readonly OwedRequest[];
  /** Requests whose cost is not known yet. */
  readonly unpaid: readonly string[];
  readonly puttingAway: boolean;
  /** It failed: not tried again before `until`, and what else there is to do goes on. */
  readonly putAwayRetry: Retry | null;
  /** Reference to what is left of trimmed messages. */
  readonly recap: string | null;
  readonly recapTokens: number;
}

export interface WindowTurn {
  readonly turn: number;
  readonly messages: number;
  readonly slots: readonly SlotRange[];
}

export interface AwaitedConsolidation {
  readonly requestId: string;
  readonly slots: readonly SlotRange[];
  /** Not waited for after this time. */
  readonly until: number;
  /** null while it is not known. */
  readonly outcome: Consolidation | null;
}

export interface OwedRequest {
  readonly request: AskMemoryInput['request'];
  readonly asking: boolean;
  readonly retry: Retry | null;
}

export type QueueItem =
  | {
      readonly kind: 'message';
      readonly number: number;
      readonly messageId: string;
      /** 0 for a steering message until it is known which turn it joins or becomes. */
      readonly turn: number;
      readonly slot: number;
      readonly session: number;
      readonly at: number;
      readonly bytes: number;
      readonly delivery: Delivery;
      /** Gone once recorded. */
      readonly text?: string;
      readonly images?: readonly MediaSource[];
      readonly audio?: readonly MediaSource[];
      readonly video?: readonly MediaSource[];
      readonly output?: JsonObject;
      readonly context?: JsonObject;
      /** Where these lie once recorded. */
      readonly outputRef?: string;
      readonly contextRef?: string;
      readonly recorded: boolean;
      /** Interrupted before it began: its turn ends as soon as it begins. */
      readonly stopped?: boolean;
      /** Steering: it has joined the running turn under this `seq`, and is here only until it is recorded. */
      readonly joinedAs?: number;
    }
  /** An event of the application's own; `payload` lies in the queue until its reducer has seen it. */
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
  | { readonly kind: 'reset'; readonly number: number; readonly resetIds: readonly string[]; readonly at: number }
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

export interface Turn {
  readonly number: number;
  readonly messageIds: readonly string[];
  /** Slot of its first message: from there on the context is this turn's. Absent in states of earlier versions. */
  readonly firstSlot?: number;
  /** Traces of this turn so far (seed 000's `seq` of the last one). */
  readonly seq: number;
  readonly rounds: number;
  /** How often the model has said in this turn that its context is full, and was helped. */
  readonly squeezes: number;
  readonly modelCalls: number;
  readonly toolCalls: number;
  readonly usage: Usage;
  /** Slot of the last thing the assistant said. */
  readonly answerSlot: number | null;
  readonly doing: { readonly kind: 'model'; readonly call: ModelCall } | { readonly kind: 'tools'; readonly calls: readonly ToolCall[] };
  readonly stopping: Stopping | null;
  /** Where the schema of its answer lies. */
  readonly outputRef?: string;
  /** What was wrong with the answer that did not fit it. */
  readonly misfit?: string;
  /** Calls of the last round, and how many rounds in a row each was in. */
  readonly repeats?: readonly (readonly [fingerprint: string, rounds: number])[];
  readonly delegations?: number;
}

export interface ModelCall {
  readonly id: string;
  readonly slot: number;
  readonly seq: number;
  readonly inFlight: boolean;
  readonly failures: number;
  readonly retry: Retry | null;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly slot: number;
  readonly seq: number;
  readonly askedIn: number;
  /** What it is about, in a few words, for people. */
  readonly target: string;
  readonly plan: ToolPlan;
  /** `asking` a person, `sleeping` until a time, `delegated` to a sub-agent: these are nobody's activity (waiting.ts). */
  readonly status: 'waiting' | 'asking' | 'sleeping' | 'delegated' | 'running' | 'done';
  /** Epoch milliseconds. `told`: whoever is to hear of it has been told. */
  readonly asked?: { readonly kind: 'approval' | 'question'; readonly at: number; readonly until: number; readonly told: boolean };
  readonly sleepsUntil?: number;
  readonly child?: { readonly id: string; readonly isRunning: boolean; readonly looks?: Looks; readonly asks: readonly Approval[] };
  readonly person?: ApprovedWith;
}

/** Of a sub-agent that an earlier run has started: only its report would say that it ended, so it is looked after now and then. */
export interface Looks {
  /** Epoch milliseconds. */
  readonly next: number;
  readonly count: number;
  readonly isLooking: boolean;
}

export interface Stopping {
  readonly reason: string | null;
  readonly at: number;
  /** What is in flight was told to stop at this time; after a grace it is not waited for. */
  readonly sentAt: number | null;
}

export interface Retry {
  readonly until: number;
  readonly attempts: number;
  readonly failure: StepFailure;
}

export interface EndedTurn {
  readonly number: number;
  readonly stopReason: StopReason;
  readonly usage: Usage;
  readonly toolCalls: number;
  readonly answerSlot: number | null;
  readonly error?: TurnError;
  /** True: the answer is data that fits what was asked for. */
  readonly fits?: boolean;
}

export const NO_MEMORY: MemoryState = {
  base: null,
  baseTokens: 0,
  task: null,
  reported: null,
  compactions: 0,
  attempts: 0,
  doing: null,
  asked: [],
  undoAsked: [],
  forced: null,
  restingIn: null,
  before: null,
  outcomes: [],
  prefix: { hash: null, epoch: 0, changes: 0, cause: null },
};

export function openWindow(since: number): WindowState {
  return {
    since,
    turns: [],
    pending: null,
    ending: null,
    owed: [],
    unpaid: [],
    puttingAway: false,
    putAwayRetry: null,
    recap: null,
    recapTokens: 0,
  };
}

export const NO_USAGE: Usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, costUsd: 0 };

export function openConversation(start: {
  readonly identity: ConversationIdentity;
  readonly title: string | null;
  readonly model: string | null;
  readonly rules: number;
  readonly at: number;
  readonly conversation?: string;
  readonly mode?: ControlMode;
  readonly budget?: Budget;
  readonly context?: JsonObject;
  readonly delegation?: Delegation;
}): ConversationState {
  const { conversation, mode, budget, context, delegation } = start;
  return {
    v: 1,
    rules: start.rules,
    identity: start.identity,
    ...(conversation !== undefined && { conversation }),
    ...(mode === 'stepping' && { control: { ...AUTO, mode } }),
    ...(budget && { budget }),
    ...(context && { startContext: context }),
    ...(delegation && { parent: delegation.parent, parentTold: { asks: '[]', report: 'no' } }),
    ...(delegation?.appContext && { appContext: delegation.appContext }),
    title: start.title,
    modelOverride: start.model,
    now: start.at,
    settings: null,
    session: 1,
    epoch: 1,
    counters: { turn: 0, slot: 0, queued: 0 },
    queue: [],
    turn: null,
    context: [],
    contextTokens: 0,
    memory: NO_MEMORY,
    window: openWindow(start.at),
    usage: NO_USAGE,
    turnsEnded: 0,
    latestTurn: 0,
    seen: [],
    ended: [],
    resets: [],
    outbox: { settle: [], facts: [], sent: { settle: 0, facts: 0 } },
    unpersisted: [],
    recording: false,
    persisting: false,
    storeRetry: null,
    rejected: { count: 0, last: [] },
    closing: 'no',
    handOver: null,
    heal: null,
    lastTool: null,
    attributes: { known: 'unknown', told: null },
  };
}

/** `turn_0007` (seed 000, section 20). */
export function turnId(number: number): string {
  return `turn_${String(number).padStart(4, '0')}`;
}

export function turnNumber(id: string): number {
  return Number(/^turn_(\d{4,})$/.exec(id)?.[1] ?? 0);
}

/** A price that is not known makes the sum unknown. */
export function addUsage(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    costUsd: a.costUsd === null || b.costUsd === null ? null : a.costUsd + b.costUsd,
  };
}

/** Characters over four (seed 002): a guard, never the driver. */
export function estimateTokens(characters: number): number {
  return Math.ceil(characters / 4);
}
