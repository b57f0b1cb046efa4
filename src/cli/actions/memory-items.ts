/** `perdura memory items`: what lies in a conversation's memory channel. */
import type { CliContext } from '../session/context.js';
import { EXIT } from '../terminal/exit.js';
import { findConversation } from '../args/find-conversation.js';
import { toTerminalJson, toTerminalText } from '../terminal/terminal-text.js';
import { loadMeasure } from '../views/table.js';
import { renderItems } from '../views/memory.js';
import { formatCount } from '../views/quantities.js';
import { withClient } from '../session/with-client.js';

export interface MemoryItemsOptions {
  readonly show?: string;
}

export function memoryItems(context: CliContext, given: string, { show }: MemoryItemsOptions): Promise<number> {
  return withClient(context, {}, async (desk) => {
    const { client, output, globals, withSlowNotice } = desk;
    const id = await findConversation(desk, given);
    if (show !== undefined) {
      const item = await withSlowNotice(`reading ${show} of ${id}`, client.item(id, show));
      if (globals.output === 'text') output.line(toTerminalText(item.text));
      else output.line(toTerminalJson(item, globals.output === 'json' ? 2 : undefined));
      return EXIT.ok;
    }
    const { items, skipped } = await withSlowNotice(`reading the items of ${id}`, client.items(id));
    switch (globals.output) {
      case 'json':
        output.line(toTerminalJson({ id, items, skipped }, 2));
        break;
      case 'jsonl':
        for (const item of items) output.line(toTerminalJson(item));
        break;
      case 'text': {
        const look = { width: output.width(), timeFormat: globals.timeFormat, now: Date.now(), measure: await loadMeasure() };
        for (const line of renderItems(items, look)) output.draw(line);
        if (items.length > 0) output.note(`perdura memory items ${id} --show ${items[0]?.id ?? ''} prints one`);
      }
    }
    if (skipped > 0) output.problem(`${formatCount(skipped)} records in the store cannot be read and are left out`);
    return EXIT.ok;
  });
}
