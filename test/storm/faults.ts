/**
 * What a storm does to the processes of an installation: workers, gateway, Redis and Temporal are killed with -9, stopped and continued, at
 * moments of chance; Redis is slow and wrong, its disk fills up. Whoever is dead is started again, as a supervisor would.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkerOptions } from '@temporalio/worker';
import type { GatewayProcess, Scene } from '../support/scene.js';
import type { WorkerProcess } from '../support/worker-process.js';
import { SERVICES, type Cluster, type ServiceName } from '../support/temporal-cluster.js';
import type { BuildId, StormBuilds } from './builds.js';
import type { Disk } from './disk.js';
import { pick, type Random } from './random.js';
import type { WrongRedis } from './wrong-redis.js';

export interface Installation {
  readonly scene: Scene;
  readonly random: Random;
  readonly wrongRedis?: WrongRedis;
  readonly disk?: Disk;
  /** Workers are of two builds. */
  readonly builds?: StormBuilds;
  /** Redis is a cluster, whose masters are killed, and nothing else. */
  readonly hasCluster: boolean;
  /** Milliseconds between two faults, on average. */
  readonly betweenMs: number;
  readonly storeLog: string;
}

export interface Faults {
  /** How often each was done. */
  readonly counts: Readonly<Record<string, number>>;
  readonly kills: () => number;
  /** Processes that ended by themselves, with the end of what they told. */
  readonly crashed: readonly string[];
  /** The largest memory of each kind of process, in bytes. */
  readonly memory: Readonly<Record<string, number>>;
  readonly gateway: () => GatewayProcess;
  /** Resolves when everything works again. */
  end(): Promise<void>;
}

/** A process, and whatever follows it in its place. */
interface Post {
  readonly name: string;
  process: WorkerProcess;
  /** Something is being done to it. */
  isBusy: boolean;
  readonly start: () => Promise<WorkerProcess>;
}

const MANY = 1_000;
/** Of conversations in a hurry it is longer than the time of a task. */
const STOPPED_MS = 4_600;
/** A dead worker's conversations wait this long for it; the product waits longer. */
const COMMON: Partial<WorkerOptions> = { stickyQueueScheduleToStartTimeout: '1s', shutdownGraceTime: '1s' };
const WORKFLOWS_ALONE: Partial<WorkerOptions> = { ...COMMON, enableNonLocalActivities: false };
const CLOCKS_MS = [0, 0, 0, 30_000, -30_000, 86_400_000, -86_400_000];

export async function startFaults(installation: Installation): Promise<Faults> {
  const { scene, random, wrongRedis, disk, builds, hasCluster, betweenMs, storeLog } = installation;
  const counts: Record<string, number> = {};
  const memory: Record<string, number> = {};
  const crashed: string[] = [];
  const redisEnv: Record<string, string> = wrongRedis ? { REDIS_URL: `redis://127.0.0.1:${wrongRedis.port}` } : {};
  let isOver = false;

  const startWorker = (build: BuildId, options: Partial<WorkerOptions>) => async (): Promise<WorkerProcess> => {
    const offBy = pick(random, CLOCKS_MS);
    if (offBy !== 0) count('worker whose clock is off');
    const support = join(__dirname, '..', 'support');
    const { env = {}, ...built } = builds?.start(build) ?? {};
    return scene.startWorker({
      ...built,
      preload: [
        ...(offBy === 0 ? [] : [join(support, 'clock-off.cjs')]),
        join(support, 'worker-settings.cjs'),
        join(__dirname, 'store-log.cjs'),
      ],
      env: { ...redisEnv, ...env, STORM_WORKER: JSON.stringify(options), STORE_LOG: storeLog, CLOCK_OFF_MS: String(offBy) },
    });
  };
  const post = async (name: string, start: () => Promise<WorkerProcess>): Promise<Post> => ({
    name,
    start,
    process: await start(),
    isBusy: false,
  });
  let gatewayPort: number | undefined;
  const startGateway = async (): Promise<GatewayProcess> => {
    const gateway = await scene.startGateway({ env: redisEnv, ...(gatewayPort === undefined ? {} : { port: gatewayPort }) });
    gatewayPort = gateway.port;
    return gateway;
  };
  const [gateway, ...workers] = await Promise.all([
    post('gateway', startGateway),
    post('worker', startWorker('v1', { ...COMMON })),
    post('worker', startWorker('v2', { ...COMMON, maxCachedWorkflows: pick(random, [2, MANY]) })),
    post('worker', startWorker('v1', { ...WORKFLOWS_ALONE, maxCachedWorkflows: pick(random, [0, 1]) })),
    post('worker', startWorker('v2', { ...WORKFLOWS_ALONE, maxCachedWorkflows: MANY })),
  ]);
  const posts = [gateway, ...workers];
  await builds?.begin();

  function count(what: string): void {
    counts[what] = (counts[what] ?? 0) + 1;
  }

  /** As often as it takes: what it needs may be away as well. */
  const again = async <T>(start: () => Promise<T>): Promise<T> => {
    for (let left = 400; ; left--) {
      try {
        return await start();
      } catch (error) {
        if (left === 0) throw error;
        if (left % 40 === 0) process.stderr.write(`  cannot start it again: ${String(error).slice(-800)}\n`);
        await sleep(250);
      }
    }
  };
  const watch = ({ name, process: watched }: Post, at: Post): void =>
    void watched.ended.then(async ({ code, signal }) => {
      if (at.isBusy || isOver || at.process !== watched) return;
      at.isBusy = true;
      crashed.push(`${name} ended by itself (${signal ?? code}): ${watched.log().slice(-1_500)}`);
      await restart(at);
    });
  const restart = async (at: Post): Promise<void> => {
    at.process = await again(at.start);
    at.isBusy = false;
    watch(at, at);
  };
  posts.forEach((at) => watch(at, at));

  const strike = async (at: Post, what: 'kill' | 'stop' | 'term'): Promise<void> => {
    at.isBusy = true;
    note(at, memory);
    count({ kill: `kill -9 of a ${at.name}`, stop: `SIGSTOP of a ${at.name}`, term: `SIGTERM of a ${at.name}` }[what]);
    if (what === 'stop') {
      at.process.pause();
      await sleep(STOPPED_MS * (0.4 + random()));
      at.process.resume();
      at.isBusy = false;
      return;
    }
    await (what === 'kill' ? at.process.kill() : at.process.stop());
    await restart(at);
  };
  const freePost = (of: readonly Post[]): Post | undefined =>
    pick(
      random,
      of.filter(({ isBusy }) => !isBusy),
    );
  const strikeOne = (of: readonly Post[], what: 'kill' | 'stop' | 'term') => async (): Promise<void> => {
    const at = freePost(of);
    if (at) await strike(at, what);
  };
  /** Servers and their surroundings: one thing at a time. */
  const busy = new Set<string>();
  const alone = (name: string, act: () => Promise<void>) => async (): Promise<void> => {
    if (busy.has(name)) return;
    busy.add(name);
    await act().finally(() => busy.delete(name));
  };
  const frozen = async (pid: number, ms: number): Promise<void> => {
    const signal = (name: NodeJS.Signals): void => {
      try {
        process.kill(pid, name);
      } catch (error) {
        // It ended by itself.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    };
    signal('SIGSTOP');
    await sleep(ms);
    signal('SIGCONT');
  };
  /** A full disk ends a Redis that writes its log anew; what supervises servers starts it again. */
  const superviseRedis = async (): Promise<void> => {
    for (; !isOver; await sleep(250)) {
      const death = scene.redis.death();
      if (death === undefined) continue;
      await alone('redis', async () => {
        if (scene.redis.death() === undefined) return;
        count('redis that ended by itself');
        process.stderr.write(`  redis ended by itself: ${death.slice(-600)}\n`);
        await again(() => scene.restartRedis());
      })();
    }
  };
  const supervising = wrongRedis ? superviseRedis() : Promise.resolve();
  const redisIs = (how: Parameters<WrongRedis['be']>[0], ms: number) =>
    alone('way to redis', async () => {
      count(`redis ${how}`);
      wrongRedis?.be(how);
      await sleep(ms * (0.5 + random()));
      wrongRedis?.be('right');
    });

  const ofRedis: readonly (readonly [number, () => Promise<void>])[] = wrongRedis
    ? [
        [
          9,
          alone('redis', async () => {
            count('kill -9 of redis');
            await scene.redis.kill();
            await again(() => scene.restartRedis());
          }),
        ],
        [1, alone('redis', () => (count('SIGSTOP of redis'), frozen(scene.redis.pid, 3_000 * random())))],
        [1, redisIs('slow', 3_000)],
        [1, redisIs('cut', 2_000)],
        [2, redisIs('loses answers', 3_000)],
        [1, redisIs('errors', 1_500)],
        [1, redisIs('silent', 2_500)],
      ]
    : [];
  const ofDisk: readonly (readonly [number, () => Promise<void>])[] = disk
    ? [
        [
          1,
          alone('disk', async () => {
            count('disk full');
            await disk.fill();
            await sleep(2_000 * (0.5 + random()));
            await disk.empty();
          }),
        ],
      ]
    : [];
  const ofTemporal: readonly (readonly [number, () => Promise<void>])[] = scene.cluster
    ? [[12, alone('cluster', killInTurn(scene.cluster, count, random))]]
    : [
        [
          3,
          alone('temporal', async () => {
            count('kill -9 of temporal');
            await scene.killTemporal();
            await again(() => scene.restartTemporal());
          }),
        ],
        [1, alone('temporal', () => (count('SIGSTOP of temporal'), frozen(scene.temporalPid, 2_000 * random())))],
      ];
  const ofBuilds: readonly (readonly [number, () => Promise<void>])[] = builds
    ? [[8, alone('rollout', async () => count(await again(() => builds.change(random))))]]
    : [];
  const kinds: readonly (readonly [number, () => Promise<void>])[] = [
    [20, strikeOne(workers, 'kill')],
    [2, strikeOne(workers, 'stop')],
    [1, strikeOne(workers, 'term')],
    [5, strikeOne([gateway], 'kill')],
    [1, strikeOne([gateway], 'stop')],
    ...ofTemporal,
    ...ofRedis,
    ...ofDisk,
    ...ofBuilds,
  ];
  /** What has died comes back as a replica, when the other one has taken its place. */
  const killMaster = alone('redis', async () => {
    const { redisCluster: cluster } = scene;
    await cluster.whole();
    const master = pick(random, await cluster.masters());
    if (!master) return;
    count('kill -9 of a redis master');
    await cluster.kill(master);
    await cluster.whole();
    await again(() => cluster.restart(master));
  });
  const ofInstallation = hasCluster ? [[1, killMaster] as const] : kinds;
  const all = ofInstallation.flatMap(([weight, act]) => Array.from({ length: weight }, () => act));

  const over = new AbortController();
  const running = new Set<Promise<void>>();
  const troubles: unknown[] = [];
  const blowing = (async () => {
    while (!isOver) {
      await sleep(betweenMs * (0.4 + 1.2 * random()), undefined, { signal: over.signal });
      const fault: Promise<void> = pick(random, all)()
        .catch((error: unknown) => void troubles.push(error))
        .finally(() => running.delete(fault));
      running.add(fault);
    }
  })().catch(() => undefined);

  const end = async (): Promise<void> => {
    over.abort();
    await blowing;
    await Promise.all(running);
    isOver = true;
    await supervising;
    wrongRedis?.be('right');
    posts.forEach((at) => note(at, memory));
    if (troubles.length > 0) throw new AggregateError(troubles, `faults that could not be done: ${troubles.map(String).join('; ')}`);
  };
  return {
    counts,
    crashed,
    memory,
    kills: () => Object.entries(counts).reduce((sum, [what, n]) => sum + (what.startsWith('kill -9') ? n : 0), 0),
    gateway: () => gateway.process as GatewayProcess,
    end,
  };
}

const AWAY_MS = 4_000;

/** One process of each service, then both of each, so that a short storm has them all. What supervises them starts them again. */
function killInTurn(cluster: Cluster, count: (what: string) => void, random: Random): () => Promise<void> {
  const services = SERVICES.filter((name) => name !== 'database');
  const turns: readonly (readonly [name: string, service: ServiceName, ...numbers: number[]])[] = [
    ...services.map((service, n) => [`one of two ${service} processes`, service, n % 2] as const),
    ['the database of the cluster', 'database'],
    ...services.map((service) => [`both ${service} processes`, service] as const),
  ];
  let turn = 0;
  return async () => {
    const [name, ...those] = turns[turn++ % turns.length]!;
    count(`kill -9 of ${name}`);
    await cluster.kill(...those);
    await sleep(AWAY_MS * random());
    cluster.start(those[0]);
  };
}

/** How much memory it has. */
function note({ name, process: of }: Post, memory: Record<string, number>): void {
  memory[name] = Math.max(memory[name] ?? 0, residentBytes(of.pid));
}

function residentBytes(pid: number): number {
  try {
    const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return 1024 * Number(kilobytes ?? 0);
  } catch {
    return 0;
  }
}
