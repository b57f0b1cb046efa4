/** What may be said to the workflow `memory:<scope>` (design section 3), and what it says of itself. */
import type { Consolidation } from './contract.js';
import type { Usage } from '../../records/message.js';

export const MEMORY_WORKFLOW_TYPE = 'memory';

export function memoryWorkflowId(scope: string): string {
  return `memory:${scope}`;
}

/** Argument at its start. */
export interface MemoryStart {
  readonly scope: string;
  /** Events after which a run hands over to the next, earlier than by itself. */
  readonly handOver?: number;
}

/** What is forgotten: every line of memory, fact, proposal and line of HISTORY that says it. */
export interface ForgetRequest {
  readonly text: string;
}

/** What was forgotten. */
export interface Forgotten {
  /** Lines of MEMORY.md that are gone. */
  readonly lines: readonly string[];
  /** Facts that are gone, by id. */
  readonly facts: readonly string[];
  /** Proposals that are no longer open, by id. */
  readonly proposals: readonly string[];
}

/** These lives of a conversation were deleted: what they have asked for is dropped. */
export interface DeletedNotice {
  readonly conversation: string;
  readonly lives: readonly string[];
}

/** Decides on a line that only a tool's word stands behind. */
export interface ReviewRequest {
  readonly id: string;
  readonly decision: 'accept' | 'reject';
}

/** What became of a proposal. */
export interface Reviewed {
  readonly id: string;
  readonly line: string;
  /** What was decided: the first decision stays. */
  readonly state: 'accepted' | 'rejected';
}

/** Merges duplicates and prunes, now. `agent` says by whose model and limits. */
export interface CareRequest {
  readonly agent?: string;
}

/** What was done for a memory. */
export interface Cared {
  readonly kind: 'cared' | 'nothing-to-do';
  /** UTF-8 bytes of MEMORY.md. */
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  /** Facts that another one says too, by id. */
  readonly facts: readonly string[];
  /** Absent where no model was asked. */
  readonly usage?: Usage;
}

/** Signal of the memory workflow to the conversation that asked. */
export interface ConsolidationNews {
  readonly requestId: string;
  readonly life: string;
  readonly consolidation: Consolidation;
  readonly usage: Usage | null;
}

/** How the writer of a scope's memory stands. */
export interface MemoryStatus {
  readonly scope: string;
  readonly phase: 'idle' | 'consolidating' | 'waiting-to-retry';
  /** In words, with a time where there is one. */
  readonly waitingFor?: string;
  readonly queued: readonly { readonly conversation: string; readonly messages: number; readonly why: string; readonly attempts: number }[];
  readonly consolidated: number;
  /** Of which the model was no help: HISTORY has their last messages as they were. */
  readonly fallbacks: number;
  readonly usage: Usage;
  /** Latest last. `at` is epoch milliseconds. */
  readonly last: readonly { readonly at: number; readonly what: string }[];
  readonly historyEvents: number;
}
