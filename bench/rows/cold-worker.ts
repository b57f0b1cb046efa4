/** What it costs a worker to take over a conversation: one replay of its history. */
import { Worker, type WorkerOptions } from '@temporalio/worker';
import type { Client } from '@temporalio/client';
import { said } from '../bodies.js';
import { cpuMeter, median, middleOf, repeat, timeTurns } from '../pairs.js';
import type { Row } from '../row.js';
import type { Talk } from '../talk.js';

const LIMIT = 1.25;
/** Pairs until one run alone gives what it gives behind all other rows. */
const WARM_UP = 6;

export const coldWorker: Row = {
  name: 'cold-worker',
  async measure({ temporal, product: productOf, floor: floorOf }, { turns, pairs }) {
    const product = await productOf('redis');
    const floor = await floorOf();
    const text = (number: number): string => said('text', 0, number);
    const own = { full: await product.start(), empty: await product.start() };
    const bare = { full: await floor.start('text'), empty: await floor.start('text') };
    await timeTurns(own.full, turns, text);
    await timeTurns(bare.full, turns, text);

    // What this process compiles is no conversation's cost, and it goes on compiling for some replays: those are not counted.
    const measured = await repeat(WARM_UP + pairs, async () => ({
      bare: await replay(temporal, floor.options, bare.full),
      own: await replay(temporal, product.options, own.full),
      bareEmpty: await replay(temporal, floor.options, bare.empty),
      ownEmpty: await replay(temporal, product.options, own.empty),
    }));
    const cpu = measured.slice(WARM_UP);
    const usually = (of: (one: (typeof cpu)[number]) => number): number => median(cpu.map(of));
    const making = { product: usually((one) => one.ownEmpty), floor: usually((one) => one.bareEmpty) };
    const middle = middleOf(cpu.map((one) => ({ product: one.own - making.product, floor: one.bare - making.floor })));
    const whole = `${usually((one) => one.own).toFixed(0)} and ${usually((one) => one.bare).toFixed(0)} ms`;
    return [
      {
        row: `cold-worker: replay of ${turns} turns, CPU`,
        ...middle,
        unit: 'ms',
        toHold: `≤ ${LIMIT}`,
        holds: middle.ratio <= LIMIT,
        notes: [
          ...middle.notes,
          `with the making of the worker: ${whole}, without a turn ${making.product.toFixed(0)} and ${making.floor.toFixed(0)} ms`,
        ],
      },
    ];
  },
};

/** Milliseconds of CPU, of all threads. */
async function replay(temporal: Client, options: WorkerOptions, { id }: Talk): Promise<number> {
  const history = await temporal.workflow.getHandle(id).fetchHistory();
  const { connection: _, namespace: _namespace, taskQueue: _taskQueue, activities: _activities, ...replayed } = options;
  const cpuNow = cpuMeter();
  await Worker.runReplayHistory(replayed, history, id);
  return cpuNow();
}
