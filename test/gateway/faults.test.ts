/** Workers, stores, servers and gateways end in the middle of a stream: its readers come back, and have the whole answer once. */
import { Redis } from 'ioredis';
import { createGateway } from '../../src/gateway/app.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import { oneToken } from '../../src/gateway/access/tokens.js';
import { ask, type Asking, beginToRead, framesOf, Reader, TOKEN } from '../support/event-reader.js';
import { gate, text } from '../support/provider-apis/reply.js';
import { sceneTest, until, type Scene } from '../support/scene.js';

const ANSWER = 'One two three four five six seven eight nine ten eleven twelve, and a last word: déjà vu 🎉.';
const REDIS = { redis: true, impatient: true };

const gatewayOf = ({ client }: Scene): GatewayApp => createGateway({ client, authenticate: oneToken(TOKEN), requestsPerMinute: 100_000 });

/** As a client over HTTP would. */
const to =
  (app: GatewayApp): Asking =>
  (path, init) =>
    Promise.resolve(app.request(`http://localhost${path}`, init));

function endsWell(reader: Reader): void {
  expect(reader.ends).toEqual([ANSWER]);
  expect(reader.drawn).toBe(ANSWER);
}

/** In the middle of the answer: one stays, and one has left and comes back. */
async function twoReaders(app: GatewayApp, id: string): Promise<{ endWell(): Promise<void> }> {
  const back = new Reader();
  await beginToRead(to(app), id, back);
  const stayed = new Reader();
  const staying = stayed.follow(() => to(app), id);
  await until('a part of the answer', () => stayed.events.some(({ kind }) => kind === 'text'));
  return {
    async endWell() {
      await Promise.all([staying, back.follow(() => to(app), id)]);
      endsWell(stayed);
      endsWell(back);
    },
  };
}

sceneTest('kill -9 of the worker: a reader that stayed and one that came back have the whole answer, once', REDIS, async (scene) => {
  scene.api.play({ reply: { ...text(ANSWER), hold: gate({ chars: 20 }) } }, { reply: text(ANSWER) });
  const [app, id] = [gatewayOf(scene), scene.id()];
  const first = await scene.startWorker();
  const readers = await twoReaders(app, id);
  await first.kill();
  await scene.startWorker();
  await readers.endWell();
  expect(scene.api.hits).toHaveLength(2);
});

sceneTest('kill -9 of Redis in the middle of a stream: both have the whole answer, once', REDIS, async (scene) => {
  const held = gate({ chars: 20 });
  scene.api.play({ reply: { ...text(ANSWER), hold: held } });
  const [app, id] = [gatewayOf(scene), scene.id()];
  await scene.startWorker();
  const readers = await twoReaders(app, id);
  await scene.redis.kill();
  held.release();
  await scene.restartRedis();
  await readers.endWell();
});

sceneTest(
  'kill -9 of Temporal in the middle of a stream: both have the whole answer, once',
  { ...REDIS, ownTemporal: true },
  async (scene) => {
    const held = gate({ chars: 20 });
    scene.api.play({ reply: { ...text(ANSWER), hold: held } }, { reply: text(ANSWER) });
    const [app, id] = [gatewayOf(scene), scene.id()];
    await scene.startWorker();
    const readers = await twoReaders(app, id);
    await scene.killTemporal();
    held.release();
    await scene.restartTemporal();
    await readers.endWell();
  },
  120_000,
);

sceneTest('a gateway that dies while it sends: the same id through another one is one turn', REDIS, async (scene) => {
  const held = gate({ chars: 20 });
  scene.api.play({ reply: { ...text(ANSWER), hold: held } });
  const id = scene.id();
  await scene.startWorker();
  const dying = new AbortController();
  const first = createGateway({ client: scene.client, authenticate: oneToken(TOKEN), closing: dying.signal });
  const begun = new Reader();
  const reading = beginToRead(to(first), id, begun);
  await held.reached;
  dying.abort();
  await reading;
  const second = gatewayOf(scene);
  const again = new Reader();
  const response = await ask(to(second), 'POST', `/v1/conversations/${id}/messages`, {}, { id: 'm1', text: 'count', start: {} });
  held.release();
  for await (const frame of framesOf(response)) again.take(frame);
  endsWell(again);
  await begun.follow(() => to(second), id);
  endsWell(begun);
  expect(scene.api.hits).toHaveLength(1);
  expect((await scene.client.status(id)).turns).toBe(1);
});

sceneTest('more readers of one turn than Temporal lets wait: all have its end', REDIS, async (scene) => {
  const held = gate({ chars: 20 });
  scene.api.play({ reply: { ...text(ANSWER), hold: held } });
  const [app, id] = [gatewayOf(scene), scene.id()];
  await scene.startWorker();
  await beginToRead(to(app), id, new Reader());
  const readers = Array.from({ length: 24 }, () => new Reader());
  const all = Promise.all(readers.map((reader) => reader.follow(() => to(app), id)));
  await until('a part of the answer everywhere', () => readers.every(({ events }) => events.length > 0));
  held.release();
  await all;
  for (const reader of readers) endsWell(reader);
});

sceneTest('a feed that is lost in the middle of a stream: the whole answer comes at the end, once', REDIS, async (scene) => {
  const held = gate({ chars: 20 });
  scene.api.play({ reply: { ...text(ANSWER), hold: held } });
  const [app, id] = [gatewayOf(scene), scene.id()];
  await scene.startWorker();
  const readers = await twoReaders(app, id);
  const redis = new Redis(scene.redis.url);
  const feeds = await redis.keys('*feed*');
  expect(await redis.del(...feeds)).toBeGreaterThan(0);
  redis.disconnect();
  held.release();
  await readers.endWell();
});
