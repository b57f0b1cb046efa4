/**
 * Shared budgets (records/shared-budget.ts): the ledger is stored with the conversation that has the budget. Who works under it may be in
 * another cluster slot: a reservation is no part of the write of the step that wants it.
 *
 * Each change gives the sum another text, so of two that decide by the same ledger one decides again (collection.ts).
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import {
  addAmounts,
  isUsedUp,
  LEASE_MS,
  missingIn,
  NOTHING_USED,
  type Amount,
  type Limit,
  type Room,
  type RoomClaim,
} from '../../records/shared-budget.js';
import { recordCodec, type OpenCollection } from './collection.js';
import type { Budgets, ConversationKey } from '../store.js';

const amount = z.object({ tokens: z.int(), nanoUsd: z.int() });
const limit = z.object({ limit: z.object({ maxCostUsd: z.number().optional(), maxTokens: z.number().optional() }), at: z.number() });
const recordSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('sum'), id: z.literal(''), used: amount, limit: limit.optional(), change: z.string() }),
  z.object({ kind: z.literal('member'), id: z.string(), used: amount }),
  z.object({ kind: z.literal('open'), id: z.string(), estimate: amount, at: z.number() }),
  z.object({ kind: z.literal('settled'), id: z.string() }),
]);
type LedgerRecord = z.output<typeof recordSchema>;
type Kind = LedgerRecord['kind'];
type Sum = Extract<LedgerRecord, { kind: 'sum' }>;

export const BUDGET = recordCodec<LedgerRecord>(recordSchema, ({ kind, id }) => `${kind}:${id}`);

export function createBudgets(open: OpenCollection): Budgets {
  const change = (key: ConversationKey, attempt: string, step: (ledger: Ledger) => void): Promise<void> =>
    open({ name: 'budget', key }, BUDGET).change(`${attempt} the budget of ${key.conversation}`, (records) => {
      const ledger = createLedger(records);
      step(ledger);
      return ledger.changed();
    });
  return {
    async reserve(key, claim) {
      let room: Room = { status: 'busy', used: NOTHING_USED, limit: {} };
      await change(key, `reserve ${claim.id} in`, (ledger) => (room = claimRoom(ledger, claim)));
      return room;
    },

    settle: (key, id, cost, member) =>
      change(key, `settle ${id} in`, (ledger) => {
        if (ledger.get('settled', id)) return;
        ledger.put({ kind: 'settled', id });
        ledger.remove('open', id);
        ledger.add(cost, member);
      }),

    release: (key, id) => change(key, `release ${id} in`, (ledger) => ledger.remove('open', id)),

    limit: (key, given) => change(key, 'set', (ledger) => ledger.limit(given)),
  };
}

type Ledger = ReturnType<typeof createLedger>;

function createLedger(before: readonly LedgerRecord[]) {
  const records = new Map(before.map((record) => [BUDGET.identify(record), record]));
  let changes = 0;
  const get = <K extends Kind>(kind: K, id: string): Extract<LedgerRecord, { kind: K }> | undefined => {
    const record = records.get(`${kind}:${id}`);
    return record?.kind === kind ? (record as Extract<LedgerRecord, { kind: K }>) : undefined;
  };
  const put = (record: LedgerRecord): void => {
    records.set(BUDGET.identify(record), record);
    changes += 1;
  };
  const sum = (): Sum => get('sum', '') ?? { kind: 'sum', id: '', used: NOTHING_USED, change: '' };
  return {
    get,
    put,
    sum,
    open: () => [...records.values()].filter((record) => record.kind === 'open'),
    remove(kind: Kind, id: string): void {
      if (records.delete(`${kind}:${id}`)) changes += 1;
    },
    add(cost: Amount, member?: string): void {
      if (cost.tokens === 0 && cost.nanoUsd === 0) return;
      put({ ...sum(), used: addAmounts(sum().used, cost) });
      if (member === undefined) return;
      put({ kind: 'member', id: member, used: addAmounts(get('member', member)?.used ?? NOTHING_USED, cost) });
    },
    limit({ limit: given, at }: Limit): void {
      if (at > (sum().limit?.at ?? -1)) put({ ...sum(), limit: { limit: given, at } });
    },
    /** All records, when one is another by now. */
    changed(): readonly LedgerRecord[] | undefined {
      if (changes === 0) return undefined;
      // Of two that would write the same sum, one must see the other.
      put({ ...sum(), change: randomUUID() });
      return [...records.values()];
    },
  };
}

/** The answer to a claim; what the claim reports is added (records/budget-comes-back). */
function claimRoom(ledger: Ledger, { id, estimate, now, waits, used, atLeast, ...reported }: RoomClaim): Room {
  ledger.limit(reported);
  for (const [member, all] of used) ledger.add(missingIn(ledger.get('member', member)?.used ?? NOTHING_USED, all), member);
  ledger.add(missingIn(ledger.sum().used, atLeast));
  const { used: sum, limit: known } = ledger.sum();
  const room = { used: sum, limit: known?.limit ?? {} };

  // Also for a known one: another attempt makes the request, and it has not called yet.
  if (isUsedUp(sum, room.limit)) {
    ledger.remove('open', id);
    return { status: 'used-up', ...room };
  }
  if (ledger.get('settled', id)) return { status: 'granted', ...room };
  for (const one of ledger.open()) if (one.at + LEASE_MS <= now) ledger.remove('open', one.id);
  if (ledger.get('open', id)) return { status: 'granted', ...room };
  const expected = ledger.open().reduce((all, one) => addAmounts(all, one.estimate), sum);
  if (waits && isUsedUp(expected, room.limit)) return { status: 'busy', ...room };
  ledger.put({ kind: 'open', id, estimate, at: now });
  return { status: 'granted', ...room };
}
