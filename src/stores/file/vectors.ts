/** What texts of a life mean, as lines of one file (`vectors.jsonl`) that grows at its end. The first one of an id counts. */
import { mkdir, open, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { decodeVector, encodeVector, vectorId } from '../codecs/vector-codec.js';
import { isAbsent, isForeign, toUnavailable } from './errors.js';
import { readNewLines, UNREAD, type Reading } from './lines.js';
import { replaceFile } from './lists.js';
import type { WithLock } from './lock.js';
import { conversationDir } from './paths.js';
import type { ConversationKey, StoredVector, Vectors } from '../store.js';

export const VECTORS = 'vectors.jsonl';

export function createFileVectors(dir: string, withLock: WithLock): Vectors {
  const pathOf = (key: ConversationKey): string => join(conversationDir(dir, key), VECTORS);
  const inWords = async <T>(key: ConversationKey, attempt: string, work: (path: string) => Promise<T>): Promise<T> => {
    const path = pathOf(key);
    try {
      return await work(path);
    } catch (error) {
      throw toUnavailable(`${attempt} of ${key.conversation}`, path, error);
    }
  };
  return {
    add: (key, vectors) =>
      inWords(key, `write ${vectors.length} vectors`, async (path) => {
        if (vectors.length === 0) return;
        await mkdir(dirname(path), { recursive: true });
        await withLock(`${path}.lock`, async () => {
          const { known, reading } = await read(path);
          const fresh = new Map(vectors.toReversed().map((one) => [vectorId(one), one]));
          for (const id of known.keys()) fresh.delete(id);
          if (fresh.size > 0) await append(path, reading, [...fresh.values()].map(encodeVector));
        });
      }),

    read: (key, model) =>
      inWords(key, 'read vectors', async (path) => {
        try {
          return [...(await read(path)).known.values()].filter((one) => one.model === model);
        } catch (error) {
          if (isForeign(error)) return [];
          throw error;
        }
      }),

    keep: (key, textsOf) =>
      inWords(key, 'take away vectors', async (path) => {
        const isThere = await stat(path).then(
          () => true,
          (error: unknown) => {
            if (isAbsent(error)) return false;
            throw error;
          },
        );
        if (!isThere) return;
        const texts = await textsOf();
        await withLock(`${path}.lock`, async () => {
          const { known } = await read(path);
          const kept = [...known.values()].filter(({ text }) => texts.has(text));
          if (kept.length < known.size) await replaceFile(path, kept.map((one) => `${encodeVector(one)}\n`).join(''));
        });
      }),
  };
}

async function read(path: string): Promise<{ readonly known: ReadonlyMap<string, StoredVector>; readonly reading: Reading }> {
  const known = new Map<string, StoredVector>();
  const take = (line: string): void => {
    const vector = decodeVector(line);
    if (vector && !known.has(vectorId(vector))) known.set(vectorId(vector), vector);
  };
  const reading = await readNewLines(path, UNREAD, take, () => known.clear());
  return { known, reading };
}

/** A torn line is ended first (file/torn-line-ended-first). */
async function append(path: string, { size, end }: Reading, lines: readonly string[]): Promise<void> {
  const file = await open(path, 'a');
  try {
    await file.appendFile((size > end ? '\n' : '') + lines.map((line) => `${line}\n`).join(''));
    await file.datasync();
  } finally {
    await file.close();
  }
}
