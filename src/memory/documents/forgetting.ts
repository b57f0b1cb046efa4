/** That something stays forgotten (design section 4), without storing a word of it: a tombstone has salted hashes alone. */
import { createHash } from 'node:crypto';
import { type Tombstone, foldedLine, splitLines } from '../../records/memory/documents.js';
import type { Task } from '../../records/episodes.js';
import type { ScopeKey, Store } from '../../stores/store.js';
import { allWords, significantWords, evidenceWords } from './significant-words.js';

/** Of a tombstone's words: worded a little differently, it is still the same thing. */
const FORGOTTEN_SHARE = 0.8;
/** 64 bits in hexadecimal: enough that no two words meet by chance. */
const HASH_CHARACTERS = 16;

export const FORGOTTEN_MARK = '[forgotten]';

/** One per line or fact. Its words are sorted, so that nothing reveals their order; without any it forgets nothing. */
export function toTombstone(
  text: string,
  { id, ts, salt }: { readonly id: string; readonly ts: number; readonly salt: string },
): Tombstone {
  return { id, ts, words: [...hashWords(foldedLine(text), salt)].sort() };
}

/** Of what a person wants forgotten. The same words are the same tombstone; `at` is epoch milliseconds. */
export function tombstoneFor({ scope, text, at }: { readonly scope: string; readonly text: string; readonly at: number }): Tombstone {
  const id = `forget_${createHash('sha256').update(`${scope}\0${text}`).digest('hex').slice(0, HASH_CHARACTERS)}`;
  return toTombstone(text, { id, ts: at / 1000, salt: scope });
}

export function isForgotten(line: string, tombstones: readonly Tombstone[], salt: string): boolean {
  if (tombstones.length === 0) return false;
  const hashes = new Set([...evidenceWords(line)].map((word) => hashWord(word, salt)));
  return tombstones.some(({ words }) => {
    const shared = words.filter((word) => hashes.has(word)).length;
    return words.length > 0 && shared >= FORGOTTEN_SHARE * words.length;
  });
}

export function withoutForgotten(text: string, tombstones: readonly Tombstone[], salt: string): string {
  if (tombstones.length === 0) return text;
  const lines = splitLines(text);
  const kept = lines.filter((line) => !isForgotten(line, tombstones, salt));
  return kept.length === lines.length ? text : kept.join('\n');
}

/** For text of which each line must stay a line, such as a message. */
export function redactor(tombstones: readonly Tombstone[], salt: string): (text: string) => string {
  return (text) => {
    if (tombstones.length === 0) return text;
    const lines = splitLines(text);
    const shown = lines.map((line) => (isForgotten(line, tombstones, salt) ? FORGOTTEN_MARK : line));
    return shown.every((line, at) => line === lines[at]) ? text : shown.join('\n');
  };
}

export function redactTask(task: Task, redact: (text: string) => string): Task {
  return { ...task, goal: redact(task.goal), openTasks: task.openTasks.map((open) => redact(open)) };
}

function hashWords(text: string, salt: string): Set<string> {
  return new Set([...allWords(significantWords(text))].map((word) => hashWord(word, salt)));
}

function hashWord(word: string, salt: string): string {
  return createHash('sha256').update(`${salt}\0${word}`).digest('hex').slice(0, HASH_CHARACTERS);
}

/** What was forgotten stays forgotten, also where an older copy of the memory was put back. */
export async function forgetAgain({ documents, facts }: Pick<Store, 'documents' | 'facts'>, key: ScopeKey): Promise<void> {
  const tombstones = await documents.forgotten(key);
  if (tombstones.length === 0) return;
  const { text, version } = await documents.memory(key);
  const left = withoutForgotten(text, tombstones, key.scope);
  if (left !== text)
    await documents.writeMemory(key, {
      id: `forgotten-again/${version}`,
      ts: Date.now() / 1000,
      cause: 'forgotten',
      from: version,
      lines: [],
      text: left,
    });
  const known = await facts.list(key, { all: true });
  await facts.remove(
    key,
    known.facts.filter(({ fact }) => isForgotten(fact, tombstones, key.scope)).map(({ id }) => id),
  );
  await documents.redact(key, redactor(tombstones, key.scope));
}
