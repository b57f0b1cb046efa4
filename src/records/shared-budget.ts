/**
 * A budget that holds for a tree: what a conversation and its sub-agents, theirs included, may use in all. Its ledger is with the
 * conversation that has the budget; each call of the tree takes room there before it is made, and settles afterwards.
 *
 * The sum passes the limit by no more than the calls in flight: one for each place that calls models at the same time.
 *
 * @rule records/budget-bounds-calls: The ledger lets a call through while the settled usage and the expected usage of calls in flight stay
 *   below the limit. (test: test/stores/budgets-contract.ts)
 * @rule records/budget-step-once: Each step counts once per id: another attempt, a duplicate or a late one changes nothing. (test:
 *   test/stores/budgets-contract.ts)
 * @rule records/budget-comes-back: A lost ledger comes back by itself: each call reports its conversation's total usage (`own`), and the
 *   ledger adds what it lacks. (test: test/stores/budgets-contract.ts)
 */
import type { Usage } from './message.js';

/** What a conversation may use in all. Absent: no limit of that kind. */
export interface Budget {
  readonly maxCostUsd?: number;
  /** Of prompts and answers together. */
  readonly maxTokens?: number;
  /** The agent's limits hold beside these, as they are at each call: what a user sets may only lower them. */
  readonly within?: 'agent';
}

/** What holds, of a budget that was set for a conversation, and the agent's. */
export function effectiveBudget(set: Budget | null | undefined, agents: Budget = {}): Budget {
  if (!set) return agents;
  if (set.within === undefined) return set;
  const [maxCostUsd, maxTokens] = [lower(set.maxCostUsd, agents.maxCostUsd), lower(set.maxTokens, agents.maxTokens)];
  return { ...(maxCostUsd !== undefined && { maxCostUsd }), ...(maxTokens !== undefined && { maxTokens }) };
}

function lower(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
}

/** Whole numbers, so that any order of adding them up gives the same sum. */
export interface Amount {
  readonly tokens: number;
  /** Billionths of a dollar; nothing for what has no known price. */
  readonly nanoUsd: number;
}

/** A limit as the conversation that has it knew it. */
export interface Limit {
  readonly limit: Budget;
  /** Epoch milliseconds: the latest one counts. */
  readonly at: number;
}

/** As one that works under it knows it. */
export interface SharedBudget extends Limit {
  readonly conversation: string;
  readonly life: string;
  /** What that conversation had used by then by itself, and with its sub-agents that had ended. */
  readonly own: Amount;
  readonly all: Amount;
}

/** What a tree of which a step is a part may use, and what the step's conversation has used of it by itself. */
export interface Shares {
  readonly budgets: readonly SharedBudget[];
  readonly own: Amount;
  /** Tokens that each prompt has before a message; absent before settings are known. */
  readonly fixedTokens?: number;
}

/** The call that room is wanted for. */
export interface RoomClaim extends Limit {
  /** The same for each attempt. */
  readonly id: string;
  readonly estimate: Amount;
  /** Epoch milliseconds. */
  readonly now: number;
  /** By life: what members of the tree are known to have used by themselves. */
  readonly used: readonly (readonly [member: string, amount: Amount])[];
  /** What the tree is known to have used at least. */
  readonly atLeast: Amount;
  /** False: it does not wait for calls in flight to settle. */
  readonly waits: boolean;
}

export interface Room {
  /** `busy`: calls in flight are expected to take the rest. */
  readonly status: 'granted' | 'busy' | 'used-up';
  readonly used: Amount;
  readonly limit: Budget;
}

/** A reservation that has not settled by then is of a call that will not: its worker died, and no other attempt came. */
export const LEASE_MS = 10 * 60_000;
export const NOTHING_USED: Amount = { tokens: 0, nanoUsd: 0 };
const NANO = 1e9;

export function toAmount({ inputTokens, outputTokens, costUsd }: Usage): Amount {
  return { tokens: whole(inputTokens + outputTokens), nanoUsd: whole((costUsd ?? 0) * NANO) };
}

export function toUsd({ nanoUsd }: Amount): number {
  return nanoUsd / NANO;
}

export function toNanoUsd(usd: number): number {
  return whole(usd * NANO);
}

export function isUsedUp({ tokens, nanoUsd }: Amount, { maxTokens, maxCostUsd }: Budget): boolean {
  return (maxTokens !== undefined && tokens >= maxTokens) || (maxCostUsd !== undefined && nanoUsd >= toNanoUsd(maxCostUsd));
}

export function addAmounts(a: Amount, b: Amount): Amount {
  return { tokens: a.tokens + b.tokens, nanoUsd: a.nanoUsd + b.nanoUsd };
}

/** What of `whole` is missing in `part`, each for itself. */
export function missingIn(part: Amount, { tokens, nanoUsd }: Amount): Amount {
  return { tokens: Math.max(0, tokens - part.tokens), nanoUsd: Math.max(0, nanoUsd - part.nanoUsd) };
}

function whole(amount: number): number {
  return Number.isFinite(amount) ? Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.round(amount))) : 0;
}
