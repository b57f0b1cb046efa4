/**
 * Leases as folders, `<dir>/workers/<queue>/<id>/`, of one task queue:
 *
 *   card       who it is
 *   beat       empty; its time is that of the last beat
 *   announced  what it runs, as JSON, written whole
 *
 * A claim renames the folder to `<id>.taken`, which one of several can; what beats finds its folder gone then. What was claimed of a process
 * that lives stays, so that it learns of it. Nothing here waits for the disk: it is of processes, and a machine that stops has none.
 */
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  createIsGone,
  decodeAnnounced,
  decodeCard,
  encodeAnnounced,
  encodeCard,
  type LeaseCard,
  type Leases,
  type SeenLease,
} from '../leases.js';
import { isAbsent, toUnavailable, unlessAbsent } from './errors.js';
import { toFileName } from './paths.js';

const TAKEN = '.taken';

export interface FileLeasePlace {
  readonly namespace: string;
  readonly taskQueue: string;
}

export function createFileLeases(dir: string, { namespace, taskQueue }: FileLeasePlace): Leases {
  const folder = join(dir, 'workers', toFileName(`${namespace}:${taskQueue}`));
  const cards = new Map<string, LeaseCard | undefined>();
  const isGone = createIsGone();
  const words = async <T>(attempt: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw toUnavailable(attempt, folder, error);
    }
  };
  const see = async (id: string): Promise<SeenLease | undefined> => {
    const time = await unlessAbsent(stat(join(folder, id, 'beat'), { bigint: true }));
    if (!time) return undefined;
    if (!cards.has(id)) cards.set(id, decodeCard((await unlessAbsent(readFile(join(folder, id, 'card'), 'utf8'))) ?? ''));
    return { id, beat: String(time.mtimeNs), card: cards.get(id) };
  };
  /** Of a process that has ended, none is left that would look. */
  const sweep = async (): Promise<void> => {
    for (const name of await readdir(folder)) {
      if (!name.endsWith(TAKEN)) continue;
      const card = decodeCard((await unlessAbsent(readFile(join(folder, name, 'card'), 'utf8'))) ?? '');
      if (!card || isGone(card)) await rm(join(folder, name), { recursive: true, force: true });
    }
  };
  const begin = async (id: string, card: LeaseCard): Promise<void> => {
    await mkdir(join(folder, id), { recursive: true });
    await writeFile(join(folder, id, 'card'), encodeCard(card));
    // Last: without it there is no lease.
    await writeFile(join(folder, id, 'beat'), '');
    await sweep();
  };
  return {
    beat: (id, { card, announced }) =>
      words('renew the lease of a worker', async () => {
        const now = new Date();
        try {
          await utimes(join(folder, id, 'beat'), now, now);
          if (announced) await replace(join(folder, id, 'announced'), encodeAnnounced(announced));
          return 'held';
        } catch (error) {
          if (!isAbsent(error)) throw error;
        }
        if (await unlessAbsent(stat(join(folder, `${id}${TAKEN}`)))) return 'taken';
        await begin(id, card);
        if (!announced) return 'again';
        await replace(join(folder, id, 'announced'), encodeAnnounced(announced));
        return 'held';
      }),

    list: () =>
      words('see which workers live', async () => {
        const names = (await unlessAbsent(readdir(folder))) ?? [];
        for (const id of cards.keys()) if (!names.includes(id)) cards.delete(id);
        const seen = await Promise.all(names.filter((name) => !name.endsWith(TAKEN)).map(see));
        return seen.filter((lease) => lease !== undefined);
      }),

    claim: (lease, _by) =>
      words('claim the lease of a worker', async () => {
        const [from, to] = [join(folder, lease.id), join(folder, `${lease.id}${TAKEN}`)];
        if ((await see(lease.id))?.beat !== lease.beat) return undefined;
        try {
          await rename(from, to);
        } catch (error) {
          if (isAbsent(error)) return undefined;
          throw error;
        }
        return decodeAnnounced((await unlessAbsent(readFile(join(to, 'announced'), 'utf8'))) ?? '');
      }),

    remove: (id) =>
      words('end the lease of a worker', async () => {
        await rm(join(folder, id), { recursive: true, force: true });
        if (await unlessAbsent(stat(folder))) await sweep();
      }),

    close: () => Promise.resolve(),
  };
}

/** Whole: it is read when its writer was killed in the middle. */
async function replace(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
}
