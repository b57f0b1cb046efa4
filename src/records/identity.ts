/** Whose work it is, who started it, and what it may use. */
import type { Budget, SharedBudget } from './shared-budget.js';

export type { Budget };

/**
 * Who is asking, beyond what an activity has from Temporal anyway (namespace and workflow id). `life` is the first run id: a new
 * start under a used id is a new life.
 */
export interface ConversationIdentity {
  readonly life: string;
  readonly agent: string;
  readonly scope: string;
}

/** The conversation that started this one, and the call that waits for it. */
export interface ParentLink {
  readonly conversation: string;
  readonly life: string;
  readonly callId: string;
  /** 1 for a sub-agent of a conversation that people began. */
  readonly depth: number;
  /** How many sub-agents it may start in its turn, theirs included. Absent: it was started by a version that counted none. */
  readonly share?: number;
  /** Of the conversations that it works for, those whose budgets hold for it too. */
  readonly budgets?: readonly SharedBudget[];
  /** Absent: it sees its items alone. */
  readonly memory?: SharedMemory;
}

/** Whose items a sub-agent sees besides: the parent's, or `of` those whose memory the parent shares itself. */
export interface SharedMemory {
  readonly of?: LifeOf;
  readonly session: number;
  /** Null: it adds to them. Else it sees what was there then: epoch milliseconds, and for the parent's items the slot of its call. */
  readonly until: number | null;
  readonly before?: number;
  /** Where it adds to them: the slot of the call there under which all of it happens, so that what a rewind cuts goes with that call. */
  readonly at?: number;
  /** Where the parent shares a memory itself: the calls from there down to the one that started this sub-agent, the first one left out. */
  readonly calls?: readonly CallInTree[];
  /** What the parent sees besides, as it was then. */
  readonly besides?: readonly MemoryThen[];
}

interface LifeOf {
  readonly conversation: string;
  readonly life: string;
}

/** A memory at a moment: fields as in `SharedMemory`. */
export interface MemoryThen extends Pick<SharedMemory, 'session' | 'before' | 'calls'> {
  readonly of: LifeOf;
  readonly until: number;
}

/** A call of a sub-agent that shares a memory, by the slot of its result. */
export interface CallInTree {
  readonly life: string;
  readonly slot: number;
}

/** `turn_0007` (seed 000, section 20). */
export function turnId(number: number): string {
  return `turn_${String(number).padStart(4, '0')}`;
}

export function turnNumber(id: string): number {
  return Number(/^turn_(\d{4,})$/.exec(id)?.[1] ?? 0);
}

// Whose memory it is. A tenant's scope is another one than the same name without a tenant or in another one, since its whole name, as the
// store and the memory workflow have it, begins with the tenant and a full stop, which no name that anyone chooses has.
// A scope names its tenant: neither travels without the other.

interface ScopeParts {
  readonly tenant?: string;
  /** As it is called within its tenant. */
  readonly scope: string;
}

/** A folder, a part of a store's keys and a value that can be searched for. */
export const TENANT_PATTERN = /^[a-z0-9][a-z0-9-]{0,38}$/;

/** The whole name, which all have but the start of a conversation. */
export function qualifiedScope(tenant: string | undefined, scope: string): string {
  return tenant === undefined ? scope : `${tenant}.${scope}`;
}

export function scopeParts(qualified: string): ScopeParts {
  const at = qualified.indexOf('.');
  return at < 0 ? { scope: qualified } : { tenant: qualified.slice(0, at), scope: qualified.slice(at + 1) };
}

export function readTenant(qualified: string): string | undefined {
  return scopeParts(qualified).tenant;
}

/** As memos and statuses show it: the whole name, and the tenant where there is one. */
export function scopeAndTenant(qualified: string): ScopeParts {
  const tenant = readTenant(qualified);
  return { scope: qualified, ...(tenant === undefined ? {} : { tenant }) };
}
