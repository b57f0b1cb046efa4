/** MEMORY.md, HISTORY and what lies beside them, in Redis. Keys: redis.ts. */
import { createRedisHistory } from './history.js';
import type { RedisLink } from './link.js';
import { createRedisMemoryText } from './memory-text.js';
import { createRedisProposals } from './proposals.js';
import { redactRedis } from './redact.js';
import type { Documents } from '../store.js';

export function createRedisDocuments(link: RedisLink): Documents {
  return {
    ...createRedisMemoryText(link),
    ...createRedisHistory(link),
    ...createRedisProposals(link),
    redact: (key, redact) => redactRedis(link, key, redact),
  };
}
