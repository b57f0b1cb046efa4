/**
 * What the bytes of a file are, by themselves: not by what its name or its sender says. And the text in them, the same everywhere: what
 * people and servers bring begins with a mark, or is UTF-16, as Windows' Notepad and `>` of its PowerShell write it.
 */
import { FILE_MARK } from './message-parts.js';

const STARTS: readonly (readonly [type: string, at: number, bytes: readonly number[]])[] = [
  ['image/png', 0, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]],
  ['image/jpeg', 0, [0xff, 0xd8, 0xff]],
  ['image/gif', 0, [0x47, 0x49, 0x46, 0x38]],
  ['image/webp', 8, [0x57, 0x45, 0x42, 0x50]],
  ['application/pdf', 0, [0x25, 0x50, 0x44, 0x46, 0x2d]],
];

export const TEXT_TYPE = 'text/plain';
/** What is taken, in words. */
export const TAKEN_FILES = 'PNG, JPEG, GIF or WebP picture, PDF, or text in UTF-8 or UTF-16';

/** So many bytes tell; of a shorter file all that there are. */
export const START_BYTES = 12;

/** A picture or a PDF, by how it begins. */
export function detectBinaryType(bytes: Uint8Array): string | undefined {
  return STARTS.find(([, at, start]) => start.every((byte, i) => bytes[at + i] === byte))?.[0];
}

/** Takes the parts of a file one after the other. Each says whether all so far may be text; the last call, without a part, whether it is. */
export function createTextCheck(): (part?: Uint8Array) => boolean {
  let decoder: InstanceType<typeof TextDecoder> | undefined;
  return (part) => {
    // UTF-8 without its first bytes is none: the first part has the whole mark.
    decoder ??= new TextDecoder(detectForm(part ?? new Uint8Array()).encoding, { fatal: true });
    try {
      return !CONTROL.test(decoder.decode(part, { stream: part !== undefined }));
    } catch {
      return false;
    }
  };
}

/** Of a whole file. */
export function detectFileType(bytes: Uint8Array): string | undefined {
  const binary = detectBinaryType(bytes);
  if (binary !== undefined) return binary;
  const check = createTextCheck();
  return bytes.byteLength > 0 && check(bytes) && check() ? TEXT_TYPE : undefined;
}

/** Tab to carriage return are in texts; the others are in what only begins as one. */
const CONTROL = /[\u0000-\u0008\u000e-\u001f]/;

// Bytes to text and back.

/** How a text is in its bytes: what stays when it is written back. */
export interface TextForm {
  readonly encoding: 'utf-8' | 'utf-16le' | 'utf-16be';
  /** Whether a byte order mark stands before it. */
  readonly hasMark: boolean;
}

/** By the mark alone: UTF-16 without one is not told from other binary files. */
export function detectForm(start: Uint8Array): TextForm {
  const [a, b, c] = start;
  if (a === 0xff && b === 0xfe) return { encoding: 'utf-16le', hasMark: true };
  if (a === 0xfe && b === 0xff) return { encoding: 'utf-16be', hasMark: true };
  return { encoding: 'utf-8', hasMark: a === 0xef && b === 0xbb && c === 0xbf };
}

/** Without its mark. Bytes that are no text become U+FFFD: for what is read only, and never written back. */
export function decodeText(bytes: Uint8Array): string {
  return new TextDecoder(detectForm(bytes).encoding).decode(bytes);
}

/** Undefined where it could not be written back byte for byte. */
export function decodeExactly(bytes: Uint8Array): { readonly text: string; readonly form: TextForm } | undefined {
  const form = detectForm(bytes);
  try {
    return { text: new TextDecoder(form.encoding, { fatal: true }).decode(bytes), form };
  } catch {
    return undefined;
  }
}

/** The other way round. */
export function encodeText(text: string, { encoding, hasMark }: TextForm): Uint8Array {
  const whole = hasMark ? `\ufeff${text}` : text;
  if (encoding === 'utf-8') return new TextEncoder().encode(whole);
  const view = new DataView(new ArrayBuffer(whole.length * 2));
  for (let at = 0; at < whole.length; at++) view.setUint16(at * 2, whole.charCodeAt(at), encoding === 'utf-16le');
  return new Uint8Array(view.buffer);
}

/** Of a text that was decoded elsewhere. */
export function withoutMark(text: string): string {
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

/** Whether these bytes, the first of a file or all of it, are in no text file: such have no NUL. */
export function isBinary(start: Uint8Array): boolean {
  return detectForm(start).encoding === 'utf-8' ? start.includes(0) : decodeText(start).includes('\0');
}

/** For people; nothing to say of UTF-8 without a mark. */
export function describeForm({ encoding, hasMark }: TextForm): string | undefined {
  if (encoding === 'utf-8') return hasMark ? 'UTF-8 with a byte order mark' : undefined;
  return `UTF-16 (${encoding === 'utf-16le' ? 'little' : 'big'} endian)`;
}

/** A text file stands in the text of its message: models read it there, and searches, memory and estimates see what it is. */
export function withTextFile(text: string, { name, bytes }: { readonly name?: string | undefined; readonly bytes: Uint8Array }): string {
  const called = name === undefined ? '' : ` ${JSON.stringify(name.slice(0, MAX_NAME))}`;
  return `${text}${FILE_MARK}${called}]\n${decodeText(bytes)}`;
}

const MAX_NAME = 200;

/** The text beside such files. */
export function withoutTextFiles(text: string): string {
  const at = text.indexOf(FILE_MARK);
  return at < 0 ? text : text.slice(0, at);
}
