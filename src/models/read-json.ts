/** Small words for reading a stranger's JSON, where any field may be missing or of another kind. */
import type { JsonObject } from '../records/message.js';
import { isRecord } from '../platform/json.js';

export function asObject(value: unknown): JsonObject {
  return isRecord(value) ? (value as JsonObject) : {};
}

export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function asText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A number of tokens; `otherwise` where it is none. */
export function asCount(value: unknown, otherwise = 0): number {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : otherwise;
}
