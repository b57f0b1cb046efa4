/**
 * Budgets of tenants for a day and a month. All that a store is told was spent counts for the tenant whose conversation it is, also what
 * failed; once a budget is used up a turn ends before its next call, and says when there is more. At 80 and at 100 percent a webhook is told.
 *
 * @rule activities/tenant-told-once: Of each share of a period's budget a webhook is told once: the event's id is that of the share, and what
 *   was told is noted after the delivery has begun. (test: test/activities/tenant-budgets.test.ts)
 */
import { createHash } from 'node:crypto';
import { Context, log } from '@temporalio/activity';
import type { TurnError } from '../conversation/protocol/contract.js';
import type { WebhookDelivery } from '../conversation/outbox/webhook-effects.js';
import { errorMessage } from '../platform/errors.js';
import { readTenant, type ConversationIdentity } from '../records/identity.js';
import { toAmount, toUsd } from '../records/shared-budget.js';
import type { Spending } from '../records/spending.js';
import {
  budgetFor,
  describeUsed,
  describeUsedUp,
  MARKS,
  periodEnd,
  PERIODS,
  usedShare,
  type PeriodSums,
  type TenantBudgetRule,
} from '../records/tenant-budget.js';
import type { WebhookEventType } from '../records/turn-end.js';
import type { WebhookEvent } from '../records/webhooks/webhook-event.js';
import type { ConversationKey, Store } from '../stores/store.js';

export interface TenantBudgets {
  /** The same store, which counts what is spent. */
  counting(store: Store): Store;
  /** Why the tenant of a scope may use no more for now. Without the store that is not known, and it may. */
  usedUp(key: Pick<ConversationKey, 'namespace' | 'scope'>): Promise<TurnError | undefined>;
}

interface Needs {
  readonly store: Store;
  readonly webhooks?: { eventsFor(identity: ConversationIdentity): readonly WebhookEventType[] } | undefined;
  readonly startDelivery?: (delivery: WebhookDelivery) => Promise<void>;
  readonly now?: () => number;
}

/** Undefined where no rule is set. */
export function createTenantBudgets(
  { store, webhooks, startDelivery, now = Date.now }: Needs,
  rules: readonly TenantBudgetRule[] = [],
): TenantBudgets | undefined {
  if (rules.length === 0) return undefined;

  const tell = async (scope: string, tenant: string, sums: PeriodSums): Promise<void> => {
    const budget = budgetFor(rules, tenant);
    const { workflowNamespace: namespace = '' } = Context.current().info;
    for (const period of PERIODS) {
      const limit = budget?.[period];
      const { name, used, told } = sums[period];
      if (limit === undefined) continue;
      for (const percent of MARKS) {
        if (usedShare(used, limit) < percent || told.includes(percent)) continue;
        log.warn('a tenant comes to the end of its budget', { tenant, period, name, percent, used: describeUsed(used, limit) });
        const identity = { life: '', agent: '', scope };
        if (startDelivery && webhooks?.eventsFor(identity).includes('budget.reached')) {
          const costUsd = Math.round(toUsd(used) * 1e6) / 1e6;
          const data = { tenant, period, name, percent, used: { costUsd, tokens: used.tokens }, limit, resetsAt: periodEnd(period, name) };
          const event: WebhookEvent = { type: 'budget.reached', timestamp: new Date(now()).toISOString(), data };
          await startDelivery(toDelivery(identity, event, [namespace, tenant, name, String(percent)]));
        }
        await store.tenantSpendings.tell({ namespace, tenant }, period, name, percent);
      }
    }
  };

  /** Beside the work that was paid for, which matters more. */
  const count = async (key: ConversationKey, id: string, spent: Spending): Promise<void> => {
    const tenant = readTenant(key.scope);
    if (tenant === undefined || budgetFor(rules, tenant) === undefined) return;
    try {
      const { namespace, scope } = key;
      const sums = await store.tenantSpendings.add({ namespace, tenant }, `${key.life}/${id}`, spent.at, toAmount(spent.usage));
      await tell(scope, tenant, sums);
    } catch (error) {
      log.warn('what a tenant has used could not be counted', { tenant, id, reason: errorMessage(error) });
    }
  };

  return {
    counting: (counted) => ({
      ...counted,
      effects: {
        ...counted.effects,
        async commit(key, claim, result, entries, extras) {
          const commitment = await counted.effects.commit(key, claim, result, entries, extras);
          if (extras?.spent) await count(key, claim.id, extras.spent);
          return commitment;
        },
        async spend(key, id, spending) {
          await counted.effects.spend(key, id, spending);
          await count(key, id, spending);
        },
      },
    }),

    async usedUp({ namespace, scope }) {
      const tenant = readTenant(scope);
      const budget = budgetFor(rules, tenant);
      if (tenant === undefined || budget === undefined) return undefined;
      try {
        const message = describeUsedUp(tenant, budget, await store.tenantSpendings.read({ namespace, tenant }, now()));
        if (message !== undefined) return { type: 'budget', message };
      } catch (error) {
        log.warn('what a tenant has used could not be read', { tenant, reason: errorMessage(error) });
      }
      return undefined;
    },
  };
}

/** Of no conversation: no name that people choose has a colon. */
function toDelivery(identity: WebhookDelivery['identity'], event: WebhookEvent, of: readonly string[]): WebhookDelivery {
  const hash = createHash('sha256').update(JSON.stringify(of)).digest('hex');
  return {
    ...{ id: `evt_${hash.slice(0, 32)}`, type: 'budget.reached', identity, body: JSON.stringify(event) },
    conversation: `budget:${readTenant(identity.scope) ?? ''}`,
  };
}
