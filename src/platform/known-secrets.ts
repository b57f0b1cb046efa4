/**
 * Secrets that are known by their values, found and taken out wherever they are: literally, and in the spellings that they travel in (URL,
 * JSON, base64 and base64url at any place of a longer text, hex; whole, or broken into lines, or with separators between bytes). Cut off
 * behind its first half, one is still found. One that is reversed, split by other words, compressed, encrypted or spelled in two of these
 * ways at once is not.
 */

export const REDACTED = '[redacted]';

/** Shorter ones would take whole words out of every line. */
const SHORTEST = 4;
/** Shorter ones are in other words by chance: they are neither looked for in other alphabets nor held against what leaves. */
const MIN_SURE = 8;
/** `postgres`, `development`, 20261127: a password that a conversation says every day, and means something else. */
const WORD = /^(?:[a-z]{1,15}|[A-Z]{1,15}|\d{1,15})$/;
/** Of a long one, so much of its beginning is not there by chance. */
const MIN_HALF = 12;
/** Of one that is looked for across the ends of lines. */
const MIN_BROKEN = 16;

export interface KnownSecrets {
  /** Values that nothing shows from now on. */
  add(secrets: readonly string[]): void;
  /** Without them: a line for people, such as one of the log. */
  text(text: string): string;
  /** Without those that stand in no text by chance (8 characters or more, and more than one word): what conversations keep. */
  redact(text: string): string;
  /** That, in every text of plain data, the names of fields too. What has none is the same value. */
  redactIn<T>(value: T): T;
  /** That, in a text which comes in pieces. */
  follow(): FollowedText;
  /** Whether one of some length is in it, or stood there before it was taken out. */
  isIn(text: string): boolean;
}

/** What may be the beginning of a secret waits for what comes next. */
export interface FollowedText {
  /** What can be shown, now that this has come. */
  push(piece: string): string;
  /** What is left, once nothing more comes. */
  end(): string;
}

export function createKnownSecrets(secrets: readonly string[] = []): KnownSecrets {
  const known = new Set<string>();
  let made: Finder | undefined;
  const finder = (): Finder => (made ??= createFinder([...known].filter(isSure)));
  // Longest first: one may be the beginning of another.
  let words: readonly string[] = [];
  const add = (more: readonly string[]): void => {
    const before = known.size;
    for (const secret of more) if (secret.length >= SHORTEST) known.add(secret);
    if (known.size === before) return;
    made = undefined;
    words = [...known].filter((secret) => !isSure(secret)).sort((a, b) => b.length - a.length);
  };
  add(secrets);
  const redact = (text: string): string => withoutSpans(text, finder().spans(text));
  const redactIn = (value: unknown): unknown => {
    if (typeof value === 'string') return redact(value);
    if (Array.isArray(value)) {
      const all = value.map(redactIn);
      return all.every((one, i) => one === value[i]) ? value : all;
    }
    if (!isPlain(value)) return value;
    const entries = Object.entries(value).map(([name, field]) => [redact(name), redactIn(field)] as const);
    return entries.every(([name, field]) => Object.hasOwn(value, name) && value[name] === field) ? value : Object.fromEntries(entries);
  };
  return {
    add,
    redact,
    text: (text) => words.flatMap(plainSpellings).reduce((rest, word) => rest.replaceAll(word, REDACTED), redact(text)),
    // What is plain data stays of its type: texts become texts.
    redactIn: <T>(value: T): T => redactIn(value) as T,
    follow() {
      let held = '';
      return {
        push(piece) {
          const text = held + piece;
          const spans = finder().spans(text);
          const begun = finder().begun(text);
          const cut = spans.find(({ from, to }) => from < begun && to > begun)?.from ?? begun;
          held = text.slice(cut);
          return withoutSpans(
            text.slice(0, cut),
            spans.filter(({ to }) => to <= cut),
          );
        },
        end() {
          const rest = redact(held);
          held = '';
          return rest;
        },
      };
    },
    isIn(text) {
      if (text.includes(REDACTED) || finder().spans(text).length > 0) return true;
      const read = [text, withoutEscapes(text)];
      return words.some((word) => word.length >= MIN_SURE && read.some((one) => one.includes(word)));
    },
  };
}

function isSure(secret: string): boolean {
  return secret.length >= MIN_SURE && !WORD.test(secret);
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

interface Span {
  readonly from: number;
  readonly to: number;
}

function withoutSpans(text: string, spans: readonly Span[]): string {
  if (spans.length === 0) return text;
  const between = spans.map(({ from }, i) => text.slice(spans[i - 1]?.to ?? 0, from));
  return [...between, text.slice(spans.at(-1)?.to)].join(REDACTED);
}

interface Finder {
  /** In their order, none of them in another. */
  spans(text: string): readonly Span[];
  /** From where its end may be the beginning of a secret; its length where it is none. */
  begun(text: string): number;
}

/** Runs of one kind each. */
const ESCAPES = /(?:%[0-9a-f]{2})+|(?:\\u[0-9a-f]{4})+|(?:\\x[0-9a-f]{2})+|(?:\\["\\/bfnrt])+/gi;
/** Ends of lines, as they are or as JSON writes them, and what is invisible. */
const BREAKS = /(?:\r?\n|(?:\\r)?\\n)[ \t]*|[\u00ad\u200b-\u200f\u2060\ufeff]+/g;
/** Bytes in hex, with what stands between them in dumps and in sources. */
const HEX_BYTES = /(?:[0-9a-f]{2}(?:[\s:,;%-]|0x|\\+x|\\+u00){0,8}){8,}/gi;
const SEPARATORS = /(?:[\s:,;%-]|0x|\\+x|\\+u00)+/gi;
/** What may go on as one of the above. */
const UNFINISHED = /(?:(?:%[89a-f][0-9a-f]){0,8}%[0-9a-f]?|(?:%[89a-f][0-9a-f]){1,8}|\\+(?:u[0-9a-f]{0,3}|x[0-9a-f]?|r\\?)?|0|\r)$/i;
/** Characters that one of a secret may take: `\u0073`, and more between two of them. */
const REACH = 8;

function createFinder(secrets: readonly string[]): Finder {
  const plain = createPatterns(secrets.flatMap((secret) => withEnough(secret, [...plainSpellings(secret), ...inBase64(secret)])));
  const long = secrets.filter((secret) => secret.length >= MIN_BROKEN).map((secret) => secret.replace(BREAKS, ''));
  const broken = createPatterns(secrets.flatMap((secret) => withEnough(secret, [...long, ...inBase64(secret)])));
  const hex = createPatterns(secrets.flatMap((secret) => withEnough(secret, inHex(secret))));
  const longest = Math.max(plain.longest, hex.longest);
  const views: readonly (readonly [Patterns, RegExp, (part: string) => string])[] = [
    [plain, ESCAPES, readEscape],
    [broken, BREAKS, () => ''],
    [hex, SEPARATORS, () => ''],
  ];
  return {
    spans(text) {
      if (text.length < Math.min(plain.shortest, hex.shortest)) return [];
      const found: Span[] = [];
      const note = (from: number, to: number): void => void found.push({ from, to });
      plain.find(text, note);
      if (/[%\\]/.test(text)) readThrough(text, ESCAPES, readEscape)?.find(plain, note);
      readThrough(text, BREAKS, () => '')?.find(broken, note);
      for (const { 0: bytes, index } of text.matchAll(HEX_BYTES)) {
        const noteHere = (from: number, to: number): void => note(index + from, index + to);
        hex.find(bytes, noteHere);
        readThrough(bytes, SEPARATORS, () => '')?.find(hex, noteHere);
      }
      return merged(found);
    },
    begun(text) {
      const start = Math.max(0, text.length - REACH * longest);
      const tail = text.slice(start);
      const open = UNFINISHED.exec(tail.slice(-64));
      // Whether it goes on or not.
      const ends = open ? [tail, tail.slice(0, -open[0].length)] : [tail];
      const begun = ends.flatMap((end) => [
        ...[end.length, plain.begun(end), hex.begun(end)],
        ...views.map(([patterns, parts, read]) => readThrough(end, parts, read)?.begun(patterns) ?? end.length),
      ]);
      return start + Math.min(...begun);
    },
  };
}

/** Where one begins in another or at its end, both are one. */
function merged(spans: readonly Span[]): readonly Span[] {
  const out: Span[] = [];
  for (const span of [...spans].sort((a, b) => a.from - b.from)) {
    const last = out.at(-1);
    if (last === undefined || span.from >= last.to) out.push(span);
    else if (span.to > last.to) out[out.length - 1] = { from: last.from, to: span.to };
  }
  return out;
}

/** An address begins as others do: it is one only as a whole. */
function withEnough(secret: string, spellings: readonly string[]): Pattern[] {
  const isAddress = /^[a-z][a-z0-9+.-]*:\/\//i.test(secret);
  return spellings.map((whole) => ({ whole, enough: isAddress ? whole.length : Math.max(MIN_HALF, Math.ceil(whole.length / 2)) }));
}

function plainSpellings(secret: string): string[] {
  const inUrl = encodeURIComponent(secret.toWellFormed());
  return [...new Set([secret, inUrl, lowerEscapes(inUrl), inUrl.replaceAll('%20', '+'), JSON.stringify(secret).slice(1, -1)])];
}

function inHex(secret: string): string[] {
  const hex = Buffer.from(secret).toString('hex');
  return [hex, hex.toUpperCase()];
}

/** Its base64 in any text around it: of three bytes each, the secret begins at the first, second or third. */
function inBase64(secret: string): string[] {
  return [0, 2, 3].flatMap((head, before) => {
    const all = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)]);
    // The last sign may depend on what follows.
    const end = Math.floor((all.length * 4) / 3);
    const standard = all.toString('base64').slice(head, end);
    return [standard, standard.replaceAll('+', '-').replaceAll('/', '_')];
  });
}

function readEscape(escape: string): string {
  if (escape.startsWith('%')) return Buffer.from(escape.replaceAll('%', ''), 'hex').toString();
  if (!/^\\[ux]/i.test(escape)) return JSON.parse(`"${escape.toLowerCase()}"`) as string;
  return escape.replace(/\\[ux]([0-9a-f]+)/gi, (_, code: string) => String.fromCharCode(parseInt(code, 16)));
}

function lowerEscapes(text: string): string {
  return text.replace(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase());
}

/** Where a part of the letters is written as escapes. A run of them at once: one by one, a megabyte takes most of a second. */
export function withoutEscapes(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString('latin1'));
}

/** Settings of programs are known by name alone: which of their values is a secret. */
export function isSecretSetting(name: string, value: string): boolean {
  if (value.length < MIN_SURE || /^([~./]|[A-Za-z]:\\)/.test(value)) return false;
  return /(^|[_-])(key|apikey|token|secret|password|passwd|pass|pat|credentials?|auth|authorization|cookie|dsn)(s?$|[_-])/i.test(
    name.trim(),
  );
}

// Many literal patterns looked for in a text at once, in time that grows with the text and hardly with their number; also in another
// reading of it, such as one without escapes.

interface Pattern {
  readonly whole: string;
  /** So many characters of its beginning are enough: it is then found as far as the text goes on as it does. */
  readonly enough: number;
}

interface Patterns {
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
function createPatterns(given: readonly Pattern[]): Patterns {
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
interface Reading {
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
function readThrough(text: string, parts: RegExp, read: (part: string) => string): Reading | undefined {
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
