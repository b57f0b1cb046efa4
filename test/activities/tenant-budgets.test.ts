/** Budgets of tenants for a day and a month (activities/tenant-budgets.ts), on a store of files. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { asyncLocalStorage, type Context } from '@temporalio/activity';
import { createTenantBudgets, type TenantBudgets } from '../../src/activities/tenant-budgets.js';
import type { WebhookDelivery } from '../../src/conversation/outbox/webhook-effects.js';
import type { Spending } from '../../src/records/spending.js';
import type { TenantBudgetRule } from '../../src/records/tenant-budget.js';
import { webhookEvent } from '../../src/records/webhooks/webhook-event.js';
import { createFileStore } from '../../src/stores/file/index.js';
import { StoreUnavailable, type ConversationKey, type Store } from '../../src/stores/store.js';
import { aConversation } from '../stores/builders.js';

const AT = Date.parse('2026-11-30T23:59:00Z');
const RULES: readonly TenantBudgetRule[] = [
  { tenant: 'acme', day: { maxCostUsd: 10 }, month: { maxTokens: 10_000 } },
  { tenant: 'free', month: { maxTokens: 0 } },
  { day: { maxCostUsd: 1 } },
];

let dir: string;
let store: Store;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-tenants-'));
  store = createFileStore({ dir });
});
afterEach(async () => {
  await store.close();
  await rm(dir, { recursive: true });
});

interface Stage {
  readonly budgets: TenantBudgets;
  readonly sent: WebhookDelivery[];
  now: number;
  spend(scope: string, costUsd: number | null, tokens?: number): Promise<void>;
  refusal(scope: string): Promise<string | undefined>;
}

let calls = 0;
function stageOf(over: Partial<Parameters<typeof createTenantBudgets>[0]> = {}): Stage {
  const sent: WebhookDelivery[] = [];
  const budgets = createTenantBudgets(
    {
      store,
      now: () => stage.now,
      startDelivery: (delivery) => Promise.resolve(void sent.push(delivery)),
      webhooks: { eventsFor: () => ['budget.reached'] },
      ...over,
    },
    RULES,
  );
  if (!budgets) throw new Error('there are rules');
  const keyOf = (scope: string): ConversationKey => ({ ...aConversation(), namespace: 'default', scope });
  const stage: Stage = {
    ...{ budgets, sent, now: AT },
    spend: (scope, costUsd, tokens = 10) =>
      inActivity(async () => {
        const usage = { inputTokens: tokens, cachedTokens: 0, outputTokens: 0, costUsd };
        const spent: Spending = { at: stage.now, kind: 'answer', conversation: 'c', agent: 'a', scope, model: 'm', usage };
        await budgets.counting(store).effects.spend(keyOf(scope), `call-${(calls += 1)}`, spent);
      }),
    refusal: (scope) => inActivity(async () => (await budgets.usedUp(keyOf(scope)))?.message),
  };
  return stage;
}

const inActivity = <T>(work: () => Promise<T>): Promise<T> =>
  asyncLocalStorage.run({ info: { workflowNamespace: 'default' }, log: { warn: () => undefined } } as unknown as Context, work);

test('without rules there are none', () => {
  expect(createTenantBudgets({ store }, [])).toBeUndefined();
});

test('what all conversations of a tenant use counts, and a webhook is told at 80 and at 100 percent, once', async () => {
  const stage = stageOf();
  await stage.spend('acme.one', 4);
  await stage.spend('acme.two', 3.9);
  expect(stage.sent).toEqual([]);
  expect(await stage.refusal('acme.one')).toBeUndefined();
  await stage.spend('acme.one', 0.2);
  await stage.spend('acme.one', 0.1);
  expect(stage.sent.map(({ conversation, type }) => [conversation, type])).toEqual([['budget:acme', 'budget.reached']]);
  await stage.spend('acme.three', 2);
  await stage.spend('acme.three', 2);
  const events = stage.sent.map(({ body }) => webhookEvent.parse(JSON.parse(body)));
  expect(events.map(({ data }) => data)).toMatchObject([
    { ...{ tenant: 'acme', period: 'day', name: '2026-11-30', percent: 80, resetsAt: '2026-12-01T00:00:00.000Z' } },
    { percent: 100, used: { costUsd: 10.2, tokens: 50 }, limit: { maxCostUsd: 10 } },
  ]);
  expect(new Set(stage.sent.map(({ id }) => id)).size).toBe(2);
  expect(await stage.refusal('acme.two')).toBe(
    'acme has used $12.20 of its $10 for this day (2026-11-30, UTC): say "continue" after 2026-12-01T00:00Z, or once its budget is raised ' +
      '(PERDURA_TENANT_BUDGETS).',
  );
});

test('a new day begins with nothing used, a new month too', async () => {
  const stage = stageOf();
  await stage.spend('acme.one', 11, 9_000);
  stage.now = Date.parse('2026-12-01T00:00:01Z');
  expect(await stage.refusal('acme.one')).toBeUndefined();
  await stage.spend('acme.one', null, 12_000);
  expect(await stage.refusal('acme.one')).toContain(
    '12000 of its 10000 tokens for this month (2026-12, UTC): say "continue" after 2027-01-01',
  );
});

test('a rule without a tenant is for each, by itself; conversations of no tenant have none', async () => {
  const stage = stageOf();
  await stage.spend('beta.x', 2);
  await stage.spend('default', 200);
  expect(await stage.refusal('beta.x')).toContain('beta has used');
  expect(await stage.refusal('gamma.x')).toBeUndefined();
  expect(await stage.refusal('default')).toBeUndefined();
  expect(await stage.refusal('free.x')).toContain('0 of its 0 tokens');
});

test('a call that is counted again counts once', async () => {
  const owner = { namespace: 'default', tenant: 'acme' };
  const more = { tokens: 7, nanoUsd: 5 };
  for (let i = 0; i < 3; i++) await store.tenantSpendings.add(owner, 'same', AT, more);
  expect((await store.tenantSpendings.read(owner, AT)).day).toMatchObject({ used: more });
  await Promise.all(Array.from({ length: 20 }, (_, i) => store.tenantSpendings.add(owner, `other-${i}`, AT, more)));
  expect((await store.tenantSpendings.read(owner, AT)).month.used).toEqual({ tokens: 21 * 7, nanoUsd: 21 * 5 });
});

test('a delivery that could not begin is begun by the next call', async () => {
  let isAway = true;
  const sent: WebhookDelivery[] = [];
  const startDelivery = (delivery: WebhookDelivery): Promise<void> =>
    isAway ? Promise.reject(new Error('Temporal is away')) : Promise.resolve(void sent.push(delivery));
  const stage = stageOf({ startDelivery });
  await stage.spend('beta.x', 0.9);
  isAway = false;
  await stage.spend('beta.x', 0.01);
  expect(sent).toHaveLength(1);
});

test('a store that does not answer lets calls go on', async () => {
  const away = (): Promise<never> => Promise.reject(new StoreUnavailable('redis closed'));
  const stage = stageOf({ store: { ...store, tenantSpendings: { add: away, read: away, tell: away } } });
  await stage.spend('free.x', 5);
  expect(await stage.refusal('free.x')).toBeUndefined();
});
