/** What the debugger shows of a conversation that runs. */
import type { PerduraClient } from '../../client.js';
import { chunksOf, type DebugScene } from '../../insight/scene.js';
import { tokenCounterBy } from '../../models/token-counter.js';
import type { Entry } from '../../records/message.js';
import { slotsOf } from '../../records/slots.js';

/** Entries never change: each is read once. */
export function createEntryReader(
  client: Pick<PerduraClient, 'entries'>,
  id: string,
): (slots: readonly number[]) => Promise<Map<number, Entry>> {
  const known = new Map<number, Entry>();
  return async (slots) => {
    const unknown = slots.filter((slot) => !known.has(slot));
    if (unknown.length > 0) for (const entry of await client.entries(id, unknown)) known.set(entry.slot, entry);
    return known;
  };
}

export async function liveScene(client: PerduraClient, id: string, read: ReturnType<typeof createEntryReader>): Promise<DebugScene> {
  const [status, queue, index, control, approvals] = await Promise.all([
    client.status(id),
    client.queue(id),
    client.context(id),
    client.control(id).catch(() => null),
    client.approvals(id).catch(() => []),
  ]);
  const slots = index.chunks.flatMap(({ slots: ranges = [] }) => slotsOf(ranges));
  const entries = await read(slots).catch(() => new Map<number, Entry>());
  const { count } = await tokenCounterBy(index.tokenizer);
  return { id, status, queue, index, control, approvals, chunks: chunksOf(index, entries, control, count) };
}
