/** What goes on at once when a worker ends, and what must not go on: a worker that ends in order, and a store that is away for all. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { temporal } from '@temporalio/proto';
import type { Scene } from '../support/scene.js';
import { answerTo, echo } from '../support/echo-model.js';
import { gate, text } from '../support/provider-apis/reply.js';
import { outage, sceneTest, until } from '../support/scene.js';
import { violations } from './invariants.js';
import { startScreen } from './screen.js';

const INFO = { PERDURA_LOG_LEVEL: 'info' };
const TOOK_OVER = /its conversations go on/;
const ANSWER = 'One two three four five.';
const STORES = [{ redis: true }, {}];

for (const store of STORES) {
  const kind = store.redis ? 'redis' : 'files';

  sceneTest(
    `kill -9 in a model call (${kind}): a worker that stands by goes on with it, and does not wait for a time-out`,
    store,
    async (scene) => {
      scene.api.play({ reply: { ...text(ANSWER), hold: gate() } }, { reply: text(ANSWER) });
      const first = await scene.startWorker();
      const id = scene.id();
      const sent = scene.client.send(id, { id: 'm1', text: 'count' }, { start: {} });
      await until('a model that speaks', () => scene.api.hits.length === 1);
      const second = await scene.startWorker({ env: INFO });
      await announced(scene, kind);
      await first.kill();
      const result = await sent;

      expect(noteEnds(await retriesOf(scene, id))).toBe(true);
      expect(second.log()).toMatch(TOOK_OVER);
      expect(scene.api.hits).toHaveLength(2);
      expect(violations(await scene.client.history(id), [{ messageId: 'm1', result, expectedText: ANSWER }])).toEqual([]);
    },
  );

  sceneTest(
    `kill -9 in a tool that must not run twice (${kind}): its only attempt is given up at once by the next worker, and the model is told`,
    { ...store, ledger: true, answer: (request) => echo(request, () => [{ name: 'pay', input: { item: 'a' } }]) },
    async (scene) => {
      const first = await scene.startWorker();
      const id = scene.id();
      const sent = scene.client.send(id, { id: 'm1', text: 'do it' }, { start: {} });
      await until('a tool that has begun', () => scene.ledger().length > 0);
      const second = await scene.startWorker({ env: INFO });
      await announced(scene, kind);
      await first.kill();
      scene.letToolsEnd();
      const result = await sent;

      expect(noteEnds(await failuresOf(scene, id))).toBe(true);
      expect(second.log()).toMatch(TOOK_OVER);
      expect(scene.ledger().map(({ what }) => what)).toEqual(['start']);
      const history = await scene.client.history(id);
      expect(history.flatMap(({ message }) => (message.role === 'tool' ? [message.outcome] : []))).toEqual(['unknown']);
      expect(violations(history, [{ messageId: 'm1', result, expectedText: answerTo('do it') }])).toEqual([]);
    },
  );

  sceneTest(`a worker that ends in order (${kind}) is not taken over`, store, async (scene) => {
    scene.api.play({ reply: { ...text(ANSWER), chunks: { size: 4, delayMs: 100 } } });
    const first = await scene.startWorker();
    const second = await scene.startWorker({ env: INFO });
    const id = scene.id();
    await scene.client.start(id);
    const screen = startScreen(scene, id);
    const sent = scene.client.send(id, { id: 'm1', text: 'count' });
    await until('the beginning of an answer', () => screen.text !== '');
    first.term();
    expect(await first.ended).toEqual({ code: 0, signal: null });
    expect((await sent).text).toBe(ANSWER);
    // Longer than a silent worker would have lived on.
    await outage(3_000);
    expect(second.log()).not.toMatch(TOOK_OVER);
    expect(await retriesOf(scene, id)).toEqual([]);
  });
}

sceneTest('a redis that is away for a while ends no lease: what the workers run goes on', { redis: true }, async (scene) => {
  const held = gate();
  scene.api.play({ reply: { ...text(ANSWER), hold: held } });
  const workers = [await scene.startWorker({ env: INFO }), await scene.startWorker({ env: INFO })];
  const id = scene.id();
  const sent = scene.client.send(id, { id: 'm1', text: 'count' }, { start: {} });
  await held.reached;
  await announced(scene, 'redis');
  await scene.redis.kill();
  await outage(5_000);
  await scene.restartRedis();
  await outage(4_000);
  held.release();
  const result = await sent;

  for (const { log } of workers) expect(log()).not.toMatch(/its conversations go on|fenced/);
  expect(await retriesOf(scene, id)).toEqual([]);
  expect(scene.api.hits).toHaveLength(1);
  expect(violations(await scene.client.history(id), [{ messageId: 'm1', result, expectedText: ANSWER }])).toEqual([]);
});

/** Until the store shows that something runs. */
async function announced(scene: Scene, kind: string): Promise<void> {
  const look =
    kind === 'redis' ? await lookInRedis(scene.redis.url, scene.taskQueue) : () => lookInFiles(join(scene.dir, 'memory', 'workers'));
  await until('what runs in the store', async () => (await look()).some((text) => text.includes('"token"')));
}

async function lookInRedis(url: string, taskQueue: string): Promise<() => Promise<string[]>> {
  const { Redis } = await import('ioredis');
  return async () => {
    const redis = new Redis(url);
    const values = await redis.hvals(`perdura:{w:default:${taskQueue}}:announced`);
    redis.disconnect();
    return values;
  };
}

async function lookInFiles(folder: string): Promise<string[]> {
  const names = await readdir(folder, { recursive: true });
  return Promise.all(names.filter((name) => name.endsWith('announced')).map((name) => readFile(join(folder, name), 'utf8')));
}

type End = 'worker-lost' | 'timed out';

/** How attempts ended whose worker was killed, over all tests here. */
const ends: End[] = [];

// A machine that is too busy to look in time waits for the heartbeat, as everything did before; all of them it does not.
afterAll(() => expect(ends).toContain('worker-lost'));

/** Whether there was one, and none that ended in another way. */
function noteEnds(found: readonly (End | undefined)[]): boolean {
  const known = found.filter((end) => end !== undefined);
  ends.push(...known);
  return known.length > 0 && known.length === found.length;
}

async function retriesOf({ temporal }: Scene, id: string): Promise<(End | undefined)[]> {
  const { events } = await temporal.workflow.getHandle(id).fetchHistory();
  return (events ?? []).flatMap(({ activityTaskStartedEventAttributes: started }) =>
    started && (started.attempt ?? 1) > 1 ? [toEnd(started.lastFailure)] : [],
  );
}

async function failuresOf({ temporal }: Scene, id: string): Promise<(End | undefined)[]> {
  const { events } = await temporal.workflow.getHandle(id).fetchHistory();
  return (events ?? []).flatMap(({ activityTaskFailedEventAttributes: failed, activityTaskTimedOutEventAttributes: timedOut }) =>
    failed ? [toEnd(failed.failure)] : timedOut ? [toEnd(timedOut.failure)] : [],
  );
}

function toEnd(failure: temporal.api.failure.v1.IFailure | null | undefined): End | undefined {
  if (failure?.timeoutFailureInfo) return 'timed out';
  return failure?.applicationFailureInfo?.type === 'worker-lost' ? 'worker-lost' : undefined;
}
