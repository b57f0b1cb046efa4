/** What long-term memory does not have yet, as state. */
import type { Consolidation } from '../protocol/contract.js';
import type { AskMemoryInput } from '../activity-io/memory-effects.js';
import type { SlotRange } from '../../records/slots.js';

/** Which messages long-term memory does not have yet, and what is being done about it (consolidation.ts). */
export interface ConsolidationState {
  /** Epoch milliseconds of the session's beginning. */
  readonly since: number;
  /** Turns of this session that wait for a consolidation, oldest first; those of a pending one are still among them. */
  readonly turns: readonly UnconsolidatedTurn[];
  /** Consolidation of the first `turns` turns while the session goes on; nobody waits for it. */
  readonly pending: (AwaitedConsolidation & { readonly turns: number }) | null;
  /** The session's end is waited for: a reset at the head of the queue, or a close. */
  readonly ending: { readonly until: number; readonly awaited: readonly AwaitedConsolidation[] } | null;
  /** Requests that the memory workflow does not have yet. */
  readonly pendingRequests: readonly AskMemoryInput['request'][];
  /** Requests whose cost is not known yet. */
  readonly unbilled: readonly string[];
  /** Reference to what is left of trimmed messages. */
  readonly recap: string | null;
  readonly recapTokens: number;
}

export interface UnconsolidatedTurn {
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

export function openConsolidation(since: number): ConsolidationState {
  return {
    since,
    turns: [],
    pending: null,
    ending: null,
    pendingRequests: [],
    unbilled: [],
    recap: null,
    recapTokens: 0,
  };
}
