/** What a conversation does now, where a worker is there to say it. */
import type { ClientError, Description, PerduraClient } from '../../client.js';
import type { Status } from '../../conversation/protocol/contract.js';
import { orUndefinedAfter } from '../../platform/promises.js';

/** Of a worker that is not there: what Temporal and the store know is answered without it. */
const STATUS_PATIENCE_MS = 2_000;

/** Null where nothing answers in time. */
export async function statusOf(client: Pick<PerduraClient, 'status'>, id: string): Promise<Status | null> {
  const asked = client.status(id).catch(() => null);
  return (await orUndefinedAfter(STATUS_PATIENCE_MS, asked)) ?? null;
}

/** As Temporal says, with a worker or without; undefined where there is no such conversation. */
export async function isRunning(client: Pick<PerduraClient, 'describe'>, id: string): Promise<boolean | undefined> {
  const description = await describedOf(client, id);
  return description && description.state === 'running';
}

/** Undefined where there is no such conversation. */
export async function describedOf(client: Pick<PerduraClient, 'describe'>, id: string): Promise<Description | undefined> {
  try {
    return await client.describe(id);
  } catch (error) {
    if ((error as Partial<ClientError>).kind === 'not-found') return undefined;
    throw error;
  }
}
