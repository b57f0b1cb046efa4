/** What was paid for: one record for each answer, summary and consolidation, beside the effect that it belongs to. */
import { readTenant } from './identity.js';
import { addUsage, NO_USAGE, type Usage } from './message.js';

/**
 * `tool`: a tool's calls of a model, a summary of its long result above all. `citation`: what is to stand for one. `care`: of a scope's
 * memory. `embedding`: vectors of messages and of questions.
 */
export type SpendingKind = 'answer' | 'tool' | 'citation' | 'title' | 'compaction' | 'consolidation' | 'care' | 'embedding';

export interface Spending {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly kind: SpendingKind;
  readonly conversation: string;
  readonly agent: string;
  readonly scope: string;
  /** `provider/model`. */
  readonly model: string;
  readonly usage: Usage;
  /** The call failed after it had begun to cost. */
  readonly failed?: true;
}

/** As the store has it. `id`: of the effect, or of the attempt at it that failed. */
export interface Spent extends Spending {
  readonly id: string;
  /** What it brought was not wanted any more when it came. */
  readonly fenced: boolean;
}

export const SPENDING_GROUPS = ['agent', 'scope', 'tenant', 'model', 'day', 'conversation', 'kind'] as const;
export type SpendingGroup = (typeof SPENDING_GROUPS)[number];

/** What calls of models have cost together. */
export interface SpendingSum {
  /** What they have in common: a name, or a day as `2026-11-24`, in UTC. */
  readonly of: string;
  /** All of them, failed and fenced ones too. */
  readonly calls: number;
  readonly failed: number;
  readonly fenced: number;
  /** Of those whose price is known the cost is the sum; null where none is. */
  readonly usage: Usage;
  /** Calls whose price is not known: the cost leaves them out. */
  readonly unpriced: number;
}

/** Days in their order; all else by cost, then by tokens, most first. */
export function sumSpendings(spent: readonly Spent[], by: SpendingGroup): SpendingSum[] {
  const groups = new Map<string, Spent[]>();
  for (const one of spent) {
    const name = nameIn(one, by);
    const group = groups.get(name);
    if (group) group.push(one);
    else groups.set(name, [one]);
  }
  const sums = [...groups].map(([of, ones]) => sumSpending(of, ones));
  return sums.sort((a, b) => (by === 'day' ? 0 : totalCost(b) - totalCost(a) || totalTokens(b) - totalTokens(a)) || (a.of < b.of ? -1 : 1));
}

export function sumSpending(of: string, spent: readonly Spent[]): SpendingSum {
  const priced = spent.filter(({ usage }) => usage.costUsd !== null);
  const all = spent.reduce((sum, { usage }) => addUsage(sum, { ...usage, costUsd: usage.costUsd ?? 0 }), NO_USAGE);
  return {
    of,
    calls: spent.length,
    failed: spent.filter(({ failed }) => failed).length,
    fenced: spent.filter(({ fenced }) => fenced).length,
    usage: { ...all, costUsd: spent.length > 0 && priced.length === 0 ? null : all.costUsd },
    unpriced: spent.length - priced.length,
  };
}

/** No tenant's name has a bracket. */
const NO_TENANT = '(none)';

function nameIn(one: Spent, by: SpendingGroup): string {
  if (by === 'day') return new Date(one.at).toISOString().slice(0, 10);
  return by === 'tenant' ? (readTenant(one.scope) ?? NO_TENANT) : one[by];
}

const totalCost = ({ usage }: SpendingSum): number => usage.costUsd ?? 0;
const totalTokens = ({ usage }: SpendingSum): number => usage.inputTokens + usage.outputTokens;

/** A record of a store may be from another program (stores/foreign-is-skipped). */
export function isSpending(value: unknown): value is Spending {
  const { at, kind, conversation, agent, scope, model, usage } = (value ?? {}) as { readonly [field: string]: unknown };
  const texts = [kind, conversation, agent, scope, model];
  return isTime(at) && texts.every((text) => typeof text === 'string') && isUsage(usage);
}

/** What a Date can hold. */
const MAX_TIME = 8.64e15;

function isTime(value: unknown): boolean {
  return typeof value === 'number' && Math.abs(value) <= MAX_TIME;
}

function isUsage(value: unknown): value is Usage {
  const { inputTokens, cachedTokens, outputTokens, costUsd, ...more } = (value ?? {}) as { readonly [field: string]: unknown };
  const { cacheWriteTokens = 0, reasoningTokens = 0 } = more;
  const isCounted = [inputTokens, cachedTokens, outputTokens, cacheWriteTokens, reasoningTokens].every(
    (tokens) => typeof tokens === 'number' && Number.isFinite(tokens),
  );
  return isCounted && (costUsd === null || (typeof costUsd === 'number' && Number.isFinite(costUsd)));
}
