/**
 * A conversation as the seed's memory sees it (seed 001, Types): a message is a person's, or a turn's answer; tools
 * are what an answer used.
 */
import { isNotice, shownText, type AssistantMessage, type Entry, type UserMessage } from '../../records/message.js';

/** Seed 001, Types. */
export interface ConversationEntry {
  readonly role: string;
  readonly content: string;
  /** ISO 8601. */
  readonly timestamp?: string;
  readonly toolsUsed?: readonly string[];
}

/** The seed's entry, and the turn that it came from. */
export interface TurnEntry extends ConversationEntry {
  readonly role: 'user' | 'assistant';
  readonly turn: string;
}

/**
 * A turn's user messages, a steering one too, then its one answer. The answer is all of the assistant's text in the turn: a person
 * saw the words before a tool call as well, and the end may not repeat what they announced.
 */
export function toConversationEntries(entries: readonly Entry[]): TurnEntry[] {
  const turns = new Map<string, Entry[]>();
  for (const entry of entries) {
    const ofTurn = turns.get(entry.turn) ?? [];
    ofTurn.push(entry);
    turns.set(entry.turn, ofTurn);
  }
  return [...turns].flatMap(([turn, ofTurn]) => [...questionsIn(turn, ofTurn), ...answeredIn(turn, ofTurn)]);
}

/** What `memoryWindow` counts (seed 001, Configuration). */
export function countMessages(entries: readonly Entry[]): number {
  return toConversationEntries(entries).length;
}

function questionsIn(turn: string, ofTurn: readonly Entry[]): TurnEntry[] {
  return ofTurn.flatMap(({ ts, message }) =>
    message.role === 'user' && !isNotice(message) ? [{ role: 'user' as const, content: userText(message), ...toTimestamp(ts), turn }] : [],
  );
}

/** None or one: without a word, what it used is reported all the same. */
function answeredIn(turn: string, ofTurn: readonly Entry[]): TurnEntry[] {
  const answers = ofTurn.flatMap(({ ts, message }) => (message.role === 'assistant' ? [{ ts, text: assistantText(message) }] : []));
  const spoken = answers.filter(({ text }) => text !== '');
  const tools = toolsIn(ofTurn);
  const last = spoken.at(-1) ?? answers.at(-1) ?? ofTurn.findLast(({ message }) => message.role === 'tool');
  if (last === undefined || (spoken.length === 0 && tools.length === 0)) return [];
  return [
    {
      role: 'assistant',
      content: spoken.map(({ text }) => text).join('\n\n'),
      ...toTimestamp(last.ts),
      ...(tools.length > 0 ? { toolsUsed: tools } : {}),
      turn,
    },
  ];
}

function userText({ text, images = [], documents = [] }: UserMessage): string {
  const counted = (count: number, one: string): string[] => (count === 0 ? [] : [`[${count} ${count === 1 ? one : `${one}s`}]`]);
  return [shownText(text), ...counted(images.length, 'image'), ...counted(documents.length, 'document')].join(' ').trimStart();
}

/** Thinking goes back only to the model that made it. */
function assistantText({ blocks, stop }: AssistantMessage): string {
  const text = blocks
    .flatMap((block) => (block.kind === 'text' ? [shownText(block.text)] : []))
    .join('')
    .trim();
  return stop === 'interrupted' ? `${text} [interrupted]`.trimStart() : text;
}

/** A result names its tool as well: its call may lie before the range. */
function toolsIn(ofTurn: readonly Entry[]): string[] {
  const names = ofTurn.flatMap(({ message }) => {
    if (message.role === 'tool') return [message.name];
    return message.role === 'assistant' ? message.blocks.flatMap((block) => (block.kind === 'tool-call' ? [block.name] : [])) : [];
  });
  return [...new Set(names)];
}

/** None for a time that no calendar has. */
function toTimestamp(ts: number): { timestamp?: string } {
  const date = new Date(Math.round(ts * 1000));
  return Number.isNaN(date.getTime()) ? {} : { timestamp: date.toISOString() };
}
