/**
 * Vectors of texts, by the hash of each, a byte a number: what an embedder says that they mean. All are of one model and one size. A text
 * that is in no passage is not looked at, so a vector alone never finds anything.
 */
import { setImmediate as nextTick } from 'node:timers/promises';

/** Vectors compared before others of this process have their turn: about 5 ms. */
const AT_ONCE = 5_000;

export class Meanings {
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

  /** How like a question each of the passages is, from -1 to 1, by the hashes of their texts; NaN where that is not known. `question`: of length 1. */
  async likeness(question: Float32Array, texts: Uint32Array): Promise<Float32Array> {
    const { dimensions } = this;
    const ofRows = new Float32Array(this.size);
    const asked = Float32Array.from(question);
    for (let row = 0; row < ofRows.length; row += 1) {
      if (row % AT_ONCE === AT_ONCE - 1) await nextTick();
      const begin = row * dimensions;
      let sum = 0;
      for (let i = 0; i < dimensions; i += 1) sum += (asked[i] ?? 0) * (this.#values[begin + i] ?? 0);
      ofRows[row] = sum * (this.#scales[row] ?? 0);
    }
    return Float32Array.from(texts, (text) => ofRows[this.#rows.get(text) ?? -1] ?? NaN);
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
