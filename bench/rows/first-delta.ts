/** From the model's first word on the wire to the client that watches. */
import { said } from '../bodies.js';
import { median } from '../pairs.js';
import type { PerduraClient } from '../../src/client.js';
import type { StoreKind } from '../product.js';
import type { Measured, Row } from '../row.js';

const LIMIT_MS = 20;

export const firstDelta: Row = {
  name: 'first-delta',
  async measure(surroundings, { warmUp, turns }) {
    const measured: Measured[] = [];
    for (const store of ['redis', 'file'] satisfies StoreKind[]) {
      const { client, start } = await surroundings.product(store);
      const { id } = await start('afar');
      const delays = await watchTurns(client, id, warmUp + turns);
      const product = median(delays.slice(warmUp));
      const slowest = Math.max(...delays.slice(warmUp)).toFixed(1);
      measured.push({
        row: `first-delta: model to client, ${store}`,
        product,
        unit: 'ms',
        toHold: `≤ ${LIMIT_MS} ms`,
        holds: product <= LIMIT_MS,
        notes: [`slowest of ${turns}: ${slowest} ms`],
      });
    }
    return measured;
  },
};

export async function watchTurns(client: PerduraClient, id: string, turns: number): Promise<number[]> {
  const stop = new AbortController();
  const delays = new Map<string, number>();
  const watching = (async () => {
    for await (const { event } of client.watch(id, { after: '0', signal: stop.signal })) {
      if (event.kind === 'text' && !delays.has(event.turn)) delays.set(event.turn, sinceStamp(event.text));
    }
  })();
  for (let number = 0; number < turns; number++) await client.send(id, said('stream', 0, number));
  stop.abort();
  await watching;
  if (delays.size < turns) throw new Error(`the watcher saw ${delays.size} of ${turns} turns`);
  return [...delays.values()];
}

/** The scripted model puts the time at which it speaks at the head of what it says. */
export function sinceStamp(text: string): number {
  const [stamp = ''] = text.split(' ');
  return Number(process.hrtime.bigint() - BigInt(stamp)) / 1e6;
}
