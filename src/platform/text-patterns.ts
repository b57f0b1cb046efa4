/**
 * Many literal patterns looked for in a text at once, in time that grows with the text and hardly with their number; also in another reading
 * of it, such as one without escapes.
 */

export interface Pattern {
  readonly whole: string;
  /** So many characters of its beginning are enough: it is then found as far as the text goes on as it does. */
  readonly enough: number;
}

export interface Patterns {
  /** Characters; Infinity and 0 where there is none. */
  readonly shortest: number;
  readonly longest: number;
  /** Every place of every pattern; they may overlap. */
  find(text: string, found: (from: number, to: number) => void): void;
  /** From where the end of the text is the beginning of a pattern; its length where it is of none. */
  begun(text: string): number;
}

/**
 * Wu's and Manber's way ("A fast algorithm for multi-pattern searching", 1994): a window of the shortest pattern's length moves over the
 * text, and its last two characters say how far, which is most often nearly its length.
 */
export function createPatterns(given: readonly Pattern[]): Patterns {
  const patterns = [...new Map(given.map((pattern) => [pattern.whole, pattern])).values()].map(({ whole, enough }) => ({
    whole,
    start: whole.slice(0, enough),
  }));
  const shortest = Math.min(...patterns.map(({ start }) => start.length));
  const longest = Math.max(0, ...patterns.map(({ whole }) => whole.length));
  const steps = new Uint8Array(1 << 16).fill(Math.min(255, shortest - 1));
  const ending = new Map<number, (typeof patterns)[number][]>();
  const beginning = new Map<number, string[]>();
  for (const pattern of patterns) {
    const { whole } = pattern;
    for (let at = 0; at <= shortest - 2; at++) {
      const pair = pairAt(whole, at);
      steps[pair] = Math.min(steps[pair] ?? 0, shortest - 2 - at);
    }
    const last = pairAt(whole, shortest - 2);
    ending.set(last, [...(ending.get(last) ?? []), pattern]);
    const first = whole.charCodeAt(0);
    beginning.set(first, [...(beginning.get(first) ?? []), whole]);
  }
  return {
    shortest,
    longest,
    find(text, found) {
      let at = shortest - 2;
      while (at < text.length - 1) {
        const pair = pairAt(text, at);
        const step = steps[pair] ?? 0;
        if (step === 0) {
          const from = at - shortest + 2;
          for (const { whole, start } of ending.get(pair) ?? []) {
            if (text.startsWith(start, from)) found(from, from + sharedLength(text, from, whole));
          }
        }
        at += step || 1;
      }
    },
    begun(text) {
      for (let from = Math.max(0, text.length - longest + 1); from < text.length; from++) {
        const candidates = beginning.get(text.charCodeAt(from));
        if (candidates === undefined) continue;
        const rest = text.slice(from);
        if (candidates.some((whole) => whole.length > rest.length && whole.startsWith(rest))) return from;
      }
      return text.length;
    },
  };
}

function pairAt(text: string, at: number): number {
  return ((text.charCodeAt(at) << 8) ^ text.charCodeAt(at + 1)) & 0xffff;
}

function sharedLength(text: string, from: number, whole: string): number {
  let length = 0;
  while (length < whole.length && text.charCodeAt(from + length) === whole.charCodeAt(length)) length++;
  return length;
}

/** A text as it reads where parts of it stand for others; what is found there is told by its place in the text itself. */
export interface Reading {
  find(patterns: Patterns, found: (from: number, to: number) => void): void;
  begun(patterns: Patterns): number;
}

interface Piece {
  /** Where it is in the reading, how long it is there, and where it came from. */
  readonly at: number;
  readonly length: number;
  readonly from: number;
  readonly to: number;
  /** Each of its characters stands for as many of the text. */
  readonly isEven: boolean;
}

/** `read`: what a part stands for, which is shorter. Undefined where the text has no such part. */
export function readThrough(text: string, parts: RegExp, read: (part: string) => string): Reading | undefined {
  const whole = text.replace(parts, read);
  if (whole.length === text.length) return undefined;
  // Where each piece came from matters only when something is found.
  let pieces: readonly Piece[] | undefined;
  const place = (at: number, side: 'from' | 'to'): number => {
    pieces ??= listPieces(text, parts, read);
    const piece = findPiece(pieces, side === 'from' ? at : at - 1);
    if (piece === undefined) return text.length;
    return piece.isEven ? piece.from + ((at - piece.at) * (piece.to - piece.from)) / piece.length : piece[side];
  };
  return {
    find: (patterns, found) => patterns.find(whole, (from, to) => found(place(from, 'from'), place(to, 'to'))),
    begun(patterns) {
      const at = patterns.begun(whole);
      return at < whole.length ? place(at, 'from') : text.length;
    },
  };
}

function listPieces(text: string, parts: RegExp, read: (part: string) => string): Piece[] {
  const pieces: Piece[] = [];
  let [at, last] = [0, 0];
  const push = (length: number, from: number, to: number, isEven: boolean): void => {
    if (length === 0) return;
    pieces.push({ at, length, from, to, isEven });
    at += length;
  };
  for (const { 0: part, index } of text.matchAll(parts)) {
    push(index - last, last, index, true);
    last = index + part.length;
    const { length } = read(part);
    // `%41%42`, `\u0041\u0042`: a run of one kind. Other characters than ASCII take two to four bytes of UTF-8.
    push(length, index, last, part.length === 3 * length || part.startsWith('\\'));
  }
  push(text.length - last, last, text.length, true);
  return pieces;
}

/** The one that has the character at this place of the reading. */
function findPiece(pieces: readonly Piece[], at: number): Piece | undefined {
  let [low, high] = [0, pieces.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((pieces[middle]?.at ?? 0) <= at) low = middle;
    else high = middle - 1;
  }
  return pieces[low];
}
