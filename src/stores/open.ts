/** Which store the settings select: Redis where REDIS_URL is set, files otherwise; never one for the other. */
import { createFileStore } from './file/index.js';
import type * as redis from './redis/index.js';
import { createFolderArchive } from './archive/place.js';
import type { ArchivePlace } from './whole-ports.js';
import { createS3Archive } from './archive/s3.js';
import { createAtRest, deriveAtRestKeys, type AtRest } from '../platform/at-rest.js';
import { ConfigError } from '../platform/errors.js';
import type { ConversationKey, Store } from './store.js';
import type { Entry } from '../records/message.js';

export interface StoreSettings extends ArchiveSettings {
  readonly redisUrl?: string;
  /** Absolute. */
  readonly memoryDir: string;
  /** Keys that encrypt what it keeps, the newest first; none: nothing is encrypted. */
  readonly encryptionRoots?: () => readonly Uint8Array[];
}

/** Where what is old lies, as settings say it. */
export interface ArchiveSettings {
  readonly archive?:
    { readonly kind: 'folder'; readonly path: string } | { readonly kind: 's3'; readonly bucket: string; readonly prefix: string };
  readonly awsAccessKeyId?: string;
  readonly awsSecretAccessKey?: string;
  readonly awsSessionToken?: string;
  readonly awsRegion?: string;
  readonly awsEndpoint?: string;
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
  const archive = openArchive(settings);
  if (redisUrl === undefined) return createFileStore({ dir: memoryDir, traceLines, atRest, archive, log });
  // A tenth of the start of a command that keeps files.
  const { createRedisStore } = require('./redis/index.js') as typeof redis;
  return createRedisStore({ url: redisUrl, log, atRest, archive });
}

/** Throws `ConfigError`. */
function openArchive(settings: ArchiveSettings): ArchivePlace | undefined {
  const { archive, awsAccessKeyId: accessKeyId, awsSecretAccessKey: secretAccessKey, awsRegion: region = 'us-east-1' } = settings;
  if (archive === undefined) return undefined;
  if (archive.kind === 'folder') return createFolderArchive(archive.path);
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw new ConfigError(
      `PERDURA_ARCHIVE names the bucket ${archive.bucket}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a folder`,
    );
  const { bucket, prefix } = archive;
  const { awsEndpoint: endpoint, awsSessionToken: sessionToken } = settings;
  return createS3Archive({ bucket, prefix, region, accessKeyId, secretAccessKey, endpoint, sessionToken });
}

/** How what it keeps is encrypted. Throws `ConfigError`. */
export function openAtRest({ encryptionRoots }: Pick<StoreSettings, 'encryptionRoots'>): AtRest {
  return createAtRest(deriveAtRestKeys(encryptionRoots?.() ?? [], 'store'));
}
