/** The store in Redis: which keys there are, and what each holds, is in keys.ts. */
import { randomUUID } from 'node:crypto';
import type { AtRest } from '../../platform/at-rest.js';
import { createBudgets } from '../collections/budgets.js';
import { createItems } from '../collections/items.js';
import { createLives, createTurnEnds } from '../collections/lives.js';
import { createEpisodes, createFacts, createVectors } from '../collections/memory.js';
import { createPins, createSignIns } from '../collections/mcp-servers.js';
import { createTenantSpendings } from '../collections/tenant-spendings.js';
import { createUploads, type UploadBytes } from '../collections/uploads.js';
import { createLifeGuard, withLifeWrites } from '../life-writes.js';
import { freshStoreId } from '../names.js';
import { createArchived, withArchivedResults } from '../archived.js';
import type { ArchivePlace } from '../whole-ports.js';
import { withShared } from '../shared-entries.js';
import { createRedisCollections } from './collections.js';
import { createRedisDocuments } from './documents.js';
import { createBodies, createEffects, createEntries, createRedisLifeStorage, createRedisSpendings, createWrites } from './entries.js';
import { createEntryCache } from './entry-cache.js';
import { createRedisFeed } from './feed.js';
import { lifeKey, literally, STORE_KEY, uploadKey } from './keys.js';
import { openBytes, openRedisLink, scanKeys, type RedisLink } from './link.js';
import { createRedisRateLimits } from '../redis-rate-limits.js';
import { createRedisContents, resealRedis } from './reseal.js';
import { checkRedis } from './upkeep.js';
import { createRedisScopes, noteLife } from './scopes.js';
import { DELETED } from './scripts.js';
import { StoreUnavailable, type ConversationKey, type Store } from '../store.js';

export interface RedisStoreOptions {
  readonly url: string;
  /** Milliseconds after which a call is given up, its outcome unknown. */
  readonly commandTimeoutMs?: number;
  /** Live events that a conversation has, about. */
  readonly feedMaxLength?: number;
  readonly log?: (line: string) => void;
  /** Default: plain. */
  readonly atRest?: AtRest;
  /** Of tests: epoch milliseconds for limits of providers, in place of Redis' time. */
  readonly clock?: () => number;
  /** Where what is old lies. */
  readonly archive?: ArchivePlace;
}

/** JSON of entries that a worker keeps in memory, all conversations together. */
const CACHED_BYTES = 32 * 1024 * 1024;

export function createRedisStore(options: RedisStoreOptions): Store {
  const { url, commandTimeoutMs, log, atRest } = options;
  const link = openRedisLink({ url, commandTimeoutMs, atRest, log });
  const feed = createRedisFeed(link, { maxLength: options.feedMaxLength ?? 10_000, log });
  const open = createRedisCollections(link);
  const archived = createArchived({ place: options.archive, atRest: link.atRest, open, log });
  const storage = archived.withLives(createRedisLifeStorage(link));
  const lives = createLives(open, storage);
  const cache = createEntryCache(CACHED_BYTES);
  link.onDoubt(() => cache.disconnected());
  const writes = createWrites(link, feed, cache);
  const guard = createLifeGuard(lives, {
    async remove(key) {
      await storage.remove(key, `delete ${key.conversation}`);
      cache.forget(lifeKey(key, 'entries'));
      await noteLife(link, key);
    },
    isRefusal: (error) => error instanceof StoreUnavailable && error.message.includes(DELETED),
  });
  const alone = { entries: createEntries(link, writes, cache), bodies: createBodies(link), items: createItems(open) };
  const effects = createEffects(link, writes, feed, cache);
  const ofLives = {
    ...withShared(archived.through(alone), lives),
    lives: {
      ...lives,
      async delete(key: ConversationKey) {
        await lives.delete(key);
        cache.forget(lifeKey(key, 'entries'));
      },
    },
    ...withArchivedResults(archived, { effects, writes }),
    spendings: createRedisSpendings(link),
    budgets: createBudgets(open),
    feed,
    episodes: createEpisodes(open),
    turnEnds: createTurnEnds(open),
    vectors: createVectors(open),
  };
  return {
    kind: 'redis',
    where: link.where,
    id: () =>
      link.ask('read the name of the store', async (redis) => {
        await redis.setnx(STORE_KEY, freshStoreId());
        return (await redis.get(STORE_KEY)) ?? '';
      }),
    ...withLifeWrites(ofLives, { guard, note: (key) => noteLife(link, key), byItself: true }),
    facts: createFacts(open),
    documents: createRedisDocuments(link),
    tenantSpendings: createTenantSpendings(open),
    rateLimits: createRedisRateLimits(link, options.clock),
    pins: createPins(open),
    signIns: createSignIns(open),
    scopes: createRedisScopes(link),
    uploads: createUploads(open, createRedisUploadBytes(link)),
    contents: createRedisContents({ ...alone, link, effects, open }),
    archived,
    reseal: () => resealRedis(link),
    check: () => checkRedis(link),
    async close() {
      feed.close();
      await link.close();
    },
  };
}

// Bytes of files that wait to be used (collections/uploads.ts): Redis itself removes what has expired.

/** Life of an unfinished file after its latest part. */
const DRAFT_LIFE_MS = 10 * 60 * 1000;

/** The rest is for messages, and what becomes of them: a Redis that takes no writes stops every conversation. */
const FULL_AT = 0.75;

function createRedisUploadBytes(link: RedisLink): UploadBytes {
  return {
    async begin(owner) {
      const draft = uploadKey(owner, 'arriving', randomUUID());
      let written = 0;
      return {
        append: async (bytes) => {
          const stored = await link.atRest.sealBytes(bytes, written > 0);
          await link.ask('write an upload', async (redis) => {
            await redis.append(draft, stored);
            await redis.pexpire(draft, DRAFT_LIFE_MS);
          });
          written += stored.length;
        },

        finish: ({ id, expiresAt }) =>
          link.ask(`keep the upload ${id}`, async (redis) => {
            if ((await redis.strlen(draft)) !== written) throw new Error('a part of it was written twice or not at all: send it again');
            await redis.rename(draft, uploadKey(owner, 'waiting', id));
            await redis.pexpireat(uploadKey(owner, 'waiting', id), expiresAt);
          }),

        discard: () =>
          link.ask('discard an upload', async (redis) => {
            await redis.del(draft);
          }),
      };
    },

    async read(owner, id) {
      const bytes = await link.askUnlessForeign(`read the upload ${id}`, (redis) => redis.getBuffer(uploadKey(owner, 'waiting', id)));
      return bytes ? openBytes(link, `read the upload ${id}`, bytes) : undefined;
    },

    remove: (owner, id) => link.ask(`remove the upload ${id}`, async (redis) => (await redis.del(uploadKey(owner, 'waiting', id))) === 1),

    async *list() {},

    async *known(owner) {
      const beginning = uploadKey(owner, 'known', '');
      const attempt = 'look which files were sent';
      for await (const name of scanKeys(link, attempt, literally(beginning))) yield name.slice(beginning.length);
    },

    async clear(owner) {
      const attempt = 'remove the uploads';
      for await (const name of scanKeys(link, attempt, literally(uploadKey(owner, 'kept').replace(/kept$/, ''))))
        await link.ask(attempt, (redis) => redis.unlink(name));
    },

    async room() {
      // Which node of a cluster takes a file is known once it has a name: it fits into each.
      const nodes = link.cluster?.masters() ?? [link.redis];
      const rooms = await link.ask('read how full it is', async () =>
        Promise.all((await nodes).map(async (node) => roomIn(await node.info('memory')))),
      );
      return Math.min(...rooms);
    },
  };
}

function roomIn(memory: string): number {
  const read = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(memory)?.[1] ?? 0);
  const most = read('maxmemory');
  return most === 0 ? Infinity : Math.max(0, Math.floor(most * FULL_AT) - read('used_memory'));
}
