/** What a person would type to see or do the same with the `temporal` program. */
import type { TemporalConnection } from '../../config.js';
import { DEFAULT_TEMPORAL_ADDRESS } from '../../config.js';

export function temporalCommand(temporal: TemporalConnection, words: readonly string[]): string {
  const { address } = temporal.connectionOptions;
  const where = [
    ...(address === DEFAULT_TEMPORAL_ADDRESS ? [] : ['--address', address]),
    ...(temporal.namespace === 'default' ? [] : ['-n', temporal.namespace]),
  ];
  return ['temporal', ...words, ...where].map(quoted).join(' ');
}

/** For a POSIX shell; double quotes where they need no escapes, since queries are full of single ones. */
function quoted(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return word.includes("'") && !/["$`\\!]/.test(word) ? `"${word}"` : `'${word.replaceAll("'", `'\\''`)}'`;
}
