/** What the gateway adds to the way from the model to the client, and how many it serves at once. */
import { request, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { said } from '../bodies.js';
import { startGateway, type BenchGateway } from '../gateway.js';
import { median } from '../pairs.js';
import type { Store } from '../../src/stores/store.js';
import type { Product, StoreKind } from '../product.js';
import type { Measured, Row } from '../row.js';
import { sinceStamp, watchTurns } from './first-delta.js';

const ABOVE_MS = 10;
const START_MS = 1_000;
const READERS = 1_000;
const READ = 100;
const READERS_MIB = 350;
const DELTA_MS = 100;
const STREAMING = 200;
const DELTAS_A_SECOND = 50;

export const gateway: Row = {
  name: 'gateway',
  async measure(surroundings, { warmUp, turns, memoryScale }) {
    const measured: Measured[] = [];
    for (const store of ['redis', 'file'] satisfies StoreKind[]) {
      const product = await surroundings.product(store);
      const served = await startGateway({ temporal: surroundings.address, taskQueue: product.client.taskQueue, ...product.place });
      try {
        measured.push(...(await firstDelta(served, product, { store, warmUp, turns })));
        if (store === 'redis') {
          const feeds = product.openStore();
          try {
            measured.push(...(await manyReaders(served, { product, feeds }, Math.ceil(READERS * memoryScale))));
            measured.push(await manyStreams(served, { product, feeds }, Math.ceil(STREAMING * memoryScale)));
          } finally {
            await feeds.close();
          }
        }
      } finally {
        await served.close();
      }
    }
    return measured;
  },
};

interface Amounts {
  readonly store: StoreKind;
  readonly warmUp: number;
  readonly turns: number;
}

async function firstDelta(served: BenchGateway, { client, start }: Product, { store, warmUp, turns }: Amounts): Promise<Measured[]> {
  const [direct, over] = [await start('afar'), await start('afar')];
  const directly = (await watchTurns(client, direct.id, warmUp + turns)).slice(warmUp);
  const times: number[] = [];
  for (let number = 0; number < warmUp + turns; number++) times.push(await overHttp(served, over.id, said('stream', 0, number)));
  const product = median(times.slice(warmUp)) - median(directly);
  return [
    {
      row: `gateway: first delta, above the direct client, ${store}`,
      product,
      unit: 'ms',
      toHold: `≤ ${ABOVE_MS} ms`,
      holds: product <= ABOVE_MS,
      notes: [`${median(times.slice(warmUp)).toFixed(1)} ms over HTTP, ${median(directly).toFixed(1)} ms directly`],
    },
    {
      row: `gateway: start, ${store}`,
      product: served.startMs,
      unit: 'ms',
      toHold: `≤ ${START_MS} ms`,
      holds: served.startMs <= START_MS,
    },
  ];
}

async function overHttp({ url, headers }: BenchGateway, id: string, text: string): Promise<number> {
  const response = await fetch(`${url}/v1/conversations/${id}/messages`, { method: 'POST', headers, body: JSON.stringify({ text }) });
  let [seen, delay] = ['', NaN];
  const decoder = new TextDecoder();
  for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
    seen += decoder.decode(piece, { stream: true });
    const first = /"kind":"text".*?"text":"(\d+) /.exec(seen)?.[1];
    if (Number.isNaN(delay) && first !== undefined) delay = sinceStamp(first);
  }
  if (Number.isNaN(delay)) throw new Error(`no delta came over HTTP: ${seen.slice(0, 400)}`);
  return delay;
}

interface Feeding {
  readonly product: Product;
  /** Closed by the caller, who opened it. */
  readonly feeds: Store;
}

/** Each conversation has ten readers. */
async function manyReaders(served: BenchGateway, product: Feeding, readers: number): Promise<Measured[]> {
  const conversations = await publishers(product, Math.max(1, Math.floor(readers / (READERS / READ))));
  const delays: number[] = [];
  const open = await opened(
    served,
    conversations.length * (READERS / READ),
    (n) => conversations[n % conversations.length]?.id ?? '',
    (at) => delays.push(Date.now() - at),
  );
  for (let second = 0; second < 10; second++) {
    // Models do not all speak in the same moment: in half a second each has said something.
    for (const { publish } of conversations) {
      await publish();
      await sleep(500 / conversations.length);
    }
  }
  await sleep(1_000);
  const rss = await served.rss();
  for (const one of open) one.destroy();
  const p95 = [...delays].sort((a, b) => a - b)[Math.floor(delays.length * 0.95)] ?? NaN;
  const all = conversations.length * (READERS / READ) * 10;
  return [
    {
      row: `gateway: memory with ${open.length} open readers`,
      product: rss,
      unit: 'MiB',
      toHold: `≤ ${READERS_MIB} MiB`,
      holds: rss <= READERS_MIB,
    },
    {
      row: `gateway: delta to ${open.length} readers, p95`,
      product: p95,
      unit: 'ms',
      toHold: `≤ ${DELTA_MS} ms`,
      holds: p95 <= DELTA_MS && delays.length === all,
      notes: [`${delays.length} of ${all} came, median ${median(delays).toFixed(1)} ms`],
    },
  ];
}

async function manyStreams(served: BenchGateway, product: Feeding, streams: number): Promise<Measured> {
  const conversations = await publishers(product, streams);
  let came = 0;
  const open = await opened(
    served,
    streams,
    (n) => conversations[n]?.id ?? '',
    () => (came += 1),
  );
  const seconds = 5;
  const began = performance.now();
  await Promise.all(
    conversations.map(async ({ publish }) => {
      for (let n = 0; n < seconds * DELTAS_A_SECOND; n++) {
        await publish();
        await sleep(Math.max(0, began + ((n + 1) * 1_000) / DELTAS_A_SECOND - performance.now()));
      }
    }),
  );
  const wrote = (performance.now() - began) / 1_000;
  const all = streams * seconds * DELTAS_A_SECOND;
  for (let waited = 0; came < all && waited < 300; waited++) await sleep(100);
  const lag = (performance.now() - began) / 1_000 - wrote;
  for (const one of open) one.destroy();
  return {
    row: `gateway: deltas lost in ${streams} streams`,
    product: all - came,
    unit: '',
    toHold: 'none',
    holds: came === all,
    notes: [`${all} written in ${wrote.toFixed(1)} s, the last read ${lag.toFixed(1)} s after`],
  };
}

interface Publisher {
  readonly id: string;
  readonly publish: () => Promise<void>;
}

/** Conversations whose feeds get deltas from here, as fast as one likes: no model is asked. */
async function publishers({ product, feeds }: Feeding, count: number): Promise<Publisher[]> {
  const all: Publisher[] = [];
  for (let n = 0; n < count; n++) {
    const { id } = await product.client.start(undefined);
    const key = await product.client.key(id);
    const event = { kind: 'text', turn: 'turn_0001', call: 'turn_0001/m1', attempt: 'a' };
    all.push({ id, publish: () => feeds.feed.publish(key, [{ event: { ...event, text: `${Date.now()} ` } }]) });
  }
  return all;
}

/** `came` gets the time at which each delta was written. */
async function opened(
  { url, headers }: BenchGateway,
  count: number,
  idOf: (n: number) => string,
  came: (at: number) => void,
): Promise<{ destroy(): void }[]> {
  const all: { destroy(): void }[] = [];
  const open = async (n: number): Promise<void> => {
    const asked = request(`${url}/v1/conversations/${idOf(n)}/events?after=0`, { headers, agent: false });
    const response = await new Promise<IncomingMessage>((resolve, reject) => asked.on('response', resolve).on('error', reject).end());
    if (response.statusCode !== 200) throw new Error(`a reader got ${response.statusCode}`);
    asked.on('error', () => undefined);
    let rest = '';
    response.setEncoding('utf8').on('data', (piece: string) => {
      const lines = (rest + piece).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const at = /"text":"(\d{13}) "/.exec(line)?.[1];
        if (at !== undefined) came(Number(at));
      }
    });
    response.on('error', () => undefined);
    all.push(response);
  };
  for (let n = 0; n < count; n += 20) await Promise.all(Array.from({ length: Math.min(20, count - n) }, (_, i) => open(n + i)));
  return all;
}
