/**
 * What an embedder has made of the texts of one scope, in memory, beside the index of its words.
 *
 * Only vectors of the embedder's model are read, and only of its present size. If they take more memory than all indexes may, there are
 * none: the search goes by words.
 */
import { Meanings, type Likeness } from '../../search/meanings.js';
import type { MarkedLife, ScopeKey, Store, StoredVector } from '../../stores/store.js';
import { lineName } from './lines.js';

export interface ScopeVectorsOptions {
  readonly store: Store;
  readonly key: ScopeKey;
  /** Undefined: no embedder. */
  readonly model: string | undefined;
  readonly maxBytes: number;
  readonly log?: ((line: string) => void) | undefined;
}

export class ScopeVectors {
  #meanings: Meanings | undefined;
  #isOver = false;
  readonly #leftOut = new Set<number>();
  /** By line: the mark of its life when its vectors were read. */
  #readAt = new Map<string, string>();

  constructor(readonly options: ScopeVectorsOptions) {}

  get isOver(): boolean {
    return this.#isOver;
  }

  bytes(): number {
    return this.#meanings?.bytes() ?? 0;
  }

  /** How many numbers a vector has now. True: it was another number, and all are to be read again. */
  expectSize(dimensions: number): boolean {
    if (this.#isOver || this.#meanings?.dimensions === dimensions) return false;
    this.#meanings = new Meanings(dimensions);
    this.#readAt.clear();
    return true;
  }

  add(vectors: readonly StoredVector[]): void {
    for (const { text, values } of vectors) this.#meanings?.add(text, values);
    if (this.bytes() <= this.options.maxBytes) return;
    const { key, maxBytes, log } = this.options;
    this.#isOver = true;
    this.#meanings = undefined;
    log?.(
      `${key.scope} is searched by words alone: its vectors take more than the ${megabytes(maxBytes)} MB that search indexes may; ` +
        'set PERDURA_SEARCH_CACHE_BYTES to more',
    );
  }

  has(text: number): boolean {
    return (this.#meanings?.has(text) ?? false) || this.#leftOut.has(text);
  }

  /** Of these no vector can be made: they are not requested again. */
  leaveOut(texts: readonly number[]): void {
    for (const text of texts) if (!this.#meanings?.has(text)) this.#leftOut.add(text);
  }

  async likeness(question: Float32Array): Promise<Likeness | undefined> {
    return this.#meanings?.likeness(question);
  }

  async read(lives: readonly MarkedLife[]): Promise<void> {
    const { store, model } = this.options;
    if (model === undefined) return;
    for (const { key, mark } of lives) {
      if (this.#isOver) return;
      if (this.#readAt.get(lineName(key)) === mark) continue;
      const vectors = await store.vectors.read(key, model);
      // The embedder's current size shows when it is called.
      if (vectors[0]) this.#meanings ??= new Meanings(vectors[0].values.length);
      this.add(vectors);
      this.#readAt.set(lineName(key), mark);
    }
  }

  clear(): void {
    this.#meanings &&= new Meanings(this.#meanings.dimensions);
    this.#readAt.clear();
  }
}

export function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}
