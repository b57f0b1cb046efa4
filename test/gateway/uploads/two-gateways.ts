/** Two gateways of one installation, each with a client and a store of its own, as two processes have: before files, or before Redis. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { createClientWith, type PerduraClient } from '../../../src/client.js';
import { oneToken } from '../../../src/gateway/access/entrance.js';
import { serveGateway, type ServedGateway, type ServeOptions } from '../../../src/gateway/index.js';
import { createFileStore } from '../../../src/stores/file/index.js';
import { createRedisStore } from '../../../src/stores/redis/index.js';
import { echo } from '../../support/echo-model.js';
import { startRedis } from '../../support/redis-server.js';
import { bytesOfFiles, bytesOfRedis } from '../../support/store-bytes.js';
import { startWorld, type World } from '../../support/world.js';

export const TOKEN = 'a-token-that-only-tests-have';
const PIXEL = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');

/** A picture, and another one for each number. */
export const picture = (n: number, bytes = 0): Buffer =>
  Buffer.concat([PIXEL, Buffer.from(`picture ${n} of a test`), Buffer.alloc(bytes, n)]);

export interface Kept {
  readonly ref: string;
  readonly mediaType: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly expiresAt: string;
  readonly used: boolean;
}

export interface TwoGateways {
  readonly world: World;
  readonly one: ServedGateway;
  readonly other: ServedGateway;
  /** Gives a request 2 seconds. */
  readonly hasty: ServedGateway;
  readonly client: PerduraClient;
  /** To the first one. */
  upload(file: Buffer, headers?: Readonly<Record<string, string>>): Promise<Response>;
  kept(file: Buffer): Promise<Kept>;
  /** All that lies in the store. */
  bytes(): Promise<string>;
  /** How often what was asked of the model has the picture in it. */
  shown(file: Buffer, from: number): number;
  close(): Promise<void>;
}

export async function startTwoGateways(kind: 'file' | 'redis'): Promise<TwoGateways> {
  const redis = kind === 'redis' ? await startRedis() : undefined;
  const world = await startWorld({ answer: (request) => echo(request), ...(redis && { redisUrl: redis.url }) });
  const dir = join(world.dir, 'memory');
  const own = (): PerduraClient =>
    createClientWith({
      client: world.temporal,
      namespace: 'default',
      taskQueue: world.taskQueue,
      store: () => (redis ? createRedisStore({ url: redis.url }) : createFileStore({ dir })),
    });
  const clients = [own(), own()] as const;
  const agents = (): Promise<string[]> => Promise.resolve(['default']);
  const serve = (client: PerduraClient, patienceMs?: ServeOptions['patienceMs']): Promise<ServedGateway> =>
    serveGateway({
      client,
      authenticate: oneToken(TOKEN),
      agents,
      port: 0,
      ...(patienceMs && { patienceMs }),
      requestsPerMinute: 100_000,
      attachments: { maxBytes: 3_000_000, silenceMs: 3_000 },
    });
  const [one, other, hasty] = await Promise.all([
    serve(clients[0]),
    serve(clients[1]),
    serve(clients[0], { headers: 1_000, request: 2_000 }),
  ]);
  const upload = (file: Buffer, headers = {}): Promise<Response> =>
    fetch(`${one.url}/v1/attachments`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, ...headers },
      body: new Uint8Array(file),
    });
  return {
    world,
    one,
    other,
    hasty,
    client: clients[1],
    upload,
    async kept(file) {
      const answer = await upload(file);
      const kept = (await answer.json()) as Kept;
      const sha256 = createHash('sha256').update(file).digest('hex');
      expect([answer.status, kept]).toMatchObject([
        201,
        { ref: expect.stringMatching(/^att_[0-9a-f]{32}$/), mediaType: 'image/png', bytes: file.byteLength, sha256 },
      ]);
      return kept;
    },
    bytes: () => (redis ? bytesOfRedis(redis.url) : bytesOfFiles(dir)),
    shown: (file, from) => JSON.stringify(world.api.hits.slice(from).map(({ body }) => body)).split(file.toString('base64')).length - 1,
    async close() {
      await Promise.all([one.close(), other.close(), hasty.close()]);
      await Promise.all(clients.map((client) => client.close()));
      await world.close();
      await redis?.stop();
    },
  };
}
