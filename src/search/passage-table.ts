/** What is known of each passage, in columns: its place, who wrote it when, and in which window of its session. */
import { BOUNDS } from './weights.js';

export const KINDS = ['user', 'assistant', 'tool', 'notice', 'history', 'memory', 'fact', 'episode', 'item'] as const;
export type Kind = (typeof KINDS)[number];

export const ASKS = 1;
export const DATED = 2;

/** The place of a passage: which text of its line, and which part of that. */
export interface Place {
  readonly at: number;
  readonly part: number;
}

export interface Row extends Place {
  readonly start: number;
  readonly end: number;
  /** Epoch seconds. */
  readonly ts: number;
  readonly session: number;
  readonly kind: number;
  readonly flags: number;
  /** 0: none. Else its number in LANGUAGES, from 1. */
  readonly language: number;
  /** 0: none. */
  readonly speaker: number;
  readonly words: number;
  /** Of its text: the same text at the same time is one hit. */
  readonly hash: number;
}

const COLUMNS = {
  at: Uint32Array,
  part: Uint16Array,
  start: Uint32Array,
  end: Uint32Array,
  ts: Float64Array,
  session: Uint32Array,
  kind: Uint8Array,
  flags: Uint8Array,
  language: Uint8Array,
  speaker: Uint16Array,
  words: Uint16Array,
  hash: Uint32Array,
  window: Uint32Array,
} as const;
type Name = keyof typeof COLUMNS;
export type Columns = { -readonly [name in Name]: InstanceType<(typeof COLUMNS)[name]> };
export const COLUMN_NAMES = Object.keys(COLUMNS) as readonly Name[];

/** Passages that follow on each other: a life of a conversation, or a document. */
export interface Line {
  readonly name: string;
  /** Its passages by place. */
  passages: Uint32Array;
  count: number;
  /** A passage came into its middle: the windows are to be made anew. */
  isDirty: boolean;
}

export class PassageTable {
  count = 0;
  windows = 0;
  readonly lines: Line[] = [];
  readonly #byName = new Map<string, number>();
  columns: Columns;

  constructor(columns = makeColumns((_, Column) => new Column(0))) {
    this.columns = columns;
    this.count = columns.at.length;
  }

  findLine(name: string): Line | undefined {
    const number = this.#byName.get(name);
    return number === undefined ? undefined : this.lines[number];
  }

  addLine(name: string): Line {
    const known = this.findLine(name);
    if (known) return known;
    const line: Line = { name, passages: new Uint32Array(0), count: 0, isDirty: false };
    this.#byName.set(name, this.lines.push(line) - 1);
    return line;
  }

  /** Its number; undefined where there is a passage already. */
  add(line: Line, row: Row): number | undefined {
    const position = this.findPosition(line, row);
    const there = line.passages[position];
    if (position < line.count && there !== undefined && this.#compare(there, row) === 0) return undefined;
    const passage = this.count;
    this.count += 1;
    if (this.count > this.columns.at.length) this.columns = makeColumns((name) => grown(this.columns[name], this.count));
    const { columns } = this;
    columns.at[passage] = row.at;
    columns.part[passage] = row.part;
    columns.start[passage] = row.start;
    columns.end[passage] = row.end;
    columns.ts[passage] = row.ts;
    columns.session[passage] = row.session;
    columns.kind[passage] = row.kind;
    columns.flags[passage] = row.flags;
    columns.language[passage] = row.language;
    columns.speaker[passage] = row.speaker;
    columns.words[passage] = Math.min(row.words, 0xffff);
    columns.hash[passage] = row.hash;
    line.passages = grown(line.passages, line.count + 1);
    if (position < line.count) {
      line.passages.copyWithin(position + 1, position, line.count);
      line.isDirty = true;
    }
    line.passages[position] = passage;
    line.count += 1;
    if (!line.isDirty) this.#openWindow(line, position);
    return passage;
  }

  /** Of the first passage of the line that is not before that place. */
  findPosition(line: Line, place: Place): number {
    let [low, high] = [0, line.count];
    const last = line.passages[line.count - 1];
    if (last !== undefined && this.#compare(last, place) < 0) return line.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compare(line.passages[middle] ?? 0, place) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** After it each line is cut into windows as if its passages had come in their order. */
  settle(): void {
    if (!this.lines.some(({ isDirty }) => isDirty)) return;
    this.windows = 0;
    for (const line of this.lines) {
      line.isDirty = false;
      for (let position = 0; position < line.count; position += 1) this.#openWindow(line, position);
    }
  }

  /** What another table has, by `order`: the passages that stay; `numbers` has what each is called from now on, -1 for one that goes. */
  take(other: PassageTable, order: Uint32Array, numbers: Int32Array): void {
    this.count = order.length;
    this.columns = makeColumns((name, Column) => {
      const from = other.columns[name];
      const column = new Column(order.length);
      for (let passage = 0; passage < order.length; passage += 1) column[passage] = from[order[passage] ?? 0] ?? 0;
      return column;
    });
    for (const { name, passages, count } of other.lines) {
      const left = passages
        .subarray(0, count)
        .map((passage) => numbers[passage] ?? -1)
        .filter((passage) => passage !== 0xffffffff);
      if (left.length > 0) Object.assign(this.addLine(name), { passages: left, count: left.length, isDirty: true });
    }
    this.settle();
  }

  bytes(): number {
    const columns = Object.values(this.columns).reduce((sum, { byteLength }) => sum + byteLength, 0);
    return this.lines.reduce((sum, { passages, name }) => sum + passages.byteLength + 2 * name.length + 200, columns);
  }

  #compare(passage: number, { at, part }: Place): number {
    return (this.columns.at[passage] ?? 0) - at || (this.columns.part[passage] ?? 0) - part;
  }

  /** A window ends with its session, at a long silence, and when it is full. */
  #openWindow(line: Line, position: number): void {
    const { window, session, ts } = this.columns;
    const passage = line.passages[position] ?? 0;
    const before = line.passages[position - 1] ?? 0;
    const first = line.passages[position - BOUNDS.windowTurns] ?? 0;
    const goesOn =
      position > 0 &&
      session[before] === session[passage] &&
      (ts[passage] ?? 0) - (ts[before] ?? 0) < BOUNDS.windowGap &&
      !(position >= BOUNDS.windowTurns && window[first] === window[before]);
    if (!goesOn) this.windows += 1;
    window[passage] = goesOn ? (window[before] ?? 0) : this.windows - 1;
  }
}

export function makeColumns(make: (name: Name, Column: new (length: number) => Numbers) => Numbers): Columns {
  return Object.fromEntries(COLUMN_NAMES.map((name) => [name, make(name, COLUMNS[name])])) as unknown as Columns;
}

/** Typed arrays that grow: what an index of a million turns is made of. */
export type Numbers = Uint8Array | Uint16Array | Uint32Array | Int32Array | Float32Array | Float64Array;

/** The same, with room for `length`; a half more than needed, so that growing is rare. */
export function grown<T extends Numbers>(numbers: T, length: number): T {
  if (length <= numbers.length) return numbers;
  const larger = new (numbers.constructor as new (length: number) => T)(Math.max(16, Math.ceil(length * 1.5)));
  larger.set(numbers as never);
  return larger;
}

/** 32 bits of a word, by FNV-1a with a last stir; two seeds make 64. */
export function hashText(text: string, seed: number): number {
  let hash = seed ^ 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
