/**
 * A lone surrogate (half of a character) survives JavaScript and JSON, and is then refused by every model API: one in
 * the history bricks the conversation for good. Nothing leaves for a provider with one inside.
 */
import type { Body, JsonValue } from '../records/message.js';

// With `u`, a pair is one character, so this matches lone halves only.
const LONE_SURROGATE = /\p{Surrogate}/u;
const LONE_SURROGATES = /\p{Surrogate}/gu;

export function isWellFormed(text: string): boolean {
  return !LONE_SURROGATE.test(text);
}

export function toWellFormed(text: string): string {
  return text.replace(LONE_SURROGATES, '\uFFFD');
}

/** A preview may have been cut inside a pair. */
export function toWellFormedBody(body: Body): Body {
  if (typeof body === 'string') return toWellFormed(body);
  return isWellFormed(body.preview) ? body : { ...body, preview: toWellFormed(body.preview) };
}

/** Keys and values alike. The value itself comes back when nothing had to change. */
export function toWellFormedJson<T extends JsonValue>(value: T): T {
  if (isWellFormedJson(value)) return value;
  return replaced(value) as T;
}

export function isWellFormedJson(value: JsonValue): boolean {
  if (typeof value === 'string') return isWellFormed(value);
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, inner]) => isWellFormed(key) && isWellFormedJson(inner as JsonValue));
}

function replaced(value: JsonValue): JsonValue {
  if (typeof value === 'string') return toWellFormed(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(replaced);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [toWellFormed(key), replaced(inner)]));
}
