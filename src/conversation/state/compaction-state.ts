/** What the context stands on, and what long-term memory does not have yet, as state. */
import type { Task } from '../../records/episodes.js';
import type { TurnError, Consolidation } from '../protocol/contract.js';
import type { SlotRange } from '../../records/slots.js';
import { fixedRatio, type TokenCalibration } from '../../records/token-estimate.js';
import type { AgentSettings, LearnedBudget } from './settings.js';
import type { AppChunk } from '../context/reducers.js';
import type { AskMemoryInput } from '../context/compaction-effects.js';

/** What the context stands on, and what is being done about it (compaction.ts). */
export interface CompactionState {
  /** Reference to the text that stands before this epoch's messages: what is left of the earlier ones, and the facts. */
  readonly base: string | null;
  readonly baseTokens: number;
  /** null until the agent has set it, or the first compaction has taken it from the session's first message. */
  readonly task: Task | null;
  /** Prompt tokens as the provider last counted them; null once that count is no longer true. */
  readonly reported: number | null;
  /** Of `contextTokens`, what leaves after the next answer: results that are shown whole once (citing.ts). Absent: nothing does. */
  readonly shownOnce?: number;
  /** Of this life, those taken back included. */
  readonly compactions: number;
  /** After the last truncation, or where there was nothing to leave out: the turn, and the tokens that the context kept. */
  readonly truncationRest?: { readonly turn: number; readonly tokens: number };
  /** Of this life (truncation.ts). */
  readonly truncations?: number;
  /** Left out of the prompt, for the next compaction to take up. */
  readonly leftOut?: readonly SlotRange[];
  /** Of these, what a program has named: it causes no compaction by itself. */
  readonly chosenOut?: readonly SlotRange[];
  /** Notices in the context that are not true for ever (truncation.ts). Absent: none. */
  readonly passing?: readonly PassingNotice[];
  /** The epoch in which the model has read that its context fills. */
  readonly hintedIn?: number;
  /** Begun in this life, those that failed or found nothing included: each is a separate effect. */
  readonly attempts: number;
  /** The model has reported that it was given too much: what the turn ends with when nothing helps. */
  readonly forced: TurnError | null;
  /** After one that was done, failed or found nothing: tokens that the context must keep before the next is tried; `turn`: in this one. */
  readonly rest?: { readonly tokens: number; readonly turn?: number } | null;
  /** What the model has shown its real size to be, by saying that it was given too much. Absent: it never has. */
  readonly learned?: LearnedBudget;
  /** Slots of messages that the provider refused: prompts have words in their place. */
  readonly refused?: readonly SlotRange[];
  /** A `base` that it refused: prompts are without it. */
  readonly refusedBase?: string;
  /** The last answer came without messages that may have been refused: if the next one does too, they were. */
  readonly isGuessed?: true;
  /** The largest prompt that the model has answered. */
  readonly accepted?: { readonly model: string; readonly tokens: number };
  /** The model that has refused a prompt without a reason that is known, and after a compaction again. */
  readonly unexplained?: string;
  /** How far the model's count is from estimates. Absent: not known, as with a model whose tokenizer is. */
  readonly calibration?: TokenCalibration;
  /** Slots of persons' messages that prompts show by their ends: a compaction has cited them, or they were too much for the model. */
  readonly cited?: readonly SlotRange[];
  /** Tokens that prompts have not, since these are cited; rather too many than too few. */
  readonly citedTokens?: number;
  /** What an undo brings back. */
  readonly before: {
    /** The epoch that the compaction began. */
    readonly epoch: number;
    readonly base: string | null;
    readonly baseTokens: number;
    readonly context: readonly SlotRange[];
    readonly cited?: readonly SlotRange[];
    readonly leftOut?: readonly SlotRange[];
    readonly contextTokens: number;
    /** Of the application, as they were. Absent: none. */
    readonly chunks?: readonly AppChunk[];
    readonly episode: string;
    readonly archived: readonly SlotRange[];
  } | null;
  /** Absent before the first prompt of a session. */
  readonly pinned?: PinnedMemory;
  /** Hash of the bytes that each prompt begins with: a cache is lost when it changes. */
  readonly prefix: {
    readonly hash: string | null;
    readonly epoch: number;
    readonly changes: number;
    readonly cause: 'new epoch' | 'memory' | 'model' | 'agent or tools' | null;
    /** Absent before the first prompt. */
    readonly model?: string;
    readonly head?: PromptHead;
  };
}

/** References to what a prompt begins with, so that a past one can be made again byte for byte. */
export interface PromptHead {
  readonly system: string;
  /** JSON of the tools as models are told of them. */
  readonly tools: string;
}

/** MEMORY.md in the prompts of one epoch (context/pinned-memory.ts). */
export interface PinnedMemory {
  readonly epoch: number;
  /** In the system prompt. */
  readonly version: string;
  /** Up to which the notices tell what has changed. */
  readonly told: string;
  /** How many things the scope was to forget by then. */
  readonly forgotten: number;
  /** A change of MEMORY.md has begun the epoch. */
  readonly byMemory?: true;
}

/** It holds in its epoch; `leftOut`: afterwards too, as long as messages are left out of the prompt. */
export interface PassingNotice {
  readonly slot: number;
  readonly epoch: number;
  readonly leftOut?: true;
}

export const NO_COMPACTION: CompactionState = {
  base: null,
  baseTokens: 0,
  task: null,
  reported: null,
  compactions: 0,
  attempts: 0,
  forced: null,
  before: null,
  prefix: { hash: null, epoch: 0, changes: 0, cause: null },
};

interface Calibrated {
  readonly settings: Pick<AgentSettings, 'model'> | null;
  readonly compaction: Pick<CompactionState, 'calibration'>;
}

/** Tokens of an estimated token, of the model that is called now. */
export function tokenRatio({ settings, compaction: { calibration } }: Calibrated): number {
  return calibration && calibration.model === settings?.model ? calibration.ratio : 1;
}

/** The same as an input of an activity. */
export function withTokenRatio(state: Calibrated): { readonly tokenRatio?: number } {
  const ratio = tokenRatio(state);
  return ratio === 1 ? {} : { tokenRatio: ratio };
}

/** Of what no message changes, for a prompt that is to be made. */
export function withFixedRatio({ settings, compaction: { calibration } }: Calibrated): { readonly fixedRatio?: number } {
  return calibration && calibration.model === settings?.model ? { fixedRatio: fixedRatio(calibration) } : {};
}

/** Estimated tokens as the conversation's model would count them. */
export function inTokens(state: Calibrated, estimated: number): number {
  return Math.ceil(estimated * tokenRatio(state));
}

/** Which messages long-term memory does not have yet, and what is being done about it (consolidation.ts). */
export interface ConsolidationState {
  /** Epoch milliseconds of the session's beginning. */
  readonly since: number;
  /** Turns of this session since the last one that was consolidated, oldest first; those of a pending consolidation are still among them. */
  readonly turns: readonly WindowTurn[];
  /** Consolidation of the first `turns` turns while the session goes on; the session does not wait for it. */
  readonly pending: (Omit<AwaitedConsolidation, 'outcome'> & { readonly turns: number }) | null;
  /** Consolidated turns that are still in the context, oldest first: they leave it when it is worth while. */
  readonly covered: readonly CoveredTurns[];
  /** The last of them when a trim would have made the prompt larger: it is tried again once there are more. */
  readonly trimRest?: string;
  /** Begun in this life. Each has taken the number of an episode. */
  readonly trims: number;
  /** What trims have taken out of this session's context so far, in messages; absent: nothing. */
  readonly trimmed?: Trimmed;
  /** The session's end is waited for: a reset at the head of the queue, or a close. */
  readonly ending: { readonly until: number; readonly awaited: readonly AwaitedConsolidation[] } | null;
  /** Requests that the memory workflow does not have yet. */
  readonly pendingRequests: readonly AskMemoryInput['request'][];
  /** Requests whose cost is not known yet. */
  readonly unbilled: readonly string[];
}

/** A turn as the window counts it. */
export interface WindowTurn {
  readonly turn: number;
  readonly messages: number;
  readonly slots: readonly SlotRange[];
}

/** What one consolidation was about. */
interface CoveredTurns {
  readonly requestId: string;
  readonly turns: readonly WindowTurn[];
  /** Reference to what it has handed over for them. Absent: nothing. */
  readonly handover?: string;
}

interface Trimmed {
  readonly times: number;
  readonly messages: number;
  /** Of these messages those that no model had summarized: shortened lines stand for them. */
  readonly unsummarized: number;
}

export interface AwaitedConsolidation {
  readonly requestId: string;
  readonly slots: readonly SlotRange[];
  /** Not waited for after this time. */
  readonly until: number;
  /** null while it is not known. */
  readonly outcome: Consolidation | null;
}

export function openConsolidation(since: number): ConsolidationState {
  return {
    since,
    turns: [],
    pending: null,
    covered: [],
    trims: 0,
    ending: null,
    pendingRequests: [],
    unbilled: [],
  };
}

/** More messages are cited: `fewer` tokens are in no prompt any more. */
export function withCitedTokens({ citedTokens = 0 }: CompactionState, fewer: number): Pick<CompactionState, 'citedTokens'> {
  return { citedTokens: citedTokens + Math.max(0, fewer) };
}
