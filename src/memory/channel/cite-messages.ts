/**
 * Long messages of a person as a prompt shows them once a compaction has cited them (seed 003's rule for results, for what people paste):
 * their beginning and their end, and how the rest is read. What is cited stays where it was, among the entries of the conversation.
 */
import type { ConversationMessage } from '../../records/message.js';
import { truncate } from '../../records/text.js';
import { MESSAGE_END_CHARACTERS } from '../../conversation/context/citing.js';

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
