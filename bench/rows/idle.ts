/** What conversations cost that nobody talks to: memory while the worker has them at hand, nothing once it has let go of them. */
import type { Client } from '@temporalio/client';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createClientWith, type PerduraClient } from '../../src/client.js';
import { createWorkflowWorker } from '../../src/workflow-code.js';
import { AS_ALONE } from '../product.js';
import type { Row } from '../row.js';

const TASK_QUEUE = 'idle';
const BATCH = 50;
/** The worker is told to keep a fifth, so that most of the run shows what comes after the cache is full. */
const KEPT = 0.2;
/** Growth of the process from half of them to all of them. */
const LIMIT = 1.1;
const QUIET_MS = 10_000;
/** Started, and its first workflow task done: it waits for a message. */
const IDLE_EVENTS = 4;

export const idle: Row = {
  name: 'idle',
  async measure({ temporal, product: productOf }, { idle: count }) {
    const { options } = await productOf('redis');
    const kept = count * KEPT;
    const worker = await createWorkflowWorker({ ...options, taskQueue: TASK_QUEUE, maxCachedWorkflows: kept }, AS_ALONE);
    const running = worker.run();
    const client = createClientWith({ client: temporal, namespace: 'default', taskQueue: TASK_QUEUE, store: noStore });
    try {
      // What the first ones bring is the worker's own.
      await startIdle(client, temporal, BATCH);
      const alone = { memory: memory(), cpu: await cpuOfQuiet() };
      const begin = performance.now();
      const cpuBefore = process.cpuUsage();
      await startIdle(client, temporal, kept - BATCH);
      const full = memory();
      await startIdle(client, temporal, count / 2 - kept);
      const half = memory();
      await startIdle(client, temporal, count / 2);
      const { user, system } = process.cpuUsage(cpuBefore);
      const seconds = (performance.now() - begin) / 1000;
      const all = { memory: memory(), cpu: await cpuOfQuiet() };

      const ratio = all.memory / half;
      return [
        {
          row: `idle: memory of the process with ${count} conversations : with ${count / 2}`,
          product: all.memory / MIB,
          floor: half / MIB,
          unit: 'MiB',
          ratio,
          toHold: `≤ ${LIMIT}`,
          holds: ratio <= LIMIT,
          notes: [
            `${(alone.memory / MIB).toFixed(0)} MiB with ${BATCH}, ${(full / MIB).toFixed(0)} MiB with the cache of ${kept} full`,
            `started in ${seconds.toFixed(0)} s, ${((user + system) / 1000 / (count - BATCH)).toFixed(1)} ms of CPU each, client and worker together`,
          ],
        },
        {
          row: 'idle: memory of one conversation in the cache',
          product: (full - alone.memory) / 1024 / (kept - BATCH),
          unit: 'KiB',
          toHold: '',
          holds: true,
        },
        {
          row: 'idle: memory of one conversation out of the cache',
          product: (all.memory - half) / 1024 / (count / 2),
          unit: 'KiB',
          toHold: '',
          holds: true,
        },
        {
          row: `idle: CPU of ${count} conversations, of one core`,
          product: all.cpu,
          unit: '%',
          toHold: '',
          holds: true,
          notes: [`${alone.cpu.toFixed(2)} % with ${BATCH}; over ${QUIET_MS / 1000} s`],
        },
      ];
    } finally {
      worker.shutdown();
      await running;
    }
  },
};

const MIB = 1024 * 1024;

async function startIdle(client: PerduraClient, temporal: Client, count: number): Promise<void> {
  for (let left = count; left > 0; left -= BATCH) {
    await Promise.all(
      Array.from({ length: Math.min(BATCH, left) }, async () => {
        const { id } = await client.start(undefined);
        while ((await temporal.workflow.getHandle(id).describe()).historyLength < IDLE_EVENTS) await sleep(50);
      }),
    );
  }
}

/** Without what is only waiting to be collected. */
function memory(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage.rss();
}

/** Percent of one core, client and worker together. */
async function cpuOfQuiet(): Promise<number> {
  const before = process.cpuUsage();
  await sleep(QUIET_MS);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 10 / QUIET_MS;
}

function noStore(): never {
  throw new Error('an idle conversation is not read');
}
