/** A tool's input as a model wrote it: a stranger's JSON. What comes out is an object, shallow enough to store, without keys that reach prototypes. */
import { isBodyRef, shownText, type BodyRef, type JsonObject, type JsonValue, type AssistantBlock } from '../records/message.js';
import { toWellFormedJson } from './well-formed.js';
import { ModelFailure } from './model.js';
import { isRecord } from '../platform/json.js';

/** Deeper JSON parses, but cannot be written again: it would break the payload, the store and the trace. */
export const MAX_DEPTH = 64;

const PROTOTYPE_KEYS: readonly string[] = ['__proto__', 'constructor', 'prototype'];

/** Throws SyntaxError where the JSON is not whole. */
export function parseToolInput(json: string): JsonObject {
  return toToolInput(JSON.parse(json) as JsonValue);
}

/** What no tool can take becomes `{ _invalid: why }`, which every schema refuses. */
export function toToolInput(value: JsonValue): JsonObject {
  if (!isRecord(value)) return { _invalid: 'not a JSON object' };
  if (isDeeperThan(value, MAX_DEPTH)) return { _invalid: `nested deeper than ${MAX_DEPTH} levels` };
  return toWellFormedJson(withoutPrototypeKeys(value) as JsonObject);
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

export function readCall({ callId, name, json, input }: UnparsedCall): AssistantBlock {
  try {
    return { kind: 'tool-call', callId, name, input: json.trim() === '' ? toToolInput(input) : parseToolInput(json) };
  } catch (error) {
    throw brokenStream(`the input of ${name} is not whole JSON`, error);
  }
}

export function brokenStream(what: string, cause?: unknown): ModelFailure {
  return new ModelFailure('broken-stream', what, { cause });
}
