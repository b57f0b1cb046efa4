/** The end of what conversations of a scope share, in every store: nothing is left, and nothing that was at work brings it back. */
import { randomUUID } from 'node:crypto';
import type { ConversationKey, Store } from '../../src/stores/store.js';
import { aConversation, aScope, episode, fact, userEntry } from './builders.js';
import type { OpenStore } from './contract.js';

/** Writes of a conversation, or of the memory workflow, to what a scope shares. */
const WRITES: readonly (readonly [name: string, write: (store: Store, key: ConversationKey, words: string) => Promise<unknown>])[] = [
  [
    'MEMORY.md',
    async ({ documents }, key, words) => {
      const { version: from } = await documents.memory(key);
      return documents.writeMemory(key, { id: randomUUID(), ts: 1, cause: 'consolidation', from, text: `- ${words}\n`, lines: [] });
    },
  ],
  [
    'HISTORY',
    ({ documents }, key, words) => documents.appendHistory(key, { id: randomUUID(), kind: 'summary', ts: 1_700_000_000, text: words }),
  ],
  ['a fact', ({ facts }, key, words) => facts.add(key, randomUUID(), [fact(words)], { conversation: key.conversation, turn_ids: [] })],
  [
    'a proposal',
    ({ documents }, key, words) => documents.propose(key, randomUUID(), [{ ts: 1, line: words, source: { trust: 'person' } } as never]),
  ],
  ['a text to be forgotten', ({ documents }, key, words) => documents.forget(key, { id: randomUUID(), ts: 1, words: [words] })],
];

export function erasureContract(open: OpenStore, bytes: () => Promise<string>): void {
  describe('erasure', () => {
    const anyone = (over: Partial<ConversationKey> = {}): ConversationKey => aConversation({ ...aScope(), ...over });
    const fill = async (store: Store, key: ConversationKey, words: string): Promise<void> => {
      for (const [, write] of WRITES) await write(store, key, words);
      await store.scopes.writeIndex(key, 'head', Buffer.from(words));
      await store.scopes.writeIndex(key, 'part-1', Buffer.from(words.repeat(50_000)));
    };

    test('of a scope nothing is left but ids, of another scope nothing is gone', async () => {
      const store = open();
      const [words, others] = [`canary-${randomUUID()}`, `canary-${randomUUID()}`];
      const [key, other] = [anyone(), anyone()];
      await fill(store, key, words);
      await fill(store, other, others);
      expect(await bytes()).toContain(words);
      expect((await open().scopes.erase(key, [key.life])).records).toBeGreaterThan(0);
      expect(await bytes()).not.toContain(words);
      expect(await store.scopes.list(key.namespace)).not.toContain(key.scope);
      expect(await store.documents.memory(key)).toMatchObject({ text: '' });
      expect((await store.facts.list(key, { all: true })).facts).toEqual([]);
      expect((await store.documents.memory(other)).text).toContain(others);
      expect((await store.facts.list(other)).facts).toHaveLength(1);
      expect(await store.scopes.indexParts(other)).toHaveLength(2);
    });

    test.each(WRITES)('%s of who was at work then is refused for good, and leaves no byte; who comes later writes', async (_, write) => {
      const [late, words] = [open(), `canary-${randomUUID()}`];
      const key = anyone();
      // What it has open is from before.
      await write(late, key, 'before');
      await open().scopes.erase(key, [key.life, randomUUID()]);
      for (const store of [late, open()]) await expect(write(store, key, words)).rejects.toMatchObject({ name: 'LifeDeleted' });
      expect(await bytes()).not.toContain(words);
      const later = { ...key, life: randomUUID() };
      await write(late, later, words);
      expect(await bytes()).toContain(words);
      await expect(write(open(), key, 'again')).rejects.toMatchObject({ name: 'LifeDeleted' });
    });

    test('whatever is written at the same moment: it is gone, or it was refused', async () => {
      const words = `canary-${randomUUID()}`;
      const key = anyone();
      const [eraser, ...writers] = Array.from({ length: 5 }, () => open());
      await fill(writers[0] as Store, key, words);
      let isOver = false;
      let refused = 0;
      const writing = writers.map(async (store) => {
        while (!isOver || refused === 0) {
          for (const [, write] of WRITES) {
            await write(store, key, words).catch((error: unknown) => {
              if ((error as Error).name !== 'LifeDeleted') throw error;
              refused += 1;
            });
          }
        }
      });
      await (eraser as Store).scopes.erase(key, [key.life]);
      isOver = true;
      await Promise.all(writing);
      expect(await bytes()).not.toContain(words);
    });

    test('is counted once for each who was at work, so that an index of before is known as such', async () => {
      const store = open();
      const key = anyone();
      expect([await store.scopes.erasures(key), (await store.scopes.marks(key)).erasures]).toEqual([0, 0]);
      await store.scopes.erase(key, ['a', 'b']);
      await store.scopes.erase(key, ['a', 'b']);
      expect([await open().scopes.erasures(key), (await store.scopes.marks(key)).erasures]).toEqual([2, 2]);
      await store.scopes.erase(key, ['c']);
      expect(await store.scopes.erasures(key)).toBe(3);
    });

    test('does not touch conversations, which it lists', async () => {
      const store = open();
      const key = anyone();
      await store.entries.record(key, [userEntry(1)]);
      await store.episodes.add(key, episode(1));
      expect((await store.scopes.lives(key)).map(({ conversation, life }) => [conversation, life])).toEqual([[key.conversation, key.life]]);
      await store.scopes.erase(key, []);
      expect((await store.entries.page(key, 0, 10)).entries).toHaveLength(1);
      await store.lives.markDeleted(key, [{ life: key.life, at: 1 }]);
      await store.lives.delete(key);
      await store.scopes.erase(key, [key.life]);
      expect(await store.scopes.lives(key)).toEqual([]);
      expect(await store.scopes.list(key.namespace)).not.toContain(key.scope);
    });

    test('takes all sign-ins of an owner, and no others', async () => {
      const store = open();
      const [mine, others] = [
        { namespace: 'default', owner: randomUUID() },
        { namespace: 'default', owner: randomUUID() },
      ];
      for (const owner of [mine, mine, others])
        for (const id of ['a', 'b']) await store.signIns.change(owner, id, () => `sealed ${owner.owner}`);
      expect([await store.signIns.removeAll(mine), await open().signIns.removeAll(mine)]).toEqual([2, 0]);
      expect(await open().signIns.read(mine, 'a')).toBeUndefined();
      expect(await open().signIns.read(others, 'b')).toBe(`sealed ${others.owner}`);
      expect(await bytes()).not.toContain(`sealed ${mine.owner}`);
    });

    test('takes all uploads of a tenant; of a scope the records of those that it alone has used', async () => {
      const store = open();
      const owner = { namespace: 'default', tenant: `t-${randomUUID().slice(0, 30)}` };
      const neighbour = { ...owner, tenant: `${owner.tenant}-2` };
      const words = `canary-${randomUUID()}`;
      const send = async (of: typeof owner, id: string): Promise<void> => {
        const draft = await store.uploads.begin(of);
        await draft.append(Buffer.from(words));
        const size = Buffer.byteLength(words);
        await draft.keep({ id, mediaType: 'text/plain', size, sha256: '0'.repeat(64), at: Date.now(), expiresAt: Date.now() + 60_000 });
      };
      const use = (scope: string) => ({ conversation: 'c', life: `life of ${scope}`, scope, ref: 'sha256:1' });
      for (const id of ['att_alone', 'att_both', 'att_waits']) await send(owner, id);
      await send(neighbour, 'att_waits');
      await store.uploads.use(owner, 'att_alone', use('ada'), Date.now() + 60_000);
      for (const scope of ['ada', 'bob']) await store.uploads.use(owner, 'att_both', use(scope), Date.now() + 60_000);
      expect(await store.uploads.erase(owner, 'ada')).toBe(1);
      expect(await open().uploads.find(owner, 'att_alone')).toBeUndefined();
      expect((await open().uploads.find(owner, 'att_both'))?.uses).toEqual([use('bob')]);
      expect(await open().uploads.waiting(owner)).toMatchObject({ count: 1 });
      expect(await store.uploads.erase(owner)).toBe(2);
      expect(await open().uploads.waiting(owner)).toEqual({ count: 0, bytes: 0 });
      expect(await open().uploads.waiting(neighbour)).toMatchObject({ count: 1 });
      await store.uploads.erase(neighbour);
      expect(await bytes()).not.toContain(words);
    });
  });
}
