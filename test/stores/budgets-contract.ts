/** Shared budgets, in every store (records/shared-budget.ts): children that draw from one limit, killed and repeated at random. */
import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import type { Budget } from '../../src/records/identity.js';
import { LEASE_MS, NOTHING_USED, type Amount, type Room, type RoomClaim } from '../../src/records/shared-budget.js';
import type { ConversationKey, Store } from '../../src/stores/store.js';
import { aConversation } from './builders.js';

const NOW = 1_738_100_000_000;
const tokens = (n: number): Amount => ({ tokens: n, nanoUsd: 0 });

function claim(id: string, over: Partial<RoomClaim> = {}): RoomClaim {
  return { id, estimate: tokens(10), now: NOW, limit: { maxTokens: 100 }, at: 1, used: [], atLeast: NOTHING_USED, waits: true, ...over };
}

export function budgetsContract(open: () => Store): void {
  describe('shared budgets', () => {
    let key: ConversationKey;
    beforeEach(() => {
      key = aConversation();
    });
    const reserve = (id: string, over?: Partial<RoomClaim>): Promise<Room> => open().budgets.reserve(key, claim(id, over));

    test('let calls through until what is settled and what is expected comes to the limit', async () => {
      expect(await reserve('a', { estimate: tokens(60) })).toEqual({ status: 'granted', used: NOTHING_USED, limit: { maxTokens: 100 } });
      expect(await reserve('b', { estimate: tokens(60) })).toMatchObject({ status: 'granted' });
      expect(await reserve('c')).toMatchObject({ status: 'busy' });
      expect(await reserve('c', { waits: false })).toMatchObject({ status: 'granted' });
      await open().budgets.settle(key, 'a', tokens(20), 'one');
      await open().budgets.settle(key, 'b', tokens(20), 'two');
      expect(await reserve('d')).toMatchObject({ status: 'granted', used: tokens(40) });
      await open().budgets.settle(key, 'c', tokens(60), 'one');
      expect(await reserve('e')).toEqual({ status: 'used-up', used: tokens(100), limit: { maxTokens: 100 } });
      expect(await reserve('e', { waits: false })).toMatchObject({ status: 'used-up' });
    });

    test('reserve and settle once per id, however often and by whomever it is said', async () => {
      for (let i = 0; i < 5; i++) expect(await reserve('a', { estimate: tokens(60) })).toMatchObject({ status: 'granted' });
      expect(await reserve('b', { estimate: tokens(60) })).toMatchObject({ status: 'granted' });
      for (const amount of [20, 30, 40]) await open().budgets.settle(key, 'a', tokens(amount), 'one');
      expect(await reserve('a')).toMatchObject({ status: 'granted', used: tokens(20) });
      expect(await reserve('b', { at: 2, limit: { maxTokens: 20 } })).toMatchObject({ status: 'used-up' });
      expect(await reserve('b', { at: 3, estimate: tokens(60) })).toMatchObject({ status: 'granted' });
      await open().budgets.release(key, 'b');
      await open().budgets.release(key, 'never');
      expect(await reserve('c', { estimate: tokens(79) })).toMatchObject({ status: 'granted', used: tokens(20) });
    });

    test('decide many claims that come at once one after another', async () => {
      const stores = [open().budgets, open().budgets] as const;
      const all = Array.from({ length: 60 }, (_, i) => ({ id: `call-${i}`, budgets: stores[i % 2 === 0 ? 0 : 1], member: `m${i % 3}` }));
      const rooms = await Promise.all(all.map(({ id, budgets }) => budgets.reserve(key, claim(id, { estimate: tokens(5) }))));
      expect(rooms.filter(({ status }) => status === 'granted')).toHaveLength(20);
      await Promise.all(all.map(({ id, budgets, member }) => budgets.settle(key, id, tokens(1), member)));
      expect(await reserve('after')).toMatchObject({ status: 'granted', used: tokens(60) });
    });

    test('count what a member has used by itself once, also where its settling was lost', async () => {
      await open().budgets.settle(key, 'a', tokens(20), 'one');
      const used = [['one', tokens(20)]] as const;
      expect(await reserve('b', { used })).toMatchObject({ used: tokens(20) });
      expect(await reserve('c', { used: [['one', tokens(35)], ['two', tokens(5)]] })).toMatchObject({ used: tokens(40) }); // prettier-ignore
      expect(await reserve('d', { used, atLeast: tokens(30) })).toMatchObject({ used: tokens(40) });
      expect(await reserve('d', { used, atLeast: tokens(45) })).toMatchObject({ used: tokens(45) });
    });

    test('that were lost come back with what each running member says', async () => {
      const members = Array.from({ length: 8 }, (_, i) => `m${i}`);
      for (const [i, member] of members.entries()) {
        const room = await reserve(`${member}/2`, { limit: { maxTokens: 1_000 }, used: [['root', tokens(50)], [member, tokens(10)]] }); // prettier-ignore
        expect(room.used).toEqual(tokens(50 + 10 * (i + 1)));
      }
    });

    test('go by the latest limit; without one there is none', async () => {
      await open().budgets.settle(key, 'a', tokens(100));
      expect(await reserve('b')).toMatchObject({ status: 'used-up' });
      await open().budgets.limit(key, { limit: { maxTokens: 200 }, at: 5 });
      expect(await reserve('b', { at: 4 })).toMatchObject({ status: 'granted', limit: { maxTokens: 200 } });
      await open().budgets.limit(key, { limit: { maxTokens: 1 }, at: 5 });
      expect(await reserve('c', { at: 6, limit: {} })).toMatchObject({ status: 'granted', limit: {} });
    });

    test('in dollars hold to the billionth', async () => {
      const limit: Budget = { maxCostUsd: 0.3 };
      for (const id of ['a', 'b']) await open().budgets.settle(key, id, { tokens: 9_999_999_999_999, nanoUsd: 100_000_000 });
      expect(await reserve('c', { limit })).toMatchObject({ status: 'granted', used: { nanoUsd: 200_000_000 }, limit });
      await open().budgets.settle(key, 'c', { tokens: 1, nanoUsd: 100_000_000 });
      expect(await reserve('d', { limit })).toMatchObject({ status: 'used-up', used: { tokens: 19_999_999_999_999 } });
    });

    test('forget a reservation whose worker has died after its lease, and count what it costs after all', async () => {
      await reserve('dead', { estimate: tokens(100) });
      expect(await reserve('b', { now: NOW + LEASE_MS - 1 })).toMatchObject({ status: 'busy' });
      expect(await reserve('b', { now: NOW + LEASE_MS })).toMatchObject({ status: 'granted' });
      await open().budgets.settle(key, 'dead', tokens(100));
      expect(await reserve('c')).toMatchObject({ status: 'used-up' });
    });

    test('are gone with their life, and are nobody else’s', async () => {
      await open().budgets.settle(key, 'a', tokens(100));
      expect(await open().budgets.reserve({ ...key, life: randomUUID() }, claim('b'))).toMatchObject({ status: 'granted' });
      await open().lives.delete(key);
      expect(await reserve('c')).toMatchObject({ status: 'granted', used: NOTHING_USED });
    });

    // The promise, as the docs give it: no more beyond the limit than the calls in flight when it was passed.
    test.each([16, 64])(
      '%d children, killed and repeated at random, pass the limit by at most one call for each slot',
      async (children) => {
        await fc.assert(
          fc.asyncProperty(fc.gen(), fc.integer({ min: 1, max: children }), async (gen, slots) => {
            const tree = aConversation();
            const stores = [open(), open()];
            const limit = { maxTokens: 2_000 };
            const maxCall = 300;
            const one = (max: number): number => gen(() => fc.integer({ min: 0, max }));
            const run = Array.from({ length: children }, (_, child) => ({
              child,
              call: 0,
              used: 0,
              unsaid: 0,
              inFlight: false,
              ended: false,
            }));
            let clock = NOW;
            // By children, and of that what the ledger could not know when it let the last call through.
            let [sum, unknown] = [0, 0];
            for (let step = 0; step < 60 * children && run.some(({ ended }) => !ended); step++) {
              clock += 100;
              const { budgets } = stores[one(1)] as Store;
              const it = run[one(children - 1)] as (typeof run)[number];
              const [id, member] = [`${it.child}/m${it.call}`, `child-${it.child}`];
              if (it.ended) continue;
              if (!it.inFlight) {
                if (run.filter(({ inFlight }) => inFlight).length >= slots) continue;
                const { status } = await budgets.reserve(tree, {
                  ...claim(id, { limit, now: clock, estimate: tokens(one(200)), used: [[member, tokens(it.used)]], waits: one(3) > 0 }),
                });
                it.ended = status === 'used-up';
                it.inFlight = status === 'granted';
                it.unsaid = 0;
                if (it.inFlight) unknown = run.reduce((all, { unsaid }) => all + unsaid, 0);
                continue;
              }
              const cost = 1 + one(maxCall - 1);
              switch (one(9)) {
                case 0: // Killed before it had asked: another attempt comes.
                  it.inFlight = false;
                  continue;
                case 1: // It failed, and cost nothing.
                  await budgets.release(tree, id);
                  it.inFlight = false;
                  continue;
                case 2: // The store was away when it settled: its conversation says so with its next call.
                  it.unsaid = cost;
                  break;
                case 3: // A lost reply: it is said again, by another attempt with another cost.
                  await budgets.settle(tree, id, tokens(cost), member);
                  await budgets.settle(tree, id, tokens(cost + 1), member);
                  break;
                default:
                  await budgets.settle(tree, id, tokens(cost), member);
              }
              sum += cost;
              it.used += cost;
              it.call += 1;
              it.inFlight = false;
            }
            // What was not settled is said at last.
            const used = run.map((it) => [`child-${it.child}`, tokens(it.used)] as const);
            const { used: known } = await stores[0]!.budgets.reserve(tree, claim('end', { limit, now: clock, used }));
            expect(known.tokens).toBe(sum);
            expect(sum).toBeLessThan(limit.maxTokens + unknown + slots * maxCall);
          }),
          { numRuns: children === 16 ? 12 : 4 },
        );
      },
    );
  });
}
