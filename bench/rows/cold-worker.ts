/** What it costs a worker to take over a conversation: one replay of its history. */
import { Worker, type WorkerOptions } from '@temporalio/worker';
import type { Client } from '@temporalio/client';
import { said } from '../bodies.js';
import { timeTurns } from '../pairs.js';
import type { Row } from '../row.js';
import type { Talk } from '../talk.js';

const LIMIT = 1.5;
const TIMES = 5;

export const coldWorker: Row = {
  name: 'cold-worker',
  async measure({ temporal, product: productOf, floor: floorOf }, { turns }) {
    const product = await productOf('redis');
    const floor = await floorOf();
    const text = (number: number): string => said('text', 0, number);
    const own = { full: await product.start(), empty: await product.start() };
    const bare = { full: await floor.start('text'), empty: await floor.start('text') };
    await timeTurns(own.full, turns, text);
    await timeTurns(bare.full, turns, text);

    const cpu = { own: Infinity, ownEmpty: Infinity, bare: Infinity, bareEmpty: Infinity };
    for (let time = 0; time < TIMES; time++) {
      cpu.own = Math.min(cpu.own, await replay(temporal, product.options, own.full));
      cpu.bare = Math.min(cpu.bare, await replay(temporal, floor.options, bare.full));
      cpu.ownEmpty = Math.min(cpu.ownEmpty, await replay(temporal, product.options, own.empty));
      cpu.bareEmpty = Math.min(cpu.bareEmpty, await replay(temporal, floor.options, bare.empty));
    }
    const [productMs, floorMs] = [cpu.own - cpu.ownEmpty, cpu.bare - cpu.bareEmpty];
    const ratio = productMs / floorMs;
    return [
      {
        row: `cold-worker: replay of ${turns} turns, CPU`,
        product: productMs,
        floor: floorMs,
        unit: 'ms',
        ratio,
        toHold: `≤ ${LIMIT}`,
        holds: ratio <= LIMIT,
        notes: [
          `with the making of the worker: ${cpu.own.toFixed(0)} and ${cpu.bare.toFixed(0)} ms, without a turn ${cpu.ownEmpty.toFixed(0)} and ${cpu.bareEmpty.toFixed(0)} ms; best of ${TIMES}`,
        ],
      },
    ];
  },
};

/** Milliseconds of CPU, of all threads. */
async function replay(temporal: Client, options: WorkerOptions, { id }: Talk): Promise<number> {
  const history = await temporal.workflow.getHandle(id).fetchHistory();
  const { connection: _, namespace: _namespace, taskQueue: _taskQueue, activities: _activities, ...replayed } = options;
  const before = process.cpuUsage();
  await Worker.runReplayHistory(replayed, history, id);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
