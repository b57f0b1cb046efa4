/**
 * Which passages have which word, and how often. A word is the 64 bits of a hash: no text of any conversation is stored here, and a table of
 * numbers is written to disk as it is. Two words that meet in one hash would only disturb a ranking.
 *
 * The passages of a word are a chain of slices in one large array; a slice is twice as long as the one before, up to a limit, and the
 * number behind it says where the next one begins. One number is a passage (24 bits) and how often it has the word (8 bits).
 */
import { grown, hashText } from './passage-table.js';

export const MAX_PASSAGES = 2 ** 24 - 1;
const MAX_TIMES = 255;
const MAX_SLICE = 256;
const SEEDS = [0x9e3779b9, 0x2545f491] as const;

/** Plain numbers, to be stored and read back. */
export interface PostingsState {
  readonly high: Uint32Array;
  readonly low: Uint32Array;
  readonly counts: Uint32Array;
  readonly heads: Uint32Array;
  readonly tails: Uint32Array;
  readonly pool: Uint32Array;
}

export class Postings {
  #terms = 0;
  /** The first number of the pool belongs to no slice: 0 is no place. */
  #used = 1;
  #high = new Uint32Array(0);
  #low = new Uint32Array(0);
  #counts = new Uint32Array(0);
  #heads = new Uint32Array(0);
  /** Where the next passage is written, or where the slice ends. */
  #tails = new Uint32Array(0);
  #pool = new Uint32Array(1);
  /** Term + 1 by hash; 0 is free. */
  #table = new Uint32Array(16);

  static from({ high, low, counts, heads, tails, pool }: PostingsState): Postings {
    const postings = new Postings();
    postings.#terms = high.length;
    postings.#used = pool.length;
    [postings.#high, postings.#low, postings.#counts] = [high, low, counts] as [
      Uint32Array<ArrayBuffer>,
      Uint32Array<ArrayBuffer>,
      Uint32Array<ArrayBuffer>,
    ];
    [postings.#heads, postings.#tails, postings.#pool] = [heads, tails, pool] as [
      Uint32Array<ArrayBuffer>,
      Uint32Array<ArrayBuffer>,
      Uint32Array<ArrayBuffer>,
    ];
    postings.#rehash();
    return postings;
  }

  add(word: string, passage: number, times: number): void {
    const [high, low] = [hashText(word, SEEDS[0]), hashText(word, SEEDS[1])];
    const known = this.#find(high, low);
    this.#append(known >= 0 ? known : this.#addTerm(high, low), ((passage << 8) | Math.min(times, MAX_TIMES)) >>> 0);
  }

  /** Undefined for a word that no passage has. */
  findTerm(word: string): number | undefined {
    const term = this.#find(hashText(word, SEEDS[0]), hashText(word, SEEDS[1]));
    return term < 0 ? undefined : term;
  }

  countPassages(term: number): number {
    return this.#counts[term] ?? 0;
  }

  /** All of a term, each `passage << 8 | times`. */
  read(term: number): Uint32Array {
    const count = this.countPassages(term);
    const all = new Uint32Array(count);
    let at = this.#heads[term] ?? 0;
    for (let done = 0; done < count;) {
      const length = sliceAt(done);
      const end = at + Math.min(length, count - done);
      all.set(this.#pool.subarray(at, end), done);
      done += end - at;
      at = this.#pool[at + length] ?? 0;
    }
    return all;
  }

  /** The same with other numbers for the passages; -1 takes one away. A word that no passage has any more is gone. */
  renumbered(numbers: Int32Array): Postings {
    const fresh = new Postings();
    for (let term = 0; term < this.#terms; term += 1) {
      let copy = -1;
      for (const value of this.read(term)) {
        const number = numbers[value >>> 8] ?? -1;
        if (number < 0) continue;
        if (copy < 0) copy = fresh.#addTerm(this.#high[term] ?? 0, this.#low[term] ?? 0);
        fresh.#append(copy, ((number << 8) | (value & 255)) >>> 0);
      }
    }
    return fresh;
  }

  state(): PostingsState {
    const of = (numbers: Uint32Array): Uint32Array => numbers.subarray(0, this.#terms);
    const [high, low, counts, heads, tails] = [of(this.#high), of(this.#low), of(this.#counts), of(this.#heads), of(this.#tails)];
    return { high, low, counts, heads, tails, pool: this.#pool.subarray(0, this.#used) };
  }

  bytes(): number {
    const all = [this.#high, this.#low, this.#counts, this.#heads, this.#tails, this.#pool, this.#table];
    return all.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  #find(high: number, low: number): number {
    const mask = this.#table.length - 1;
    for (let at = low & mask; ; at = (at + 1) & mask) {
      const term = (this.#table[at] ?? 0) - 1;
      if (term < 0 || (this.#low[term] === low && this.#high[term] === high)) return term;
    }
  }

  #addTerm(high: number, low: number): number {
    const term = this.#terms;
    this.#terms += 1;
    this.#high = grown(this.#high, this.#terms);
    this.#low = grown(this.#low, this.#terms);
    this.#counts = grown(this.#counts, this.#terms);
    this.#heads = grown(this.#heads, this.#terms);
    this.#tails = grown(this.#tails, this.#terms);
    this.#high[term] = high;
    this.#low[term] = low;
    if (this.#terms * 2 > this.#table.length) this.#rehash();
    else this.#place(term);
    return term;
  }

  #append(term: number, value: number): void {
    const count = this.countPassages(term);
    const begins = startsSlice(count);
    if (begins) {
      const begin = this.#used;
      this.#used += sliceAt(count) + 1;
      this.#pool = grown(this.#pool, this.#used);
      if (count === 0) this.#heads[term] = begin;
      else this.#pool[this.#tails[term] ?? 0] = begin;
      this.#tails[term] = begin;
    }
    const at = this.#tails[term] ?? 0;
    this.#pool[at] = value;
    this.#tails[term] = at + 1;
    this.#counts[term] = count + 1;
  }

  #rehash(): void {
    let size = 16;
    while (size < this.#terms * 4) size *= 2;
    this.#table = new Uint32Array(size);
    for (let term = 0; term < this.#terms; term += 1) this.#place(term);
  }

  #place(term: number): void {
    const mask = this.#table.length - 1;
    let at = (this.#low[term] ?? 0) & mask;
    while (this.#table[at] !== 0) at = (at + 1) & mask;
    this.#table[at] = term + 1;
  }
}

/** Slices of 1, 2, 4, … begin after 0, 1, 3, 7, … passages, those of the longest kind each MAX_SLICE further. */
function startsSlice(count: number): boolean {
  const next = count + 1;
  return next < 2 * MAX_SLICE ? (next & (next - 1)) === 0 : next % MAX_SLICE === 0;
}

/** How long the slice is that begins after so many passages. */
function sliceAt(count: number): number {
  return Math.min(MAX_SLICE, count + 1);
}
