import { createHash } from 'node:crypto';

/** The version of a MEMORY.md that is empty, or not there. */
export const NO_MEMORY_VERSION = 'empty';

/** Names the bytes of a MEMORY.md. */
export function memoryVersion(text: string): string {
  return text === '' ? NO_MEMORY_VERSION : createHash('sha256').update(text).digest('hex').slice(0, 16);
}
