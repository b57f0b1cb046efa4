/**
 * Long results, and long messages of a person, as a model call shows them (conversation/context/citing.ts has the rule): whole with the id
 * to read them by, or as their citation. Citations are bounded together, too, by a share of the prompt's budget: the newest are as their
 * plugin made them, older ones in a line. The oldest are shortened first and many at once, so that the beginning of the prompt changes once
 * in a while and not with each result; which ones depends on the results before a place alone, so every attempt and every worker decides
 * alike.
 */
import { END_CHARACTERS, isKept, newFrom, shownWhole, type KeptResult, MESSAGE_END_CHARACTERS } from '../../conversation/context/citing.js';
import type { ConversationMessage } from '../../records/message.js';
import { truncate } from '../../records/text.js';
import { estimateStringTokens, type CountTokens } from '../tokens.js';
import { isRecord } from '../../platform/json.js';

/** Of the prompt's budget: all citations that say more than a line. And their bounds in UTF-8 bytes: each call pays for all of it. */
const CITED_SHARE = 0.03;
const [MIN_CITED_BYTES, MAX_CITED_BYTES] = [4 * 1024, 8 * 1024];
const BYTES_PER_TOKEN = 4;
/** What stays of them once they are too much. Little, since each time the provider's cache has the beginning of the prompt no more. */
const SHORTENED_TO = 0.2;

/** `budget`: tokens of the whole prompt. */
export function citedBytes(budget: number): number {
  return Math.min(MAX_CITED_BYTES, Math.max(MIN_CITED_BYTES, Math.floor(budget * CITED_SHARE) * BYTES_PER_TOKEN));
}

/**
 * Old results as their citations, before their texts are read. What it answers with is in the order of `messages`. `made`: by
 * item, what a model has made to replace its result; that was paid for, and is always shown.
 */
export function citeOld(
  messages: readonly ConversationMessage[],
  budget: number,
  made: ReadonlyMap<string, string> = new Map(),
): ConversationMessage[] {
  const border = newFrom(messages);
  const old = messages.slice(0, border).filter((message): message is KeptResult => isKept(message) && !made.has(message.item.id));
  const shortened = new Set<ConversationMessage>(shortenOldest(old, citedBytes(budget)));
  return messages.map((message, at) => {
    if (!isKept(message) || at >= border) return message;
    const { citation, id } = message.item;
    const text = made.get(id) ?? (shortened.has(message) ? citationLine(message) : citation);
    return { ...message, text: compacted(message, text) };
  });
}

/** In batches: beyond `most` bytes the oldest go until a part is left. */
function shortenOldest(old: readonly KeptResult[], most: number): readonly KeptResult[] {
  let [first, bytes] = [0, 0];
  for (const [at, message] of old.entries()) {
    bytes += countBytes(message);
    if (bytes <= most) continue;
    // The newest keeps its citation, however long.
    for (; bytes > most * SHORTENED_TO && first < at; first++) bytes -= countBytes(old[first]);
  }
  return old.slice(0, first);
}

function countBytes(message: KeptResult | undefined): number {
  return message ? Buffer.byteLength(message.item.citation) : 0;
}

/** New results, with their texts at hand. `budget`: tokens of the whole prompt. */
export function frameNew(
  messages: readonly ConversationMessage[],
  budget: number,
  count: CountTokens = estimateStringTokens,
): ConversationMessage[] {
  const border = newFrom(messages);
  const fresh = messages.slice(border).filter(isKept);
  if (fresh.length === 0) return [...messages];
  const whole = shownWhole(
    fresh.map(({ text }) => (typeof text === 'string' ? count(text) : 0)),
    budget,
  );
  const framed = new Map(fresh.map((message, i) => [message as ConversationMessage, whole[i] ? inFull(message) : inEnds(message)]));
  return messages.map((message) => framed.get(message) ?? message);
}

function inFull(message: KeptResult): ConversationMessage {
  return { ...message, text: `Action results:\n${shownPart(message)}\n\n(Stored in memory as ${message.item.id})` };
}

/** Too much to be shown whole. */
function inEnds(message: KeptResult): ConversationMessage {
  const text = shownPart(message);
  const [head, tail] = [truncate(text, END_CHARACTERS), text.slice(-END_CHARACTERS).toWellFormed()];
  if (head.length + tail.length >= text.length) return inFull(message);
  const left = text.length - head.length - tail.length;
  const note = `[${left} of ${text.length} characters are left out here, since they would take too much of your context: have parts of them by retrieve_from_memory, with transform, n and offset]`;
  return { ...message, text: compacted(message, `${head}\n${note}\n${tail}`) };
}

function compacted({ item }: KeptResult, citation: string): string {
  return `Action results (compacted):\n${citation}\n\n(Full result in memory: ${item.id})`;
}

function shownPart({ text }: KeptResult): string {
  return typeof text === 'string' ? text : text.preview;
}

// What replaces an old result when there are many: the beginning of each field of its citation, in a line.

const LINE_CHARACTERS = 90;
/** Of one field, so that a long one leaves room for those behind it. */
const FIELD_CHARACTERS = 60;
/** The tool's name comes before the line, and the id after it. */
const SAID_ELSEWHERE = ['actionName', 'memoryId', 'retrieveWith'];

function citationLine({ name, text, item: { citation } }: KeptResult): string {
  const bytes = typeof text === 'string' ? Buffer.byteLength(text) : text.bytes;
  const shown = [name, ...(fieldsIn(citation) ?? [plainLine(citation)])].filter((part) => part !== '').join(' · ');
  const size = ` · ${bytes} bytes`;
  return truncate(shown, LINE_CHARACTERS - size.length) + size;
}

/** Undefined where it is no object: a citation of an earlier version, or one that was cut. */
function fieldsIn(citation: string): string[] | undefined {
  try {
    const value: unknown = JSON.parse(citation);
    if (!isRecord(value)) return undefined;
    return Object.entries(value).flatMap(([field, one]) => (SAID_ELSEWHERE.includes(field) ? [] : [describeField(field, one)]));
  } catch {
    return undefined;
  }
}

/** A text says itself what it is; a number does not. */
function describeField(field: string, value: unknown): string {
  const text = typeof value === 'string' ? value : `${field} ${JSON.stringify(value)}`;
  return truncate(plainLine(text), FIELD_CHARACTERS);
}

function plainLine(text: string): string {
  return text.replace(/[\p{C}\s]+/gu, ' ').trim();
}

// Long messages of a person as a prompt shows them once a compaction has cited them (seed 003's rule for results, for what people paste):
// their beginning and their end, and how the rest is read. What is cited stays where it was, among the entries of the conversation.

const ITEM = /^mem_msg_(\d{1,12})$/;

/** The id by which `retrieve_from_memory` gives a message back. */
export function messageItemId(slot: number): string {
  return `mem_msg_${slot}`;
}

/** Undefined for the id of anything else. */
export function slotOfItem(id: string): number | undefined {
  const slot = ITEM.exec(id)?.[1];
  return slot === undefined ? undefined : Number(slot);
}

/** `id`: absent where the agent has no tool that reads it. Its text must be at hand. */
export function citeMessage(message: ConversationMessage, id?: string): ConversationMessage {
  if (message.role !== 'user' || typeof message.text !== 'string') return message;
  const where = id === undefined ? KEPT : `have parts of them by retrieve_from_memory with the id ${id}, and transform, n and offset`;
  return { ...message, text: withoutMiddle(message.text, MESSAGE_END_CHARACTERS, where) };
}

export const KEPT = 'they are kept in the traces';

/** Its first and last `characters` units; itself where that would be all. */
export function withoutMiddle(text: string, characters: number, where: string): string {
  const [head, tail] = [truncate(text, characters), text.slice(-characters).toWellFormed()];
  const left = text.length - head.length - tail.length;
  if (left <= 0) return text;
  return `${head}\n[… ${left} of ${text.length} characters of this message are left out here: ${where} …]\n${tail}`;
}
