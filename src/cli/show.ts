/** `perdura show`: what was said in a conversation. */
import { loadConfig } from '../config.js';
import type { Entry, JsonValue } from '../conversation/message.js';
import { isBodyRef, shownText } from '../conversation/message.js';
import { connectClient } from './connect.js';
import { EXIT } from './exit.js';
import type { Output } from './output.js';
import { toTerminalJson, toTerminalLine } from './terminal-text.js';

export type ShowFormat = 'text' | 'json' | 'jsonl';

export async function show(id: string, format: ShowFormat, output: Output): Promise<number> {
  const client = await connectClient(loadConfig(), output, { needsWorker: false });
  try {
    const entries = await client.history(id);
    for (const line of renderEntries(entries, format)) output.line(line);
    if (entries.length === 0 && format === 'text') output.note('nothing was said yet');
    return EXIT.ok;
  } finally {
    await client.close();
  }
}

export function renderEntries(entries: readonly Entry[], format: ShowFormat): string[] {
  switch (format) {
    case 'json':
      return [toTerminalJson(entries, 2)];
    case 'jsonl':
      return entries.map((entry) => toTerminalJson(entry));
    case 'text':
      return entries.flatMap((entry, at) => [...(entry.turn === entries[at - 1]?.turn ? [] : [heading(entry)]), ...textLines(entry)]);
  }
}

function heading(entry: Entry): string {
  return `\n${entry.turn}  ${new Date(entry.ts * 1000).toISOString()}`;
}

function textLines(entry: Entry): string[] {
  const { message } = entry;
  switch (message.role) {
    case 'user':
      return [`› ${shownText(message.text)}`, ...(message.images ?? []).map((image) => `  [image, ${image.mediaType}]`)];
    case 'tool':
      return [`  ← ${message.name} ${message.outcome}: ${toTerminalLine(shownText(message.text), 200)}`];
    case 'assistant':
      return message.blocks.flatMap((block) => {
        if (block.kind === 'text') return [shownText(block.text)];
        if (block.kind === 'tool-call') return [`  → ${block.name} ${toTerminalLine(shownInput(block.input), 200)}`];
        return [];
      });
  }
}

function shownInput(input: JsonValue | { readonly preview: string }): string {
  return isBodyRef(input) ? input.preview : JSON.stringify(input);
}
