/** Several writes as one, in every store (`Writes` in store.ts). */
import * as fc from 'fast-check';
import type { JsonValue } from '../../src/records/message.js';
import type { Applied, Commitment, Fencing, Recording, Store, WriteBatch } from '../../src/stores/store.js';
import { aConversation, answerEntry, eventsOf, readCount, turnOf, userEntry } from './builders.js';

export function writesContract(open: () => Store): void {
  describe('writes', () => {
    let store: Store;
    beforeEach(() => {
      store = open();
    });
    const claim = { id: 'turn_0002/m1', hash: 'h' };

    test('a batch does all of it in its order, and again it changes nothing and answers the same', async () => {
      const key = aConversation();
      await store.entries.record(key, [userEntry(1, 'hello', 'm-hello')]);
      const result = { text: 'x'.repeat(20_000), list: [], nothing: null };
      await store.effects.commit(key, { id: 'done', hash: 'h' }, result, [answerEntry(2)]);
      const batch: WriteBatch = {
        record: [userEntry(3, 'hello', 'm-hello'), userEntry(4, 'new', 'm-new')],
        fence: ['done', 'late'],
        append: [answerEntry(2, 'other'), answerEntry(4, 'other'), answerEntry(5)],
        publish: [{ id: 'turn_0002/0', event: { n: 1 } }],
        reserve: { claim, attempt: 'a' },
      };
      const expected: Applied = {
        recorded: [{ duplicate: { turn: turnOf(1), slot: 1 } }, {}],
        fenced: [
          { id: 'done', status: 'committed', result },
          { id: 'late', status: 'fenced' },
        ],
        reservation: { status: 'reserved', earlier: 0 },
      };
      for (const each of [store, store, open()]) expect(await each.writes.apply(key, batch)).toEqual(expected);
      expect(await open().writes.apply(key, { ...batch, reserve: { claim, attempt: 'b' } })).toEqual({
        ...expected,
        reservation: { status: 'reserved', earlier: 1 },
      });
      expect((await open().entries.page(key, 0, 10)).entries).toEqual([
        userEntry(1, 'hello', 'm-hello'),
        answerEntry(2),
        userEntry(4, 'new', 'm-new'),
        answerEntry(5),
      ]);
      expect(await store.effects.commit(key, { id: 'late', hash: 'h' }, 'x', [answerEntry(9)])).toEqual({ status: 'fenced' });
      await readCount(open().feed, key, '0', 1);
      await store.feed.publish(key, [{ event: 'end' }]);
      expect(eventsOf(await readCount(open().feed, key, '0', 2))).toEqual([{ n: 1 }, 'end']);
    });

    test('an empty batch answers with nothing', async () => {
      const key = aConversation();
      expect(await store.writes.apply(key, {})).toEqual({ recorded: [], fenced: [] });
      expect(await store.entries.page(key, 0, 10)).toEqual({ entries: [], last: 0, skipped: 0 });
    });

    test('the reservation says what the fence of the same batch has made of it', async () => {
      const key = aConversation();
      expect(await store.writes.apply(key, { fence: [claim.id], reserve: { claim, attempt: 'a' } })).toEqual({
        recorded: [],
        fenced: [{ id: claim.id, status: 'fenced' }],
        reservation: { status: 'fenced' },
      });
    });

    test('of batches that come at once each is there whole', async () => {
      const key = aConversation();
      const stores = [store, open(), open()];
      const batches = Array.from({ length: 12 }, (_, i): WriteBatch => ({
        record: [userEntry(2 * i + 1, 'hello', `m${i}`)],
        append: [answerEntry(2 * i + 2)],
        fence: [`late-${i}`],
        reserve: { claim, attempt: `a${i}` },
      }));
      const applied = await Promise.all(batches.map((batch, i) => (stores[i % 3] as Store).writes.apply(key, batch)));
      const ordinals = applied.map(({ reservation }) => (reservation?.status === 'reserved' ? reservation.earlier : -1));
      expect(ordinals.sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
      expect((await open().entries.page(key, 0, 100)).entries).toHaveLength(24);
    });

    test('any sequence of batches and commits, from two processes and with repeats, comes to what a simple model says', async () => {
      const slot = fc.integer({ min: 1, max: 8 });
      const id = fc.constantFrom('c1', 'c2', 'c3');
      const message = fc.tuple(slot, fc.constantFrom('m1', 'm2', 'm3')).map(([at, messageId]) => userEntry(at, 'hello', messageId));
      const answer = fc.tuple(slot, fc.nat(3)).map(([at, n]) => answerEntry(at, `answer ${n}`));
      const hash = fc.constantFrom('h', 'h', 'h', 'other');
      const batch = fc.record(
        {
          record: fc.array(message, { maxLength: 3 }),
          fence: fc.array(id, { maxLength: 2 }),
          append: fc.array(answer, { maxLength: 3 }),
          reserve: fc.record({ claim: fc.record({ id, hash }), attempt: fc.constantFrom('a', 'b', 'c') }),
        },
        { requiredKeys: [] },
      );
      const commit = fc.record({ claim: fc.record({ id, hash }), result: fc.nat(3), entries: fc.array(answer, { maxLength: 2 }) });
      const step = fc.record({
        what: fc.oneof(
          batch.map((value) => ({ kind: 'batch' as const, value })),
          commit.map((value) => ({ kind: 'commit' as const, value })),
        ),
        beside: fc.boolean(),
        again: fc.boolean(),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 10 }), async (steps) => {
          const key = aConversation();
          const beside = open();
          const model = createModel();
          for (const { what, beside: isBeside, again } of steps) {
            for (let time = 0; time < (again ? 2 : 1); time += 1) {
              const on = isBeside !== (time === 1) ? beside : store;
              if (what.kind === 'batch') expect(await on.writes.apply(key, what.value)).toEqual(model.apply(what.value));
              else {
                const { claim: claimed, result, entries } = what.value;
                expect(await on.effects.commit(key, claimed, result, entries)).toEqual(model.commit(claimed, result, entries));
              }
            }
          }
          for (const each of [store, beside, open()]) expect((await each.entries.page(key, 0, 100)).entries).toEqual(model.entries());
        }),
        { numRuns: 100 },
      );
    });
  });
}

type Claim = { readonly id: string; readonly hash: string };
type Stored = NonNullable<WriteBatch['append']>[number];

/** What a store is, said as simply as it can be. */
function createModel() {
  const slots = new Map<number, Stored>();
  const effects = new Map<string, { hash?: string; attempts: string[]; result?: JsonValue; fenced?: true }>();
  const put = (entry: Stored): void => {
    if (!slots.has(entry.slot)) slots.set(entry.slot, entry);
  };
  const effect = (id: string) => {
    const known = effects.get(id) ?? { attempts: [] };
    effects.set(id, known);
    return known;
  };
  const settled = ({ id, hash }: Claim): Commitment | undefined => {
    const known = effect(id);
    if (known.fenced) return { status: 'fenced' };
    if (known.hash !== undefined && known.hash !== hash) return { status: 'conflict' };
    return known.result === undefined ? undefined : { status: 'committed', result: known.result };
  };
  const recordingOf = (entry: Stored): Recording => {
    const first = [...slots.values()].find(({ messageId }) => messageId === entry.messageId);
    const isElsewhere = first && (first.slot !== entry.slot || first.turn !== entry.turn);
    return isElsewhere ? { duplicate: { turn: first.turn, slot: first.slot } } : {};
  };
  const fence = (id: string): Fencing => {
    const known = effect(id);
    if (known.result !== undefined) return { id, status: 'committed', result: known.result };
    known.fenced = true;
    return { id, status: 'fenced' };
  };
  return {
    entries: () => [...slots.values()].sort((a, b) => a.slot - b.slot),
    apply(batch: WriteBatch): Applied {
      for (const entry of batch.record ?? []) if (!recordingOf(entry).duplicate) put(entry);
      const fenced = (batch.fence ?? []).map(fence);
      (batch.append ?? []).forEach(put);
      const recorded = (batch.record ?? []).map(recordingOf);
      if (!batch.reserve) return { recorded, fenced };
      const { claim, attempt } = batch.reserve;
      const end = settled(claim);
      if (end) return { recorded, fenced, reservation: end };
      const known = effect(claim.id);
      known.hash = claim.hash;
      if (!known.attempts.includes(attempt)) known.attempts.push(attempt);
      return { recorded, fenced, reservation: { status: 'reserved', earlier: known.attempts.indexOf(attempt) } };
    },
    commit(claim: Claim, result: JsonValue, entries: readonly Stored[]): Commitment {
      const end = settled(claim);
      if (end) return end;
      Object.assign(effect(claim.id), { hash: claim.hash, result });
      entries.forEach(put);
      return { status: 'committed', result };
    },
  };
}
