/** Which store the settings select: Redis where REDIS_URL is set, files otherwise; never one for the other. */
import { createFileStore } from './file/index.js';
import type * as redis from './redis/index.js';
import type { ConversationKey, Store } from './store.js';
import type { Entry } from '../records/message.js';

export interface StoreSettings {
  readonly redisUrl?: string;
  /** Absolute. */
  readonly memoryDir: string;
}

export interface OpenOptions {
  /** Lines of one entry in the readable trace file (files only). */
  readonly traceLines?: (entry: Entry, key: ConversationKey) => string[];
  /** Told of what a store has to put up with (Redis only). */
  readonly log?: (line: string) => void;
}

export function openStore({ redisUrl, memoryDir }: StoreSettings, { traceLines, log }: OpenOptions = {}): Store {
  if (redisUrl === undefined) return createFileStore({ dir: memoryDir, traceLines });
  // A tenth of the start of a command that keeps files.
  const { createRedisStore } = require('./redis/index.js') as typeof redis;
  return createRedisStore({ url: redisUrl, log });
}
