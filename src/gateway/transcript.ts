/** What was said in a conversation, as Markdown for another program. */
import { isBodyRef, shownText, type Entry } from '../records/message.js';

/** Of one tool result or argument; the conversation has the whole. */
const LONGEST = 4_000;

export function transcriptOf(entries: readonly Entry[]): string {
  const parts: string[] = [];
  for (const [at, entry] of entries.entries()) {
    if (entry.turn !== entries[at - 1]?.turn) parts.push(`## ${entry.turn} · ${new Date(entry.ts * 1000).toISOString()}`);
    parts.push(...partsOf(entry));
  }
  return parts.join('\n\n');
}

function partsOf({ message }: Entry): string[] {
  switch (message.role) {
    case 'user':
      return [`**user**\n\n${shownText(message.text)}`];
    case 'tool':
      return [`**result of ${message.name}**, ${message.outcome}\n\n${beginning(shownText(message.text))}`];
    case 'assistant':
      return message.blocks.flatMap((block) => {
        if (block.kind === 'text') return [`**assistant**\n\n${shownText(block.text)}`];
        if (block.kind !== 'tool-call') return [];
        return [`**calls ${block.name}** ${beginning(isBodyRef(block.input) ? block.input.preview : JSON.stringify(block.input))}`];
      });
  }
}

function beginning(text: string): string {
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST).toWellFormed()}\n[${text.length - LONGEST} more characters]`;
}
