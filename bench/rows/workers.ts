/**
 * What a turn costs all processes together when one, two or four workers share the work on Redis. On two cores the turns of a second end
 * sooner than the workers do: CPU is what is compared.
 */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient, type PerduraClient } from '../../src/client.js';
import { loadConfig } from '../../src/config.js';
import { startRedis } from '../../test/support/redis-server.js';
import { startModel } from '../model.js';
import { cpuMeter, median } from '../pairs.js';
import type { Row } from '../row.js';
import { createInstallation, startWorkerChild } from '../worker-child.js';

const COUNTS = [1, 2, 4] as const;
const CONVERSATIONS = 40;
/** Of each worker, before its turns count: its code is compiled by then, however many share the work. */
const WARM_TURNS = 300;
const LIMIT = 1.05;
/** Of Linux' clock in /proc. */
const TICK_MS = 10;

export const workers: Row = {
  name: 'workers',
  async measure({ address }, { pairs, atOnce }) {
    const dir = await mkdtemp(join(tmpdir(), 'perdura-bench-workers-'));
    const redis = await startRedis({ appendonly: true });
    const model = await startModel();
    try {
      const env = await createInstallation(dir, { address, redisUrl: redis.url, modelUrl: model.url, taskQueue: 'workers' });
      const client = await createClient(loadConfig(env, dir), { workerPatienceMs: Infinity });
      const seen = new Map<number, Shared[]>(COUNTS.map((count) => [count, []]));
      try {
        for (let round = 0; round < pairs; round++)
          for (const count of COUNTS) seen.get(count)?.push(await share(count, dir, env, client, 2 * atOnce));
      } finally {
        await client.close();
      }
      const middle = (count: number, of: (shared: Shared) => number): number => median((seen.get(count) ?? []).map(of));
      const alone = middle(1, ({ cpu }) => cpu);
      return COUNTS.map((count) => {
        const cpu = middle(count, (shared) => shared.cpu);
        return {
          row: `workers: CPU of a turn, client and ${count === 1 ? 'one worker' : `${count} workers`}, Redis`,
          ...{ product: cpu, floor: alone, unit: 'ms', ratio: cpu / alone, toHold: `≤ ${LIMIT}`, holds: cpu / alone <= LIMIT },
          notes: [`${middle(count, ({ perSecond }) => perSecond).toFixed(0)} turns a second`],
        };
      });
    } finally {
      await model.close();
      await redis.stop();
      await rm(dir, { recursive: true, force: true, maxRetries: 3 });
    }
  },
};

interface Shared {
  /** Milliseconds of a turn, of all processes. */
  readonly cpu: number;
  readonly perSecond: number;
}

async function share(count: number, dir: string, env: NodeJS.ProcessEnv, client: PerduraClient, each: number): Promise<Shared> {
  const running = await Promise.all(Array.from({ length: count }, () => startWorkerChild(dir, env)));
  try {
    const talk = async (id: string, turns: number): Promise<void> => {
      for (let turn = 0; turn < turns; turn++) await client.send(id, { text: 'And now?' });
    };
    const ids = await Promise.all(Array.from({ length: CONVERSATIONS }, async () => (await client.start(undefined)).id));
    const allTalk = (turns: number) => Promise.all(ids.map((id) => talk(id, turns)));
    await allTalk(Math.ceil((WARM_TURNS * count) / CONVERSATIONS));
    const cpuHere = cpuMeter();
    const before = running.map(({ pid }) => cpuOf(pid()));
    const begin = performance.now();
    await allTalk(each);
    const turns = CONVERSATIONS * each;
    const spent = running.reduce((sum, { pid }, at) => sum + cpuOf(pid()) - (before[at] ?? 0), cpuHere());
    return { cpu: spent / turns, perSecond: (turns * 1000) / (performance.now() - begin) };
  } finally {
    for (const worker of running) await worker.stop();
  }
}

/** Milliseconds that a process has spent. */
function cpuOf(pid: number): number {
  const [user = '0', system = '0'] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ').slice(11, 13) ?? [];
  return (Number(user) + Number(system)) * TICK_MS;
}
