/**
 * Everything for a test in which processes die: a scripted API, a store, worker processes and a client that is configured as
 * a person's would be. Whatever a test started is ended with it, also when it fails or takes too long.
 */
import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { Client } from '@temporalio/client';
import type { WorkerOptions } from '@temporalio/worker';
import { openConnection } from '../../src/client/temporal/connection.js';
import { createClient, type PerduraClient } from '../../src/client.js';
import { loadConfig } from '../../src/config.js';
import { startMessagesApi, type MessagesApi, type MessagesApiOptions } from './provider-apis/messages-api.js';
import { dieWithUs } from './reaper.js';
import { startRedisCluster, type RedisClusterServers } from './redis-cluster.js';
import { startRedis, type RedisServer } from './redis-server.js';
import { freePort } from '../../src/testing/temporal-server.js';
import { RECOMMENDED, startCluster, type Cluster } from './temporal-cluster.js';
import { startTemporal, type TemporalServer } from './temporal-server.js';
import { forgetMemories } from './world.js';
import { startWorkerProcess, type WorkerProcess } from './worker-process.js';

export interface SceneOptions extends MessagesApiOptions {
  /** Redis with AOF, of this scene alone, or a cluster of six; files without it. */
  readonly redis?: boolean | 'cluster';
  /** Further arguments of that Redis, and what is done with its folder before it starts. */
  readonly redisArgs?: readonly string[];
  readonly onRedisFolder?: (folder: string) => Promise<void>;
  /** Its folder stays. */
  readonly keep?: boolean;
  /** A Temporal server of this scene alone, with its database in a file, or a cluster; the shared one without it. */
  readonly ownTemporal?: boolean | 'cluster';
  /** Content of agents/default/agent.json. */
  readonly agent?: object;
  /** What the file tools find. */
  readonly files?: Readonly<Record<string, string>>;
  /**
   * A dead worker's conversations wait for it a second, and not the two of the product: for tests of what is done after a kill. When it is
   * done, those have the product's own wait that are about it (worker-killed, tool-killed).
   */
  readonly impatient?: boolean;
  /** With the tools `note`, `pay` and `ship` (ledger-tools.cjs). */
  readonly ledger?: boolean;
  /** Files beside `agents`, where processes begin. */
  readonly root?: Readonly<Record<string, string>>;
  /** Further settings of workers, gateways and the client. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface GatewayProcess extends WorkerProcess {
  readonly url: string;
  readonly port: number;
  readonly token: string;
}

export interface LedgerLine {
  readonly what: 'start' | 'end';
  readonly name: 'note' | 'pay';
  readonly item: string;
  readonly callId: string;
  readonly pid: number;
}

export interface Scene {
  readonly dir: string;
  readonly address: string;
  readonly taskQueue: string;
  /** Settings of its workers. */
  readonly env: Readonly<Record<string, string>>;
  readonly api: MessagesApi;
  readonly client: PerduraClient;
  readonly temporal: Client;
  /** A conversation id that nobody used. */
  readonly id: () => string;
  readonly redis: RedisServer;
  readonly redisCluster: RedisClusterServers;
  /** SIGKILL of Redis or Temporal comes from the test; these start another on the same data. */
  restartRedis(): Promise<void>;
  killTemporal(): Promise<void>;
  /** Of its Temporal server, 0 where that is everybody's. */
  readonly temporalPid: number;
  restartTemporal(): Promise<void>;
  /** With `ownTemporal: 'cluster'`, in place of these three. */
  readonly cluster?: Cluster;
  /** Resolves once it takes work. `address`: another way to Temporal; `apiUrl`: another model than the scripted one; `preload`: before the ledger. */
  startWorker(options?: {
    readonly address?: string;
    readonly apiUrl?: string;
    readonly preload?: string | readonly string[];
    readonly env?: Readonly<Record<string, string>>;
    /** A worker of these tools alone. */
    readonly tools?: readonly string[];
    readonly product?: string;
  }): Promise<WorkerProcess>;
  /** `perdura serve` as a process that can be killed; without `port` on one that is free. */
  startGateway(options?: { readonly port?: number; readonly env?: Readonly<Record<string, string>> }): Promise<GatewayProcess>;
  readonly ledger: () => LedgerLine[];
  /** From now on the tools of the ledger end at once. */
  readonly letToolsEnd: () => void;
  /** From now on whoever asks finds that `ship` was done. */
  readonly noteShipped: () => void;
  /** Ended with the scene, last one first. */
  onClose(end: () => unknown): void;
}

const GATEWAY_TOKEN = 'a-token-that-only-tests-have';
const IMPATIENCE: Partial<WorkerOptions> = { stickyQueueScheduleToStartTimeout: '1s' };

export interface OpenScene extends Scene {
  /** Aborted at first when the scene closes. */
  readonly leaving: AbortController;
  close(): Promise<void>;
}

/** For programs that are no test: `close` it. */
export async function openScene(options: SceneOptions): Promise<OpenScene> {
  const ends: (() => unknown)[] = [];
  const close = async (): Promise<void> => {
    for (let end = ends.pop(); end; end = ends.pop()) await Promise.resolve(end()).catch(() => undefined);
  };
  try {
    return await build(options, ends, close);
  } catch (error) {
    await close();
    throw error;
  }
}

async function build(options: SceneOptions, ends: (() => unknown)[], close: () => Promise<void>): Promise<OpenScene> {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-scene-'));
  if (options.keep !== true) ends.push(() => rm(dir, { recursive: true, force: true, maxRetries: 3 }));
  await mkdir(join(dir, 'agents', 'default'), { recursive: true });
  await mkdir(join(dir, 'workspace'));
  await mkdir(join(dir, 'redis'));
  await options.onRedisFolder?.(join(dir, 'redis'));
  await writeFile(join(dir, 'agents', 'default', 'agent.json'), JSON.stringify(options.agent ?? {}));
  for (const [name, text] of Object.entries(options.files ?? {})) await writeFile(join(dir, 'workspace', name), text);

  for (const [name, text] of Object.entries(options.root ?? {})) await writeFile(join(dir, name), text);

  const api = await startMessagesApi(options);
  ends.push(() => api.close());

  const startOwnRedis = async (port?: number): Promise<RedisServer> => {
    const server = await startRedis({
      dir: join(dir, 'redis'),
      appendonly: true,
      args: options.redisArgs,
      ...(port === undefined ? {} : { port }),
    });
    const spare = dieWithUs(server.pid);
    ends.push(async () => {
      await server.kill();
      spare();
    });
    return server;
  };
  let redis = options.redis === true ? await startOwnRedis() : undefined;
  const redisCluster =
    options.redis === 'cluster' ? await startRedisCluster({ args: options.redisArgs, onStart: ({ pid }) => dieWithUs(pid) }) : undefined;
  if (redisCluster) ends.push(() => redisCluster.stop());
  const redisUrl = redisCluster?.url ?? redis?.url;

  const startOwnTemporal = async (port?: number): Promise<TemporalServer> => {
    const server = await startTemporal({ dbFile: join(dir, 'temporal.db'), ...(port === undefined ? {} : { port }) });
    const spare = dieWithUs(server.pid);
    ends.push(async () => {
      await server.kill();
      spare();
    });
    return server;
  };
  let temporalServer = options.ownTemporal === true ? await startOwnTemporal() : undefined;
  const cluster = options.ownTemporal === 'cluster' ? await startCluster({ dynamicConfig: RECOMMENDED }) : undefined;
  if (cluster) ends.push(() => cluster.stop());
  const address = temporalServer?.address ?? cluster?.address ?? process.env['PERDURA_TEST_ADDRESS'] ?? '';

  const taskQueue = `scene-${randomUUID()}`;
  const ledgerFile = join(dir, 'ledger');
  const environment = (to: string, apiUrl: string): Record<string, string> => ({
    TEMPORAL_ADDRESS: to,
    ...(redisUrl === undefined ? { PERDURA_MEMORY_DIR: join(dir, 'memory') } : { REDIS_URL: redisUrl }),
    ANTHROPIC_BASE_URL: apiUrl,
    ANTHROPIC_API_KEY: 'test',
    PERDURA_AGENTS_DIR: join(dir, 'agents'),
    PERDURA_WORKSPACE: join(dir, 'workspace'),
    PERDURA_TASK_QUEUE: taskQueue,
    PERDURA_LOG_LEVEL: 'warn',
    LEDGER: ledgerFile,
    ...options.env,
  });

  // Until the next worker has started, however busy the machine is: there is none, and that is what these tests are about.
  const client = await createClient(loadConfig(environment(address, api.url), dir), { workerPatienceMs: Infinity });
  ends.push(() => client.close());
  const leaving = new AbortController();
  setMaxListeners(0, leaving.signal);
  const connection = await openConnection({ address });
  ends.push(() => connection.close());
  if (!options.ownTemporal) ends.push(() => forgetMemories(new Client({ connection }), taskQueue));

  return {
    dir,
    address,
    taskQueue,
    env: environment(address, api.url),
    api,
    client: { ...client, send: (id, message, more) => client.send(id, message, { signal: leaving.signal, ...more }) },
    temporal: new Client({ connection }),
    id: () => `c-${randomUUID()}`,
    get redis() {
      if (!redis) throw new Error('this scene has no Redis: open it with { redis: true }');
      return redis;
    },
    get redisCluster() {
      if (!redisCluster) throw new Error("this scene has no Redis Cluster: open it with { redis: 'cluster' }");
      return redisCluster;
    },
    async restartRedis() {
      redis = await startOwnRedis(redis?.port);
    },
    get temporalPid() {
      return temporalServer?.pid ?? 0;
    },
    async killTemporal() {
      await temporalServer?.kill();
    },
    async restartTemporal() {
      temporalServer = await startOwnTemporal(portOf(address));
    },
    ...(cluster && { cluster }),
    async startWorker({ address: way = address, apiUrl = api.url, preload, env = {}, tools, product } = {}) {
      const preloads = [
        ...[preload ?? []].flat(),
        ...(options.impatient ? [join(__dirname, 'worker-settings.cjs')] : []),
        ...(options.ledger ? [join(__dirname, 'ledger-tools.cjs')] : []),
      ];
      const settings: Record<string, string> = options.impatient ? { STORM_WORKER: JSON.stringify(IMPATIENCE) } : {};
      const command = tools && { args: ['worker', '--tools', ...tools], readyOn: 'takes calls of' };
      const worker = startWorkerProcess({
        env: { ...environment(way, apiUrl), ...settings, ...env },
        cwd: dir,
        preloads,
        ...(command && { command }),
        ...(product !== undefined && { product }),
      });
      ends.push(() => worker.kill());
      await worker.ready;
      return worker;
    },
    async startGateway({ port: wanted, env = {} } = {}) {
      const port = wanted ?? (await freePort());
      const served = startWorkerProcess({
        env: { ...environment(address, api.url), PERDURA_GATEWAY_TOKEN: GATEWAY_TOKEN, ...env },
        cwd: dir,
        command: { args: ['serve', '--port', String(port), '--requests-per-minute', '100000'], readyOn: 'serving http' },
      });
      ends.push(() => served.kill());
      await served.ready;
      return { ...served, url: `http://127.0.0.1:${port}`, port, token: GATEWAY_TOKEN };
    },
    ledger: () =>
      existsSync(ledgerFile)
        ? readFileSync(ledgerFile, 'utf8')
            .split('\n')
            .filter((line) => line !== '')
            .map((line) => JSON.parse(line) as LedgerLine)
        : [],
    letToolsEnd: () => writeFileSync(`${ledgerFile}.go`, ''),
    noteShipped: () => writeFileSync(`${ledgerFile}.shipped`, ''),
    onClose: (end) => void ends.push(end),
    leaving,
    close,
  };
}

/** A test with a scene of its own, beside the others of its file: most of the time all of them wait for a dead worker's time-out. */
export function sceneTest(title: string, options: SceneOptions, act: (scene: Scene) => Promise<void>, within = 300_000): void {
  let ended: Promise<PromiseSettledResult<void>> | undefined;
  const play = (): Promise<PromiseSettledResult<void>> =>
    (ended ??= atOnce(() => inScene(options, act, within)).then(
      () => ({ status: 'fulfilled', value: undefined }),
      (reason: unknown) => ({ status: 'rejected', reason }),
    ));
  scenes.push(play);
  // A scene ends by itself, within its time.
  test(title, () => reported(play), 3_600_000);
}

/** Of this test file, which are played together. */
const scenes: (() => Promise<PromiseSettledResult<void>>)[] = [];
const atOnce = pLimit(5);

/**
 * The first test waits for all of them: `test.concurrent` ends with its shortest one as far as Jest goes, which then refuses the others'
 * dynamic imports ("outside of the scope of the test code").
 */
async function reported(play: () => Promise<PromiseSettledResult<void>>): Promise<void> {
  await Promise.all(scenes.map((one) => one()));
  const result = await play();
  if (result.status === 'rejected') throw result.reason;
}

async function inScene(options: SceneOptions, act: (scene: Scene) => Promise<void>, within: number): Promise<void> {
  const scene = await openScene(options);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${within} ms`)), within);
  });
  try {
    await Promise.race([act(scene), late]);
  } catch (error) {
    scene.leaving.abort();
    await outage(MAX_GRPC_PAUSE_MS);
    throw error;
  } finally {
    clearTimeout(timer);
    await scene.close();
  }
}

/** What a failed test leaves unfinished, Temporal's client says again after a pause, and throws where nobody can catch it when its connection was closed. */
const MAX_GRPC_PAUSE_MS = 6_000;

/** Looks again and again until it is there. What is looked for may not be reachable for a while: an exception means "not yet". */
export async function until<T>(what: string, look: () => T | Promise<T>, withinMs = 120_000): Promise<NonNullable<T>> {
  const deadline = Date.now() + withinMs;
  let trouble: unknown;
  for (;;) {
    const began = Date.now();
    try {
      const seen = await look();
      if (seen) return seen;
      trouble = undefined;
    } catch (error) {
      trouble = error;
    }
    // clock: only a hang meets this bound
    if (Date.now() > deadline) throw new Error(`${what}: not within ${withinMs} ms`, { cause: trouble });
    // Who looks through ten thousand entries each time is not to take the machine from those who write them.
    const pause = Math.min(500, Math.max(25, 4 * (Date.now() - began)));
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** The length of an outage, and nothing else: everything that can be waited for is waited for by `until`. */
export function outage(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export function portOf(address: string): number {
  return Number(address.split(':')[1]);
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** A number to publish, on the screen of who runs the tests. */
export function figure(text: string): void {
  process.stderr.write(`  ∎ ${text}\n`);
}

/** With PERDURA_LONG=1 the published sizes, minutes long; otherwise small ones. */
export const LONG = process.env['PERDURA_LONG'] === '1';

/** Numbers from a seed (mulberry32), so that a run can be repeated with PERDURA_SEED. */
export function createRandom(seed = Number(process.env['PERDURA_SEED'] ?? Math.floor(Math.random() * 2 ** 31))): {
  readonly seed: number;
  next(): number;
} {
  let state = seed;
  return {
    seed,
    next() {
      state = (state + 0x6d2b79f5) | 0;
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    },
  };
}
