/**
 * A call's tool and arguments, in 64 characters: SHA-256 of the tool's name and its arguments as JSON with sorted keys. History has it;
 * the arguments are in the store. The code that shows them to a person or runs them compares: a change in the store
 * between showing and running does not run.
 */
import { createHash } from 'node:crypto';
import type { JsonValue } from '../records/message.js';

export function callFingerprint(tool: string, input: JsonValue): string {
  return createHash('sha256')
    .update(JSON.stringify([tool, sorted(input)]))
    .digest('hex');
}

function sorted(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(sorted);
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, sorted(inner)]),
  );
}
