/**
 * A conversation that is stopped while ten thousand messages come: what its state takes at each hand-over, and what a look at its
 * status costs then. Sent by signals, as programs without our client do.
 */
import { setTimeout } from 'node:timers/promises';
import pLimit from 'p-limit';
import type { Status } from '../../src/conversation/protocol/contract.js';
import { historiesOf } from '../history.js';
import { median } from '../pairs.js';
import type { Product } from '../product.js';
import type { Row } from '../row.js';

const STATE_BYTES = 512 * 1024;
/** A look at few and at many take the same, within what one look differs from the next. */
const RATIO = 1.5;
const FEW = 10;
const LOOKS = 100;
const SENT_AT_ONCE = 32;

export const queue: Row = {
  name: 'queue',
  async measure({ temporal, product: productOf }, { queued }) {
    const product = await productOf('redis');
    const { id } = await product.client.start(undefined, { mode: 'stepping' });
    await send(product, id, 1, FEW);
    const few = await lookedAt(product, id, FEW);
    const began = performance.now();
    await send(product, id, FEW + 1, queued);
    const sent = (performance.now() - began) / 1000;
    const many = await lookedAt(product, id, queued);
    const runs = await historiesOf(temporal, id);
    const states = runs.slice(1).map((run) => stateBytes(run));
    const largest = Math.max(0, ...states);
    const first = await product.client.step(id);
    return [
      {
        row: `queue: status with ${queued} queued : with ${FEW}`,
        product: many,
        floor: few,
        unit: 'ms',
        ratio: many / few,
        toHold: `≤ ${RATIO}`,
        holds: many / few <= RATIO,
        notes: [`${queued} signals in ${sent.toFixed(1)} s over ${runs.length} runs; the first step after it: ${first.did}`],
      },
      {
        row: `queue: largest state at a hand-over, ${queued} queued`,
        product: largest / 1024,
        unit: 'KiB',
        toHold: '≤ 512 KiB',
        holds: states.length > 0 && largest <= STATE_BYTES,
      },
    ];
  },
};

async function send({ client }: Product, id: string, from: number, to: number): Promise<void> {
  const few = pLimit(SENT_AT_ONCE);
  const numbers = Array.from({ length: to - from + 1 }, (_, n) => from + n);
  await Promise.all(numbers.map((n) => few(() => client.message(id, { id: `m${n}`, text: `message ${n}: where does the ship lie?` }))));
}

/** Waits until all of them are there and what is too much for state is stored, and answers what one look takes. */
async function lookedAt({ client }: Product, id: string, queued: number): Promise<number> {
  let status = await client.status(id);
  for (let before: Status | undefined; status.queued < queued || status.historyEvents !== before?.historyEvents;) {
    before = status;
    await setTimeout(500);
    status = await client.status(id);
  }
  if (status.queued !== queued) throw new Error(`${status.queued} messages are queued, of ${queued} that were sent`);
  const times: number[] = [];
  for (let i = 0; i < LOOKS; i++) {
    const begin = performance.now();
    await client.status(id);
    times.push(performance.now() - begin);
  }
  return median(times);
}

/** What a run was handed by the one before it. */
function stateBytes([started]: Awaited<ReturnType<typeof historiesOf>>[number]): number {
  const payloads = started?.workflowExecutionStartedEventAttributes?.input?.payloads ?? [];
  return payloads.reduce((sum, { data }) => sum + (data?.length ?? 0), 0);
}
