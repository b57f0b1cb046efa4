/** What a conversation does now, where a worker is there to say it. */
import type { PerduraClient } from '../../client.js';
import type { Status } from '../../conversation/protocol/contract.js';

/** Of a worker that is not there: what Temporal and the store know is answered without it. */
const STATUS_PATIENCE_MS = 2_000;

/** Null where nothing answers in time. */
export async function statusOf(client: Pick<PerduraClient, 'status'>, id: string): Promise<Status | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => (timer = setTimeout(resolve, STATUS_PATIENCE_MS, null)));
  try {
    return await Promise.race([client.status(id).catch(() => null), late]);
  } finally {
    clearTimeout(timer);
  }
}
