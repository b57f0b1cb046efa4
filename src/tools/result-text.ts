/** Whatever a tool hands back, as text that a model can read: bounded, well-formed Unicode, and never an exception. */
import type { z } from 'zod';
import { LIMITS } from '../conversation/protocol/contract.js';
import { detectBinaryType } from '../records/file-type.js';
import type { Media, MediaKind, MediaSource } from '../records/message.js';

/** UTF-8 bytes of one result, the note about a cut included. */
export const RESULT_BYTES = 256 * 1024;

const NOTE_BYTES = 200;

/** The text itself, or its beginning with a note that says how much is missing. `of`: of how many bytes the text is the beginning. */
export function boundText(text: string, maxBytes = RESULT_BYTES, of?: number): string {
  const bytes = of ?? Buffer.byteLength(text);
  // Encoding replaces lone surrogates, which providers refuse.
  if (of === undefined && bytes <= maxBytes) return Buffer.from(text).toString();
  const shown = firstBytes(text, Math.max(0, maxBytes - NOTE_BYTES));
  return `${shown}\n[cut here: the first ${Buffer.byteLength(shown)} of ${bytes} bytes are shown]`;
}

/** As many whole characters as fit; never half an emoji. */
export function firstBytes(text: string, maxBytes: number): string {
  // A UTF-16 unit is at least one byte, so the slice holds enough; encoding it makes it well-formed.
  const encoded = Buffer.from(text.slice(0, maxBytes + 1));
  if (encoded.length <= maxBytes) return encoded.toString();
  let end = maxBytes;
  while (end > 0 && ((encoded[end] ?? 0) & 0xc0) === 0x80) end--;
  return encoded.toString('utf8', 0, end);
}

/** Strings as they are, everything else as JSON with words in the places that JSON has none for. */
export function toText(value: unknown, maxBytes = RESULT_BYTES): string {
  if (typeof value === 'string') return boundText(value, maxBytes);
  if (value === undefined) return '(the tool returned nothing)';
  try {
    return boundText(write(value, maxBytes), maxBytes);
  } catch (error) {
    // A getter, a proxy or a toJSON of the value threw.
    return `(a result that cannot be shown: ${firstBytes(String(error instanceof Error ? error.message : 'no reason given'), 1000)})`;
  }
}

/** The message of whatever was thrown, with the cause where there is one. */
export function errorText(thrown: unknown): string {
  if (!(thrown instanceof Error)) return thrown === undefined ? 'the tool failed without saying why' : toText(thrown);
  try {
    const message = thrown.message || thrown.name;
    const cause = thrown.cause instanceof Error && thrown.cause.message ? ` (cause: ${thrown.cause.message})` : '';
    return boundText(`${message}${cause}`);
  } catch {
    return 'the tool failed with an error that cannot be read';
  }
}

/**
 * JSON.stringify that stops when the room is used up. It does not go on to count what is left out: a small value whose
 * parts are shared (`b = [a, a]`, `c = [b, b]`, …) can stand for more text than any machine has time for.
 */
function write(root: unknown, room: number): string {
  const pieces: string[] = [];
  const above = new Set<object>();
  let left = room;

  const put = (piece: string): void => {
    pieces.push(piece);
    left -= piece.length;
  };

  const list = (open: string, parts: Iterable<() => void>, close: string): void => {
    put(open);
    let first = true;
    for (const part of parts) {
      if (left <= 0) return;
      if (!first) put(',');
      first = false;
      part();
    }
    put(close);
  };

  const visit = (value: unknown): void => {
    if (left <= 0) return;
    if (typeof value === 'string') return put(JSON.stringify(value.length > left ? value.slice(0, left) : value));
    if (typeof value !== 'object' || value === null) return put(plainWord(value));
    const binary = binaryBytes(value);
    if (binary !== undefined) return put(JSON.stringify(`[binary, ${binary} bytes]`));
    if (above.has(value)) return put('"[circular]"');
    if (above.size >= LIMITS.depth) return put('"[deeper levels left out]"');
    above.add(value);
    visitObject(value);
    above.delete(value);
  };

  const visitObject = (value: object): void => {
    if (value instanceof Error) return put(JSON.stringify(`${value.name}: ${value.message}`));
    if ('toJSON' in value && typeof value.toJSON === 'function') return visit(value.toJSON());
    if (Array.isArray(value) || value instanceof Set || value instanceof Map) {
      return list('[', parts(value), ']');
    }
    return list('{', fields(value), '}');
  };

  function* parts(values: Iterable<unknown>): Iterable<() => void> {
    for (const value of values) yield () => visit(value);
  }

  function* fields(value: object): Iterable<() => void> {
    for (const key of Object.keys(value)) {
      const field: unknown = (value as Record<string, unknown>)[key];
      // As JSON does: an absent field is not written.
      if (field === undefined) continue;
      yield () => {
        put(`${JSON.stringify(key)}:`);
        visit(field);
      };
    }
  }

  visit(root);
  const text = pieces.join('');
  return left > 0 ? text : `${firstBytes(text, Math.max(0, room - NOTE_BYTES))}\n[cut here: the result is longer than ${room} bytes]`;
}

function plainWord(value: unknown): string {
  switch (typeof value) {
    case 'bigint':
      return value.toString();
    case 'undefined':
    case 'function':
    case 'symbol':
      return `"[${typeof value}]"`;
    default:
      return String(value);
  }
}

function binaryBytes(value: object): number | undefined {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) return value.byteLength;
  return value instanceof Blob ? value.size : undefined;
}

// What a schema found wrong, one line per finding, `path: reason`: for a model to correct itself, or a person their file.

const MAX_LINES = 12;
const LINE_BYTES = 300;

export function listIssues(issues: readonly z.core.$ZodIssue[]): string[] {
  const lines = issues.flatMap(issueLines);
  const shown = lines.slice(0, MAX_LINES).map((line) => firstBytes(line, LINE_BYTES));
  return lines.length > MAX_LINES ? [...shown, `and ${lines.length - MAX_LINES} more`] : shown;
}

function issueLines(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => `${shownPath([...issue.path, key])}: no such field`);
  if (issue.code === 'invalid_union' && issue.errors.length > 0) {
    const ways = issue.errors.map((branch) => branch.map((inner) => inner.message).join(' and '));
    return [`${shownPath(issue.path)}: fits none of: ${ways.join('; or ')}`];
  }
  return [`${shownPath(issue.path)}: ${issue.message}`];
}

/** `limits.maxToolRounds`, `tools[2]`; the whole value where the path is empty. */
function shownPath(path: readonly PropertyKey[]): string {
  if (path.length === 0) return '(the whole)';
  return path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '');
}

// Pictures, sound and documents in a result: checked, since what a provider refuses would cost a call of the model.

/** Characters of base64 of one file, and of all of one result. */
const MAX_FILE = 10 * 1024 * 1024;
const MAX_TOGETHER = 14 * 1024 * 1024;
const TOO_MANY = `a result may have ${LIMITS.mediaPerMessage} files`;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
/** Enough to tell the type by, whatever stands behind it. */
const START = 16;

export interface MediaReader {
  /** Why it is left out, in words; undefined: it is among `media`. Its bytes decide what a picture or a document is. */
  add(base64: string, mediaType: string): string | undefined;
  addAddress(kind: MediaKind, source: Extract<MediaSource, { url: string }>): string | undefined;
  media(): Media;
}

export function createMediaReader(): MediaReader {
  const media: Partial<Record<MediaKind, MediaSource[]>> = {};
  let [count, together] = [0, 0];
  return {
    add(base64, mediaType) {
      if (count >= LIMITS.mediaPerMessage) return TOO_MANY;
      if (base64.length > MAX_FILE || together + base64.length > MAX_TOGETHER) return 'it is too large';
      if (!BASE64.test(base64)) return 'it is no base64';
      const found = detectBinaryType(Buffer.from(base64.slice(0, START), 'base64'));
      const kind = found === undefined ? kindOfSound(mediaType) : found.startsWith('image/') ? 'images' : 'documents';
      if (kind === undefined) return 'it is no PNG, JPEG, GIF or WebP picture, sound or PDF';
      count += 1;
      together += base64.length;
      (media[kind] ??= []).push({ mediaType: found ?? mediaType, base64 });
      return undefined;
    },
    addAddress(kind, source) {
      if (count >= LIMITS.mediaPerMessage) return TOO_MANY;
      count += 1;
      (media[kind] ??= []).push(source);
      return undefined;
    },
    media: () => media,
  };
}

/** Sound has too many forms to tell by its bytes. */
function kindOfSound(mediaType: string): MediaKind | undefined {
  return /^audio\/[a-z0-9.+-]{1,60}$/.test(mediaType) ? 'audio' : undefined;
}
