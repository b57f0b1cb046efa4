/**
 * Vectors of texts, by the hash of each, a byte a number: what an embedder says that they mean. All are of one model and one size. A text
 * that is in no passage is not looked at, so a vector alone never finds anything.
 */
import { setImmediate as nextTick } from 'node:timers/promises';

/** Vectors compared before others of this process have their turn: about 5 ms. */
const AT_ONCE = 5_000;

/** How like a question the texts are, from -1 to 1. */
export interface Similarity {
  /** Texts of which that is known, and their mean and standard deviation. */
  readonly count: number;
  readonly mean: number;
  readonly deviation: number;
  /** By the hash of a text; NaN where it is not known. */
  readonly of: (text: number) => number;
}

export class VectorIndex {
  readonly #rows = new Map<number, number>();
  #values = new Int8Array(0);
  /** One by its length, of each. */
  #scales = new Float32Array(0);

  constructor(readonly dimensions: number) {}

  get size(): number {
    return this.#rows.size;
  }

  has(text: number): boolean {
    return this.#rows.has(text);
  }

  /** One of another size, and one of a text that is there, are left out. */
  add(text: number, values: Int8Array): void {
    if (values.length !== this.dimensions || this.#rows.has(text)) return;
    const row = this.size;
    if ((row + 1) * this.dimensions > this.#values.length) this.#grow(row + 1);
    this.#values.set(values, row * this.dimensions);
    const length = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
    this.#scales[row] = length === 0 ? 0 : 1 / length;
    this.#rows.set(text, row);
  }

  bytes(): number {
    // About as much as a Map takes for one.
    return this.#values.byteLength + this.#scales.byteLength + 40 * this.size;
  }

  /** `question`: of length 1. */
  async similarity(question: Float32Array): Promise<Similarity> {
    const { dimensions } = this;
    const ofRows = new Float32Array(this.size);
    const vector = Float32Array.from(question);
    let [total, squares] = [0, 0];
    for (let row = 0; row < ofRows.length; row += 1) {
      if (row % AT_ONCE === AT_ONCE - 1) await nextTick();
      const begin = row * dimensions;
      let sum = 0;
      for (let i = 0; i < dimensions; i += 1) sum += (vector[i] ?? 0) * (this.#values[begin + i] ?? 0);
      const like = sum * (this.#scales[row] ?? 0);
      ofRows[row] = like;
      total += like;
      squares += like * like;
    }
    const mean = total / ofRows.length;
    return {
      count: ofRows.length,
      mean,
      deviation: Math.sqrt(Math.max(0, squares / ofRows.length - mean * mean)),
      of: (text) => ofRows[this.#rows.get(text) ?? -1] ?? NaN,
    };
  }

  #grow(rows: number): void {
    const room = Math.max(16, Math.ceil(rows * 1.5));
    const values = new Int8Array(room * this.dimensions);
    values.set(this.#values);
    this.#values = values;
    const scales = new Float32Array(room);
    scales.set(this.#scales);
    this.#scales = scales;
  }
}

/** Of a vector of any length: its direction, a byte a number, is all that is compared. */
export function toBytes(vector: Float32Array): Int8Array {
  const most = vector.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
  return Int8Array.from(vector, (value) => (most === 0 ? 0 : Math.round((127 * value) / most)));
}
