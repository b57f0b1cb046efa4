/** What an honest reader of the gateway waits for while 2,000 hostile connections are open, against the same reader before. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { startGateway, type BenchGateway } from '../gateway.js';
import type { Hostility } from '../hostile-process.js';
import { median, middleOf, repeat } from '../pairs.js';
import type { Row } from '../row.js';

const CONNECTIONS = 2_000;
const READ_MS = 200;
const READS = 200;

export const hostile: Row = {
  name: 'hostile',
  async measure(surroundings, { pairs, warmUp, memoryScale }) {
    const product = await surroundings.product('file');
    const served = await startGateway({ temporal: surroundings.address, taskQueue: product.client.taskQueue, ...product.place });
    const { id } = await product.client.start(undefined);
    const connections = Math.ceil(CONNECTIONS * memoryScale);
    try {
      await timesOf(served, id, warmUp);
      const slowest: number[] = [];
      const measured = await repeat(pairs, async () => {
        const floor = p95(await timesOf(served, id, READS));
        const end = await beginHostility({ port: Number(new URL(served.url).port), connections });
        const times = await timesOf(served, id, READS).finally(end);
        slowest.push(Math.max(...times));
        return { product: p95(times), floor };
      });
      const { notes, ...middle } = middleOf(measured);
      return [
        {
          row: `hostile: p95 of an honest reader beside ${connections} hostile connections`,
          ...middle,
          unit: 'ms',
          toHold: `≤ ${READ_MS} ms`,
          holds: middle.product <= READ_MS,
          notes: [...notes, `the slowest read of a pair took ${median(slowest).toFixed(1)} ms`],
        },
      ];
    } finally {
      await served.close();
    }
  },
};

/** Milliseconds of each read, one after the other. */
function timesOf({ url, headers }: BenchGateway, id: string, reads: number): Promise<number[]> {
  return repeat(reads, async () => {
    const began = performance.now();
    const response = await fetch(`${url}/v1/conversations/${id}/status`, { headers: { ...headers, accept: 'application/json' } });
    await response.arrayBuffer();
    if (response.status !== 200) throw new Error(`an honest reader got ${response.status}`);
    return performance.now() - began;
  });
}

/** Once all have been open; answers the way to end them. */
async function beginHostility(how: Hostility): Promise<() => Promise<void>> {
  const child = fork(join(__dirname, '..', 'hostile-process.js'), [JSON.stringify(how)], { execArgv: [] });
  const exited = once(child, 'exit');
  await once(child, 'message');
  return async () => {
    child.disconnect();
    await exited;
  };
}

function p95(times: readonly number[]): number {
  return [...times].sort((a, b) => a - b)[Math.floor(times.length * 0.95)] ?? NaN;
}
