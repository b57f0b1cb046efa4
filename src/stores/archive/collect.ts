/**
 * Moves what is old of one life into an archive: its messages, the long texts that these refer to, and results in the ledger. Of a life that
 * is idle all that is older than the given time; of one in use only messages that were compacted, and what only they need.
 */
import type { Entry, JsonValue } from '../../records/message.js';
import { turnNumber } from '../../records/identity.js';
import { listSlots } from '../../records/slots.js';
import { fromFileName, toFileName } from '../file/paths.js';
import type { ConversationKey, Store } from '../store.js';
import type { ArchiveRecord, ToArchive } from '../whole-ports.js';
import { lifePrefix } from '../archived.js';

export interface Collected {
  objects: number;
  entries: number;
  bodies: number;
  results: number;
  /** Of their texts, and of what was written for them. */
  plain: number;
  bytes: number;
}

/** Why nothing more is archived of it. */
export type WhyNot = 'deleted' | 'unreadable';

export interface Due {
  /** Epoch seconds. */
  readonly before: number;
  readonly isIdle: boolean;
  readonly stop?: AbortSignal | undefined;
}

/** Of one object, about. */
const OBJECT_BYTES = 8 * 1024 * 1024;
const ENTRIES_AT_ONCE = 200;
/** Less is not worth an object. */
const MIN_BYTES = 4 * 1024;

export async function archiveLife(store: Store, key: ConversationKey, due: Due): Promise<Collected & { readonly why?: WhyNot }> {
  const collected: Collected = { objects: 0, entries: 0, bodies: 0, results: 0, plain: 0, bytes: 0 };
  const chosen = await choose(store, key, due);
  if (chosen === undefined) return collected;
  for await (const content of chosen.contents) {
    due.stop?.throwIfAborted();
    const record = await store.archived.write(key, content);
    // A conversation that was deleted meanwhile has taken the archives with it that there were then.
    if (await isDeleted(store, key)) {
      await store.archived.removeLife(key);
      return { ...collected, why: 'deleted' };
    }
    if (!(await store.contents.drop(key, content, store.archived.standIn(record.id)))) return { ...collected, why: 'unreadable' };
    count(collected, content, record);
  }
  return collected;
}

function count(collected: Collected, content: ToArchive, { bytes, plain }: ArchiveRecord): void {
  collected.objects += 1;
  collected.entries += content.entries.length;
  collected.bodies += content.bodies.length;
  collected.results += Object.keys(content.results).length;
  collected.bytes += bytes;
  collected.plain += plain;
}

async function isDeleted(store: Store, { namespace, conversation, life }: ConversationKey): Promise<boolean> {
  return (await store.lives.deleted({ namespace, conversation })).some((one) => one.life === life);
}

interface Chosen {
  readonly contents: AsyncIterable<ToArchive>;
}

/** Undefined where it is not worth an object. */
async function choose(store: Store, key: ConversationKey, { before, isIdle }: Due): Promise<Chosen | undefined> {
  const compacted = isIdle ? undefined : await compactedSlots(store, key, before);
  if (compacted?.size === 0) return undefined;
  const isDue = (entry: Entry): boolean => entry.ts < before && (compacted === undefined || compacted.has(entry.slot));
  /** What stays: the refs that it needs, and the first turn of it. */
  const needed = new Set<string>();
  const dueRefs = new Set<string>();
  let [firstKept, bytes] = [Infinity, 0];
  for await (const entry of readStored(store, key)) {
    const text = JSON.stringify(entry);
    const isTaken = isDue(entry);
    for (const [ref] of text.matchAll(/sha256:[0-9a-f]{64}/g)) (isTaken ? dueRefs : needed).add(ref);
    if (isTaken) bytes += text.length;
    else firstKept = Math.min(firstKept, turnNumber(entry.turn));
  }
  if (!isIdle) for (const item of (await store.items.list(key)).items) needed.add(item.content.ref);
  const stored = await store.contents.bodyRefs(key);
  const wanted = isIdle && firstKept === Infinity ? stored : stored.filter((ref) => dueRefs.has(ref) && !needed.has(ref));
  // What is left is not worth an object, each time.
  if (bytes < MIN_BYTES && wanted.length === 0) return undefined;
  return { contents: inObjects(gather(store, key, isDue, wanted, firstKept)) };
}

/** Slots that were compacted, as far as the store has their entries: only these are looked at where there is nothing to do. */
async function compactedSlots(store: Store, key: ConversationKey, before: number): Promise<ReadonlySet<number>> {
  const slots = listSlots(await store.entries.archived(key));
  const found = new Set<number>();
  for (let at = 0; at < slots.length; at += ENTRIES_AT_ONCE) {
    const entries = await store.contents.entries.read(key, slots.slice(at, at + ENTRIES_AT_ONCE));
    for (const entry of entries) if (entry && entry.ts < before) found.add(entry.slot);
  }
  return found;
}

async function* readStored({ contents }: Store, key: ConversationKey): AsyncIterable<Entry> {
  for (let after = 0, last = 1; after < last; after += ENTRIES_AT_ONCE) {
    const page = await contents.entries.page(key, after, ENTRIES_AT_ONCE);
    last = page.last;
    yield* page.entries;
  }
}

type Piece =
  | { readonly kind: 'entry'; readonly entry: Entry }
  | { readonly kind: 'body'; readonly text: string }
  | { readonly kind: 'result'; readonly id: string; readonly result: JsonValue };

async function* gather(
  store: Store,
  key: ConversationKey,
  isDue: (entry: Entry) => boolean,
  bodies: readonly string[],
  firstKept: number,
): AsyncIterable<Piece> {
  for await (const entry of readStored(store, key)) if (isDue(entry)) yield { kind: 'entry', entry };
  for (const ref of bodies) {
    const text = await store.contents.bodies.get(key, ref);
    if (text !== undefined) yield { kind: 'body', text };
  }
  for await (const record of store.contents.ledger(key)) {
    if (record.kind !== 'committed' || store.archived.isStandIn(record.result)) continue;
    // Of turns that are whole in the archive.
    const turn = Number(/^turn_(\d+)\//.exec(record.id)?.[1] ?? Infinity);
    if (turn < firstKept) yield { kind: 'result', id: record.id, result: record.result };
  }
}

async function* inObjects(pieces: AsyncIterable<Piece>): AsyncIterable<ToArchive> {
  let [entries, bodies, results, bytes]: [Entry[], string[], Record<string, JsonValue>, number] = [[], [], {}, 0];
  for await (const piece of pieces) {
    if (piece.kind === 'entry') entries.push(piece.entry);
    else if (piece.kind === 'body') bodies.push(piece.text);
    else results[piece.id] = piece.result;
    bytes += piece.kind === 'body' ? piece.text.length : JSON.stringify(piece).length;
    if (bytes < OBJECT_BYTES) continue;
    yield { entries, bodies, results };
    [entries, bodies, results, bytes] = [[], [], {}, 0];
  }
  if (bytes > 0) yield { entries, bodies, results };
}

/** How a place stands to the indexes of a store. */
export interface Swept {
  /** Of deleted conversations. */
  removed: number;
  /** Of lives whose index did not have them. */
  adopted: number;
  /** Of lives that the store does not know: they stay. */
  unknown: number;
}

/** An object of a collection that runs is not in the index yet. */
const FRESH_MS = 60 * 60 * 1000;

/**
 * What a collection that was killed has left: of a deleted life it goes, of any other one it comes into the index, since a store that was
 * lost may have nothing else of it.
 */
export async function sweepArchive(store: Store, namespace: string, lives: Iterable<ConversationKey>, now = Date.now()): Promise<Swept> {
  const swept: Swept = { removed: 0, adopted: 0, unknown: 0 };
  const { place } = store.archived;
  if (place === undefined) return swept;
  const byPrefix = new Map(Array.from(lives, (key) => [lifePrefix(key), key]));
  const indexes = new Map<string, ReadonlySet<string>>();
  for await (const { name, at } of place.list(`${toFileName(namespace)}/`)) {
    if (at + FRESH_MS > now) continue;
    const prefix = name.slice(0, name.lastIndexOf('/') + 1);
    const key = byPrefix.get(prefix) ?? toLife(namespace, prefix);
    if (key === undefined) swept.unknown += 1;
    else if (await isDeleted(store, key)) {
      await place.remove(name);
      swept.removed += 1;
    } else if (!byPrefix.has(prefix)) swept.unknown += 1;
    else {
      const known = indexes.get(prefix) ?? new Set((await store.archived.index(key)).map((record) => record.name));
      indexes.set(prefix, known);
      if (!known.has(name) && (await store.archived.adopt(key, name))) swept.adopted += 1;
    }
  }
  return swept;
}

function toLife(namespace: string, prefix: string): ConversationKey | undefined {
  const [, conversation, life] = prefix.split('/').map(fromFileName);
  return conversation === undefined || life === undefined ? undefined : { namespace, scope: '', conversation, life };
}
