/** Servers and workers of one run of the bench, each started when a row first asks for it. Closed in reverse order. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { installLog } from '../src/telemetry/observability.js';
import { registerAttributes } from '../src/client/temporal/connection.js';
import { startRedisCluster } from '../test/support/redis-cluster.js';
import { startRedis } from '../test/support/redis-server.js';
import { startTemporal } from '../test/support/temporal-server.js';
import { startFloor, type Floor } from './floor.js';
import { startModel } from './model.js';
import { startProduct, type Product, type StoreKind } from './product.js';

export interface Surroundings {
  readonly temporal: Client;
  readonly serverVersion: string;
  readonly address: string;
  product(store: StoreKind): Promise<Product>;
  /** The same with all that is stored encrypted, in store and Temporal. */
  encrypted(store: StoreKind): Promise<Product>;
  floor(): Promise<Floor>;
  close(): Promise<void>;
}

type Close = () => Promise<unknown>;

export async function createSurroundings({ isCluster }: { readonly isCluster: boolean }): Promise<Surroundings> {
  installLog('error');
  const closes: Close[] = [];
  const close = async (): Promise<void> => {
    for (const one of closes.splice(0).reverse()) await one();
  };
  /** Starts once, and is closed with the rest. */
  const once = <Key extends string, T extends { close: Close }>(start: (key: Key) => Promise<T>) => {
    const started = new Map<Key, Promise<T>>();
    return (key: Key): Promise<T> => {
      const known = started.get(key);
      if (known) return known;
      const starting = start(key).then((it) => (closes.push(() => it.close()), it));
      started.set(key, starting);
      return starting;
    };
  };

  try {
    const dir = await mkdtemp(join(tmpdir(), 'perdura-bench-'));
    closes.push(() => rm(dir, { recursive: true, force: true }));
    const server = await startTemporal({ dbFile: join(dir, 'temporal.db') });
    closes.push(() => server.stop());
    const channelArgs = { 'grpc.max_receive_message_length': 256 * 1024 * 1024 };
    const ours = await Connection.connect({ address: server.address, channelArgs });
    closes.push(() => ours.close());
    await registerAttributes(ours, 'default');
    const native = await NativeConnection.connect({ address: server.address });
    closes.push(() => native.close());
    const model = await startModel();
    closes.push(() => model.close());

    const temporal = new Client({ connection: ours });
    const { serverVersion } = await ours.workflowService.getSystemInfo({});
    const redis = once(async (_: 'redis') => {
      const { url, stop } = isCluster ? await startRedisCluster() : await startRedis({ appendonly: true });
      return { url, close: stop };
    });
    const productOf = (suffix: string, roots?: readonly Uint8Array[]) =>
      once(async (store: StoreKind) => {
        const redisUrl = store === 'redis' ? (await redis('redis')).url : undefined;
        const taskQueue = `${store === 'redis' ? 'perdura' : 'perdura-file'}${suffix}`;
        const place = { dir: join(dir, `${store}${suffix}`), taskQueue, redisUrl };
        return startProduct({ ...place, temporal, connection: native, modelUrl: model.url, ...(roots && { roots }) });
      });
    const product = productOf('');
    const encrypted = productOf('-e', [randomBytes(32)]);
    const floor = once((_: 'floor') => startFloor(temporal, native));
    return {
      temporal,
      serverVersion: serverVersion ?? 'unknown',
      address: server.address,
      product,
      encrypted,
      floor: () => floor('floor'),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
