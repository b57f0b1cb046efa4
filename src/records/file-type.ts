/** What the bytes of a file are, by themselves: not by what its name or its sender says. */
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
export const TAKEN_FILES = 'PNG, JPEG, GIF or WebP picture, PDF, or text in UTF-8';

/** So many bytes tell; of a shorter file all that there are. */
export const START_BYTES = 12;

/** A picture or a PDF, by how it begins. */
export function detectBinaryType(bytes: Uint8Array): string | undefined {
  return STARTS.find(([, at, start]) => start.every((byte, i) => bytes[at + i] === byte))?.[0];
}

/** Takes the parts of a file one after the other. Each says whether all so far may be text; the last call, without a part, whether it is. */
export function createTextCheck(): (part?: Uint8Array) => boolean {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  return (part) => {
    if (part?.some(isControl) === true) return false;
    try {
      decoder.decode(part, { stream: part !== undefined });
      return true;
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
function isControl(byte: number): boolean {
  return byte < 0x09 || (byte > 0x0d && byte < 0x20);
}

/** A text file stands in the text of its message: models read it there, and searches, memory and estimates see what it is. */
export function withTextFile(text: string, { name, bytes }: { readonly name?: string | undefined; readonly bytes: Uint8Array }): string {
  const called = name === undefined ? '' : ` ${JSON.stringify(name.slice(0, MAX_NAME))}`;
  return `${text}${FILE_MARK}${called}]\n${new TextDecoder().decode(bytes)}`;
}

const MAX_NAME = 200;

/** The text beside such files. */
export function withoutTextFiles(text: string): string {
  const at = text.indexOf(FILE_MARK);
  return at < 0 ? text : text.slice(0, at);
}
