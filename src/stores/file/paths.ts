/** The folders of a conversation's files: `<dir>/agents/<scope>/conversations/<conversation>/<life>/`. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { ConversationKey, ScopeKey, UploadOwner } from '../store.js';

const MAX_LENGTH = 160;
const PLAIN = /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/;

export function scopeDir(dir: string, { scope }: ScopeKey): string {
  return join(dir, 'agents', toFileName(scope));
}

export function conversationsDir(dir: string, { scope }: Pick<ScopeKey, 'scope'>): string {
  return join(dir, 'agents', toFileName(scope), 'conversations');
}

export function conversationDir(dir: string, key: ConversationKey): string {
  return join(conversationsDir(dir, key), toFileName(key.conversation), toFileName(key.life));
}

/** Who may not write to a scope any more (stores/erased-stays-empty). */
export function erasedFile(dir: string, { scope }: ScopeKey): string {
  return join(dir, 'erased', `${toFileName(scope)}.log`);
}

export function uploadsDir(dir: string, { namespace, tenant }: UploadOwner): string {
  return join(dir, 'uploads', toFileName(namespace), toFileName(tenant));
}

/**
 * Any id as one file name, two ids never as the same: what is not plain becomes %XX per UTF-8 byte. A name that would be too
 * long for a file system ends in its hash; no other has a `~`.
 */
export function toFileName(id: string): string {
  if (id.length <= MAX_LENGTH && PLAIN.test(id)) return id;
  const name = Array.from(Buffer.from(id), toPlain).join('').replace(/^\./, '%2E');
  if (name.length === 0) return '%';
  if (name.length <= MAX_LENGTH) return name;
  return `${name.slice(0, MAX_LENGTH - 65)}~${createHash('sha256').update(id).digest('hex')}`;
}

/** The id that a file name was made from; undefined where it is too long to be in it. */
export function fromFileName(name: string): string | undefined {
  try {
    return name.includes('~') ? undefined : decodeURIComponent(name);
  } catch {
    // Another program's.
    return undefined;
  }
}

function toPlain(byte: number): string {
  const character = String.fromCharCode(byte);
  return /[A-Za-z0-9._-]/.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}
