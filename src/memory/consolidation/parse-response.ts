/**
 * The reading of what a model answered: any text at all (seed 001, "3-tier JSON parsing").
 *
 * @rule consolidation/whole-text-first: The reader first takes the whole text, without its code fence, as the JSON object. (test:
 *   test/memory/consolidation-answer.test.ts)
 * @rule consolidation/one-object: Then it takes the one balanced `{…}` in the model's words (`objectsInAnswer`) that has a field, or whose only
 *   field is such an object. Two that differ are none: one of them may be a quotation. (test: test/memory/consolidation-answer.test.ts)
 * @rule consolidation/closed-fields-only: Then it takes each field by itself. Only a string that is closed, and behind which the object
 *   goes on or ends, is a value: half of a memory would replace the whole. A string from the question is not the model's. (test:
 *   test/memory/consolidation-answer.test.ts)
 */
import { utf8Length, cleanText, cut } from '../../records/text.js';
import { SUMMARY_LIMITS, taskAnswer, type Summary } from '../compaction/summary-answer.js';
import { objectsInAnswer, squeezed, type FoundObject } from '../../records/balanced-json.js';
import { isRecord } from '../../platform/json.js';

/** Seed 001, Types. */
export interface ConsolidationResult {
  readonly historyEntry?: string;
  readonly memoryUpdate?: string;
  /** Beyond the seed, and never alone. */
  readonly handover?: Handover;
}

/** For the agent that goes on with the conversation once these messages have left its prompt. */
export interface Handover extends Pick<Summary, 'goal' | 'openTasks'> {
  readonly summary: string;
}

export type ParsedResponse =
  | { readonly ok: true; readonly result: ConsolidationResult }
  /** `reason` ends the sentence "the answer was not usable: …". */
  | { readonly ok: false; readonly reason: string };

export const MAX_ANSWER_BYTES = 1024 * 1024;

const DEPTH = 16;
/** A text of braces, or of keys, must not take long. */
const TRIES = 8;

/**
 * At least one field of text, or the reason why there is none. A field of another type, or that says nothing, is absent. Never throws.
 * `question` is the prompt: an object that stood there is quoted.
 */
export function parseResponse(answer: string, question = ''): ParsedResponse {
  if (answer.trim() === '') return { ok: false, reason: 'it was empty' };
  if (answer.length > MAX_ANSWER_BYTES || utf8Length(answer) > MAX_ANSWER_BYTES) {
    return { ok: false, reason: `it is longer than the ${MAX_ANSWER_BYTES} bytes that are read` };
  }
  const whole = fromWhole(answer, question);
  const { found, broken } = objectsInAnswer(answer, question, DEPTH);
  const objects = whole ? [whole] : fromBalanced(found);
  if (objects.length > 1) return { ok: false, reason: 'there are several JSON objects in it, and they differ: answer with one' };
  const fields = broken ?? (hasNoObject(answer) ? 0 : undefined);
  const result = objects[0] ?? (fields === undefined ? undefined : fromFields(answer.slice(fields), question));
  return result ? { ok: true, result } : { ok: false, reason: reasonFor(answer) };
}

/** Fields may stand there by themselves, where nothing is a quotation. */
function hasNoObject(answer: string): boolean {
  return !/[{<]|^\s*>/m.test(answer);
}

/** (consolidation/whole-text-first) */
function fromWhole(answer: string, question: string): ConsolidationResult | undefined {
  const text = withoutFence(answer.trim());
  try {
    const result = toResult(JSON.parse(text));
    return result && squeezed(question).includes(squeezed(text)) ? undefined : result;
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

/** All that differ (consolidation/one-object). */
function fromBalanced(found: readonly FoundObject[]): ConsolidationResult[] {
  const objects = found.map(({ value }) => value);
  const outer = objects.flatMap((value) => toResult(value) ?? []);
  const results = outer.length > 0 ? outer : objects.flatMap((value) => toResult(onlyField(value)) ?? []);
  return results.filter((one, at) => results.findIndex((other) => JSON.stringify(other) === JSON.stringify(one)) === at);
}

function onlyField(value: object): unknown {
  const fields = Object.values(value) as unknown[];
  return fields.length === 1 ? fields[0] : undefined;
}

/** Of the object that is broken. A field that is there twice with another text is none (consolidation/closed-fields-only). */
function fromFields(answer: string, question: string): ConsolidationResult | undefined {
  const squeezedQuestion = squeezed(question);
  const field = (name: string): string | undefined => stringField(answer, name, squeezedQuestion);
  return toResult({ history_entry: field('history_entry'), memory_update: field('memory_update') });
}

function stringField(answer: string, name: string, squeezedQuestion: string): string | undefined {
  let tries = 0;
  const found = new Set<string>();
  for (const match of answer.matchAll(new RegExp(`"${name}"\\s*:\\s*"`, 'g'))) {
    if (tries++ === TRIES) break;
    const begin = match.index + match[0].length;
    const end = endOfString(answer, begin);
    if (end === undefined || !/^\s*(?:,|\}|```|$)/.test(answer.slice(end + 1, end + 200))) continue;
    if (!squeezedQuestion.includes(squeezed(answer.slice(match.index, end)))) found.add(unescaped(answer.slice(begin, end)));
  }
  return found.size === 1 ? [...found][0] : undefined;
}

/** The place of its closing quote; undefined when it is never closed. */
function endOfString(answer: string, begin: number): number | undefined {
  for (let at = begin; at < answer.length; at++) {
    if (answer[at] === '\\') at++;
    else if (answer[at] === '"') return at;
  }
  return undefined;
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', '"': '"', '\\': '\\', '/': '/' };

/** An escape that JSON does not have is taken literally. */
function unescaped(raw: string): string {
  return raw.replace(/\\(?:u([0-9a-fA-F]{4})|([^]))/g, (whole, code: string | undefined, character: string | undefined) =>
    code === undefined ? (ESCAPES[character ?? ''] ?? whole) : String.fromCharCode(parseInt(code, 16)),
  );
}

function toResult(value: unknown): ConsolidationResult | undefined {
  if (!isRecord(value)) return undefined;
  const historyEntry = textAt(value, 'history_entry');
  const memoryUpdate = textAt(value, 'memory_update');
  if (historyEntry === undefined && memoryUpdate === undefined) return undefined;
  const handover = readHandover(Object.hasOwn(value, 'handover') ? value['handover'] : undefined);
  return {
    ...(historyEntry === undefined ? {} : { historyEntry }),
    ...(memoryUpdate === undefined ? {} : { memoryUpdate }),
    ...(handover && { handover }),
  };
}

/** Of an answer, or as it was stored. Undefined for what says nothing; what is too long is cut. */
export function readHandover(value: unknown): Handover | undefined {
  if (!isRecord(value)) return undefined;
  const summary = textAt(value, 'summary');
  if (summary === undefined) return undefined;
  const { goal, openTasks, open_tasks: answered = openTasks } = value;
  return { summary: cut(summary, SUMMARY_LIMITS.summary), ...taskAnswer(goal, answered) };
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
