/** What a tenant may use in a day and in a month (both in UTC), over all its conversations. */
import { addAmounts, toUsd, type Amount, type Budget } from './shared-budget.js';

export const PERIODS = ['day', 'month'] as const;
export type Period = (typeof PERIODS)[number];
export type PeriodBudget = Omit<Budget, 'within'>;

/** The first rule that fits counts; one without a tenant is for each tenant. */
export interface TenantBudgetRule {
  readonly tenant?: string;
  readonly day?: PeriodBudget;
  readonly month?: PeriodBudget;
}

export type TenantBudget = { readonly [P in Period]?: PeriodBudget };

/** What a tenant has used in a period: `2026-11-29` or `2026-11`. */
export interface PeriodSum {
  readonly name: string;
  readonly used: Amount;
  /** Shares of its budget of which was told, in percent. */
  readonly told: readonly number[];
}
export type PeriodSums = { readonly [P in Period]: PeriodSum };

/** In percent of a budget: of these a webhook tells. */
export const MARKS = [80, 100] as const;

export function budgetFor(rules: readonly TenantBudgetRule[], tenant: string | undefined): TenantBudget | undefined {
  return tenant === undefined ? undefined : rules.find((rule) => rule.tenant === undefined || rule.tenant === tenant);
}

export function periodNames(at: number): { readonly [P in Period]: string } {
  const day = new Date(at).toISOString().slice(0, 10);
  return { day, month: day.slice(0, 7) };
}

/** When the next one begins. */
export function periodEnd(period: Period, name: string): string {
  const [year = 0, month = 1, day = 1] = name.split('-').map(Number);
  return new Date(period === 'day' ? Date.UTC(year, month - 1, day + 1) : Date.UTC(year, month, 1)).toISOString();
}

/** Of whichever limit is the nearest, in percent. */
export function usedShare(used: Amount, { maxCostUsd, maxTokens }: PeriodBudget): number {
  const ofCost = maxCostUsd === undefined ? 0 : maxCostUsd === 0 ? 100 : (toUsd(used) / maxCostUsd) * 100;
  const ofTokens = maxTokens === undefined ? 0 : maxTokens === 0 ? 100 : (used.tokens / maxTokens) * 100;
  return Math.max(ofCost, ofTokens);
}

export function withUsed({ name, used, told }: PeriodSum, more: Amount): PeriodSum {
  return { name, used: addAmounts(used, more), told };
}

/** `$4.10 of its $5`, or tokens, of whichever is the nearest. */
export function describeUsed(used: Amount, { maxCostUsd, maxTokens }: PeriodBudget): string {
  const isCost =
    maxCostUsd !== undefined && usedShare(used, { maxCostUsd }) >= usedShare(used, maxTokens === undefined ? {} : { maxTokens });
  return isCost ? `$${toUsd(used).toFixed(2)} of its $${maxCostUsd}` : `${used.tokens} of its ${maxTokens} tokens`;
}

/** Why there is nothing left, and from when there is again; undefined while there is. */
export function describeUsedUp(tenant: string, budget: TenantBudget, sums: PeriodSums): string | undefined {
  const period = PERIODS.find((one) => usedShare(sums[one].used, budget[one] ?? {}) >= 100);
  if (period === undefined) return undefined;
  const { name, used } = sums[period];
  return (
    `${tenant} has used ${describeUsed(used, budget[period] ?? {})} for this ${period} (${name}, UTC): ` +
    `say "continue" after ${periodEnd(period, name).slice(0, 16)}Z, or once its budget is raised (PERDURA_TENANT_BUDGETS).`
  );
}
