/** The turn that a conversation is in now, as its worker says; with no worker, as its live events do. */
import type { PerduraClient } from '../../../client.js';
import { turnId } from '../../../records/identity.js';
import { OLDEST, parseCursor } from '../../../stores/feed-cursor.js';
import { isRunning, statusOf } from '../status-of.js';

/** Undefined where nothing runs, and where there is no such conversation. */
export async function runningTurn(client: PerduraClient, id: string, signal: AbortSignal): Promise<string | undefined> {
  if (!(await isRunning(client, id))) return undefined;
  const status = await statusOf(client, id);
  if (status === null) return openInFeed(client, id, signal);
  // One that has just ended is shown once more: a page has it by the same id.
  return status.phase === 'idle' || status.phase === 'resetting' || status.turn === 0 ? undefined : turnId(status.turn);
}

/** The latest turn that began and shows no end. */
async function openInFeed(client: PerduraClient, id: string, signal: AbortSignal): Promise<string | undefined> {
  const newest = parseCursor(await client.newestCursor(id));
  if (newest === undefined) return undefined;
  let open: string | undefined;
  for await (const { cursor, event } of client.watch(id, { after: OLDEST, signal })) {
    if (event.kind === 'turn-finished') open = open === event.turn ? undefined : open;
    else if ('turn' in event) open = event.turn;
    const at = parseCursor(cursor);
    if (at === undefined || at.birth !== newest.birth || at.n >= newest.n) break;
  }
  return open;
}
