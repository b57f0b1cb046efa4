/**
 * Files that wait to be used, in `<dir>/uploads/<namespace>/<tenant>/`:
 *
 *   arriving/<uuid>   what is being written; left by a writer that died, it goes after an hour
 *   waiting/<id>      bytes of those that no conversation has used
 *   known/<id>.json   what each is, until when, and who has used it (codecs/upload-codec.ts)
 *   uploads.lock      who changes these just now
 */
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, stat, unlink, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { withUse, type Upload } from '../../records/uploads.js';
import { decodeUpload, encodeUpload } from '../codecs/upload-codec.js';
import type { UploadDraft, UploadOwner, Uploads } from '../store.js';
import { isAbsent, toUnavailable } from './errors.js';
import { replaceFile } from './lists.js';
import { createTurns, withLock } from './lock.js';
import { toFileName } from './paths.js';

const DRAFT_LIFE_MS = 60 * 60 * 1000;

export function createFileUploads(dir: string): Uploads {
  const root = join(dir, 'uploads');
  const inTurn = createTurns();
  const folderOf = ({ namespace, tenant }: UploadOwner): string => join(root, toFileName(namespace), toFileName(tenant));
  const inWords = async <T>(attempt: string, folder: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw toUnavailable(attempt, folder, error);
    }
  };
  const locked = <T>(folder: string, work: () => Promise<T>): Promise<T> => inTurn(() => withLock(join(folder, 'uploads.lock'), work));

  return {
    begin: (owner) =>
      inWords('begin an upload', folderOf(owner), async () => {
        const folder = folderOf(owner);
        for (const name of ['arriving', 'waiting', 'known']) await mkdir(join(folder, name), { recursive: true });
        const path = join(folder, 'arriving', randomUUID());
        const file = await open(path, 'wx');
        return draftOf({ folder, path, file, locked, inWords });
      }),

    find: (owner, id) => inWords(`look up the upload ${id}`, folderOf(owner), () => readKnown(folderOf(owner), id)),

    bytes: (owner, id) =>
      inWords(`read the upload ${id}`, folderOf(owner), async () => {
        const folder = folderOf(owner);
        const known = await readKnown(folder, id);
        if (known === undefined) return undefined;
        const bytes = await unlessAbsent(readFile(join(folder, 'waiting', toFileName(id))));
        return bytes !== undefined && createHash('sha256').update(bytes).digest('hex') === known.sha256 ? bytes : undefined;
      }),

    use: (owner, id, use, expiresAt) =>
      inWords(`write who has used the upload ${id}`, folderOf(owner), async () => {
        const folder = folderOf(owner);
        if ((await readKnown(folder, id)) === undefined) return;
        await locked(folder, async () => {
          const known = await readKnown(folder, id);
          if (known === undefined) return;
          const used = { ...known, uses: withUse(known.uses, use), expiresAt: Math.max(known.expiresAt, expiresAt) };
          await replaceFile(knownPath(folder, id), encodeUpload(used));
          await remove(join(folder, 'waiting', toFileName(id)));
        });
      }),

    waiting: (owner) =>
      inWords('count the uploads that wait', folderOf(owner), async () => {
        const folder = join(folderOf(owner), 'waiting');
        const sizes = await Promise.all((await namesIn(folder)).map(async (name) => (await unlessAbsent(stat(join(folder, name))))?.size));
        const there = sizes.filter((size) => size !== undefined);
        return { count: there.length, bytes: there.reduce((sum, size) => sum + size, 0) };
      }),

    sweep: () =>
      inWords('remove uploads that have expired', root, async () => {
        let removed = 0;
        for (const namespace of await namesIn(root)) {
          for (const tenant of await namesIn(join(root, namespace))) removed += await sweepFolder(join(root, namespace, tenant), locked);
        }
        return removed;
      }),
  };
}

interface Drafting {
  readonly folder: string;
  readonly path: string;
  readonly file: FileHandle;
  readonly locked: <T>(folder: string, work: () => Promise<T>) => Promise<T>;
  readonly inWords: <T>(attempt: string, folder: string, work: () => Promise<T>) => Promise<T>;
}

function draftOf({ folder, path, file, locked, inWords }: Drafting): UploadDraft {
  let written = 0;
  return {
    append: (bytes) =>
      inWords('write an upload', folder, async () => {
        await file.writeFile(bytes);
        written += bytes.byteLength;
      }),

    keep: (upload) =>
      inWords(`keep the upload ${upload.id}`, folder, async () => {
        await file.sync();
        await file.close();
        if ((await stat(path)).size !== written) throw new Error('it was written in part only, the disk may be full');
        await locked(folder, async () => {
          const before = await readKnown(folder, upload.id);
          await rename(path, join(folder, 'waiting', toFileName(upload.id)));
          const expiresAt = Math.max(upload.expiresAt, before?.expiresAt ?? 0);
          await replaceFile(knownPath(folder, upload.id), encodeUpload({ ...upload, expiresAt, uses: before?.uses ?? [] }));
        });
      }),

    discard: () =>
      inWords('discard an upload', folder, async () => {
        await file.close().catch(() => undefined);
        await remove(path);
      }),
  };
}

/** Under the lock, so that what was sent again meanwhile stays. */
async function sweepFolder(folder: string, locked: Drafting['locked']): Promise<number> {
  let removed = 0;
  for (const name of await namesIn(join(folder, 'arriving'))) {
    const path = join(folder, 'arriving', name);
    const last = (await unlessAbsent(stat(path)))?.mtimeMs ?? Infinity;
    if (last + DRAFT_LIFE_MS < Date.now()) await remove(path);
  }
  // A writer that died between the two has left bytes without a record.
  const known = (await namesIn(join(folder, 'known'))).flatMap((name) => (name.endsWith('.json') ? [name.replace(/\.json$/, '')] : []));
  for (const name of new Set([...known, ...(await namesIn(join(folder, 'waiting')))])) {
    const path = join(folder, 'known', `${name}.json`);
    if ((await readRecord(path)) !== undefined) continue;
    removed += await locked(folder, async () => {
      if ((await readRecord(path)) !== undefined) return 0;
      await remove(join(folder, 'waiting', name));
      await remove(path);
      return 1;
    });
  }
  return removed;
}

const knownPath = (folder: string, id: string): string => join(folder, 'known', `${toFileName(id)}.json`);

async function readKnown(folder: string, id: string): Promise<Upload | undefined> {
  const known = await readRecord(knownPath(folder, id));
  return known?.id === id ? known : undefined;
}

/** Undefined also for one that has expired. */
async function readRecord(path: string): Promise<Upload | undefined> {
  const known = decodeUpload(await unlessAbsent(readFile(path, 'utf8')));
  return known !== undefined && known.expiresAt > Date.now() ? known : undefined;
}

const namesIn = async (folder: string): Promise<string[]> => (await unlessAbsent(readdir(folder))) ?? [];

async function remove(path: string): Promise<void> {
  await unlessAbsent(unlink(path));
}

async function unlessAbsent<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}
