/**
 * At random: turns are said, rewound, reset, forgotten, deleted and asked for, by two processes over one store. A search finds what a simple
 * list says is there, and never anything that it says is gone.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { dropDeleted, dropIndex, createRecall, type Recall } from '../../../src/memory/recall/recall.js';
import { PartLost } from '../../../src/memory/recall/segments.js';
import { ScopeIndex } from '../../../src/memory/recall/scope-index.js';
import { tombstoneFor } from '../../../src/memory/documents/forgetting.js';
import { createFileStore } from '../../../src/stores/file/index.js';
import { createRedisStore } from '../../../src/stores/redis/index.js';
import type { ConversationKey, Store } from '../../../src/stores/store.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { aConversation, aScope, userEntry } from '../../stores/builders.js';

const now = new Date('2025-02-01T12:00:00Z');
const MAX_SAID = 4;

type Step =
  | { readonly kind: 'say'; readonly in: number; readonly count: number }
  | { readonly kind: 'rewind' | 'delete' | 'reset'; readonly in: number }
  | { readonly kind: 'forget'; readonly which: number }
  | { readonly kind: 'ask'; readonly which: number }
  | { readonly kind: 'begin' };

const conversation = fc.nat(3);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('say' as const), in: conversation, count: fc.integer({ min: 1, max: MAX_SAID }) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('rewind' as const, 'delete' as const, 'reset' as const), in: conversation }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('forget' as const), which: fc.nat() }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('ask' as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'begin' as const }) },
);

export function neverFound(kind: 'file' | 'redis', options: { sealed?: number; cacheBytes?: number }, numRuns: number): void {
  let dir: string;
  let redis: RedisServer | undefined;
  let stores: readonly Store[];

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'perdura-never-'));
    redis = kind === 'redis' ? await startRedis() : undefined;
    stores = [1, 2].map(() => (redis ? createRedisStore({ url: redis.url }) : createFileStore({ dir })));
  });
  afterAll(async () => {
    for (const store of stores) await store.close();
    await redis?.stop();
    await rm(dir, { recursive: true, force: true });
  });

  test('what is gone is never found, and what is there always', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        const scope = aScope();
        const recalls: Recall[] = stores.map((store) => createRecall({ store, ...options }));
        const begin = (store: Store): ScopeIndex => new ScopeIndex({ store, key: scope, cacheBytes: 0, ...options });
        /** Beside them, to be looked into. */
        const indexes = stores.map(begin);
        /** By an index that is up to date; another process may have replaced what it is made of. */
        const inIndex = async <T>(at: number, look: (index: ScopeIndex) => T): Promise<Awaited<T>> => {
          const index = indexes[at] as ScopeIndex;
          try {
            await index.update();
            await index.write({ isKept: false });
            if (!index.isOutdated) return await look(index);
          } catch (error) {
            if (!(error instanceof PartLost)) throw error;
          }
          indexes[at] = begin(stores[at % 2] as Store);
          return inIndex(at, look);
        };
        const lives = [0, 1, 2, 3].map((n) => ({
          key: { ...aConversation(scope), conversation: `conv_${n}` },
          last: 0,
          cuts: 0,
          session: 1,
          turns: [] as number[],
        }));
        /** Every word that was ever said, and where it is; absent: it is gone. */
        const there = new Map<string, { readonly key: ConversationKey; readonly slot: number }>();
        const said: string[] = [];
        for (const [at, one] of steps.entries()) {
          const store = stores[at % 2] as Store;
          const life = lives['in' in one ? one.in : 0] as (typeof lives)[number];
          const { key } = life;
          switch (one.kind) {
            case 'say': {
              const words = Array.from({ length: one.count }, (_, i) => `word${String(said.length + i).padStart(4, '0')}q`);
              const entries = words.map((word, i) => ({ ...userEntry(life.last + i + 1, `I said ${word} there`), session: life.session }));
              await (at % 3 === 0 ? store.entries.record(key, entries) : store.entries.append(key, entries));
              for (const [i, word] of words.entries()) there.set(word, { key, slot: life.last + i + 1 });
              said.push(...words);
              life.turns.push(...words.map((_, i) => life.last + i + 1));
              life.last += one.count;
              break;
            }
            case 'reset':
              life.session += 1;
              break;
            case 'rewind': {
              // A turn stays, as in a conversation; those after it go, and what comes next has slots of its own.
              const to = life.turns.at(-3) ?? life.turns[0];
              if (to === undefined || to === life.turns.at(-1)) break;
              life.cuts += 1;
              const cut = {
                v: 1,
                id: `cut${life.cuts}`,
                branch: life.cuts,
                to,
                begun: to,
                since: userEntry(to).ts,
                slot: life.last,
              } as const;
              await store.lives.cut(key, {
                ...cut,
                at: userEntry(life.last).ts + 0.1,
                session: life.session,
                slots: [[to + 1, life.last]],
              });
              life.turns = life.turns.filter((turn) => turn <= to);
              for (const [word, place] of there) if (place.key === key && place.slot > to) there.delete(word);
              break;
            }
            case 'delete':
              await store.lives.delete(key);
              if (at % 2 === 0) await dropDeleted(store, scope);
              for (const [word, place] of there) if (place.key === key) there.delete(word);
              lives[one.in] = { ...life, key: { ...key, life: `${key.life}x` }, last: 0, cuts: 0, turns: [] };
              break;
            case 'forget': {
              const word = said[one.which % Math.max(1, said.length)];
              if (word === undefined) break;
              await store.documents.forget(scope, tombstoneFor({ scope: scope.scope, text: `I said ${word} there`, at: at + 1 }));
              if (at % 2 === 0) await dropIndex(store, scope);
              there.delete(word);
              break;
            }
            case 'begin':
              recalls[at % 2] = createRecall({ store, ...options });
              indexes[at % 2] = begin(store);
              break;
            case 'ask': {
              const word = said[one.which % Math.max(1, said.length)];
              if (word === undefined) break;
              await inIndex(at % 2, () => undefined);
              for (const recall of recalls) {
                const found = (await recall.search(scope, { question: word, now, limit: 50 })).map(({ text }) => text).join('\n');
                if (found.includes(word) !== there.has(word)) throw new Error(`${word} is ${there.has(word) ? 'there' : 'gone'}: ${found}`);
                for (const other of said) {
                  if (!there.has(other) && found.includes(other)) throw new Error(`${other} is gone, and was found for ${word}`);
                }
              }
            }
          }
        }
        // An index that has seen all that has neither more nor less than one that is made from what the store has now.
        const made = new ScopeIndex({ store: withoutIndex(stores[0] as Store), key: scope, cacheBytes: Infinity });
        await made.update();
        indexes.push(begin(stores[0] as Store));
        for (const at of indexes.keys()) {
          expect(await inIndex(at, ({ size }) => size)).toBe(made.size);
          for (const word of said) {
            const hits = await inIndex(at, (index) => index.search({ question: word, now: now.getTime() / 1000 }, undefined));
            expect([word, hits.filter(({ words }) => words > 0).length]).toEqual([word, there.has(word) ? 1 : 0]);
          }
        }
      }),
      { numRuns },
    );
  });
}

function withoutIndex(store: Store): Store {
  return { ...store, scopes: { ...store.scopes, readIndex: () => Promise.resolve(undefined), indexParts: () => Promise.resolve([]) } };
}
