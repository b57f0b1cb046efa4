/** What was paid for, in every store (`Spendings` and `Effects.spend` in store.ts). */
import { randomUUID } from 'node:crypto';
import { sumSpendings, type Spending, type Spent } from '../../src/records/spending.js';
import type { ConversationKey, Store } from '../../src/stores/store.js';
import { aConversation, answerEntry } from './builders.js';

export function spendingOf(key: ConversationKey, over: Partial<Spending> = {}): Spending {
  const { conversation, scope } = key;
  const usage = { inputTokens: 100, cachedTokens: 10, outputTokens: 20, costUsd: 0.5 };
  return { at: 1_738_100_000_000, kind: 'answer', conversation, agent: 'default', scope, model: 'anthropic/claude', usage, ...over };
}

export function spendingsContract(open: () => Store): void {
  describe('spendings', () => {
    const claim = { id: 'turn_0001/m1', hash: 'h1' };
    /** A scope of its own: what other tests have spent is in the store too. */
    const aKey = (): ConversationKey => aConversation({ scope: randomUUID() });
    const spentIn = async ({ namespace, scope }: ConversationKey): Promise<Spent[]> => {
      const found: Spent[] = [];
      for await (const spent of open().spendings.all({ namespace })) if (spent.scope === scope) found.push(spent);
      return found.sort((a, b) => (a.id < b.id ? -1 : 1));
    };

    test('come with a commit, once, whoever commits it again', async () => {
      const key = aKey();
      for (const store of [open(), open()]) await store.effects.commit(key, claim, 'done', [answerEntry(2)], { spent: spendingOf(key) });
      expect(await spentIn(key)).toEqual([{ ...spendingOf(key), id: claim.id, fenced: false }]);
    });

    test('of a fenced effect are kept, once, and marked', async () => {
      const key = aKey();
      await open().effects.fence(key, [claim.id]);
      for (const outputTokens of [1, 2]) {
        const usage = { ...spendingOf(key).usage, outputTokens };
        await open().effects.commit(key, claim, 'late', [answerEntry(2)], { spent: spendingOf(key, { usage }) });
      }
      const usage = { ...spendingOf(key).usage, outputTokens: 1 };
      expect(await spentIn(key)).toEqual([{ ...spendingOf(key, { usage }), id: claim.id, fenced: true }]);
    });

    test('of an effect in conflict are none', async () => {
      const key = aKey();
      await open().effects.commit(key, claim, 'done', []);
      await open().effects.commit(key, { ...claim, hash: 'h2' }, 'x', [], { spent: spendingOf(key) });
      expect(await spentIn(key)).toEqual([]);
    });

    test('of a failed attempt stand beside those of the effect, once each, also where the effect is fenced later', async () => {
      const key = aKey();
      const failed = spendingOf(key, { failed: true });
      for (const store of [open(), open()]) await store.effects.spend(key, `${claim.id}/a`, failed);
      await open().effects.commit(key, claim, 'done', [], { spent: spendingOf(key) });
      await open().effects.fence(key, [claim.id]);
      expect(await spentIn(key)).toEqual([
        { ...spendingOf(key), id: claim.id, fenced: false },
        { ...failed, id: `${claim.id}/a`, fenced: false },
      ]);
    });

    test('of all lives and conversations are found, whatever their names are, and are gone with their life', async () => {
      const key = aKey();
      const keys = [key, { ...key, life: randomUUID() }, { ...key, conversation: `${key.conversation}:turn_0001:1` }];
      for (const [i, one] of keys.entries()) await open().effects.spend(one, `c${i}`, spendingOf(one));
      expect((await spentIn(key)).map(({ id, conversation }) => [id, conversation])).toEqual(
        keys.map(({ conversation }, i) => [`c${i}`, conversation]),
      );
      await open().lives.delete(key);
      expect((await spentIn(key)).map(({ id }) => id)).toEqual(['c1', 'c2']);
    });

    test('that do not have their fields are left out', async () => {
      const key = aKey();
      await open().effects.spend(key, 'c1', spendingOf(key));
      const foreign = [{ usage: { inputTokens: 'many' } }, { at: Number.MAX_VALUE }, { agent: 7 }] as unknown as Partial<Spending>[];
      for (const [i, over] of foreign.entries()) await open().effects.spend(key, `foreign${i}`, spendingOf(key, over));
      expect((await spentIn(key)).map(({ id }) => id)).toEqual(['c1']);
    });

    test('sum up by name, and a price that is not known is no price of 0', async () => {
      const key = aKey();
      const unpriced = { ...spendingOf(key).usage, costUsd: null };
      await open().effects.spend(key, 'c1', spendingOf(key));
      await open().effects.spend(key, 'c2', spendingOf(key, { usage: unpriced, failed: true }));
      await open().effects.spend(key, 'c3', spendingOf(key, { usage: unpriced, model: 'own/model' }));
      const [known, unknown] = sumSpendings(await spentIn(key), 'model');
      expect(known).toMatchObject({
        of: 'anthropic/claude',
        calls: 2,
        failed: 1,
        fenced: 0,
        unpriced: 1,
        usage: { inputTokens: 200, costUsd: 0.5 },
      });
      expect(unknown).toMatchObject({ of: 'own/model', calls: 1, unpriced: 1, usage: { costUsd: null } });
    });
  });
}
