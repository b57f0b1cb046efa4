/**
 * How long a fork takes in the middle of a long conversation, what it adds to the store, and whether any tool runs for it. The turns are
 * written straight into the store: what is measured is the fork.
 */
import type { Entry } from '../../src/records/message.js';
import { turnId } from '../../src/records/identity.js';
import type { ConversationKey, Store } from '../../src/stores/store.js';
import { ANSWER, FINDING } from '../bodies.js';
import { median } from '../pairs.js';
import type { Product, StoreKind } from '../product.js';
import type { Measured, Row } from '../row.js';
import { toolRuns } from '../tools.js';

const LIMIT_MS = 1_000;
const LIMIT_GROWTH = 0.05;
const FORKS = 5;
/** Slots of a turn: a message, a call, its result, an answer. */
const OF_A_TURN = 4;

export const fork: Row = {
  name: 'fork',
  async measure({ product: productOf }, { forked: turns }) {
    const rows: Measured[] = [];
    for (const kind of ['redis', 'file'] as const) rows.push(...(await measureOn(kind, await productOf(kind), turns)));
    return rows;
  },
};

async function measureOn(kind: StoreKind, product: Product, turns: number): Promise<Measured[]> {
  const { client, openStore } = product;
  const { id } = await product.start();
  const key = await client.key(id);
  const store = openStore();
  try {
    const empty = await product.storedBytes();
    await write(store, key, turns);
    const size = (await product.storedBytes()) - empty;
    const at = turnId(turns / 2);
    // What a first fork of a worker costs once: reading what it has never read.
    await client.fork(id, { at });
    const before = await product.storedBytes();
    const runs = toolRuns();
    const times: number[] = [];
    for (let i = 0; i < FORKS; i++) {
      const begin = performance.now();
      const begun = await client.fork(id, { at });
      times.push(performance.now() - begin);
      if (begun.turns !== turns / 2) throw new Error(`a fork at ${at} has ${begun.turns} turns`);
    }
    const growth = ((await product.storedBytes()) - before) / FORKS / size;
    const ran = toolRuns() - runs;
    const ms = median(times);
    const row = `fork at turn ${turns / 2} of ${turns} (${kind})`;
    return [
      {
        row,
        product: ms,
        unit: 'ms',
        toHold: `≤ ${LIMIT_MS} ms`,
        holds: ms <= LIMIT_MS,
        notes: [`${FORKS} forks: ${times.map((each) => each.toFixed(0)).join(', ')} ms`],
      },
      {
        row: `${row}: the store grows by`,
        product: 100 * growth,
        unit: '%',
        toHold: `< ${100 * LIMIT_GROWTH} %`,
        holds: growth < LIMIT_GROWTH,
        notes: [`${(size / 1024).toFixed(0)} KiB in the store before`],
      },
      { row: `${row}: tools run`, product: ran, unit: '', toHold: '0', holds: ran === 0 },
    ];
  } finally {
    await store.close();
  }
}

async function write(store: Store, key: ConversationKey, turns: number): Promise<void> {
  const entries = Array.from({ length: turns }, (_, i) => aTurn(i + 1)).flat();
  for (let at = 0; at < entries.length; at += 400) await store.entries.append(key, entries.slice(at, at + 400));
}

function aTurn(number: number): Entry[] {
  const turn = turnId(number);
  const slot = OF_A_TURN * (number - 1) + 1;
  const callId = `${turn}/c1`;
  const model = 'anthropic/claude-sonnet-5-5';
  const at = (i: number): Pick<Entry, 'v' | 'slot' | 'session' | 'turn' | 'seq' | 'ts'> => ({
    v: 1,
    slot: slot + i,
    session: 1,
    turn,
    seq: i + 1,
    ts: 1_780_000_000 + 60 * number + i,
  });
  return [
    { ...at(0), message: { role: 'user', text: `Question ${number}: where does the ship lie?` }, messageId: `bench-${number}` },
    {
      ...at(1),
      message: {
        role: 'assistant',
        blocks: [{ kind: 'tool-call', callId, name: 'ordinary', input: { question: `${number}` } }],
        model,
        stop: 'tool-calls',
      },
    },
    { ...at(2), message: { role: 'tool', callId, name: 'ordinary', outcome: 'ok', text: FINDING } },
    { ...at(3), message: { role: 'assistant', blocks: [{ kind: 'text', text: ANSWER }], model, stop: 'end' } },
  ];
}
