/**
 * How long it takes to write a whole conversation anew, from history, into a store that has lost all of it; and what another
 * conversation of that worker notices of it.
 */
import { heal as healFromHistory, type Healed } from '../../src/heal/heal.js';
import type { Store } from '../../src/stores/store.js';
import { createRedisStore } from '../../src/stores/redis/index.js';
import { startRedis } from '../../test/support/redis-server.js';
import { said } from '../bodies.js';
import { watchEventLoop } from '../event-loop.js';
import { cpuMeter, median, repeat, timeTurns } from '../pairs.js';
import type { Measured, Row } from '../row.js';
import type { Talk } from '../talk.js';

const LIMIT_S = 1;
const LIMIT_MS = 50;
const QUIET_TURNS = 20;

export const heal: Row = {
  name: 'heal',
  async measure({ temporal, product: productOf }, { healed: turns, pairs }) {
    const { client, start } = await productOf('redis');
    const talk = await start();
    const neighbour = await start();
    await timeTurns(neighbour, QUIET_TURNS, text);
    await timeTurns(talk, turns, text);
    const before = await client.history(talk.id);
    const key = await client.key(talk.id);
    const healInto = (store: Store): Promise<Healed> =>
      healFromHistory({ service: temporal.workflowService, store, rememberedBy: () => Promise.resolve([]) }, key);

    const times = await repeat(pairs, async () => {
      const alone = await withEmptyStore(async (store) => {
        const cpuNow = cpuMeter();
        const begin = performance.now();
        const found = await healInto(store);
        return { found, seconds: (performance.now() - begin) / 1000, cpu: cpuNow() / 1000 };
      });
      const quiet = await noticed(neighbour, (turn) => turn >= QUIET_TURNS);
      const meanwhile = await withEmptyStore(async (store) => {
        let isHealed = false;
        const healing = healInto(store).finally(() => (isHealed = true));
        const [seen] = await Promise.all([noticed(neighbour, () => isHealed), healing]);
        return seen;
      });
      return { ...alone, quiet, meanwhile };
    });

    const { found } = times[0] ?? { found: undefined };
    const middle = (of: (one: (typeof times)[number]) => number): number => median(times.map(of));
    const each = (of: (one: (typeof times)[number]) => number, digits: number): string =>
      times.map((one) => of(one).toFixed(digits)).join(', ');
    const seconds = middle((one) => one.seconds);
    const lost = Math.max(...times.map((one) => before.length - one.found.restored));
    return [
      {
        row: `heal: ${turns} turns`,
        product: seconds,
        unit: 's',
        toHold: `≤ ${LIMIT_S} s`,
        holds: seconds <= LIMIT_S,
        notes: [
          `${found?.runs} runs, ${found?.events} events, ${found?.restored} entries, ${middle((one) => one.cpu).toFixed(1)} s of CPU`,
          `each: ${each((one) => one.seconds, 2)} s`,
        ],
      },
      { row: `heal: entries of ${turns} turns that are not back`, product: lost, unit: '', toHold: '0', holds: lost === 0 },
      disturbance(
        'heal: longest block of the event loop meanwhile',
        middle((one) => one.meanwhile.block),
        middle((one) => one.quiet.block),
        [`each: ${each((one) => one.meanwhile.block, 1)} ms; the floor is without healing: ${each((one) => one.quiet.block, 1)} ms`],
      ),
      disturbance(
        'heal: what a turn of another conversation takes longer meanwhile',
        middle((one) => Math.max(0, one.meanwhile.turn - one.quiet.turn)),
        undefined,
        [
          `median turn meanwhile: ${each((one) => one.meanwhile.turn, 0)} ms, of ${each((one) => one.meanwhile.turns, 0)} turns`,
          `slowest: ${each((one) => one.meanwhile.slowest, 0)} ms`,
          `median turn without healing: ${each((one) => one.quiet.turn, 0)} ms; slowest of ${QUIET_TURNS}: ${each((one) => one.quiet.slowest, 0)} ms`,
        ],
      ),
    ];
  },
};

function disturbance(row: string, ms: number, floor: number | undefined, notes: readonly string[]): Measured {
  const bare = floor === undefined ? {} : { floor };
  return { row, product: ms, ...bare, unit: 'ms', toHold: `≤ ${LIMIT_MS} ms`, holds: ms <= LIMIT_MS, notes };
}

function text(number: number): string {
  return said('text', 0, number);
}

interface Noticed {
  /** Milliseconds, all of them. */
  readonly block: number;
  readonly turn: number;
  readonly slowest: number;
  readonly turns: number;
}

/** What a conversation notices that goes on talking until it is told that it has been long enough. */
async function noticed(talk: Talk, isEnough: (turn: number) => boolean): Promise<Noticed> {
  const longestBlock = watchEventLoop();
  const times: number[] = [];
  do times.push(...(await timeTurns(talk, 1, text, times.length)));
  while (!isEnough(times.length));
  return { block: longestBlock(), turn: median(times), slowest: Math.max(...times), turns: times.length };
}

async function withEmptyStore<T>(work: (store: Store) => Promise<T>): Promise<T> {
  const empty = await startRedis({ appendonly: true });
  const store = createRedisStore({ url: empty.url });
  try {
    return await work(store);
  } finally {
    await store.close();
    await empty.stop();
  }
}
