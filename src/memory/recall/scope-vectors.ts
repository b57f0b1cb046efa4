/**
 * What an embedder has made of the texts of one scope, in memory, beside the index of its words.
 *
 * Only vectors of the embedder's model are read, and only of its present size. If they take more memory than all indexes may, there are
 * none: the search goes by words.
 */
import { VectorIndex, type Similarity, toBytes } from '../../search/vector-index.js';
import { type MarkedLife, type StoredVector, type ScopeKey, type Store, LifeDeleted, type ConversationKey } from '../../stores/store.js';
import { lineName, foundText, textOfEntry, readLine } from './indexed-texts.js';
import type { Entry } from '../../records/message.js';
import { splitPassages, textHash, type SearchIndex } from '../../search/search-index.js';
import { KINDS } from '../../search/passage-table.js';
import { redactor } from '../documents/forgetting.js';
import { readPages } from '../past-life.js';
import { TEXTS_AT_ONCE, type PaidEmbedder, type Payer } from './paid-embedder.js';

export interface ScopeVectorsOptions {
  readonly store: Store;
  readonly key: ScopeKey;
  /** Undefined: no embedder. */
  readonly model: string | undefined;
  readonly maxBytes: number;
  readonly log?: ((line: string) => void) | undefined;
}

export class ScopeVectors {
  #index: VectorIndex | undefined;
  #isOver = false;
  readonly #leftOut = new Set<number>();
  /** By line: the mark of its life when its vectors were read. */
  #readAt = new Map<string, string>();

  constructor(readonly options: ScopeVectorsOptions) {}

  get isOver(): boolean {
    return this.#isOver;
  }

  bytes(): number {
    return this.#index?.bytes() ?? 0;
  }

  /** How many numbers a vector has now. True: it was another number, and all are to be read again. */
  expectSize(dimensions: number): boolean {
    if (this.#isOver || this.#index?.dimensions === dimensions) return false;
    this.#index = new VectorIndex(dimensions);
    this.#readAt.clear();
    return true;
  }

  add(vectors: readonly StoredVector[]): void {
    for (const { text, values } of vectors) this.#index?.add(text, values);
    if (this.bytes() <= this.options.maxBytes) return;
    const { key, maxBytes, log } = this.options;
    this.#isOver = true;
    this.#index = undefined;
    log?.(
      `${key.scope} is searched by words alone: its vectors take more than the ${megabytes(maxBytes)} MB that search indexes may; ` +
        'set PERDURA_SEARCH_CACHE_BYTES to more',
    );
  }

  has(text: number): boolean {
    return (this.#index?.has(text) ?? false) || this.#leftOut.has(text);
  }

  /** Of these no vector can be made: they are not requested again. */
  leaveOut(texts: readonly number[]): void {
    for (const text of texts) if (!this.#index?.has(text)) this.#leftOut.add(text);
  }

  async similarity(question: Float32Array): Promise<Similarity | undefined> {
    return this.#index?.similarity(question);
  }

  async read(lives: readonly MarkedLife[]): Promise<void> {
    const { store, model } = this.options;
    if (model === undefined) return;
    for (const { key, mark } of lives) {
      if (this.#isOver) return;
      if (this.#readAt.get(lineName(key)) === mark) continue;
      const vectors = await store.vectors.read(key, model);
      // The embedder's current size shows when it is called.
      if (vectors[0]) this.#index ??= new VectorIndex(vectors[0].values.length);
      this.add(vectors);
      this.#readAt.set(lineName(key), mark);
    }
  }

  clear(): void {
    this.#index &&= new VectorIndex(this.#index.dimensions);
    this.#readAt.clear();
  }
}

export function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}

// Vectors of messages, made where there are none yet: those of one conversation first, then what is older. A
// bounded part each time, and what it brings is written before anything is made of it.
//
// Only texts that a search finds go to the embedder: no forgotten, rewound or deleted text, and no words of a tool. A text that is
// forgotten while its vector is made keeps none: tombstones come first, and are checked again after the write.

/** Passages of one part of the work. */
export const MAX_FILLED = 256;
const KINDS_WITH_VECTORS = new Set((['user', 'assistant'] as const).map((kind) => KINDS.indexOf(kind)));

/** A passage that has no vector yet. */
export interface MissingVector {
  readonly key: ConversationKey;
  readonly slot: number;
  readonly start: number;
  readonly end: number;
  /** Of its text, as in the index. */
  readonly hash: number;
}

interface MissingQuery {
  readonly first: ConversationKey;
  readonly most: number;
  readonly has: (text: number) => boolean;
  /** Lines in which something may lack. One that is gone through to its end leaves it: a step must not go through a whole scope each time. */
  readonly incomplete: Set<string>;
}

/** At most `most`, those of the life `first` before others, each text once. */
export function missingVectorsIn({ table }: SearchIndex, scope: ScopeKey, { first, most, has, incomplete }: MissingQuery): MissingVector[] {
  const { at, start, end, hash, kind } = table.columns;
  const firstLine = lineName(first);
  const found = new Map<number, MissingVector>();
  for (const name of [...(incomplete.has(firstLine) ? [firstLine] : []), ...incomplete]) {
    const [line, of] = [table.findLine(name), readLine(scope, name)];
    if (line === undefined || of === undefined) {
      incomplete.delete(name);
      continue;
    }
    let isWhole = true;
    for (let position = line.count - 1; position >= 0; position -= 1) {
      if (found.size >= most) return [...found.values()];
      const passage = line.passages[position] ?? 0;
      const text = hash[passage] ?? 0;
      if (!KINDS_WITH_VECTORS.has(kind[passage] ?? -1) || has(text)) continue;
      isWhole = false;
      if (found.has(text)) continue;
      found.set(text, { key: of.key, slot: at[passage] ?? 0, start: start[passage] ?? 0, end: end[passage] ?? 0, hash: text });
    }
    if (isWhole) incomplete.delete(name);
  }
  return [...found.values()];
}

interface Filling {
  readonly store: Store;
  readonly scope: ScopeKey;
  readonly embedder: PaidEmbedder;
  readonly payer: Payer | undefined;
  readonly signal: AbortSignal;
}

/** The vectors that were written. Throws where the embedder or the store fails; what was written before stays. */
export async function embedMissing(
  { store, scope, embedder, payer, signal }: Filling,
  wanted: readonly MissingVector[],
): Promise<StoredVector[]> {
  const before = await store.documents.forgotten(scope);
  const redact = redactor(before, scope.scope);
  const filled: StoredVector[] = [];
  for (let from = 0; from < wanted.length && !signal.aborted; from += TEXTS_AT_ONCE) {
    const texts = await readTexts(store, wanted.slice(from, from + TEXTS_AT_ONCE), redact);
    const vectors = await embedder.embed(
      texts.map(({ text }) => text),
      { of: scope, payer, signal },
    );
    const made = texts.map(({ of }, i) => ({
      key: of.key,
      vector: { model: embedder.name, text: of.hash, values: toBytes(vectors[i] ?? new Float32Array(0)) },
    }));
    for (const [key, ones] of byLife(made)) {
      await store.vectors.add(key, ones).then(
        () => filled.push(...ones),
        (error: unknown) => {
          if (!(error instanceof LifeDeleted)) throw error;
        },
      );
    }
    const after = await store.documents.forgotten(scope);
    if (after.length === before.length) continue;
    for (const [key] of byLife(made)) await keepLifeVectors(store, key);
    return [];
  }
  return filled;
}

/** Also what a rewind has cut keeps its vector, as it keeps its entry. */
export async function keepLifeVectors(store: Store, key: ConversationKey): Promise<void> {
  await store.vectors.keep(key, async () => {
    const redact = redactor(await store.documents.forgotten(key), key.scope);
    const { entries } = await readPages(store, key);
    const texts = new Set<number>();
    for (const entry of entries) {
      const whole = await indexedText(store, key, entry, redact);
      for (const { start, end } of splitPassages(whole ?? '')) texts.add(textHash((whole ?? '').slice(start, end)));
    }
    return texts;
  });
}

async function readTexts(store: Store, wanted: readonly MissingVector[], redact: (text: string) => string) {
  const read = wanted.map(async (of): Promise<{ readonly of: MissingVector; readonly text: string }[]> => {
    const [entry] = await store.entries.read(of.key, [of.slot]);
    const text = entry && (await indexedText(store, of.key, entry, redact))?.slice(of.start, of.end);
    // Another text by now, or forgotten.
    return text === undefined || text.trim() === '' || textHash(text) !== of.hash ? [] : [{ of, text }];
  });
  return (await Promise.all(read)).flat();
}

async function indexedText(
  store: Store,
  key: ConversationKey,
  entry: Entry,
  redact: (text: string) => string,
): Promise<string | undefined> {
  const told = await textOfEntry(store, key, entry);
  return told && foundText(told, redact);
}

function byLife(made: readonly { readonly key: ConversationKey; readonly vector: StoredVector }[]): [ConversationKey, StoredVector[]][] {
  const lives = new Map<string, [ConversationKey, StoredVector[]]>();
  for (const { key, vector } of made) {
    const known = lives.get(lineName(key));
    if (known) known[1].push(vector);
    else lives.set(lineName(key), [key, [vector]]);
  }
  return [...lives.values()];
}
