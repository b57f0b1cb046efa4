/** Which store the settings select: Redis where REDIS_URL is set, files otherwise; never one for the other. */
import { createFileStore } from './file/index.js';
import type * as redis from './redis/index.js';
import { createAtRest, deriveAtRestKeys, type AtRest } from '../platform/at-rest.js';
import type { ConversationKey, Store } from './store.js';
import type { Entry } from '../records/message.js';

export interface StoreSettings {
  readonly redisUrl?: string;
  /** Absolute. */
  readonly memoryDir: string;
  /** Keys that encrypt what it keeps, the newest first; none: nothing is encrypted. */
  readonly encryptionRoots?: () => readonly Uint8Array[];
}

export interface OpenOptions {
  /** Lines of one entry in the readable trace file (files only). */
  readonly traceLines?: (entry: Entry, key: ConversationKey) => string[];
  /** Told of what a store has to put up with (Redis only). */
  readonly log?: (line: string) => void;
}

export function openStore(settings: StoreSettings, { traceLines, log }: OpenOptions = {}): Store {
  const { redisUrl, memoryDir } = settings;
  const atRest = openAtRest(settings);
  if (redisUrl === undefined) return createFileStore({ dir: memoryDir, traceLines, atRest });
  // A tenth of the start of a command that keeps files.
  const { createRedisStore } = require('./redis/index.js') as typeof redis;
  return createRedisStore({ url: redisUrl, log, atRest });
}

/** How what it keeps is encrypted. Throws `ConfigError`. */
export function openAtRest({ encryptionRoots }: Pick<StoreSettings, 'encryptionRoots'>): AtRest {
  return createAtRest(deriveAtRestKeys(encryptionRoots?.() ?? [], 'store'));
}
