/** MEMORY.md, HISTORY and what lies beside them, in Redis. Keys: redis.ts. */
import { createRedisHistory } from './redis-history.js';
import type { RedisLink } from './redis-link.js';
import { createRedisMemoryText } from './redis-memory-text.js';
import { createRedisProposals } from './redis-proposals.js';
import { redactRedis } from './redis-redact.js';
import type { Documents } from './store.js';

export function createRedisDocuments(link: RedisLink): Documents {
  return {
    ...createRedisMemoryText(link),
    ...createRedisHistory(link),
    ...createRedisProposals(link),
    redact: (key, redact) => redactRedis(link, key, redact),
  };
}
