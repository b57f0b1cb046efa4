/**
 * What of a life is in an archive, and how it is read as if it were in the store.
 *
 * The store has an index of it, a small collection of the life: which objects, and which slots, bodies and results are in each. An object
 * is lines of JSON, compressed and sealed; its name ends in the SHA-256 of its bytes, by which it is checked when it is written and
 * whenever it is read.
 *
 * @rule stores/written-before-removed: Nothing is removed from the store before its archive was read back with the right hash and the index
 *   names it. So a collection that is killed at any moment loses nothing, and another one goes on. (test: test/stores/archive.test.ts)
 * @rule stores/goes-with-its-life: What deletes a life deletes its archives first, those too that no index names. (test:
 *   test/stores/archive.test.ts)
 */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, brotliDecompress, constants } from 'node:zlib';
import { z } from 'zod';
import type { AtRest } from '../platform/at-rest.js';
import type { Entry, JsonValue } from '../records/message.js';
import type { SlotRange } from '../records/slots.js';
import { decodeJson, hashInRef, isEntry, verified } from './codecs.js';
import { addOnce, recordCodec, type OpenCollection } from './collections/collection.js';
import { toFileName } from './file/paths.js';
import { toRanges } from './shared-entries.js';
import { StoreUnavailable, type ConversationKey, type Fencing, type Store } from './store.js';
import type { Archived, ArchivePlace, ArchiveRecord, ToArchive } from './whole-ports.js';

const compress = promisify(brotliCompress);
const decompress = promisify(brotliDecompress);
const QUALITY = { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } };
/** Of texts that are kept for the next read, of all lives of this process. */
const CACHED_BYTES = 32 * 1024 * 1024;
const MAX_OBJECT = 1024 * 1024 * 1024;

const slot = z.number().int().nonnegative();
const objectSchema = z.object({
  /** SHA-256 of its bytes. */
  id: z.string().regex(/^[0-9a-f]{64}$/),
  name: z.string().min(1).max(1_000),
  /** Epoch milliseconds. */
  at: z.number(),
  bytes: z.number(),
  /** Of its texts. */
  plain: z.number(),
  slots: z.array(z.tuple([slot, slot])),
  /** SHA-256 of each. */
  bodies: z.array(z.string()),
  results: z.number(),
});
export const ARCHIVES = recordCodec<ArchiveRecord>(objectSchema, ({ id }) => id);

interface Opened {
  readonly entries: ReadonlyMap<number, Entry>;
  readonly bodies: ReadonlyMap<string, string>;
  readonly results: Readonly<Record<string, JsonValue>>;
  readonly size: number;
}

export interface ArchivedOptions {
  readonly place: ArchivePlace | undefined;
  readonly atRest: AtRest;
  readonly open: OpenCollection;
  readonly log?: (line: string) => void;
}

export function createArchived({ place, atRest, open, log }: ArchivedOptions): Archived {
  const openIndex = (key: ConversationKey) => open({ name: 'archives', key }, ARCHIVES);
  const index = async (key: ConversationKey): Promise<readonly ArchiveRecord[]> =>
    (await openIndex(key).read(`look what of ${key.conversation} is archived`)).items;
  const cache = createCache();

  const need = (attempt: string): ArchivePlace => {
    if (place !== undefined) return place;
    throw new StoreUnavailable(
      `cannot ${attempt}: it is in an archive, and PERDURA_ARCHIVE is not set here: set it as for all other processes`,
    );
  };

  /** Undefined where it is gone, or was damaged: then it is as what a store has lost. */
  const load = async (key: ConversationKey, record: ArchiveRecord): Promise<Opened | undefined> => {
    const known = cache.get(record.id);
    if (known) return known;
    const attempt = `read what ${key.conversation} has archived`;
    const bytes = await need(attempt).get(record.name);
    if (bytes === undefined || sha256(bytes) !== record.id) {
      log?.(`the archive ${record.name} of ${key.conversation} is ${bytes === undefined ? 'gone' : 'damaged'}: put it back from a copy`);
      return undefined;
    }
    try {
      return cache.put(
        record.id,
        readObject((await decompress(await atRest.openBytes(bytes), { maxOutputLength: MAX_OBJECT })).toString()),
      );
    } catch (error) {
      throw new StoreUnavailable(`cannot ${attempt}: ${(error as Error).message}`, { cause: error });
    }
  };

  const findEntries = async (key: ConversationKey, slots: readonly number[]): Promise<Map<number, Entry>> => {
    const found = new Map<number, Entry>();
    if (slots.length === 0) return found;
    for (const record of (await index(key)).toReversed()) {
      const wanted = slots.filter((one) => !found.has(one) && isIn(record.slots, one));
      if (wanted.length === 0) continue;
      const opened = await load(key, record);
      for (const one of wanted) {
        const entry = opened?.entries.get(one);
        if (entry) found.set(one, entry);
      }
    }
    return found;
  };

  const openResult = async (key: ConversationKey, effect: string, result: JsonValue): Promise<JsonValue> => {
    const id = archivedIn(result);
    if (id === undefined) return result;
    const record = (await index(key)).find((one) => one.id === id);
    const opened = record && (await load(key, record));
    const found = opened?.results[effect];
    if (found !== undefined) return found;
    // It must not pass for "never done".
    throw new StoreUnavailable(
      `cannot read the result of ${effect} of ${key.conversation}: its archive ${id} is gone or damaged; put it back from a copy`,
    );
  };

  const archived: Archived = {
    place,
    index,
    readEntries: findEntries,
    standIn: (id) => ({ [STAND_IN]: id }),
    isStandIn: (result) => archivedIn(result) !== undefined,
    openResult,

    async adopt(key, name) {
      const id = name.slice(name.lastIndexOf('/') + 1);
      if (!/^[0-9a-f]{64}$/.test(id)) return false;
      const bytes = await need(`look into the archive ${name}`).get(name);
      const found = bytes && (await load(key, { id, name, at: 0, bytes: bytes.length, plain: 0, slots: [], bodies: [], results: 0 }));
      if (!found) return false;
      const record = {
        ...{ id, name, at: Date.now(), bytes: bytes.length, plain: found.size },
        slots: toRanges(found.entries.keys()).map(([from, end]): [number, number] => [from, end]),
        bodies: [...found.bodies.keys()],
        results: Object.keys(found.results).length,
      };
      await addOnce(openIndex(key), ARCHIVES.identify, `take ${name} into the index of ${key.conversation}`, record);
      return true;
    },

    async write(key, content) {
      const attempt = `archive what ${key.conversation} has`;
      const to = need(attempt);
      const text = writeObject(content);
      const bytes = await atRest.sealBytes(await compress(Buffer.from(text), QUALITY));
      const id = sha256(bytes);
      const record: ArchiveRecord = {
        ...{ id, name: `${lifePrefix(key)}${id}`, at: Date.now(), bytes: bytes.length, plain: Buffer.byteLength(text) },
        slots: toRanges(content.entries.map((entry) => entry.slot)).map(([from, end]): [number, number] => [from, end]),
        bodies: content.bodies.map((body) => sha256(Buffer.from(body))),
        results: Object.keys(content.results).length,
      };
      await to.put(record.name, bytes);
      const there = await to.get(record.name);
      if (there === undefined || sha256(there) !== id)
        throw new StoreUnavailable(`cannot ${attempt}: the archive at ${to.where} does not give back what was written there`);
      await addOnce(openIndex(key), ARCHIVES.identify, attempt, record);
      return record;
    },

    async removeLife(key) {
      const records = await index(key);
      if (place === undefined && records.length === 0) return;
      const from = need(`delete ${key.conversation}`);
      const names = new Set(records.map(({ name }) => name));
      // Those of a collection that was killed before it noted them, too.
      for await (const { name } of from.list(lifePrefix(key))) names.add(name);
      for (const name of names) await from.remove(name);
    },

    withLives: (storage) => ({
      ...storage,

      async remove(key: ConversationKey, attempt: string) {
        await archived.removeLife(key);
        await storage.remove(key, attempt);
      },
    }),

    through: (ports) => ({
      ...ports,

      entries: {
        ...ports.entries,

        async read(key, slots) {
          const entries = await ports.entries.read(key, slots);
          const missing = slots.filter((_, i) => entries[i] === undefined);
          const archived = await findEntries(key, missing);
          return archived.size === 0 ? entries : entries.map((entry, i) => entry ?? archived.get(slots[i] ?? 0));
        },

        async page(key, after, limit) {
          const page = await ports.entries.page(key, after, limit);
          const there = new Set(page.entries.map((entry) => entry.slot));
          const missing: number[] = [];
          for (let one = Math.max(after, 0) + 1; one <= Math.min(after + limit, page.last); one++) if (!there.has(one)) missing.push(one);
          const archived = await findEntries(key, missing);
          if (archived.size === 0) return page;
          return { ...page, entries: [...page.entries, ...archived.values()].sort((a, b) => a.slot - b.slot) };
        },
      },

      bodies: {
        ...ports.bodies,

        async get(key, ref) {
          const text = await ports.bodies.get(key, ref);
          const hash = text === undefined ? hashInRef(ref) : undefined;
          if (hash === undefined) return text;
          for (const record of (await index(key)).toReversed()) {
            if (!record.bodies.includes(hash)) continue;
            const found = verified((await load(key, record))?.bodies.get(hash), hash);
            if (found !== undefined) return found;
          }
          return undefined;
        },
      },
    }),
  };
  return archived;
}

/** Ports whose results are those that an archive has, where they stand for these. */
export function withArchivedResults(
  { openResult }: Pick<Archived, 'openResult'>,
  { effects, writes }: Pick<Store, 'effects' | 'writes'>,
): Pick<Store, 'effects' | 'writes'> {
  const opened = async <Settled extends object>(key: ConversationKey, id: string, settled: Settled): Promise<Settled> => {
    const { result } = settled as { readonly result?: JsonValue };
    return result === undefined ? settled : { ...settled, result: await openResult(key, id, result) };
  };
  const allOpened = (key: ConversationKey, fenced: readonly Fencing[]): Promise<readonly Fencing[]> =>
    Promise.all(fenced.map((one) => opened(key, one.id, one)));
  return {
    effects: {
      ...effects,
      reserve: async (key, claim, attempt) => opened(key, claim.id, await effects.reserve(key, claim, attempt)),
      commit: async (key, claim, ...rest) => opened(key, claim.id, await effects.commit(key, claim, ...rest)),
      fence: async (key, ids) => allOpened(key, await effects.fence(key, ids)),
    },
    writes: {
      async apply(key, batch) {
        const applied = await writes.apply(key, batch);
        const { reservation, fenced } = applied;
        const settled = reservation && batch.reserve && { reservation: await opened(key, batch.reserve.claim.id, reservation) };
        return { ...applied, fenced: await allOpened(key, fenced), ...settled };
      },
    },
  };
}

/** Of all objects of a life. The scope is none of it: who deletes a life may not know it. */
export function lifePrefix({ namespace, conversation, life }: ConversationKey): string {
  return `${[namespace, conversation, life].map(toFileName).join('/')}/`;
}

const STAND_IN = 'perdura:archived';

function archivedIn(result: JsonValue): string | undefined {
  if (typeof result !== 'object' || result === null || Array.isArray(result)) return undefined;
  const id = (result as Readonly<Record<string, JsonValue>>)[STAND_IN];
  return typeof id === 'string' && Object.keys(result).length === 1 ? id : undefined;
}

function writeObject({ entries, bodies, results }: ToArchive): string {
  return [
    ...entries.map((entry) => ({ kind: 'entry', entry })),
    ...bodies.map((text) => ({ kind: 'body', text })),
    ...Object.entries(results).map(([id, result]) => ({ kind: 'result', id, result })),
  ]
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('');
}

function readObject(text: string): Opened {
  const entries = new Map<number, Entry>();
  const bodies = new Map<string, string>();
  const results: Record<string, JsonValue> = Object.create(null) as Record<string, JsonValue>;
  for (const line of text.split('\n')) {
    const value = (decodeJson(line) ?? {}) as { readonly [field: string]: unknown };
    const { kind, entry, text: body, id, result } = value;
    if (kind === 'entry' && isEntry(entry)) entries.set(entry.slot, entry);
    else if (kind === 'body' && typeof body === 'string') bodies.set(sha256(Buffer.from(body)), body);
    else if (kind === 'result' && typeof id === 'string') results[id] = result as JsonValue;
  }
  return { entries, bodies, results, size: text.length };
}

function createCache() {
  const known = new Map<string, Opened>();
  let bytes = 0;
  return {
    get(id: string): Opened | undefined {
      const found = known.get(id);
      if (found === undefined) return undefined;
      // A Map keeps the order of insertion: the first is the longest unused.
      known.delete(id);
      known.set(id, found);
      return found;
    },
    put(id: string, opened: Opened): Opened {
      known.set(id, opened);
      bytes += opened.size;
      for (const [oldest, { size }] of known) {
        if (bytes <= CACHED_BYTES || oldest === id) break;
        bytes -= size;
        known.delete(oldest);
      }
      return opened;
    },
  };
}

function isIn(ranges: readonly SlotRange[], wanted: number): boolean {
  return ranges.some(([first, last]) => first <= wanted && wanted <= last);
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
