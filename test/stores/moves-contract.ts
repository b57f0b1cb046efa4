/** What is archived and restored, in every store: late attempts change nothing (`Entries` in store.ts). */
import * as fc from 'fast-check';
import { listSlots, toRanges, type SlotRange } from '../../src/records/slots.js';
import type { Store } from '../../src/stores/store.js';
import { aConversation, answerEntry } from './builders.js';

export function movesContract(open: () => Store): void {
  describe('moves', () => {
    let store: Store;
    beforeEach(() => {
      store = open();
    });

    test('an archiving or restoring with a lower number than the highest one is ignored', async () => {
      const key = aConversation();
      await store.entries.archive(key, [[1, 3]], 4);
      await store.entries.restore(key, [[1, 3]], 3);
      await open().entries.archive(key, [[9, 9]], 3);
      expect(await store.entries.archived(key)).toEqual([[1, 3]]);
      await store.entries.restore(key, [[2, 2]], 5);
      await open().entries.archive(key, [[1, 3]], 4);
      expect(await store.entries.archived(key)).toEqual([[1, 1], [3, 3]]); // prettier-ignore
    });

    test('one that changes nothing counts all the same', async () => {
      const key = aConversation();
      await store.entries.archive(key, [], 7);
      await store.entries.archive(key, [[1, 1]], 6);
      expect(await open().entries.archived(key)).toEqual([]);
      await store.entries.restore(key, [[1, 1]], 7);
      await store.entries.archive(key, [[1, 1]], 7);
      expect(await open().entries.archived(key)).toEqual([[1, 1]]);
    });

    test('another life has numbers of its own', async () => {
      const key = aConversation();
      await store.entries.archive(key, [[1, 1]], 7);
      const other = aConversation();
      await store.entries.archive(other, [[2, 2]], 0);
      expect(await store.entries.archived(other)).toEqual([[2, 2]]);
    });

    test('any sequence of them, from two processes and with late repeats, comes to what the numbers say', async () => {
      const range = fc.tuple(fc.integer({ min: 1, max: 12 }), fc.nat(3)).map(([first, more]): SlotRange => [first, first + more]);
      const change = fc.record({
        kind: fc.constantFrom('archive' as const, 'restore' as const),
        slots: fc.array(range, { maxLength: 3 }),
        move: fc.nat(8),
        beside: fc.boolean(),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 12 }), async (changes) => {
          const key = aConversation();
          const beside = open();
          await store.entries.append(key, [answerEntry(1), answerEntry(5)]);
          let highest = -1;
          const archived = new Set<number>();
          for (const { kind, slots, move, beside: isBeside } of changes) {
            await (isBeside ? beside : store).entries[kind](key, slots, move);
            if (move < highest) continue;
            highest = move;
            for (const slot of listSlots(slots)) archived[kind === 'archive' ? 'add' : 'delete'](slot);
          }
          const expected = toRanges([...archived].sort((a, b) => a - b));
          for (const each of [store, beside, open()]) expect(await each.entries.archived(key)).toEqual(expected);
        }),
        { numRuns: 60 },
      );
    });
  });
}
