/** How long it takes to write a whole conversation anew, from history, into a store that has lost all of it. */
import { heal as healFromHistory } from '../../src/heal/heal.js';
import { createRedisStore } from '../../src/stores/redis.js';
import { startRedis } from '../../test/support/redis-server.js';
import { said } from '../bodies.js';
import { timeTurns } from '../pairs.js';
import type { Row } from '../row.js';

const LIMIT_S = 5;

export const heal: Row = {
  name: 'heal',
  async measure({ temporal, product: productOf }, { healed: turns }) {
    const { client, options, start } = await productOf('redis');
    const { workflowBundle, dataConverter } = options;
    const talk = await start();
    await timeTurns(talk, turns, (number) => said('text', 0, number));
    const before = await client.history(talk.id);
    const key = await client.key(talk.id);

    const empty = await startRedis({ appendonly: true });
    const store = createRedisStore({ url: empty.url });
    try {
      const begin = performance.now();
      const cpuBefore = process.cpuUsage();
      const found = await healFromHistory(
        { service: temporal.workflowService, code: { workflowBundle, dataConverter }, store, rememberedBy: () => Promise.resolve([]) },
        key,
      );
      const seconds = (performance.now() - begin) / 1000;
      const { user, system } = process.cpuUsage(cpuBefore);
      const lost = before.length - found.restored;
      return [
        {
          row: `heal: ${turns} turns`,
          product: seconds,
          unit: 's',
          toHold: `≤ ${LIMIT_S} s`,
          holds: seconds <= LIMIT_S,
          notes: [`${found.runs} runs, ${found.events} events, ${found.restored} entries, ${((user + system) / 1e6).toFixed(1)} s of CPU`],
        },
        { row: `heal: entries of ${turns} turns that are not back`, product: lost, unit: '', toHold: '0', holds: lost === 0 },
      ];
    } finally {
      await store.close();
      await empty.stop();
    }
  },
};
