/**
 * kill -9 of everything there is, while unmodified clients of five protocols stream from a gateway in a process of its own. Each comes back
 * and ends with the whole answer; one that never comes back leaves nothing.
 */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { answerText } from '../../src/records/message.js';
import { ask, beginToRead, Reader } from '../support/event-reader.js';
import { gate, text, type Gate } from '../support/provider-apis/reply.js';
import { sceneTest, until, type GatewayProcess, type Scene, type SceneOptions } from '../support/scene.js';
import { a2aClient, aguiClient, chatClient, eventClient, responsesClient, to, type Where } from '../support/stream-clients.js';
import type { WorkerProcess } from '../support/worker-process.js';

const ANSWER = 'Один два três 四 five six seven eight nine ten — 🦔 eleven twelve, and a last word: déjà vu.';

interface Struck {
  readonly scene: Scene;
  readonly gateway: GatewayProcess;
  readonly worker: WorkerProcess;
  readonly held: Gate;
}

interface Fault {
  readonly what: string;
  readonly options?: SceneOptions;
  /** What is killed, and what comes in its place. Answers the gateway that there is then. */
  readonly strike: (struck: Struck) => Promise<GatewayProcess>;
  /** Model calls of one turn: the worker's death takes its call along. */
  readonly calls?: number;
}

const FAULTS: readonly Fault[] = [
  {
    what: 'the worker',
    calls: 2,
    async strike({ scene, gateway, worker, held }) {
      await worker.kill();
      held.release();
      await scene.startWorker();
      return gateway;
    },
  },
  {
    what: 'the gateway, which is started again on its port',
    async strike({ scene, gateway }) {
      await gateway.kill();
      return scene.startGateway({ port: gateway.port });
    },
  },
  {
    what: 'the gateway and the worker',
    calls: 2,
    async strike({ scene, gateway, worker, held }) {
      await Promise.all([gateway.kill(), worker.kill()]);
      held.release();
      const [, again] = await Promise.all([scene.startWorker(), scene.startGateway({ port: gateway.port })]);
      return again;
    },
  },
  {
    what: 'Redis, which comes back with its data',
    async strike({ scene, gateway }) {
      await scene.redis.kill();
      await scene.restartRedis();
      return gateway;
    },
  },
  {
    what: 'Redis, which comes back without its data',
    async strike({ scene, gateway }) {
      await scene.redis.kill();
      await rm(join(scene.dir, 'redis'), { recursive: true });
      await mkdir(join(scene.dir, 'redis'));
      await scene.restartRedis();
      return gateway;
    },
  },
  {
    what: 'nothing, but the live events are lost',
    async strike({ scene, gateway }) {
      const redis = new Redis(scene.redis.url);
      expect(await redis.del(...(await redis.keys('*feed*')))).toBeGreaterThan(0);
      redis.disconnect();
      return gateway;
    },
  },
  {
    what: 'Temporal, which comes back with its database',
    options: { ownTemporal: true },
    async strike({ scene, gateway }) {
      await scene.killTemporal();
      await scene.restartTemporal();
      return gateway;
    },
  },
];

async function openStreams(where: Where): Promise<number> {
  const response = await ask(to(where), 'GET', '/metrics', { accept: 'text/plain' });
  return Number(/^perdura_gateway_open_streams (\d+)$/m.exec(await response.text())?.[1] ?? NaN);
}

for (const { what, options, strike, calls = 1 } of FAULTS) {
  sceneTest(
    `kill -9 of ${what}: each client comes back, and ends with the whole answer`,
    { redis: true, impatient: true, ...options },
    async (scene) => {
      const held = gate({ chars: 20 });
      scene.api.play(...Array.from({ length: 6 }, () => ({ reply: { ...text(ANSWER), hold: held } })));
      scene.api.play(...Array.from({ length: 12 }, () => ({ reply: text(ANSWER) })));
      const worker = await scene.startWorker();
      let gateway = await scene.startGateway();
      const where: Where = () => gateway.url;
      const named = [eventClient, a2aClient, aguiClient].map((client) => client(where, scene.id()));
      const clients = [...named, chatClient(where, scene.id(), ANSWER), responsesClient(where)];
      const lost = eventClient(where, scene.id());
      await Promise.all([...clients, lost].map((client) => client.begin()));

      gateway = await strike({ scene, gateway, worker, held });
      held.release();
      await Promise.all(clients.map((client) => until('the end of the answer', () => client.comeBack(), 80_000)));

      expect(clients.map((client) => client.final())).toEqual(clients.map(() => ANSWER));
      expect(scene.api.hits).toHaveLength(6 * calls);
      for (const client of [...clients, lost]) {
        const id = client.conversation();
        await until('its only turn', async () => (await scene.client.status(id)).turns === 1);
        const said = async (): Promise<string> => (await scene.client.history(id)).map(({ message }) => answerText(message)).join('');
        await until('what the store has', async () => (await said()) === ANSWER);
      }
      await until('no stream that is open', async () => (await openStreams(where)) === 0);
      const redis = new Redis(scene.redis.url);
      const blocked = async (): Promise<number> => String(await redis.call('CLIENT', 'LIST')).split(' flags=b ').length - 1;
      await until('no reader of a feed', async () => (await blocked()) === 0);
      redis.disconnect();
    },
  );
}

sceneTest('more readers of one turn than Temporal lets wait: all have its end', { redis: true, impatient: true }, async (scene) => {
  const held = gate({ chars: 20 });
  scene.api.play({ reply: { ...text(ANSWER), hold: held } });
  const id = scene.id();
  await scene.startWorker();
  const { url } = await scene.startGateway();
  const here = to(() => url);
  await beginToRead(here, id, new Reader());
  const readers = Array.from({ length: 24 }, () => new Reader());
  const all = Promise.all(readers.map((reader) => reader.follow(() => here, id)));
  await until('a part of the answer everywhere', () => readers.every(({ events }) => events.length > 0));
  held.release();
  await all;
  for (const { ends, drawn } of readers) expect([ends, drawn]).toEqual([[ANSWER], ANSWER]);
});
