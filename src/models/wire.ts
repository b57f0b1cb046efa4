/**
 * What passes between us and every provider: text, names and ids in the form that all their APIs take, and a stranger's JSON read with
 * care.
 */
import { type Body, type JsonValue, type JsonObject, isBodyRef, shownText, type BodyRef, type AssistantBlock } from '../records/message.js';
import { errorMessage } from '../platform/errors.js';
import { isRecord } from '../platform/json.js';
import { ModelFailure } from './model.js';

// A lone surrogate (half of a character) survives JavaScript and JSON, and is then refused by every model API: one in
// the history bricks the conversation for good. Nothing leaves for a provider with one inside.

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

// Small words for reading a stranger's JSON, where any field may be missing or of another kind.

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

// What the APIs demand of names and ids, `^[a-zA-Z0-9_-]+$`, of which history may hold anything.

const FOREIGN = /[^a-zA-Z0-9_-]/g;

/** A model may have called a tool by a name that cannot be; sent back as it was, it would be refused for ever. */
export function toWireName(name: string): string {
  return name.replace(FOREIGN, '_').slice(0, 64) || 'unnamed';
}

/** For APIs in which the name of a tool begins with a letter or an underscore: Gemini's. */
export function toFunctionName(name: string): string {
  const wireName = toWireName(name);
  return /^[a-zA-Z_]/.test(wireName) ? wireName : `_${wireName}`.slice(0, 64);
}

/**
 * Ids for one request: `turn_0007/c3` becomes `turn_0007_c3`. Two that would be the same stay two, and an id depends only
 * on those before it, so that a longer conversation begins with the same bytes.
 */
export function createWireIds({ maxLength = Infinity }: { readonly maxLength?: number } = {}): (callId: string) => string {
  const wireIds = new Map<string, string>();
  const taken = new Set<string>();
  return (callId) => {
    const known = wireIds.get(callId);
    if (known !== undefined) return known;
    const base = callId.replace(FOREIGN, '_') || 'call';
    let id = base.slice(0, maxLength);
    for (let n = 2; taken.has(id); n++) id = `${base.slice(0, maxLength - 1 - String(n).length)}-${n}`;
    taken.add(id);
    wireIds.set(callId, id);
    return id;
  };
}

// A tool's input as a model wrote it: a stranger's JSON. What comes out is an object, shallow enough to store, without keys that reach
// prototypes.

/** Deeper JSON parses, but cannot be written again: it would break the payload, the store and the trace. */
export const MAX_DEPTH = 64;

const PROTOTYPE_KEYS: readonly string[] = ['__proto__', 'constructor', 'prototype'];

function parseToolInput(json: string): JsonObject {
  let value: JsonValue;
  try {
    value = JSON.parse(json) as JsonValue;
  } catch (error) {
    return { _invalid: toWellFormed(`not JSON: ${errorMessage(error)}`).slice(0, 200) };
  }
  return toToolInput(value);
}

/** What no tool can take becomes `{ _invalid: why }` (`whyUnread`). */
function toToolInput(value: JsonValue): JsonObject {
  if (!isRecord(value)) return { _invalid: 'not a JSON object' };
  if (isDeeperThan(value, MAX_DEPTH)) return { _invalid: `nested deeper than ${MAX_DEPTH} levels` };
  return toWellFormedJson(withoutPrototypeKeys(value) as JsonObject);
}

/** Why what a model wrote as input is none; undefined for any other input. No tool is run with it. */
export function whyUnread(input: JsonValue): string | undefined {
  return isRecord(input) && typeof input['_invalid'] === 'string' && Object.keys(input).length === 1 ? input['_invalid'] : undefined;
}

/** On its way back to a model: the APIs take objects only. */
export function toSentInput(input: JsonValue | BodyRef): Record<string, unknown> {
  if (isBodyRef(input)) return { _stored: shownText(input) };
  return isRecord(input) ? { ...input } : { _value: input };
}

/** Goes no deeper than it asks about, so that no depth can overflow the stack. */
export function isDeeperThan(value: JsonValue, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeperThan(inner as JsonValue, levels - 1));
}

function withoutPrototypeKeys(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutPrototypeKeys);
  const entries = Object.entries(value).filter(([key]) => !PROTOTYPE_KEYS.includes(key));
  return Object.fromEntries(entries.map(([key, inner]) => [key, withoutPrototypeKeys(inner)]));
}

/** A tool call whose input waits for the stop reason before it is read: cut off, its JSON may look whole and mean something else. */
export interface UnparsedCall {
  readonly kind: 'unparsed-call';
  readonly callId: string;
  readonly name: string;
  readonly json: string;
  /** Where the input came as a value and not as JSON text. */
  readonly input: JsonValue;
}

/** The answer ended well, so this is what the model wrote: where it cannot be read, the call is answered with why. */
export function readCall({ callId, name, json, input }: UnparsedCall): AssistantBlock {
  return { kind: 'tool-call', callId, name, input: json.trim() === '' ? toToolInput(input) : parseToolInput(json) };
}

export function brokenStream(what: string, cause?: unknown): ModelFailure {
  return new ModelFailure('broken-stream', what, { cause });
}
