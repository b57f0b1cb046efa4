/** Both stores with encryption keep the whole contract. */
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { historyText } from '../../src/records/memory/history-text.js';
import { createAtRest, deriveAtRestKeys, type AtRest } from '../../src/platform/at-rest.js';
import { createFileStore } from '../../src/stores/file/index.js';
import { conversationDir, scopeDir } from '../../src/stores/file/paths.js';
import { lifeKey, scopeKey } from '../../src/stores/redis/keys.js';
import { createRedisStore } from '../../src/stores/redis/index.js';
import { startRedis } from '../support/redis-server.js';
import { bytesOfFiles, bytesOfRedis } from '../support/store-bytes.js';
import { storeContract } from './contract.js';
import { collect, documentsContract } from './documents-contract.js';

const [OLD, NEW] = [randomBytes(32), randomBytes(32)];
const by = (...roots: readonly Buffer[]): AtRest => createAtRest(deriveAtRestKeys(roots, 'store'));

storeContract('the encrypted file store', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-sealed-'));
  return {
    open: (options) => createFileStore({ dir, atRest: by(NEW, OLD), ...options }),
    loseFeed: (key) => rm(join(conversationDir(dir, key), 'feed.jsonl')),
    bytes: () => bytesOfFiles(dir, by(NEW, OLD)),
    end: () => rm(dir, { recursive: true }),
  };
});

storeContract('the encrypted redis store', async () => {
  const server = await startRedis();
  return {
    open: (options) => createRedisStore({ url: server.url, atRest: by(NEW, OLD), ...options }),
    async loseFeed(key) {
      const redis = new Redis(server.url);
      await redis.del(lifeKey(key, 'feed'), lifeKey(key, 'feed-batches'), lifeKey(key, 'feed-ids'));
      await redis.quit();
    },
    bytes: () => bytesOfRedis(server.url, by(NEW, OLD)),
    end: () => server.stop(),
  };
});

documentsContract('the encrypted file store', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-sealed-'));
  const atRest = by(NEW);
  return {
    open: () => createFileStore({ dir, atRest }),
    async editMemory(key, text) {
      await mkdir(scopeDir(dir, key), { recursive: true });
      await writeFile(join(scopeDir(dir, key), 'MEMORY.md'), text);
    },
    historyText: async (key) => atRest.openLines(await readFile(join(scopeDir(dir, key), 'HISTORY.md'))).toString(),
    end: () => rm(dir, { recursive: true }),
  };
});

documentsContract('the encrypted redis store', async () => {
  const server = await startRedis();
  const redis = new Redis(server.url, { disconnectTimeout: 0 });
  return {
    open: () => createRedisStore({ url: server.url, atRest: by(NEW) }),
    editMemory: async (key, text) => void (await redis.hset(scopeKey(key, 'memory'), 'text', text)),
    historyText: async (key, store) => historyText((await collect(store.documents.history(key))).reverse()),
    async end() {
      await redis.quit();
      await server.stop();
    },
  };
});
