/**
 * The index of one scope, brought up to date from the store before each search. The store is the record; the index may be lost at any time.
 * What is new goes into its head; when that has many messages, they are sealed as a part (segments.ts).
 *
 * @rule recall/finds-all-written-before: A search finds everything that was written before it began: it compares each life's mark, and
 *   reads on in those that changed. It checks an empty slot again, since writes may come out of order. (test:
 *   test/memory/recall/recall.test.ts)
 * @rule recall/cut-text-leaves: Rewound and deleted text, and old words of MEMORY.md and the facts, leave the index in the same step.
 *   (test: test/memory/recall/recall.test.ts)
 * @rule recall/forgotten-leaves-no-trace: With another set of tombstones the index is made anew, without the forgotten text: it keeps no
 *   trace of it, not even as a hash. (test: test/memory/recall/recall.test.ts)
 */
import { setImmediate as nextTick } from 'node:timers/promises';
import { slotsIn, currentLine } from '../prefix.js';
import { readPages } from '../past-life.js';
import { redactor } from '../documents/forgetting.js';
import type { Entry } from '../../records/message.js';
import type { Hit, Query } from '../../search/scan.js';
import { SearchIndex, sumFacts, type Text } from '../../search/search-index.js';
import { fromSnapshot, toSnapshot } from '../../search/snapshot.js';
import type { ConversationKey, LifeName, ScopeKey, Store, MarkedLife, StoredVector } from '../../stores/store.js';
import { missingVectorsIn, type MissingVector, ScopeVectors } from './scope-vectors.js';
import { DOCUMENTS, documentTexts, foundText, textOfEntry, episodeTexts, itemTexts, lineName, readLine } from './indexed-texts.js';
import { searchParts, HEAD, PartLost, Segments, type ListedPart } from './segments.js';
import { errorMessage } from '../../platform/errors.js';

interface ReadLife {
  /** '' where only a part of what was there is read. */
  readonly mark: string;
  /** Slots up to it were read, all but `empty`. */
  readonly last: number;
  readonly empty: readonly number[];
  /** Numbers of the sealed parts that have messages of it. */
  readonly sealed: readonly number[];
}

/** What must be as it was for the index to be gone on with. */
interface Extra {
  readonly forgotten: string;
  readonly documents: string;
  readonly lives: readonly (readonly [line: string, life: ReadLife])[];
  readonly parts: readonly ListedPart[];
}

export interface ScopeIndexOptions {
  readonly store: Store;
  readonly key: ScopeKey;
  /** Bytes that all indexes of this process may take together. */
  readonly cacheBytes: number;
  /** Whether so many bytes more of it may stay in memory. */
  readonly makeRoom?: (bytes: number) => boolean;
  /** Sealed parts that were found to be damaged, by name. */
  readonly lost?: ReadonlySet<string>;
  /** Messages of the head that are sealed; SEALED without it. */
  readonly sealed?: number | undefined;
  /** Of the embedder. */
  readonly model?: string | undefined;
  readonly log?: ((line: string) => void) | undefined;
}

const UNREAD: ReadLife = { mark: '', last: 0, empty: [], sealed: [] };
const PAGE = 500;
/** A slot that stays empty for so many others belongs to an effect that never wrote. */
const MAX_EMPTY = 256;
/** Messages indexed before others of this process have their turn. */
const AT_ONCE = 100;
/** New passages after which it is worth writing the head down. */
const WRITTEN_AFTER = 1_000;
/** About 18 MB in memory: read back in a fifth of a second. */
const SEALED = 200_000;
/** Of all that indexes may take, how much a search may hold beyond it until it ends: what is read once need not be read twice. */
const HELD = 0.25;
/** In a small memory parts are smaller, so that one beside the others is not much. */
const MIN_SEALED = 10_000;
const BYTES_OF_PASSAGE = 90;

/** Milliseconds after which all lives are looked at, whatever was noted: another program may have put some there, or taken some away. */
const LOOKED_EVERY_MS = 600_000;

export class ScopeIndex {
  #head = new SearchIndex();
  readonly #segments: Segments;
  readonly #vectors: ScopeVectors;
  readonly #sealed: number;
  #lives = new Map<string, ReadLife>();
  #documents = '';
  #forgotten: string | undefined;
  #unwritten = 0;
  #hasLooked = false;
  /** Another process has written what this one does not have: the next search begins from there. */
  isOutdated = false;
  /** Of the store's notes of what has changed; absent: all lives are looked at. */
  #cursor: string | undefined;
  #lookedAt = -Infinity;
  /** Of the scope, before what is read since. */
  #erasures = 0;
  /** Lines of lives with texts in the head that may have no vector yet. */
  readonly #incomplete = new Set<string>();

  constructor(readonly options: ScopeIndexOptions) {
    const { store, key, cacheBytes, sealed, lost, model, log, makeRoom = () => false } = options;
    this.#segments = new Segments({ store, key, analyzer: this.#head.analyzer, makeRoom, lost, log });
    this.#vectors = new ScopeVectors({ store, key, model, maxBytes: cacheBytes, log });
    this.#sealed = sealed ?? Math.max(MIN_SEALED, Math.min(SEALED, cacheBytes / 8 / BYTES_OF_PASSAGE));
  }

  /** Passages. */
  get size(): number {
    return sumFacts([this.#head.facts(), ...this.#segments.facts()]).passages;
  }

  /** In memory. */
  bytes(): number {
    return this.#head.bytes() + this.#segments.bytes() + this.#vectors.bytes();
  }

  /** What it would be with all its sealed parts in memory. */
  allBytes(): number {
    return this.bytes() - this.#segments.bytes() + this.#segments.allBytes();
  }

  /** Takes a sealed part out of memory; false where none can go. */
  evict(): boolean {
    return this.#segments.evict();
  }

  /** Those that were there when it was brought up to date last. */
  lives(): readonly LifeName[] {
    return [...this.#lives.keys()].map(lifeIn);
  }

  /** Whether vectors are compared. */
  get isByWordsAlone(): boolean {
    return this.#vectors.isOver;
  }

  /** How many numbers the embedder's vectors have now. */
  expectSize(dimensions: number): void {
    if (!this.#vectors.expectSize(dimensions)) return;
    for (const line of this.#lives.keys()) this.#incomplete.add(line);
    this.#segments.refill();
    this.#cursor = undefined;
  }

  /** What was just made. */
  addVectors(vectors: readonly StoredVector[]): void {
    if (vectors[0]) this.expectSize(vectors[0].values.length);
    this.#vectors.add(vectors);
  }

  /** Of these no vector can be made: they are not requested again. */
  leaveOut(texts: readonly number[]): void {
    this.#vectors.leaveOut(texts);
  }

  /** At most `most` that have no vector yet, those of the life `first` before others, each text once. */
  async missingVectors(first: ConversationKey, most: number): Promise<MissingVector[]> {
    if (this.#vectors.isOver) return [];
    const found = new Map<number, MissingVector>();
    const look = (index: SearchIndex, incomplete: Set<string>): void => {
      const has = (text: number): boolean => found.has(text) || this.#vectors.has(text);
      for (const one of missingVectorsIn(index, this.options.key, { first, most: most - found.size, has, incomplete }))
        found.set(one.hash, one);
    };
    look(this.#head, this.#incomplete);
    if (found.size >= most || !this.#segments.hasUnfilled()) return [...found.values()];
    for await (const { index, segment } of this.#segments.each()) {
      if (segment.isFilled) continue;
      const incomplete = new Set(index.table.lines.map(({ name }) => name));
      look(index, incomplete);
      segment.isFilled = incomplete.size === 0;
      if (found.size >= most) break;
    }
    return [...found.values()];
  }

  /** `vector`: of the question. Throws PartLost, as `update` does. */
  async search(query: Omit<Query, 'similarity'>, vector: Float32Array | undefined): Promise<Hit[]> {
    const similarity = vector && (await this.#vectors.similarity(vector));
    const asking: Query = { ...query, ...(similarity && { similarity }) };
    return searchParts(this.#head, this.#segments, asking, this.options.cacheBytes * HELD);
  }

  /** Throws PartLost where another process has replaced a part: then a new one begins from what is written. */
  async update(): Promise<void> {
    const [tombstones, name] = await Promise.all([this.options.store.documents.forgotten(this.options.key), this.#name()]);
    const forgotten = tombstones.map(({ id }) => id).join(' ');
    if (!this.#hasLooked) await this.#restore(name);
    this.#hasLooked = true;
    if (this.#forgotten !== forgotten) this.#clear(forgotten);
    const redact = redactor(tombstones, this.options.key.scope);
    const isDue = performance.now() - this.#lookedAt > LOOKED_EVERY_MS;
    if (isDue) this.#lookedAt = performance.now();
    const { documents, lives, changed, cursor, erasures } = await this.options.store.scopes.marks(
      this.options.key,
      isDue ? undefined : this.#cursor,
    );
    this.#erasures = erasures;
    const there = new Set(lives.map(({ key }) => lineName(key)));
    const maybe = changed?.map((life) => lineName(life)) ?? [...this.#lives.keys()];
    const gone = new Set(maybe.filter((line) => this.#lives.has(line) && !there.has(line)));
    for (const line of gone) await this.#removeLife(line);
    for (const life of lives) {
      if (this.#lives.get(lineName(life.key))?.mark === life.mark) continue;
      await this.#readBeside(life.key, redact);
      await this.#read(life, redact);
    }
    await this.#vectors.read(lives);
    if (this.#documents !== documents) await this.#readDocuments(redact);
    this.#documents = documents;
    this.#cursor = cursor;
  }

  /**
   * Where enough is new: less of one that does not stay in memory, since each search reads it. False where it fails, which the log says: what
   * was read can be searched all the same, and is written the next time.
   */
  async write({ isKept }: { readonly isKept: boolean }): Promise<boolean> {
    return this.#unwritten < Math.max(WRITTEN_AFTER, isKept ? this.#head.size / 10 : 0) || this.#writeHead();
  }

  async #writeHead(): Promise<boolean> {
    const { store, key, log } = this.options;
    try {
      const name = await this.#name();
      const parts = await this.#segments.written(name);
      const extra: Extra = { forgotten: this.#forgotten ?? '', documents: this.#documents, lives: [...this.#lives], parts };
      this.#unwritten = 0;
      await store.scopes.writeIndex(key, HEAD, toSnapshot(this.#head, name, extra));
      await this.#segments.settle(parts);
      if ((await store.scopes.erasures(key)) === this.#erasures) return true;
      // What was read may be of what is erased by now (stores/erased-stays-empty).
      await store.scopes.removeIndex(key, await store.scopes.indexParts(key));
      this.isOutdated = true;
      return false;
    } catch (error) {
      this.isOutdated = error instanceof PartLost;
      if (!this.isOutdated) log?.(errorMessage(error));
      return false;
    }
  }

  async #restore(name: string): Promise<void> {
    const { store, key, log } = this.options;
    const read = (): Promise<Uint8Array | undefined> => store.scopes.readIndex(key, HEAD);
    let bytes = await read();
    while (bytes !== undefined) {
      const snapshot = fromSnapshot<Extra>(bytes, name, this.#head.analyzer);
      if (snapshot && (await this.#segments.restore(snapshot.extra.parts, name))) {
        this.#head = snapshot.index;
        this.#forgotten = snapshot.extra.forgotten;
        this.#documents = snapshot.extra.documents;
        this.#lives = new Map(snapshot.extra.lives);
        for (const line of this.#lives.keys()) this.#incomplete.add(line);
        return;
      }
      // Another process may have written another head meanwhile, and taken away the parts of this one (recall/last-head-counts).
      const now = await read();
      if (now === undefined || Buffer.compare(now, bytes) === 0) break;
      bytes = now;
    }
    if (bytes === undefined) return;
    log?.(`the search index of ${key.scope} cannot be used (damaged, or of another version): it is made anew from the store`);
    this.#unwritten = Infinity;
  }

  #clear(forgotten: string): void {
    this.#head = new SearchIndex(this.#head.analyzer);
    this.#segments.clear();
    this.#vectors.clear();
    this.#lives = new Map();
    this.#documents = '';
    this.#cursor = undefined;
    // What is written down has what is forgotten now.
    if (this.#forgotten !== undefined) this.#unwritten = Infinity;
    this.#forgotten = forgotten;
  }

  /** Its words go from what is written down too. */
  async #removeLife(line: string): Promise<void> {
    const of = lifeIn(line);
    await this.#remove(line, () => true);
    for (const beside of [lineName(of, 'episode'), lineName(of, 'item')]) this.#head.remove(beside, () => true);
    this.#lives.delete(line);
    this.#unwritten = Infinity;
  }

  /** Messages of a life, wherever they are. */
  async #remove(line: string, isGone: (slot: number) => boolean): Promise<void> {
    this.#head.remove(line, isGone);
    const sealed = this.#lives.get(line)?.sealed ?? [];
    if (sealed.length > 0 && (await this.#segments.remove(sealed, line, isGone)) > 0) this.#unwritten = Infinity;
  }

  async #read({ key, mark }: MarkedLife, redact: (text: string) => string): Promise<void> {
    const { store } = this.options;
    const line = lineName(key);
    this.#incomplete.add(line);
    const known = this.#lives.get(line) ?? UNREAD;
    const cuts = await store.lives.cuts(key);
    if (cuts.length > 0) {
      // Which turns count now is seen from the whole alone.
      const { entries } = await readPages(store, key);
      const now = new Set(slotsIn(currentLine(entries, cuts)));
      await this.#remove(line, (slot) => !now.has(slot));
      const sealed = await this.#segments.textsInLine(known.sealed, line);
      const fresh = entries.filter(({ slot }) => now.has(slot) && !sealed.has(slot));
      this.#lives.set(line, { ...UNREAD, sealed: known.sealed });
      for (let at = 0; at < fresh.length; at += PAGE) await this.#add(key, fresh.slice(at, at + PAGE), redact);
      this.#lives.set(line, { ...UNREAD, sealed: this.#lives.get(line)?.sealed ?? [], mark });
      return;
    }
    let last = Infinity;
    for (let after = known.last; after < last; after += PAGE) {
      const page = await store.entries.page(key, after, PAGE);
      last = page.last;
      // The store has lost what this index has: it is read anew.
      if (last < known.last) {
        await this.#remove(line, () => true);
        this.#lives.delete(line);
        return this.#read({ key, mark }, redact);
      }
      const before = this.#lives.get(line) ?? UNREAD;
      const end = Math.max(known.last, Math.min(after + PAGE, last));
      const late = after === known.last && before.empty.length > 0 ? await store.entries.read(key, before.empty) : [];
      const entries = [...late.flatMap((entry) => entry ?? []), ...page.entries];
      const found = new Set(entries.map(({ slot }) => slot));
      const between = Array.from({ length: Math.min(MAX_EMPTY, Math.max(0, end - after)) }, (_, i) => end - i);
      const empty = [...before.empty, ...between].filter((slot) => !found.has(slot)).slice(-MAX_EMPTY);
      this.#lives.set(line, { mark: end >= last ? mark : '', last: end, empty, sealed: before.sealed });
      await this.#add(key, entries, redact);
    }
  }

  async #add(key: ConversationKey, entries: readonly Entry[], redact: (text: string) => string): Promise<void> {
    for (const [i, entry] of entries.entries()) {
      const told = await textOfEntry(this.options.store, key, entry);
      if (told) {
        const { slot: at, session, ts } = entry;
        this.#unwritten += this.#head.add({ line: lineName(key), at, session, ts, kind: told.kind, text: foundText(told, redact) });
      }
      if (i % AT_ONCE === AT_ONCE - 1) await nextTick();
    }
    await this.#sealIfFull();
  }

  /** What was read of a life is known as read by now: the head that is written here lists the part. */
  async #sealIfFull(): Promise<void> {
    if (this.#head.size < this.#sealed) return;
    const isMessage = (line: string): boolean => {
      const of = readLine(this.options.key, line);
      return of !== undefined && of.beside === undefined;
    };
    const full = this.#head.part(isMessage);
    // The rest are documents and summaries, which change in their place.
    if (full.size < this.#sealed / 2) return;
    const number = this.#segments.add(full);
    for (const { name } of full.table.lines) {
      const life = this.#lives.get(name) ?? UNREAD;
      this.#lives.set(name, { ...life, sealed: [...life.sealed, number] });
    }
    this.#head = this.#head.part((line) => !isMessage(line));
    if (!(await this.#writeHead())) this.#unwritten = Infinity;
    if (this.options.makeRoom?.(0) === false) this.#segments.evict();
  }

  async #readBeside(key: ConversationKey, redact: (text: string) => string): Promise<void> {
    const texts = [...(await episodeTexts(this.options.store, key)), ...(await itemTexts(this.options.store, key))];
    this.#replace([lineName(key, 'episode'), lineName(key, 'item')], texts, redact);
  }

  async #readDocuments(redact: (text: string) => string): Promise<void> {
    this.#replace(DOCUMENTS, await documentTexts(this.options.store, this.options.key), redact);
  }

  /** (recall/cut-text-leaves) */
  #replace(lines: readonly string[], texts: readonly Text[], redact: (text: string) => string): void {
    for (const line of lines) {
      const now = new Set(texts.flatMap((text) => (text.line === line ? [text.at] : [])));
      this.#head.remove(line, (at) => !now.has(at));
    }
    for (const { line, at, session, ts, kind, text } of texts) {
      this.#unwritten += this.#head.add({ line, at, session, ts, kind, text: redact(text) });
    }
  }

  async #name(): Promise<string> {
    const { store, key } = this.options;
    return JSON.stringify([await store.id(), key.namespace, key.scope]);
  }
}

function lifeIn(line: string): LifeName {
  const [conversation = '', life = ''] = JSON.parse(line) as string[];
  return { conversation, life };
}
