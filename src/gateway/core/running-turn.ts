/** The turn that a conversation is in now, as its worker says; with no worker, as its live events do. */
import type { PerduraClient } from '../../client.js';
import type { ClientError } from '../../client/errors.js';
import { turnId } from '../../records/identity.js';
import { OLDEST, parseCursor } from '../../stores/feed-cursor.js';

/** For a worker to answer; a dead one is noticed by Temporal later than a page wants to wait. */
const WORKER_PATIENCE_MS = 2_000;

/** Undefined where nothing runs, and where there is no such conversation. */
export async function runningTurn(client: PerduraClient, id: string, signal: AbortSignal): Promise<string | undefined> {
  if (!(await isRunning(client, id))) return undefined;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, WORKER_PATIENCE_MS, undefined)));
  try {
    const status = await Promise.race([client.status(id).catch(() => undefined), late]);
    if (status === undefined) return await openInFeed(client, id, signal);
    // One that has just ended is shown once more: a page has it by the same id.
    return status.phase === 'idle' || status.phase === 'resetting' || status.turn === 0 ? undefined : turnId(status.turn);
  } finally {
    clearTimeout(timer);
  }
}

async function isRunning(client: PerduraClient, id: string): Promise<boolean> {
  try {
    return (await client.describe(id)).state === 'running';
  } catch (error) {
    if ((error as Partial<ClientError>).kind === 'not-found') return false;
    throw error;
  }
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
