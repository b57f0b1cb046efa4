/**
 * The index of one scope's messages, in memory: passages by their words. It is derived and holds no text; what it finds is read where
 * it lies. Pure: the clock is an argument.
 *
 * The size of the index and the bounds of weights.ts bound the work, whatever the question and the texts are.
 *
 * @rule search/same-passage-once: The same passage twice is one. (test: test/search/rank.test.ts)
 * @rule search/removal-leaves-nothing: After a removal the index ranks as if the passages had never been there; but a message whose
 *   language is unclear keeps the guess from what stood before it. (test: test/search/rank.test.ts)
 */
import { createAnalyzer, type Analyzer } from './analysis.js';
import { LANGUAGES, type Language } from './words.js';
import { hashText, ASKS, DATED, KINDS, PassageTable, type Kind, type Line } from './passage-table.js';
import { MAX_PASSAGES, Postings } from './postings.js';
import { BOUNDS } from './weights.js';

interface Passage {
  /** In UTF-16 units of the text; `end` is not in it. */
  readonly start: number;
  readonly end: number;
}

/** They follow on each other without a gap. Of a very long text those of its beginning, BOUNDS.text of it. */
export function splitPassages(text: string): Passage[] {
  const length = Math.min(text.length, BOUNDS.text);
  const passages: Passage[] = [];
  for (let start = 0; start < length || passages.length === 0;) {
    const end = length - start <= BOUNDS.passage ? length : breakBefore(text, start, start + BOUNDS.passage);
    passages.push({ start, end });
    start = end;
    if (end >= length) break;
  }
  return passages;
}

/** Where a reader would stop, in the last half of the passage. */
function breakBefore(text: string, start: number, most: number): number {
  const least = start + Math.floor(BOUNDS.passage / 2);
  for (const [mark, kept] of [
    ['\n\n', 2],
    ['\n', 1],
    ['. ', 2],
    ['。', 1],
    [' ', 1],
  ] as const) {
    const at = text.lastIndexOf(mark, most - kept);
    if (at >= least) return at + kept;
  }
  // Never half of a character.
  return /[\uD800-\uDBFF]/.test(text.charAt(most - 1)) ? most - 1 : most;
}

/** One text: a message, a line of a document, a fact. */
export interface Text {
  /** What it is part of: texts of a line are neighbours by `at`. */
  readonly line: string;
  readonly at: number;
  /** Neighbours are of one session. */
  readonly session: number;
  /** Epoch seconds. */
  readonly ts: number;
  readonly kind: Kind;
  readonly text: string;
  /** Where it is known beside the text. */
  readonly speaker?: string;
}

/** What is known of all passages of an index together: that of several is the sum. */
export interface Facts {
  readonly passages: number;
  readonly words: number;
  /** Passages of each language, in the order of LANGUAGES. */
  readonly spoken: readonly number[];
  /** Epoch seconds of the first and of the last passage; Infinity and -Infinity where there is none. */
  readonly first: number;
  readonly last: number;
}

const MAX_SPEAKERS = 0xffff;

export class SearchIndex {
  table = new PassageTable();
  postings = new Postings();
  /** Of all passages, for their mean. */
  words = 0;
  /** By number - 1. */
  readonly speakers: string[] = [];
  readonly #speakerNumbers = new Map<string, number>();
  readonly #spoken = new Uint32Array(LANGUAGES.length);

  constructor(
    readonly analyzer: Analyzer = createAnalyzer(),
    /** The language of a text that nothing else tells, while there is no other. */
    readonly usual?: Language,
  ) {}

  /** Passages. */
  get size(): number {
    return this.table.count;
  }

  /** How many passages were new (search/same-passage-once). */
  add({ line: name, at, session, ts, kind, text, speaker }: Text): number {
    const line = this.table.addLine(name);
    let added = 0;
    for (const [part, { start, end }] of splitPassages(text).entries()) {
      if (this.size >= MAX_PASSAGES) break;
      const position = this.table.findPosition(line, { at, part });
      const passageText = text.slice(start, end);
      const before = this.#languageBefore(line, position);
      const analysis = this.analyzer.text(passageText, { at: ts, otherwise: before, ...(speaker !== undefined && { speaker }) });
      const passage = this.table.add(line, {
        ...{ at, part, start, end, session, ts },
        kind: KINDS.indexOf(kind),
        flags: (analysis.asks ? ASKS : 0) | (analysis.hasDate ? DATED : 0),
        language: analysis.language === undefined ? 0 : LANGUAGES.indexOf(analysis.language) + 1,
        speaker: this.speakerNumber(analysis.speaker),
        words: analysis.length,
        hash: textHash(passageText),
      });
      if (passage === undefined) continue;
      added += 1;
      this.#count(passage, 1);
      for (const [term, times] of analysis.terms) this.postings.add(term, passage, times);
    }
    return added;
  }

  /** Takes away those texts of a line for which `isGone` holds; answers how many passages went. */
  remove(name: string, isGone: (at: number) => boolean): number {
    const line = this.table.findLine(name);
    if (!line) return 0;
    const { at } = this.table.columns;
    const gone = line.passages.subarray(0, line.count).filter((passage) => isGone(at[passage] ?? 0));
    if (gone.length > 0) this.#without(new Set(gone));
    return gone.length;
  }

  facts(): Facts {
    const { ts } = this.table.columns;
    let [first, last] = [Infinity, -Infinity];
    for (let passage = 0; passage < this.size; passage += 1) {
      const at = ts[passage] ?? 0;
      if (at < first) first = at;
      if (at > last) last = at;
    }
    return { passages: this.size, words: this.words, spoken: [...this.#spoken], first, last };
  }

  /** Those lines for which `isIn` holds, as a separate index. */
  part(isIn: (line: string) => boolean): SearchIndex {
    const part = new SearchIndex(this.analyzer, this.#mostUsual());
    const isKept = new Uint8Array(this.size);
    for (const { name, passages, count } of this.table.lines) {
      if (isIn(name)) for (const passage of passages.subarray(0, count)) isKept[passage] = 1;
    }
    for (const name of this.speakers) part.speakerNumber(name);
    part.#take(this, isKept);
    part.recount();
    return part;
  }

  bytes(): number {
    return this.table.bytes() + this.postings.bytes() + this.speakers.reduce((sum, name) => sum + 2 * name.length + 100, 0);
  }

  speakerNumber(name: string | undefined): number {
    if (name === undefined) return 0;
    const known = this.#speakerNumbers.get(name);
    if (known !== undefined || this.speakers.length >= MAX_SPEAKERS) return known ?? 0;
    const number = this.speakers.push(name);
    this.#speakerNumbers.set(name, number);
    return number;
  }

  /** After the columns were read from a snapshot. */
  recount(): void {
    this.words = 0;
    this.#spoken.fill(0);
    for (let passage = 0; passage < this.size; passage += 1) this.#count(passage, 1);
  }

  #count(passage: number, by: 1 | -1): void {
    const { words, language } = this.table.columns;
    this.words += by * (words[passage] ?? 0);
    const number = language[passage] ?? 0;
    if (number > 0) this.#spoken[number - 1] = (this.#spoken[number - 1] ?? 0) + by;
  }

  /** A name, a number or a single word counts as the language of the message before it. */
  #languageBefore(line: Line, position: number): Language | undefined {
    const before = line.passages[position - 1];
    const number = before === undefined || position === 0 ? 0 : (this.table.columns.language[before] ?? 0);
    return number === 0 ? this.#mostUsual() : LANGUAGES[number - 1];
  }

  #mostUsual(): Language | undefined {
    const most = Math.max(...this.#spoken);
    return most === 0 ? this.usual : LANGUAGES[this.#spoken.indexOf(most)];
  }

  /** (search/removal-leaves-nothing) */
  #without(gone: ReadonlySet<number>): void {
    const isKept = new Uint8Array(this.size).fill(1);
    for (const passage of gone) {
      isKept[passage] = 0;
      this.#count(passage, -1);
    }
    this.#take(this, isKept);
  }

  /** All is renumbered, which is seldom and costs about as much as reading a snapshot. */
  #take({ table, postings }: SearchIndex, isKept: Uint8Array): void {
    const numbers = new Int32Array(table.count);
    let next = 0;
    for (let passage = 0; passage < table.count; passage += 1) numbers[passage] = isKept[passage] === 1 ? next++ : -1;
    const order = new Uint32Array(next);
    for (let passage = 0; passage < table.count; passage += 1) {
      const number = numbers[passage] ?? -1;
      if (number >= 0) order[number] = passage;
    }
    const kept = new PassageTable();
    kept.take(table, order, numbers);
    this.table = kept;
    this.postings = postings.renumbered(numbers);
  }
}

/** Languages of at least a hundredth of the messages, the most usual one first. */
export function spokenLanguages({ passages, spoken }: Pick<Facts, 'passages' | 'spoken'>): Language[] {
  const least = Math.max(1, passages / 100);
  return LANGUAGES.map((language, i) => ({ language, count: spoken[i] ?? 0 }))
    .filter(({ count }) => count >= least)
    .sort((a, b) => b.count - a.count)
    .map(({ language }) => language);
}

export function sumFacts(facts: readonly Facts[]): Facts {
  return facts.reduce(
    (sum, one) => ({
      passages: sum.passages + one.passages,
      words: sum.words + one.words,
      spoken: sum.spoken.map((count, i) => count + (one.spoken[i] ?? 0)),
      first: Math.min(sum.first, one.first),
      last: Math.max(sum.last, one.last),
    }),
    { passages: 0, words: 0, spoken: LANGUAGES.map(() => 0), first: Infinity, last: -Infinity },
  );
}

/** Of a passage's text. */
export function textHash(text: string): number {
  return hashText(text, 0x51ed270b);
}
