/**
 * Long results as a model call shows them (conversation/context/citing.ts has the rule): whole with a word on where they lie, or as their
 * citation. Citations are bounded together, too: the first ones of the context as their plugin made them, later ones in a line. Which
 * ones depends on what stands before them alone, so that none changes again.
 */
import { END_CHARACTERS, isKept, newFrom, shownWhole, type KeptResult } from '../../conversation/context/citing.js';
import type { ConversationMessage } from '../../records/message.js';
import { beginningOf } from '../../records/text.js';
import { estimateStringTokens } from '../tokens.js';

/** UTF-8 bytes of all citations that say more than a line. */
export const CITED_BYTES = 4 * 1024;

export interface CitedMessage {
  readonly message: ConversationMessage;
  /** False: its text as the store has it is not needed. */
  readonly needsText: boolean;
}

/**
 * Old results as their citations, before anybody has read their texts. What it answers with is in the order of `messages`. `made`: by
 * item, what a model has made to stand for its result; that was paid for, and is always shown.
 */
export function citeOld(messages: readonly ConversationMessage[], made: ReadonlyMap<string, string> = new Map()): CitedMessage[] {
  const border = newFrom(messages);
  let room = CITED_BYTES;
  return messages.map((message, at) => {
    if (!isKept(message) || at >= border) return { message, needsText: true };
    const goalAware = made.get(message.item.id);
    if (goalAware !== undefined) return { message: { ...message, text: compacted(message, goalAware) }, needsText: false };
    const bytes = Buffer.byteLength(message.item.citation);
    const isLong = bytes <= room;
    if (isLong) room -= bytes;
    return { message: { ...message, text: compacted(message, isLong ? message.item.citation : briefly(message)) }, needsText: false };
  });
}

/** New results, with their texts at hand. `budget`: tokens of the whole prompt. */
export function frameNew(messages: readonly ConversationMessage[], budget: number): ConversationMessage[] {
  const border = newFrom(messages);
  const fresh = messages.slice(border).filter(isKept);
  if (fresh.length === 0) return [...messages];
  const whole = shownWhole(
    fresh.map(({ text }) => (typeof text === 'string' ? estimateStringTokens(text) : 0)),
    budget,
  );
  const framed = new Map(fresh.map((message, i) => [message as ConversationMessage, whole[i] ? inFull(message) : inEnds(message)]));
  return messages.map((message) => framed.get(message) ?? message);
}

function inFull(message: KeptResult): ConversationMessage {
  return { ...message, text: `Action results:\n${textOf(message)}\n\n(Stored in memory as ${message.item.id})` };
}

/** Too much to be shown whole. */
function inEnds(message: KeptResult): ConversationMessage {
  const text = textOf(message);
  const [head, tail] = [beginningOf(text, END_CHARACTERS), text.slice(-END_CHARACTERS).toWellFormed()];
  if (head.length + tail.length >= text.length) return inFull(message);
  const left = text.length - head.length - tail.length;
  const note = `[${left} of ${text.length} characters are left out here, since they would take too much of your context: have parts of them by retrieve_from_memory, with transform, n and offset]`;
  return { ...message, text: compacted(message, `${head}\n${note}\n${tail}`) };
}

function compacted({ item }: KeptResult, said: string): string {
  return `Action results (compacted):\n${said}\n\n(Full result in memory: ${item.id})`;
}

function briefly({ name, text }: KeptResult): string {
  const bytes = typeof text === 'string' ? Buffer.byteLength(text) : text.bytes;
  return `${name}, ${bytes} bytes`;
}

function textOf({ text }: KeptResult): string {
  return typeof text === 'string' ? text : text.preview;
}
