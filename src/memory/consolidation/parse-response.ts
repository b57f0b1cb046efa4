/**
 * The reading of what a model answered: any text at all (seed 001, "3-tier JSON parsing").
 *
 * T1  Without its code fence, the whole text is the JSON object.
 * T2  The first balanced `{…}` in it that has a field; several are tried, for braces stand in prose too, and outer ones first.
 * T3  Each field by itself. Only a string that is closed, and behind which the object goes on or ends, is a value: half of a
 *     memory would replace the whole.
 */
import { utf8Length, cleanText } from '../../records/text.js';
import { objectAt, type FoundObject } from '../../records/balanced-json.js';

/** Seed 001, Types. */
export interface ConsolidationResult {
  readonly historyEntry?: string;
  readonly memoryUpdate?: string;
}

export type ParsedResponse =
  | { readonly ok: true; readonly result: ConsolidationResult }
  /** `reason` ends the sentence "the answer was not usable: …". */
  | { readonly ok: false; readonly reason: string };

export const MAX_ANSWER_BYTES = 1024 * 1024;

const DEPTH = 16;
/** A text of braces, or of keys, must not take long. */
const TRIES = 8;

/** At least one field of text, or the reason why there is none. A field of another type, or that says nothing, is absent. Never throws. */
export function parseResponse(answer: string): ParsedResponse {
  if (answer.trim() === '') return { ok: false, reason: 'it was empty' };
  if (answer.length > MAX_ANSWER_BYTES || utf8Length(answer) > MAX_ANSWER_BYTES) {
    return { ok: false, reason: `it is longer than the ${MAX_ANSWER_BYTES} bytes that are read` };
  }
  const result = fromWhole(answer) ?? fromBalanced(answer) ?? fromFields(answer);
  return result ? { ok: true, result } : { ok: false, reason: reasonFor(answer) };
}

/** T1 */
function fromWhole(answer: string): ConsolidationResult | undefined {
  try {
    return resultOf(JSON.parse(withoutFence(answer.trim())));
  } catch {
    return undefined;
  }
}

function withoutFence(text: string): string {
  if (!text.startsWith('```')) return text;
  const begin = text.indexOf('\n') + 1;
  const end = text.lastIndexOf('```');
  return begin > 0 && end >= begin ? text.slice(begin, end) : text;
}

/** T2. Objects that stand side by side come before those inside of others, which may be somebody else's words. */
function fromBalanced(answer: string): ConsolidationResult | undefined {
  return firstIn(answer, (search) => search.to) ?? firstIn(answer, (search) => search.from + 1);
}

/** `next`: where to look on after an object without fields. What is no JSON may only begin as prose. */
function firstIn(answer: string, next: (search: FoundObject) => number): ConsolidationResult | undefined {
  let at = answer.indexOf('{');
  for (let tries = 0; at !== -1 && tries < TRIES; tries++) {
    const search = objectAt(answer, at, DEPTH);
    const result = search.kind === 'found' ? resultOf(search.value) : undefined;
    if (result) return result;
    at = answer.indexOf('{', search.kind === 'found' ? next(search) : at + 1);
  }
  return undefined;
}

/** T3 */
function fromFields(answer: string): ConsolidationResult | undefined {
  return resultOf({ history_entry: stringField(answer, 'history_entry'), memory_update: stringField(answer, 'memory_update') });
}

function stringField(answer: string, name: string): string | undefined {
  let tries = 0;
  for (const match of answer.matchAll(new RegExp(`"${name}"\\s*:\\s*"`, 'g'))) {
    if (tries++ === TRIES) return undefined;
    const begin = match.index + match[0].length;
    const end = endOfString(answer, begin);
    if (end !== undefined && /^\s*(?:,|\}|```|$)/.test(answer.slice(end + 1, end + 200))) return unescaped(answer.slice(begin, end));
  }
  return undefined;
}

/** Where its closing quote stands; undefined when it is never closed. */
function endOfString(answer: string, begin: number): number | undefined {
  for (let at = begin; at < answer.length; at++) {
    if (answer[at] === '\\') at++;
    else if (answer[at] === '"') return at;
  }
  return undefined;
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', '"': '"', '\\': '\\', '/': '/' };

/** An escape that JSON does not have stands for itself. */
function unescaped(raw: string): string {
  return raw.replace(/\\(?:u([0-9a-fA-F]{4})|([^]))/g, (whole, code: string | undefined, character: string | undefined) =>
    code === undefined ? (ESCAPES[character ?? ''] ?? whole) : String.fromCharCode(parseInt(code, 16)),
  );
}

function resultOf(value: unknown): ConsolidationResult | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const historyEntry = textAt(value, 'history_entry');
  const memoryUpdate = textAt(value, 'memory_update');
  if (historyEntry === undefined && memoryUpdate === undefined) return undefined;
  return { ...(historyEntry === undefined ? {} : { historyEntry }), ...(memoryUpdate === undefined ? {} : { memoryUpdate }) };
}

function textAt(value: object, key: string): string | undefined {
  const field: unknown = Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
  const text = typeof field === 'string' ? cleanText(field).trim() : '';
  return text === '' ? undefined : text;
}

function reasonFor(answer: string): string {
  if (!answer.includes('{')) return 'there was no JSON object in it';
  if (!/"(?:history_entry|memory_update)"/.test(answer)) return 'its JSON has neither "history_entry" nor "memory_update"';
  return 'its JSON is not complete or not valid, or "history_entry" and "memory_update" are no text';
}
