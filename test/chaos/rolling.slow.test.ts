/** All workers are replaced, one after the other, while people talk: as a rollout does it, and as a node that is lost. */
import { answerTo, doAsTold } from '../support/echo-model.js';
import { figure, sceneTest, seconds, until } from '../support/scene.js';
import type { WorkerProcess } from '../support/worker-process.js';
import { violations, type Acknowledged } from './invariants.js';

const WORKERS = 2;
const CONVERSATIONS = 6;
const TOOL_MS = 200;
const WISHES = ['only words', 'note', 'pay'];

const options = { redis: true, ledger: true, answer: (request: Parameters<typeof doAsTold>[0]) => doAsTold(request, TOOL_MS) };

sceneTest(
  'workers end one after the other by SIGTERM, then by SIGKILL, under load: no turn fails, nothing is done twice',
  options,
  async (scene) => {
    scene.letToolsEnd();
    let isOver = false;
    const turns: { readonly begin: number; readonly end: number }[] = [];
    const talk = async (id: string, first: number): Promise<readonly Acknowledged[]> => {
      const told: Acknowledged[] = [];
      for (let n = first; !isOver; n += 1) {
        const [messageId, begin, wish] = [`${id}-m${n}`, Date.now(), WISHES[n % WISHES.length]];
        const text = `${messageId}: ${wish} ${messageId}`;
        const result = await scene.client.send(id, { id: messageId, text }, { start: {} });
        turns.push({ begin, end: Date.now() });
        told.push({ messageId, result, expectedText: answerTo(text) });
      }
      return told;
    };
    const start = (count: number): Promise<WorkerProcess[]> => Promise.all(Array.from({ length: count }, () => scene.startWorker()));
    const workers = await start(WORKERS);
    const ids = Array.from({ length: CONVERSATIONS }, () => scene.id());
    const talks = ids.map(talk);
    const goOn = async (): Promise<void> => {
      const since = Date.now();
      // clock: turns that began after a worker has gone
      await until('turns of all', () => turns.filter(({ begin }) => begin >= since).length >= 2 * CONVERSATIONS);
    };
    /** Each worker ends once there is another in its place. */
    const replaceAll = async (how: string, end: (worker: WorkerProcess) => Promise<unknown>): Promise<void> => {
      const from = turns.length;
      for (const old of workers.splice(0)) {
        workers.push(...(await start(1)));
        await end(old);
        await goOn();
      }
      const ms = turns.slice(from).map((turn) => turn.end - turn.begin);
      figure(
        `${how}: ${ms.length} turns, p50 ${seconds(ms.sort((a, b) => a - b)[Math.floor(ms.length / 2)]!)}, longest ${seconds(Math.max(...ms))}`,
      );
    };
    await goOn();
    await replaceAll('SIGTERM of each worker', async (old) => {
      old.term();
      expect(await old.ended).toEqual({ code: 0, signal: null });
    });
    await replaceAll('SIGKILL of each worker', (old) => old.kill());
    isOver = true;
    const told = await Promise.all(talks);
    for (const [n, id] of ids.entries()) expect([id, violations(await scene.client.history(id), told[n]!)]).toEqual([id, []]);
    const paid = scene.ledger().flatMap(({ what, name, item }) => (what === 'start' && name === 'pay' ? [item] : []));
    expect(paid.length).toBeGreaterThan(0);
    expect(paid.filter((item, n) => paid.indexOf(item) !== n)).toEqual([]);
    expect(scene.api.problems).toEqual([]);
  },
);
