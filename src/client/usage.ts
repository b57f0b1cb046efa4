/** What has been spent, from the store: one record for each call that cost something. */
import { readTenant } from '../records/identity.js';
import { sumSpending, sumSpendings, type SpendingGroup, type SpendingSum, type Spent } from '../records/spending.js';
import type { Store } from '../stores/store.js';

/** What is summed up. */
export interface UsageOptions {
  /** Default: by model. */
  readonly by?: SpendingGroup;
  /** Of that moment and later. */
  readonly since?: Date;
  /** Only this tenant's; null: only that of no tenant. */
  readonly tenant?: string | null;
}

/** Sums of what was spent. */
export interface UsageReport {
  readonly by: SpendingGroup;
  /** ISO 8601; null: all that the store has. */
  readonly since: string | null;
  readonly sums: readonly SpendingSum[];
  readonly total: SpendingSum;
}

/** What models were paid for. */
export interface UsageClient {
  /** What all conversations of the namespace have spent, failed calls and those that came too late too; without deleted conversations. */
  usage(options?: UsageOptions): Promise<UsageReport>;
}

export function createUsage({ store, namespace }: { readonly store: () => Promise<Store>; readonly namespace: string }): UsageClient {
  return {
    async usage({ by = 'model', since, tenant } = {}) {
      const spent: Spent[] = [];
      for await (const one of (await store()).spendings.all({ namespace })) {
        const isWanted = tenant === undefined || (readTenant(one.scope) ?? null) === tenant;
        if (isWanted && (!since || one.at >= since.getTime())) spent.push(one);
      }
      return { by, since: since?.toISOString() ?? null, sums: sumSpendings(spent, by), total: sumSpending('total', spent) };
    },
  };
}
