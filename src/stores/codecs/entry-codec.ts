/**
 * Entries as text, the same in every store. An unreadable one is undefined, never an exception (stores/foreign-is-skipped), and counts as
 * an empty slot: writing the entry again heals it.
 */
import type { Entry } from '../../records/message.js';
import { z } from 'zod';
import type { ToolPin } from '../store.js';

const ROLES: readonly unknown[] = ['user', 'assistant', 'tool'];

export function encodeEntry(entry: Entry): string {
  return JSON.stringify(entry);
}

export function decodeEntry(text: string | null | undefined): Entry | undefined {
  const value = decodeJson(text);
  return isEntry(value) ? value : undefined;
}

/** Looks as deep as stores and traces rely on; the inside of a message is its writer's. */
export function isEntry(value: unknown): value is Entry {
  if (typeof value !== 'object' || value === null) return false;
  const entry = value as { readonly [field in keyof Entry]?: unknown };
  const message = entry.message as { readonly role?: unknown } | null | undefined;
  return (
    entry.v === 1 &&
    Number.isSafeInteger(entry.slot) &&
    typeof entry.turn === 'string' &&
    typeof entry.seq === 'number' &&
    typeof message === 'object' &&
    message !== null &&
    ROLES.includes(message.role)
  );
}

/** JSON or undefined; JSON itself cannot say undefined, so the two never mix. */
export function decodeJson(text: string | null | undefined): unknown {
  if (text === null || text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A pin as it is kept. An unreadable pin counts as none (stores/foreign-is-skipped). */
export const pinSchema = z.object({ server: z.string(), tool: z.string(), hash: z.string(), text: z.string() });

/** Names one tool of one server, whatever characters they have. */
export function pinField({ server, tool }: Pick<ToolPin, 'server' | 'tool'>): string {
  return JSON.stringify([server, tool]);
}
