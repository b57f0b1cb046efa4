/**
 * The store in files, for one machine. Below `<dir>/agents/<scope>/conversations/<conversation>/<life>/` there are
 *
 *   journal.jsonl     the truth: one line per write (journal.ts)
 *   raw_traces.jsonl, raw_traces_archive.jsonl
 *                     derived from it, in the seed's format, for people and grep: the active ones, and the compacted ones
 *   episodic.jsonl    summaries of what was compacted
 *   bodies/           long texts by their SHA-256
 *   lineage.jsonl, cuts.jsonl, forks.jsonl
 *                     which lives it shares entries with (collections/lives.ts)
 *   turn-ends.jsonl   how turns ended that have no whole answer (collections/lives.ts)
 *   vectors.jsonl     what its texts mean (collections/memory.ts)
 *   feed.jsonl        live events, bounded, not synced
 *   lock, *.lock      who writes just now (lock.ts)
 *
 * and in `<dir>/agents/<scope>/` what all its conversations share: semantic.jsonl, MEMORY.md and HISTORY (documents.ts), and
 * search-index.*.bin, the index for search, which is made again from the rest where it is not there.
 * The accepted tools of an agent's MCP servers, and those that wait for that, are in `<dir>/pins/<agent>.jsonl`; what these have given when a
 * person signed in, sealed, is in `<dir>/sign-ins/<scope>.jsonl`; files that wait to be used are in `<dir>/uploads/`; `<dir>/locks/` has a file for each process that writes (lock.ts), `<dir>/workers/` the leases of workers (leases.ts),
 * `<dir>/limits/` what is left of limits of providers (file-rate-limits.ts), `<dir>/store-id` the name that the store gave itself.
 */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { access, link, mkdir, open as openFile, readFile, rename, rm, stat, statfs, unlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import {
  createEffects,
  createEntries,
  createFileBodies,
  createFileContents,
  createFileLifeStorage,
  createFileSpendings,
  createOpenConversations,
  createWrites,
  withJournalCollections,
  type OpenOptions,
} from './entries.js';
import { createFileDocuments } from './documents.js';
import { describeErrors, toUnavailable, unlessAbsent } from './errors.js';
import { namesIn } from './lines.js';
import { toFileName, uploadsDir } from './paths.js';
import { createFileFeed } from './feed.js';
import { createFileCollections } from './collections.js';
import { createFileRateLimits } from '../file-rate-limits.js';
import { createFileScopes, noteChange } from './scopes.js';
import { resealFiles } from './reseal.js';
import { createFileCalls, createFileHandles } from './handles.js';
import { createLocks } from './lock.js';
import { createAtRest, type AtRest } from '../../platform/at-rest.js';
import { createBudgets } from '../collections/budgets.js';
import { createItems } from '../collections/items.js';
import { createLives, createTombstones, createTurnEnds } from '../collections/lives.js';
import { createEpisodes, createFacts, createVectors } from '../collections/memory.js';
import { createPins, createSignIns } from '../collections/mcp-servers.js';
import { createTenantSpendings } from '../collections/tenant-spendings.js';
import { createUploads, type UploadBytes } from '../collections/uploads.js';
import { freshStoreId, isStoreId } from '../names.js';
import { createLifeGuard, withLifeWrites } from '../life-writes.js';
import { createArchived, withArchivedResults } from '../archived.js';
import type { ArchivePlace } from '../whole-ports.js';
import { withShared } from '../shared-entries.js';
import type { Feed, Store, UploadOwner } from '../store.js';
import { errorCode } from '../../platform/errors.js';

export interface FileStoreOptions extends Pick<OpenOptions, 'traceLines' | 'log'> {
  readonly dir: string;
  /** Live events that a conversation has, at least. */
  readonly feedMaxLength?: number;
  /** Default: plain. */
  readonly atRest?: AtRest;
  /** Of tests: epoch milliseconds for limits of providers. */
  readonly clock?: () => number;
  /** Where what is old lies. */
  readonly archive?: ArchivePlace;
}

export function createFileStore(options: FileStoreOptions): Store {
  const dir = resolve(options.dir);
  const { atRest = createAtRest() } = options;
  const calls = createFileCalls();
  const handles = createFileHandles(calls);
  const locks = createLocks(dir, calls);
  const open = createOpenConversations(dir, { ...options, atRest, handles, withLock: locks.withLock });
  const collections = withJournalCollections(dir, open, createFileCollections(dir, atRest, locks.withLock));
  const archived = createArchived({ place: options.archive, atRest, open: collections, log: options.log });
  const storage = archived.withLives(createFileLifeStorage(dir, handles));
  const guard = createLifeGuard(createTombstones(collections), {
    async remove(key) {
      await storage.remove(key, `delete ${key.conversation}`);
      noteChange(dir, key);
    },
  });
  const feed = createFileFeed(dir, { maxLength: options.feedMaxLength ?? 10_000, atRest, handles, withLock: locks.withLock });
  // A publish beside a write is not waited for, so it looks itself.
  const beside: Feed = { ...feed, publish: guard.after((key, events) => feed.publish(key, events)) };
  const writes = createWrites(dir, open, beside);
  const alone = { entries: createEntries(dir, open, writes), bodies: createFileBodies(dir, atRest), items: createItems(collections) };
  const documents = createFileDocuments(dir, atRest);
  const lives = createLives(collections, { ...storage, archiveShared: (key, archived) => alone.entries.archive(key, archived, 0) });
  const ofLives = {
    ...withShared(archived.through(alone), lives),
    lives,
    ...withArchivedResults(archived, { effects: createEffects(dir, open, writes, beside), writes }),
    feed,
    episodes: createEpisodes(collections),
    turnEnds: createTurnEnds(collections),
    vectors: createVectors(collections),
    budgets: createBudgets(collections),
  };
  return {
    kind: 'file',
    where: dir,
    id: () => storeId(dir),
    ...withLifeWrites(ofLives, { guard, note: (key) => noteChange(dir, key), byItself: false }),
    spendings: createFileSpendings(dir, atRest),
    facts: createFacts(collections),
    documents,
    tenantSpendings: createTenantSpendings(collections),
    rateLimits: createFileRateLimits(dir, locks.withLock, options.clock),
    pins: createPins(collections),
    signIns: createSignIns(collections),
    scopes: createFileScopes(dir, atRest),
    uploads: createUploads(collections, createFileUploadBytes(dir, atRest)),
    contents: createFileContents({ ...alone, dir, atRest, journal: open, open: collections }),
    archived,
    reseal: () => resealFiles({ dir, atRest, documents, withLock: locks.withLock }),
    check: () => checkDirectory(dir),
    async close() {
      await feed.close();
      handles.close();
      locks.close();
    },
  };
}

/** Linked into its place whole: of two processes that make it, both get the first one's. */
async function storeId(dir: string): Promise<string> {
  const file = join(dir, 'store-id');
  try {
    await mkdir(dir, { recursive: true });
    const fresh = `${file}.${process.pid}.${freshStoreId()}`;
    const before = await readFile(file, 'utf8').catch(() => '');
    if (isStoreId(before.trim())) return before.trim();
    await writeFile(fresh, `${freshStoreId()}\n`);
    try {
      await (before === '' ? link(fresh, file) : rename(fresh, file));
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error;
    } finally {
      await rm(fresh, { force: true });
    }
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    throw toUnavailable('read the name of the store', file, error);
  }
}

/** By the magic numbers of Linux' statfs. */
const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
]);

async function checkDirectory(dir: string): Promise<string[]> {
  try {
    await mkdir(join(dir, 'agents'), { recursive: true });
    await access(join(dir, 'agents'), constants.R_OK | constants.W_OK);
    const network = NETWORK_FILE_SYSTEMS.get((await statfs(dir)).type);
    if (network === undefined) return [];
    return [`${dir} lies on a network file system (${network}): the file store is for one machine and a local disk; use Redis (REDIS_URL)`];
  } catch (error) {
    throw toUnavailable('use the memory directory', dir, error);
  }
}

/*
 * Files that wait to be used (collections/uploads.ts), in `<dir>/uploads/<namespace>/<tenant>/`:
 *
 *   arriving/<uuid>    what is being written; left by a writer that died, it goes after an hour
 *   waiting/<id>       bytes of those that no conversation has used, listed in waiting.jsonl
 *   known/<id>.jsonl   what each is, until when, and who has used it
 */

const DRAFT_LIFE_MS = 60 * 60 * 1000;

export function createFileUploadBytes(dir: string, atRest: AtRest): UploadBytes {
  const toPath = (owner: UploadOwner, id: string): string => join(uploadsDir(dir, owner), 'waiting', toFileName(id));
  return {
    async begin(owner) {
      const folder = uploadsDir(dir, owner);
      const path = join(folder, 'arriving', randomUUID());
      const file = await describeErrors(folder, 'begin an upload', async () => {
        for (const name of ['arriving', 'waiting']) await mkdir(join(folder, name), { recursive: true });
        return openFile(path, 'wx');
      });
      let written = 0;
      return {
        append: (bytes) =>
          describeErrors(folder, 'write an upload', async () => {
            const stored = await atRest.sealBytes(bytes, written > 0);
            await file.writeFile(stored);
            written += stored.byteLength;
          }),

        async finish({ id }) {
          await file.sync();
          await file.close();
          if ((await stat(path)).size !== written) throw new Error('it was written in part only, the disk may be full');
          await rename(path, toPath(owner, id));
        },

        discard: () =>
          describeErrors(folder, 'discard an upload', async () => {
            await file.close().catch(() => undefined);
            await unlessAbsent(unlink(path));
          }),
      };
    },

    read: (owner, id) =>
      describeErrors(toPath(owner, id), `read the upload ${id}`, () => unlessAbsent(readFile(toPath(owner, id)).then(atRest.openBytes))),

    // A disk that is full says so, to each that writes.
    room: () => Promise.resolve(Infinity),

    remove: async (owner, id) => (await unlessAbsent(unlink(toPath(owner, id)).then(() => true))) ?? false,

    async *known(owner) {
      const names = await namesIn(join(uploadsDir(dir, owner), 'known'));
      yield* names.filter((name) => name.endsWith('.jsonl')).flatMap((name) => fromFileName(name.slice(0, -'.jsonl'.length)));
    },

    clear: (owner) =>
      describeErrors(uploadsDir(dir, owner), 'remove the uploads', () =>
        rm(uploadsDir(dir, owner), { recursive: true, force: true, maxRetries: 3 }),
      ),

    async *list() {
      const root = join(dir, 'uploads');
      for (const namespace of (await namesIn(root)).flatMap(fromFileName)) {
        for (const tenant of (await namesIn(join(root, toFileName(namespace)))).flatMap(fromFileName)) {
          const owner = { namespace, tenant };
          const folder = uploadsDir(dir, owner);
          await removeLeft(join(folder, 'arriving'));
          const known = (await namesIn(join(folder, 'known'))).filter((name) => name.endsWith('.jsonl')).map((name) => name.slice(0, -6));
          // A writer that died between the two has left bytes without a record.
          const names = new Set([...known, ...(await namesIn(join(folder, 'waiting')))]);
          for (const id of [...names].flatMap(fromFileName)) yield { owner, id };
        }
      }
    },
  };
}

async function removeLeft(arriving: string): Promise<void> {
  for (const name of await namesIn(arriving)) {
    const path = join(arriving, name);
    const last = (await unlessAbsent(stat(path)))?.mtimeMs ?? Infinity;
    if (last + DRAFT_LIFE_MS < Date.now()) await unlessAbsent(unlink(path));
  }
}

/** None for a long name, which ends in a hash: ids, and names of tenants, are shorter. */
function fromFileName(name: string): string[] {
  if (name === toFileName('')) return [''];
  return name.includes('~') || /%(?![\dA-F]{2})/.test(name) ? [] : [decodeURIComponent(name)];
}
