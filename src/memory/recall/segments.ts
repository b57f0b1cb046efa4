/**
 * The sealed parts of a scope's index: messages that nothing is added to any more. Each is written down by itself and read back when a
 * search needs it; in memory it stays where there is room, so that a scope of any size can be searched.
 *
 * - A part has its name for good: a changed part is written under another name.
 * - The head (scope-index.ts) lists a part only after it was written; a listed part that cannot be read is `PartLost`.
 * - A part that is not written yet stays in memory.
 * - A part that the head does not list goes once it is too old to be in a head that is just being written. A part that lost texts goes at
 *   once.
 *
 * @rule recall/last-head-counts: Processes of one scope seal for themselves, and the head that was written last counts; a process goes on
 *   from that head if its parts are gone. (test: test/memory/recall/faults.slow.test.ts)
 */
import { randomUUID } from 'node:crypto';
import { setImmediate as nextTick } from 'node:timers/promises';
import type { Analyzer } from '../../search/analysis.js';
import { type Facts, type SearchIndex, sumFacts } from '../../search/search-index.js';
import { fromSnapshot, toSnapshot } from '../../search/snapshot.js';
import type { ScopeKey, Store } from '../../stores/store.js';
import { errorMessage } from '../../platform/errors.js';
import { selectBest, planFor, search } from '../../search/scan.js';
import { addCounts, countIn, rankIn, type Counts, type Hit, type Occurrences, type Query } from '../../search/scan.js';

/** As the head lists it. */
export interface ListedPart {
  /** By which lives know it; it stays, whatever name the part is written under. */
  readonly number: number;
  readonly name: string;
  readonly facts: Facts;
  /** In memory. */
  readonly bytes: number;
}

interface Segment {
  readonly number: number;
  /** Undefined: as it is now it is not written. */
  name: string | undefined;
  facts: Facts;
  bytes: number;
  /** Undefined: not in memory. */
  index: SearchIndex | undefined;
  /** Nothing in it lacks a vector. */
  isFilled: boolean;
}

export interface LoadedPart {
  readonly index: SearchIndex;
  /** It stays in memory after the next one was read. */
  readonly isKept: boolean;
  readonly bytes: number;
  readonly segment: { isFilled: boolean };
}

/** Another process has replaced it, or it is damaged: what is written down is to be looked at again. */
export class PartLost extends Error {
  constructor(
    message: string,
    /** Under which it is written. */
    readonly part: string | undefined,
  ) {
    super(message);
  }
}

export interface SegmentsOptions {
  readonly store: Store;
  readonly key: ScopeKey;
  readonly analyzer: Analyzer;
  /** Whether so many bytes more may stay in memory. */
  readonly makeRoom: (bytes: number) => boolean;
  /** Parts that were found to be damaged. */
  readonly lost?: ReadonlySet<string> | undefined;
  readonly log?: ((line: string) => void) | undefined;
}

export class Segments {
  #segments: Segment[] = [];
  /** Names of parts from which texts were removed: they go with the next head (recall/last-head-counts). */
  #replaced: string[] = [];
  /** Whose the parts are, as in each of them. */
  #of = '';

  constructor(readonly options: SegmentsOptions) {}

  get count(): number {
    return this.#segments.length;
  }

  facts(): Facts[] {
    return this.#segments.map(({ facts }) => facts);
  }

  /** In memory. */
  bytes(): number {
    return this.#segments.reduce((sum, { index, bytes }) => sum + (index ? bytes : 0), 0);
  }

  /** What it would be, were all in memory. */
  allBytes(): number {
    return this.#segments.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Takes one part out of memory; false where none can go. */
  evict(): boolean {
    const last = this.#segments.findLast(({ index, name }) => index !== undefined && name !== undefined);
    if (last) last.index = undefined;
    return last !== undefined;
  }

  /** False where one of them is gone. */
  async restore(listed: readonly ListedPart[], of: string): Promise<boolean> {
    const { store, key, lost } = this.options;
    this.#of = of;
    const there = new Set(await store.scopes.indexParts(key));
    if (!listed.every(({ name }) => there.has(name) && !lost?.has(name))) return false;
    this.#segments = listed.map((part) => ({ ...part, index: undefined, isFilled: false }));
    return true;
  }

  /** From what is written. A search works without it, so that it only says where it fails. */
  async removeFrom(names: readonly string[]): Promise<void> {
    const { store, key, log } = this.options;
    if (names.length === 0) return;
    await store.scopes.removeIndex(key, names).catch((error: unknown) => log?.(errorMessage(error)));
  }

  /** Its number. */
  add(index: SearchIndex): number {
    const number = Math.max(0, ...this.#segments.map((one) => one.number)) + 1;
    this.#segments.push({ number, name: undefined, facts: index.facts(), bytes: index.bytes(), index, isFilled: false });
    return number;
  }

  /** Something in them may lack a vector. */
  hasUnfilled(): boolean {
    return this.#segments.some(({ isFilled }) => !isFilled);
  }

  /** One after the other; of those that do not fit into memory one at a time is there. */
  async *each(): AsyncGenerator<LoadedPart> {
    for (const segment of this.#segments) {
      const index = await this.#load(segment);
      yield { index, isKept: segment.index !== undefined, bytes: segment.bytes, segment };
      await nextTick();
    }
  }

  /** By its place in `each`. */
  async at(i: number): Promise<SearchIndex | undefined> {
    const segment = this.#segments[i];
    return segment && this.#load(segment);
  }

  /** Which texts of a line these parts have. */
  async textsInLine(numbers: readonly number[], line: string): Promise<ReadonlySet<number>> {
    const texts = new Set<number>();
    for (const segment of this.#numbered(numbers)) {
      const { table } = await this.#load(segment);
      const { passages, count } = table.findLine(line) ?? { passages: new Uint32Array(0), count: 0 };
      for (const passage of passages.subarray(0, count)) texts.add(table.columns.at[passage] ?? 0);
    }
    return texts;
  }

  /** How many passages went. */
  async remove(numbers: readonly number[], line: string, isGone: (at: number) => boolean): Promise<number> {
    let removed = 0;
    for (const segment of this.#numbered(numbers)) {
      const index = await this.#load(segment);
      const gone = index.remove(line, isGone);
      if (gone === 0) continue;
      removed += gone;
      if (segment.name !== undefined) this.#replaced.push(segment.name);
      Object.assign(segment, { name: undefined, facts: index.facts(), bytes: index.bytes(), index });
    }
    const isEmpty = ({ facts }: Segment): boolean => facts.passages === 0;
    if (removed > 0) this.#segments = this.#segments.filter((segment) => !isEmpty(segment));
    return removed;
  }

  clear(): void {
    this.#replaced.push(...this.#segments.flatMap(({ name }) => name ?? []));
    this.#segments = [];
  }

  refill(): void {
    for (const segment of this.#segments) segment.isFilled = false;
  }

  /** The parts that a head may list now: all, each written. */
  async written(of: string): Promise<ListedPart[]> {
    const { store, key } = this.options;
    this.#of = of;
    const there = this.count === 0 ? new Set() : new Set(await store.scopes.indexParts(key));
    const listed: ListedPart[] = [];
    for (const segment of this.#segments) {
      const { number, facts, bytes } = segment;
      if (segment.name !== undefined && !there.has(segment.name)) throw this.#lost(segment);
      segment.name ??= await this.#write(segment.index, of);
      listed.push({ number, name: segment.name, facts, bytes });
    }
    return listed;
  }

  /** After a head was written that lists them (recall/last-head-counts). */
  async settle(listed: readonly ListedPart[]): Promise<void> {
    const { store, key } = this.options;
    const names = new Set(listed.map(({ name }) => name));
    const old = (await store.scopes.indexParts(key)).filter((name) => !names.has(name) && Date.now() - madeAt(name) > GRACE_MS);
    await this.removeFrom([...this.#replaced.splice(0), ...old]);
  }

  /** The name of the part. */
  async #write(index: SearchIndex | undefined, of: string): Promise<string> {
    const { store, key } = this.options;
    const name = `part-${Date.now()}-${randomUUID()}`;
    if (index) await store.scopes.writeIndex(key, name, toSnapshot(index, of, null));
    return name;
  }

  #numbered(numbers: readonly number[]): Segment[] {
    return this.#segments.filter(({ number }) => numbers.includes(number));
  }

  async #load(segment: Segment): Promise<SearchIndex> {
    if (segment.index) return segment.index;
    const { store, key, analyzer, makeRoom } = this.options;
    const bytes = segment.name === undefined ? undefined : await store.scopes.readIndex(key, segment.name);
    const index = bytes && fromSnapshot(bytes, this.#of, analyzer)?.index;
    if (!index) {
      // A damaged one would be found again.
      if (bytes && segment.name !== undefined) await this.removeFrom([segment.name]);
      throw this.#lost(segment);
    }
    if (makeRoom(segment.bytes)) segment.index = index;
    return index;
  }

  #lost({ number, name }: Segment): PartLost {
    const what = `part ${number} of the search index of ${this.options.key.scope} is gone or damaged`;
    return new PartLost(`${what}: the next search makes it anew`, name);
  }
}

/** Infinity for the head, which has no time in its name. */
function madeAt(part: string): number {
  return Number(/^part-(\d+)-/.exec(part)?.[1] ?? Infinity);
}

/** The part that lists the others. */
export const HEAD = 'head';
/** To seal, and to write the head that lists it, takes seconds. */
const GRACE_MS = 3_600_000;

/** Of a sealed part. */
interface Counted {
  readonly counts: Counts;
  readonly isEmpty: boolean;
  /** Absent: it is read again to be ranked. */
  readonly index?: SearchIndex;
  readonly occurrences?: Occurrences;
}

/** `heldBytes`: of parts that do not stay in memory, so many are held until the search ends, so that they are read once. */
export async function searchParts(head: SearchIndex, segments: Segments, query: Query, heldBytes: number): Promise<Hit[]> {
  if (segments.count === 0) return search(head, query);
  const facts = sumFacts([head.facts(), ...segments.facts()]);
  const plan = planFor(facts, query, head.analyzer);
  if (!plan) return [];
  const ofHead = countIn(head, plan, facts);
  const counted: Counted[] = [];
  let held = 0;
  for await (const { index, isKept, bytes } of segments.each()) {
    const { counts, occurrences, isEmpty } = countIn(index, plan, facts);
    if (!isKept) held += bytes;
    const isHeld = isKept || held <= heldBytes;
    counted.push({ counts, isEmpty, ...(isHeld && { index, occurrences }) });
  }
  const scan = { query, plan, all: { ...facts, ...[ofHead, ...counted].map(({ counts }) => counts).reduce(addCounts) } };
  const found = [rankIn(head, scan, ofHead.occurrences)];
  for (const [i, { isEmpty, index: known, occurrences }] of counted.entries()) {
    // Without a word of the question only vectors find something.
    if (isEmpty && query.similarity === undefined) continue;
    const index = known ?? (await segments.at(i));
    if (index) found.push(rankIn(index, scan, occurrences));
    await nextTick();
  }
  return selectBest(found, query);
}
