/**
 * A conversation as a value: plain JSON, versioned, small, carried through continue-as-new. Indexes and counters only:
 * a text is here from its arrival until it is recorded, or while the store cannot take it.
 */
import type { AppEvents } from './context/reducers.js';
import type { Delegation, RejectedInput, AgentStatus, TurnError } from './protocol/contract.js';
import type { AgentSettings } from './state/settings.js';
import type { Effect } from './effect.js';
import { NO_COMPACTION, type CompactionState, openConsolidation, type ConsolidationState } from './state/compaction-state.js';
import { type JsonObject, type LateResult, type ToolOutcome, type Usage, NO_USAGE } from '../records/message.js';
import { type QueueItem, EMPTY_OUTBOX, type Outbox } from './state/queue-state.js';
import type { SlotRange } from '../records/slots.js';
import type { DueEvent } from './outbox/webhook-effects.js';
import type { AppContextRef, HandedBack } from './outbox/writes.js';
import type { Pace, EndedTurn, Retry, Turn } from './state/turn-state.js';
import type { Budget, ConversationIdentity, ParentLink } from '../records/identity.js';
import type { ControlMode, ControlOrder, Breakpoints, StepKind, StepOfChild } from './protocol/stepping.js';
import type { Decision } from './protocol/human-input.js';
import type { ConversationEvent } from './event.js';
import type { Opened, Origin } from './protocol/input.js';
import { NO_REQUESTS, type Requests } from './requests.js';

export interface ConversationState {
  readonly v: 1;
  /** Which `nextStep` this run follows; a hand-over adopts the newest. */
  readonly rules: number;
  readonly identity: ConversationIdentity;
  /** Its workflow id. */
  readonly conversation: string;
  /** What runs: the only place that says so. Empty when a run hands over. */
  readonly inFlight: readonly Effect[];
  /** What waits to be tried again, and until when, by what it is: `store`, a model call's id, `evict`, a consolidation's id. */
  readonly retries: Readonly<Record<string, Retry>>;
  /** Effects that were given up while they ran: what they had cost is counted once, from their fence or their late result. */
  readonly abandoned: readonly string[];
  /** Tools that run on after a person's stop, as effects: a hand-over waits for them (outbox/late-result-told). Absent: none. */
  readonly stoppedTools?: readonly string[];
  /** Results of tools that came after a person's stop, until the next turn has them (outbox/late-result-told). Absent: none. */
  readonly lateResults?: readonly LateResult[];
  /** Absent: it is no sub-agent. */
  readonly parent?: ParentLink;
  /** What its parent knows it by. */
  readonly capability?: string;
  /**
   * Sub-agents that it has started, the last ones: what comes in their name must show this. The capability itself and not its hash, since
   * each start is in this history with it: who reads the one reads the other.
   */
  readonly subAgents?: readonly (readonly [callId: string, capability: string])[];
  /** Sent to its parent so far: which approvals wait, and how it ended. */
  readonly parentNotified?: {
    readonly asks: string;
    readonly reported: boolean;
    /** How it is stepped, and how often that was sent. */
    readonly control?: { readonly sent: string; readonly number: number };
  };
  /** Set by the start or `raiseBudget`; the agent's budget otherwise. */
  readonly budget?: Budget;
  readonly appContext?: AppContextRef;
  /** Of a sub-agent: `appContext` as its parent gave it, and what went back before the report; null: it was lost. */
  readonly givenContext?: AppContextRef;
  readonly handedBack?: HandedBack | null;
  /** Values for tools that a start has brought, until they are recorded. */
  readonly startContext?: JsonObject;
  /** What a person has allowed for good (turn/approvals.ts). Absent: nothing. */
  readonly allowedCalls?: readonly AllowedCall[];
  /** Sub-agents that began only after their turn was to stop: the stop has not reached them. */
  readonly lateChildren?: readonly string[];
  /** Decisions to be sent to sub-agents. */
  readonly childDecisions?: readonly { readonly child: string; readonly decision: Decision }[];
  /** Of the application (app-events.ts). */
  readonly appEvents?: AppEvents;
  /** Its start named no mode: what the agent or the worker says counts, once the first step has read it. */
  readonly isModeOpen?: true;
  /** Absent: it runs by itself, and nothing stops it (control.ts). */
  readonly control?: Control;
  readonly title: string | null;
  /** `wanted`: the first message gives it one; `due`: it has one that lists do not know yet. Absent: neither. */
  readonly autoTitle?: 'wanted' | 'due';
  /** A model is to make a better one of the first exchange, whose question is in this slot. Absent: none is. */
  readonly betterTitle?: { readonly slot: number; readonly isAsked?: true };
  /** The last question and answer, for Temporal's page. Absent: nothing is shown. */
  readonly words?: { readonly asked?: string; readonly answered?: string };
  /** Of the start, or chosen since; null: the agent's model. */
  readonly modelOverride: string | null;
  /** It was given back to the agent, and no step has read yet which one that is. */
  readonly isModelOpen?: true;
  /** Epoch milliseconds of the latest event. */
  readonly now: number;
  readonly settings: AgentSettings | null;
  readonly session: number;
  readonly epoch: number;
  /** The last numbers given out. They never go back within a life. */
  readonly counters: {
    readonly turn: number;
    readonly slot: number;
    readonly queued: number;
    /** Of effects that no other id distinguishes, of events for watchers, and of what archives or restores. */
    readonly effect: number;
    readonly feed: number;
    readonly move: number;
  };
  readonly queue: readonly QueueItem[];
  readonly turn: Turn | null;
  /** Entries that the next model call sees, in order. */
  readonly context: readonly SlotRange[];
  /** The last reported prompt and answer, plus an estimate of what came since. */
  readonly contextTokens: number;
  readonly compaction: CompactionState;
  readonly consolidation: ConsolidationState;
  readonly usage: Usage;
  /** Of that, what sub-agents have reported. */
  readonly ofSubAgents?: Usage;
  readonly turnsEnded: number;
  /** Number of the last turn that has begun and that no rewind has cut. */
  readonly latestTurn: number;
  readonly ended: readonly EndedTurn[];
  /** What outside has requested under an id, and the answers (requests.ts). */
  readonly requests: Requests;
  /** Pending writes: each leaves state only once a step says that it is written (pending-writes.ts). */
  readonly outbox: Outbox;
  /** Absent where no webhook was ever to get anything (outbox/deliveries.ts). */
  readonly deliveries?: Deliveries;
  readonly rejected: { readonly count: number; readonly last: readonly RejectedInput[] };
  readonly closing: 'no' | 'running-out' | 'consolidated';
  /** Absent: what is left of it is consolidated. */
  readonly closesWithoutMemory?: true;
  readonly handOver: string | null;
  /** Another build of the workers takes new runs: which of this one's moments it waits for (opening.ts). Absent: none does. */
  readonly upgrade?: 'between-turns' | 'parked-too';
  /** Slots of queued messages that the store has lost; `tried` once healing has not brought them back. */
  readonly heal: { readonly slots: readonly number[]; readonly tried: boolean } | null;
  /** Where this life comes from; absent in one with no origin. */
  readonly lineage?: LineageState;
  /** Branches that rewinds have cut. Absent: none. */
  readonly branches?: number;
  /** Absent before the first answer. */
  readonly pace?: Pace;
  /** The last tool that the model called, and how it ended, for people. */
  readonly lastTool: { readonly name: string; readonly target: string; readonly outcome?: ToolOutcome } | null;
  /** Whether this run may upsert search attributes, and what any run upserted last. */
  readonly attributes: {
    readonly known: 'unknown' | 'registered' | 'missing';
    readonly upserted: { readonly status: AgentStatus; readonly turns: number; readonly model?: string } | null;
  };
}

export function openConversation(start: {
  readonly identity: ConversationIdentity;
  readonly title: string | null;
  readonly autoTitle?: boolean;
  readonly model: string | null;
  readonly rules: number;
  readonly at: number;
  readonly conversation: string;
  readonly mode?: ControlMode;
  readonly budget?: Budget;
  readonly context?: JsonObject;
  readonly delegation?: Delegation;
}): ConversationState {
  const { conversation, mode, budget, context, delegation } = start;
  const order = delegation?.control;
  return {
    v: 1,
    rules: start.rules,
    identity: start.identity,
    conversation,
    inFlight: [],
    retries: {},
    abandoned: [],
    ...(mode === undefined && !delegation && { isModeOpen: true as const }),
    ...(mode === 'stepping' && { control: { ...AUTO, mode } }),
    ...(order && { control: { ...AUTO, mode: order.mode, breakpoints: breakpointsLeft(order), order } }),
    ...(budget && { budget }),
    ...(context && { startContext: context }),
    ...(delegation && { parent: delegation.parent, parentNotified: { asks: '[]', reported: false } }),
    ...(delegation?.capability !== undefined && { capability: delegation.capability }),
    ...(delegation?.appContext && { appContext: delegation.appContext, givenContext: delegation.appContext }),
    title: start.title,
    ...(start.title === null && start.autoTitle !== false && !delegation && { autoTitle: 'wanted' as const }),
    modelOverride: start.model,
    now: start.at,
    settings: null,
    session: 1,
    epoch: 1,
    counters: { turn: 0, slot: 0, queued: 0, effect: 0, feed: 0, move: 0 },
    queue: [],
    turn: null,
    context: [],
    contextTokens: 0,
    compaction: NO_COMPACTION,
    consolidation: openConsolidation(start.at),
    usage: NO_USAGE,
    turnsEnded: 0,
    latestTurn: 0,
    ended: [],
    requests: NO_REQUESTS,
    outbox: EMPTY_OUTBOX,
    rejected: { count: 0, last: [] },
    closing: 'no',
    handOver: null,
    heal: null,
    lastTool: null,
    attributes: { known: 'unknown', upserted: null },
  };
}

/** A call that a person has allowed for good. */
export interface AllowedCall {
  readonly same: string;
  /** For people: what it was, and where they allowed it. */
  readonly tool: string;
  readonly target: string;
  readonly callId: string;
}

/** Stepping (stepping/control.ts). */
export interface Control {
  readonly mode: ControlMode;
  readonly lock: StepLock | null;
  readonly breakpoints: Breakpoints;
  /** Why it stopped by itself. */
  readonly pausedBy: string | null;
  /** The sub-agent that has that breakpoint; absent: this conversation has it. */
  readonly pausedIn?: string;
  /** What a breakpoint has stopped before already. */
  readonly passed: string | null;
  /** Decisions about the mode, which sub-agents follow (sub-agents.ts). Absent: none. */
  readonly changes?: number;
  /** A breakpoint at a cost was reached, here or below. */
  readonly reachedCost?: true;
  /** Of a sub-agent: the last order of its parent, and how the step went that the order requested. */
  readonly order?: ControlOrder;
  readonly ordered?: StepOfChild & { readonly stepId: string };
}

export interface StepLock {
  readonly id: string;
  readonly did: Exclude<StepKind, 'nothing'>;
  readonly target: string;
  readonly words: string;
  /** True: sub-agents go on until they have reported. */
  readonly over?: true;
  /** How the world was before it. */
  readonly before: { readonly slots: readonly number[]; readonly count: number; readonly contextTokens: number };
}

export const AUTO: Control = { mode: 'auto', lock: null, breakpoints: {}, pausedBy: null, passed: null };

/** Whether a step has to be requested before this is done. */
export function isHeld({ control }: ConversationState, did: StepLock['did'], target?: string): boolean {
  if (control?.mode !== 'stepping') return false;
  const { lock } = control;
  return lock?.did !== did || (target !== undefined && lock.target !== target);
}

/** What the parent has spent is spent here too. */
export function breakpointsLeft({ breakpoints, spentUsd }: ControlOrder): Breakpoints {
  const { costUsd } = breakpoints;
  return costUsd === undefined ? breakpoints : { ...breakpoints, costUsd: Math.max(0, costUsd - spentUsd) };
}

/** Events of this life that webhooks are to get: how many there were, and those whose delivery has not begun. */
export interface Deliveries {
  readonly count: number;
  readonly due: readonly DueEvent[];
}

/** What is known of other lives (lineage/). */
export interface LineageState {
  readonly origin: Origin;
  readonly isOpen: boolean;
  /** What came before it was opened: numbered, in its order, once it is known from which numbers on. */
  readonly held: readonly ConversationEvent[];
  /** It cannot be opened, and the conversation with it. */
  readonly refused: TurnError | null;
  readonly opened: Opened | null;
}
