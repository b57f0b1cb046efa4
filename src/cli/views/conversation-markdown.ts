/** What was said in a conversation as a Markdown file, for `/export`. */
import { type Entry, type JsonValue, sourcesIn } from '../../records/message.js';
import { isBodyRef, shownText } from '../../records/message.js';
import { toTerminalLine, toTerminalText } from '../terminal/terminal-text.js';

export function toMarkdown(title: string, entries: readonly Entry[]): string {
  const parts = [`# ${toTerminalLine(title, 200)}`];
  for (const [at, entry] of entries.entries()) {
    if (entry.turn !== entries[at - 1]?.turn) parts.push(`## ${entry.turn} · ${new Date(entry.ts * 1000).toISOString()}`);
    parts.push(...partsOf(entry));
  }
  return `${parts.join('\n\n')}\n`;
}

function partsOf({ message }: Entry): string[] {
  switch (message.role) {
    case 'user':
      return [
        quoted(shownText(message.text)),
        ...sourcesIn(message).map(({ kind, source }) => `*[${kind === 'images' ? 'image' : kind}, ${source.mediaType}]*`),
      ];
    case 'tool':
      return [`**← ${message.name}**, ${message.outcome}`, fenced(shownText(message.text))];
    case 'assistant':
      return message.blocks.flatMap((block) => {
        if (block.kind === 'text') return [toTerminalText(shownText(block.text)).trim()];
        if (block.kind === 'tool-call') return [`**→ ${block.name}**`, fenced(indentedInput(block.input))];
        return [];
      });
  }
}

function quoted(text: string): string {
  return toTerminalText(text)
    .split('\n')
    .map((line) => `> ${line}`.trimEnd())
    .join('\n');
}

/** The fence is longer than any inside. */
function fenced(text: string): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), ([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${toTerminalText(text).trimEnd()}\n${fence}`;
}

function indentedInput(input: JsonValue | { readonly preview: string }): string {
  return isBodyRef(input) ? input.preview : JSON.stringify(input, null, 2);
}
