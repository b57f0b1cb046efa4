/**
 * What an embedder has made of the texts of one scope, in memory, beside the index of its words.
 *
 * Only vectors of the embedder's model are read, and only of its present size. If they take more memory than all indexes may, there are
 * none: the search goes by words.
 */
import { VectorIndex, type Similarity } from '../../search/vector-index.js';
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
