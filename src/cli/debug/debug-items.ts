/** The memory channel in the debugger (seed 003): what is in it, and one of its items whole. Live and in the past the same: as of now. */
import type { PerduraClient } from '../../client.js';
import { toTerminalText } from '../terminal/terminal-text.js';
import { formatQuantity, formatBytes } from '../views/quantities.js';
import { ask, type Cursor } from './debug-cursor.js';
import { errorMessage } from '../../platform/errors.js';

/** More than a screen takes, and than a person reads there; `perdura memory items` prints all. */
const MAX_LISTED = 500;
const MAX_CHARACTERS = 256 * 1024;

/** Asks which one to show; without an answer all are listed, newest first. `draw`: once there is something new to see. */
export function showItems(client: Pick<PerduraClient, 'items' | 'item'>, id: string, cursor: Cursor, draw: () => void): void {
  const show = (read: Promise<{ readonly title: string; readonly text: string }>): void => {
    read
      .then(
        (whole) => (cursor.whole = { ...whole, from: 0 }),
        (error: unknown) => (cursor.notice = errorMessage(error)),
      )
      .then(draw)
      .catch(() => undefined);
  };
  ask(cursor, 'item of the memory channel, mem_… (⏎ lists them):', (text) =>
    show(text === '' ? listItems(client, id) : oneItem(client, id, text)),
  );
}

async function listItems(client: Pick<PerduraClient, 'items'>, id: string): Promise<{ readonly title: string; readonly text: string }> {
  const { items, skipped } = await client.items(id);
  const lines = items
    .slice(0, MAX_LISTED)
    .map(({ id: item, type, source, session, content, tags }) =>
      [item, type, source, formatBytes(content.bytes), `session ${session}`, ...tags.map((tag) => `#${tag}`)].join(' · '),
    );
  const more =
    items.length > MAX_LISTED ? [`… ${formatQuantity(items.length - MAX_LISTED, 'older item')}: perdura memory items ${id}`] : [];
  const lost = skipped > 0 ? [`${formatQuantity(skipped, 'record')} of the store cannot be read`] : [];
  return {
    title: `memory channel · ${formatQuantity(items.length, 'item')} (any other key goes back)`,
    text: toTerminalText([...lines, ...more, ...lost].join('\n')),
  };
}

async function oneItem(
  client: Pick<PerduraClient, 'item'>,
  id: string,
  wanted: string,
): Promise<{ readonly title: string; readonly text: string }> {
  const { id: item, type, source, text, content } = await client.item(id, wanted);
  const isCut = text.length > MAX_CHARACTERS;
  return {
    title: `${item} · ${type} · ${source} · ${formatBytes(content.bytes)} (any other key goes back)`,
    text: toTerminalText(isCut ? `${text.slice(0, MAX_CHARACTERS)}\n… perdura memory items ${id} --show ${item} prints all of it` : text),
  };
}
