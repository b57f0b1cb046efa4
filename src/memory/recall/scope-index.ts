/**
 * The index of one scope, brought up to date from the store before each search. The store is the record; the index may be lost at any time.
 *
 * I1  What was written before a search began is found by it: each life's mark is compared, and those that changed are read from where they
 *     were read last. A slot that was empty then is looked at again, since writes may come out of order.
 * I2  What a rewind has cut, what was deleted, and MEMORY.md's and the facts' old words go out of the index in the same step.
 * I3  With another set of tombstones the index is made anew, without what they forget: it keeps no trace of it, not even as a hash.
 * I4  Where there is an embedder its vectors are read beside: those of its model alone, and of the size that it gives now.
 */
import { setImmediate as nextTick } from 'node:timers/promises';
import { slotsIn, currentLine } from '../prefix.js';
import { readPages } from '../past-life.js';
import { redactor } from '../documents/forgetting.js';
import type { Entry } from '../../records/message.js';
import { SearchIndex, type Text } from '../../search/search-index.js';
import { Meanings } from '../../search/meanings.js';
import { fromSnapshot, toSnapshot } from '../../search/snapshot.js';
import type { ConversationKey, LifeName, MarkedLife, ScopeKey, Store, StoredVector } from '../../stores/store.js';
import { DOCUMENTS, documentTexts, foundText, textOfEntry } from './indexed-texts.js';
import { episodesOf, itemsOf } from './life-texts.js';
import { lineOf } from './lines.js';

interface ReadLife {
  readonly mark: string;
  /** Slots up to it were read, all but `empty`. */
  readonly last: number;
  readonly empty: readonly number[];
}

/** What must be as it was for the index to be gone on with. */
interface Extra {
  readonly forgotten: string;
  readonly documents: string;
  readonly lives: readonly (readonly [name: string, life: ReadLife])[];
}

const PAGE = 500;
/** A slot that stays empty for so many others belongs to an effect that never wrote. */
const MAX_EMPTY = 256;
/** Messages indexed before others of this process have their turn. */
const AT_ONCE = 100;
/** New passages after which it is worth writing the index down. */
const WRITTEN_AFTER = 1_000;

/** Milliseconds after which all lives are looked at, whatever was noted: another program may have put some there, or taken some away. */
const LOOKED_EVERY_MS = 600_000;

export class ScopeIndex {
  index = new SearchIndex();
  #lives = new Map<string, ReadLife>();
  #documents = '';
  #forgotten: string | undefined;
  #unwritten = 0;
  #hasLooked = false;
  /** Of the store's notes of what has changed; absent: all lives are looked at. */
  #cursor: string | undefined;
  #lookedAt = -Infinity;
  #meanings: Meanings | undefined;
  readonly #leftOut = new Set<number>();
  /** Lines of lives with texts that may have no vector yet. */
  readonly lacking = new Set<string>();
  /** By line: the mark of its life when its vectors were read. */
  #vectorsOf = new Map<string, string>();

  constructor(
    readonly store: Store,
    readonly key: ScopeKey,
    readonly log?: (line: string) => void,
    /** Of the embedder. */
    readonly model?: string,
  ) {}

  bytes(): number {
    return this.index.bytes() + (this.#meanings?.bytes() ?? 0);
  }

  /** Those that were there when it was brought up to date last. */
  lives(): readonly LifeName[] {
    return [...this.#lives.keys()].map(lifeIn);
  }

  /** I4. How many numbers the embedder's vectors have now. */
  expectSize(dimensions: number): void {
    if (this.#meanings?.dimensions === dimensions) return;
    this.#meanings = new Meanings(dimensions);
    this.#vectorsOf.clear();
    for (const line of this.#lives.keys()) this.lacking.add(line);
    this.#cursor = undefined;
  }

  /** What was just made. */
  addVectors(vectors: readonly StoredVector[]): void {
    if (vectors[0]) this.expectSize(vectors[0].values.length);
    for (const { text, values } of vectors) this.#meanings?.add(text, values);
  }

  hasVector(text: number): boolean {
    return (this.#meanings?.has(text) ?? false) || this.#leftOut.has(text);
  }

  /** Of these no vector can be made: they are not asked for again. */
  leaveOut(texts: readonly number[]): void {
    for (const text of texts) if (!this.#meanings?.has(text)) this.#leftOut.add(text);
  }

  /** How like a question each passage is. */
  async likeness(question: Float32Array): Promise<Float32Array | undefined> {
    return this.#meanings?.likeness(question, this.index.table.columns.hash.subarray(0, this.index.size));
  }

  /** I1–I4. */
  async update(): Promise<void> {
    const [tombstones, name] = await Promise.all([this.store.documents.forgotten(this.key), this.#name()]);
    const forgotten = tombstones.map(({ id }) => id).join(' ');
    if (!this.#hasLooked) await this.#restore(name);
    this.#hasLooked = true;
    if (this.#forgotten !== forgotten) this.#clear(forgotten);
    const redact = redactor(tombstones, this.key.scope);
    const isDue = performance.now() - this.#lookedAt > LOOKED_EVERY_MS;
    if (isDue) this.#lookedAt = performance.now();
    const { documents, lives, changed, cursor } = await this.store.scopes.marks(this.key, isDue ? undefined : this.#cursor);
    const there = new Set(lives.map(({ key }) => lineOf(key)));
    const maybe = changed?.map((life) => lineOf(life)) ?? [...this.#lives.keys()];
    const gone = new Set(maybe.filter((line) => this.#lives.has(line) && !there.has(line)));
    for (const line of gone) this.#removeLife(line);
    for (const life of lives) {
      if (this.#lives.get(lineOf(life.key))?.mark === life.mark) continue;
      await this.#read(life, redact);
      await this.#readBeside(life.key, redact);
    }
    await this.#readVectors(lives);
    if (this.#documents !== documents) await this.#readDocuments(redact);
    this.#documents = documents;
    this.#cursor = cursor;
  }

  /** Where enough is new: less of one that is not kept in memory, since each search reads it. What fails to be written is written the next time. */
  async write({ isKept }: { readonly isKept: boolean }): Promise<void> {
    if (this.#unwritten < Math.max(WRITTEN_AFTER, isKept ? this.index.size / 10 : 0)) return;
    const extra: Extra = { forgotten: this.#forgotten ?? '', documents: this.#documents, lives: [...this.#lives] };
    this.#unwritten = 0;
    await this.store.scopes.writeIndex(this.key, toSnapshot(this.index, await this.#name(), extra));
  }

  async #restore(name: string): Promise<void> {
    const bytes = await this.store.scopes.readIndex(this.key);
    // What was taken back is written as nothing.
    if (bytes === undefined || bytes.length === 0) return;
    const snapshot = fromSnapshot<Extra>(bytes, name);
    if (!snapshot) {
      this.log?.(`the search index of ${this.key.scope} cannot be used (damaged, or of another version): it is made anew from the store`);
      this.#unwritten = Infinity;
      return;
    }
    this.index = snapshot.index;
    this.#forgotten = snapshot.extra.forgotten;
    this.#documents = snapshot.extra.documents;
    this.#lives = new Map(snapshot.extra.lives);
    for (const line of this.#lives.keys()) this.lacking.add(line);
  }

  #clear(forgotten: string): void {
    this.index = new SearchIndex(this.index.analyzer);
    this.#lives = new Map();
    this.#documents = '';
    this.#meanings &&= new Meanings(this.#meanings.dimensions);
    this.#vectorsOf.clear();
    this.#cursor = undefined;
    // What is written down has what is forgotten now.
    if (this.#forgotten !== undefined) this.#unwritten = Infinity;
    this.#forgotten = forgotten;
  }

  async #readVectors(lives: readonly MarkedLife[]): Promise<void> {
    if (this.model === undefined) return;
    for (const { key, mark } of lives) {
      if (this.#vectorsOf.get(lineOf(key)) === mark) continue;
      const vectors = await this.store.vectors.read(key, this.model);
      // Of which size the embedder's are now shows when it is asked.
      if (vectors[0]) this.#meanings ??= new Meanings(vectors[0].values.length);
      for (const { text, values } of vectors) this.#meanings?.add(text, values);
      this.#vectorsOf.set(lineOf(key), mark);
    }
  }

  /** Its words go from what is written down too. */
  #removeLife(line: string): void {
    const { conversation, life } = lifeIn(line);
    for (const one of [line, lineOf({ conversation, life }, 'episode'), lineOf({ conversation, life }, 'item')]) {
      this.index.remove(one, () => true);
    }
    this.#lives.delete(line);
    this.#unwritten = Infinity;
  }

  async #read({ key, mark }: MarkedLife, redact: (text: string) => string): Promise<void> {
    const line = lineOf(key);
    this.lacking.add(line);
    const cuts = await this.store.lives.cuts(key);
    const known = this.#lives.get(line);
    if (cuts.length > 0) {
      // Which turns count now is seen from the whole alone.
      const { entries } = await readPages(this.store, key);
      const now = new Set(slotsIn(currentLine(entries, cuts)));
      this.index.remove(line, (slot) => !now.has(slot));
      await this.#add(
        key,
        entries.filter(({ slot }) => now.has(slot)),
        redact,
      );
      this.#lives.set(line, { mark, last: 0, empty: [] });
      return;
    }
    const { entries: page, last } = await this.#pages(key, known?.last ?? 0);
    // The store has lost what this index has: it is read anew.
    if (known !== undefined && last < known.last) {
      this.index.remove(line, () => true);
      this.#lives.delete(line);
      return this.#read({ key, mark }, redact);
    }
    const late = known && known.empty.length > 0 ? await this.store.entries.read(key, known.empty) : [];
    const entries = [...late.flatMap((entry) => entry ?? []), ...page];
    await this.#add(key, entries, redact);
    const found = new Set(entries.map(({ slot }) => slot));
    const between = Array.from({ length: Math.min(MAX_EMPTY, last - (known?.last ?? 0)) }, (_, i) => last - i);
    const empty = [...(known?.empty ?? []), ...between].filter((slot) => !found.has(slot)).slice(-MAX_EMPTY);
    this.#lives.set(line, { mark, last, empty });
  }

  async #pages(key: ConversationKey, first: number): Promise<{ readonly entries: Entry[]; readonly last: number }> {
    const entries: Entry[] = [];
    let last = Infinity;
    for (let after = first; after < last; after += PAGE) {
      const page = await this.store.entries.page(key, after, PAGE);
      entries.push(...page.entries);
      last = page.last;
    }
    if (last !== Infinity) return { entries, last };
    return { entries, last: first };
  }

  async #add(key: ConversationKey, entries: readonly Entry[], redact: (text: string) => string): Promise<void> {
    for (const [i, entry] of entries.entries()) {
      const told = await textOfEntry(this.store, key, entry);
      if (told) {
        const { slot: at, session, ts } = entry;
        this.#unwritten += this.index.add({ line: lineOf(key), at, session, ts, kind: told.kind, text: foundText(told, redact) });
      }
      if (i % AT_ONCE === AT_ONCE - 1) await nextTick();
    }
  }

  async #readBeside(key: ConversationKey, redact: (text: string) => string): Promise<void> {
    const texts = [...(await episodesOf(this.store, key)), ...(await itemsOf(this.store, key))];
    this.#replace([lineOf(key, 'episode'), lineOf(key, 'item')], texts, redact);
  }

  async #readDocuments(redact: (text: string) => string): Promise<void> {
    this.#replace(DOCUMENTS, await documentTexts(this.store, this.key), redact);
  }

  /** I2. */
  #replace(lines: readonly string[], texts: readonly Text[], redact: (text: string) => string): void {
    for (const line of lines) {
      const now = new Set(texts.flatMap((text) => (text.line === line ? [text.at] : [])));
      this.index.remove(line, (at) => !now.has(at));
    }
    for (const { line, at, session, ts, kind, text } of texts) {
      this.#unwritten += this.index.add({ line, at, session, ts, kind, text: redact(text) });
    }
  }

  async #name(): Promise<string> {
    return JSON.stringify([await this.store.id(), this.key.namespace, this.key.scope]);
  }
}

function lifeIn(line: string): LifeName {
  const [conversation = '', life = ''] = JSON.parse(line) as string[];
  return { conversation, life };
}
