/**
 * Files that wait to be used (collections/uploads.ts), in `<dir>/uploads/<namespace>/<tenant>/`:
 *
 *   arriving/<uuid>    what is being written; left by a writer that died, it goes after an hour
 *   waiting/<id>       bytes of those that no conversation has used, listed in waiting.jsonl
 *   known/<id>.jsonl   what each is, until when, and who has used it
 */
import { randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { AtRest } from '../../platform/at-rest.js';
import type { UploadBytes } from '../collections/uploads.js';
import type { UploadOwner } from '../store.js';
import { describeErrors, unlessAbsent } from './errors.js';
import { namesIn } from './lines.js';
import { toFileName, uploadsDir } from './paths.js';

const DRAFT_LIFE_MS = 60 * 60 * 1000;

export function createFileUploadBytes(dir: string, atRest: AtRest): UploadBytes {
  const toPath = (owner: UploadOwner, id: string): string => join(uploadsDir(dir, owner), 'waiting', toFileName(id));
  return {
    async begin(owner) {
      const folder = uploadsDir(dir, owner);
      const path = join(folder, 'arriving', randomUUID());
      const file = await describeErrors(folder, 'begin an upload', async () => {
        for (const name of ['arriving', 'waiting']) await mkdir(join(folder, name), { recursive: true });
        return open(path, 'wx');
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
