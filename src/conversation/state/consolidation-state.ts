/** What long-term memory does not have yet, as state. */
import type { Consolidation } from '../protocol/contract.js';
import type { AskMemoryInput } from '../context/memory-effects.js';
import type { SlotRange } from '../../records/slots.js';

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
export interface CoveredTurns {
  readonly requestId: string;
  readonly turns: readonly WindowTurn[];
}

export interface Trimmed {
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
