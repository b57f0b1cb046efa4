import { randomUUID } from 'node:crypto';
import type { PerduraClient } from '../../src/client/interface.js';
import { waitFor } from './wait-for.js';

const MARK = 'listed-by-then-';

/**
 * Ids of all conversations that a client's worker had by now. Temporal's lists come to know of a beginning or a deletion
 * a moment later, on a busy machine seconds: a conversation of its own is begun and waited for, which comes after them.
 */
export async function listedIds(client: PerduraClient): Promise<readonly string[]> {
  const mark = `${MARK}${randomUUID()}`;
  await client.start(mark);
  const query = `TaskQueue = '${client.taskQueue}'`;
  const list = async (): Promise<string[]> => (await client.list({ limit: 500, query })).map(({ id }) => id);
  const ids = await waitFor(list, (all) => all.includes(mark));
  return ids.filter((id) => !id.startsWith(MARK));
}

/** Those of now that were not there; one that is deleted meanwhile is none. */
export async function begunSince(client: PerduraClient, before: readonly string[]): Promise<readonly string[]> {
  return (await listedIds(client)).filter((id) => !before.includes(id));
}
