/**
 * One process of each service of a cluster is killed, and then both, while conversations go on: each message is answered once, in its
 * order, and the time for which people wait is on the screen. Everything at once, with workers, gateway and Redis: storm.slow.test.ts.
 */
import { violations, type Acknowledged } from '../chaos/invariants.js';
import { answerTo, echo } from '../support/echo-model.js';
import { figure, openScene, seconds, until } from '../support/scene.js';
import { NO_CLUSTER, SERVICES } from '../support/temporal-cluster.js';

const CONVERSATIONS = 6;

if (NO_CLUSTER) test.skip(NO_CLUSTER, () => undefined);
else
  test('each service loses one process, and then both, in the middle of conversations: 0 lost, 0 doubled', async () => {
    const scene = await openScene({ ownTemporal: 'cluster', answer: (request) => echo(request) });
    const cluster = scene.cluster!;
    let isOver = false;
    const turns: { readonly begin: number; readonly end: number }[] = [];
    const talk = async (id: string): Promise<readonly Acknowledged[]> => {
      const acknowledged: Acknowledged[] = [];
      for (let n = 0; !isOver; n += 1) {
        const [messageId, text, begin] = [`m${n}`, `message ${n}`, Date.now()];
        const result = await scene.client.send(id, { id: messageId, text }, { start: {} });
        turns.push({ begin, end: Date.now() });
        acknowledged.push({ messageId, result, expectedText: answerTo(text) });
      }
      return acknowledged;
    };
    try {
      await scene.startWorker();
      const ids = Array.from({ length: CONVERSATIONS }, () => scene.id());
      const talks = ids.map(talk);
      /** As many turns of later messages as there are conversations, twice. */
      const goOn = async (since: number): Promise<number> => {
        // clock: a figure that is told, and turns that began after a kill
        const later = () => turns.filter(({ begin }) => begin >= since);
        await until('conversations that go on', () => later().length >= 2 * CONVERSATIONS, 300_000);
        // clock: a figure that is told
        return Math.max(...turns.filter(({ end }) => end >= since).map(({ begin, end }) => end - begin));
      };
      const calm = await goOn(Date.now());
      figure(`a cluster that is calm: the longest of ${turns.length} turns took ${seconds(calm)}`);
      for (const both of [false, true]) {
        for (const service of SERVICES) {
          if (service === 'database' && !both) continue;
          const at = Date.now();
          await cluster.kill(service, ...(both ? [] : [0]));
          if (both) cluster.start(service);
          const longest = await goOn(at);
          if (!both) cluster.start(service);
          figure(
            `${service === 'database' ? 'the database' : both ? `both ${service}` : `one of two ${service}`} killed: the longest turn took ${seconds(longest)}`,
          );
          await goOn(Date.now());
        }
      }
      isOver = true;
      const answered = await Promise.all(talks);
      for (const [n, id] of ids.entries()) expect([id, violations(await scene.client.history(id), answered[n] ?? [])]).toEqual([id, []]);
      expect(scene.api.problems).toEqual([]);
      expect(cluster.deaths()).toEqual([]);
      figure(`${turns.length} turns in ${CONVERSATIONS} conversations, all answered once`);
    } finally {
      isOver = true;
      scene.leaving.abort();
      await scene.close();
    }
  }, 1_200_000);
