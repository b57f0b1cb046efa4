/**
 * The drill of a bad week, on a Temporal cluster and a Redis Cluster of processes: a new build is deployed in the middle of the day, and a
 * Redis master dies meanwhile; it is rolled back; a history node of Temporal is lost; the store is lost altogether, and comes back from
 * yesterday's backup, the rest of it from history; the build is deployed again; workers are replaced and killed. People talk all the while,
 * and at the end each conversation is compared, message by message, with what its person was told.
 *
 * `npm run storm -- --bad-week`. A day is over when everyone who talks has had answers to what they said since.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { createClient, type PerduraClient } from '../../../src/client.js';
import { loadConfig } from '../../../src/config.js';
import { replayFailures } from '../../storm/census.js';
import { installBuild, twoBuilds } from '../../support/builds.js';
import { doAsTold } from '../../support/echo-model.js';
import { dieWithUs } from '../../support/reaper.js';
import { startRedisCluster } from '../../support/redis-cluster.js';
import { replayAll } from '../../support/replays.js';
import { startPerdura, type Ran } from '../../support/run-perdura.js';
import { openScene, seconds, until, type GatewayProcess, type OpenScene } from '../../support/scene.js';
import type { WorkerProcess } from '../../support/worker-process.js';
import { compare, type Day, type Row, type WeekReport } from './compare.js';
import { createPeople, type People, type Person } from './people.js';

export interface WeekOptions {
  /** For which people talk, at least. */
  readonly minutes: number;
  /** People who talk all the week. */
  readonly atOnce: number;
  readonly keep: boolean;
  readonly tell: (line: string) => void;
}

const BUILDS = ['v1', 'v2'] as const;
type BuildId = (typeof BUILDS)[number];

type Counts = Readonly<Record<'replays' | 'stays' | 'breaks', number>>;

const DEPLOYMENT = 'bad-week';
const DAYS = 7;
const WORKERS = 2;
/** Beside those who talk. */
const [QUIET, WAITING] = [4, 2];
const AGENT = { approvals: [{ tool: 'pay', policy: 'ask' }], limits: { handOver: { events: 80 } } };

export async function runBadWeek(options: WeekOptions): Promise<WeekReport> {
  // A replay that fails is told once, at the end.
  Runtime.install({
    logger: new DefaultLogger('ERROR', () => undefined),
    telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } },
  });
  options.tell('starting a Temporal cluster of eight processes with PostgreSQL, and a Redis Cluster of six');
  let requests = 0;
  const scene = await openScene({
    ...{ redis: 'cluster', ownTemporal: 'cluster', ledger: true, agent: AGENT, keepHits: false, keep: options.keep },
    answer(request) {
      requests += 1;
      return doAsTold(request);
    },
  });
  try {
    scene.letToolsEnd();
    const plant = await openPlant(options, scene);
    const { people, ...week } = await live(options, scene, plant);
    options.tell('everyone is at rest; comparing, and replaying every history by the build that made it');
    const ofModel = { what: 'requests to the model: none malformed', count: requests, wrong: scene.api.problems };
    return {
      ...week,
      compared: [...(await compare(plant.client(), people.all, scene.ledger())), ofModel, ...(await ofTemporal(scene, plant, people))],
    };
  } finally {
    scene.leaving.abort();
    await scene.close();
  }
}

interface Plant {
  readonly builds: Readonly<Record<BuildId, { readonly code: string }>>;
  /** Where the other build is installed. */
  readonly folders: Readonly<Record<BuildId, string | undefined>>;
  readonly workers: Record<BuildId, WorkerProcess[]>;
  /** Processes that ended by themselves. */
  readonly deaths: readonly string[];
  readonly client: () => PerduraClient;
  readonly gateway: () => GatewayProcess;
  start(build: BuildId): Promise<void>;
  /** Its workers, all of them. */
  deploy(build: BuildId): Promise<void>;
  end(worker: WorkerProcess, how: 'stop' | 'kill'): Promise<void>;
  /** All processes have another store. */
  moveTo(url: string): Promise<void>;
  /** A command as an operator runs it; what it says. Throws where it ends with another code than 0. */
  perdura(...args: readonly string[]): Promise<Ran>;
}

/** What an operator has to do with: workers of two builds, a gateway, and the commands. */
async function openPlant({ tell }: WeekOptions, scene: OpenScene): Promise<Plant> {
  const builds = await twoBuilds();
  const folders = { v1: undefined, v2: await installBuild(join(scene.dir, 'v2'), builds.v2) };
  const workers: Record<BuildId, WorkerProcess[]> = { v1: [], v2: [] };
  const deaths: string[] = [];
  const expected = new Set<WorkerProcess>();
  let [url, client] = [scene.redisCluster.url, scene.client];
  let gateway: GatewayProcess | undefined;
  const watch = <T extends WorkerProcess>(name: string, watched: T): T => {
    void watched.ended.then(({ code, signal }) => {
      if (!expected.has(watched) && !scene.leaving.signal.aborted)
        deaths.push(`${name} ended by itself (${signal ?? code}): ${watched.log().slice(-1_500)}`);
    });
    return watched;
  };
  const startGateway = async (): Promise<void> => {
    const port = gateway?.port;
    gateway = watch('the gateway', await scene.startGateway({ env: { REDIS_URL: url }, ...(port !== undefined && { port }) }));
  };
  const end: Plant['end'] = async (worker, how) => {
    expected.add(worker);
    await worker[how]();
  };
  const start: Plant['start'] = async (build) => {
    const env = { REDIS_URL: url, TEMPORAL_DEPLOYMENT_NAME: DEPLOYMENT, TEMPORAL_WORKER_BUILD_ID: build };
    const product = folders[build];
    workers[build].push(watch(`a worker of ${build}`, await scene.startWorker({ env, ...(product !== undefined && { product }) })));
  };
  const deploy: Plant['deploy'] = async (build) => {
    await Promise.all(Array.from({ length: WORKERS }, () => start(build)));
  };
  const plant: Plant = {
    ...{ builds, folders, workers, deaths, start, deploy, end },
    client: () => client,
    gateway: () => gateway!,
    async moveTo(to) {
      url = to;
      // A worker refuses to start beside one that has another store.
      const before = BUILDS.map((build) => [build, workers[build].splice(0)] as const);
      await Promise.all(before.flatMap(([, old]) => old.map((worker) => end(worker, 'stop'))));
      await Promise.all(before.flatMap(([build, old]) => old.map(() => start(build))));
      await end(gateway!, 'stop');
      await startGateway();
      client = await createClient(loadConfig({ ...scene.env, REDIS_URL: url }, scene.dir), { workerPatienceMs: Infinity });
      scene.onClose(() => client.close());
    },
    async perdura(...args) {
      const env = { ...scene.env, REDIS_URL: url, TEMPORAL_DEPLOYMENT_NAME: DEPLOYMENT };
      const ran = await startPerdura({ dir: scene.dir, taskQueue: scene.taskQueue }, args, { env }).ended;
      if (ran.code !== 0) throw new Error(`perdura ${args.join(' ')} ended with ${ran.code}: ${ran.stderr}${ran.stdout}`);
      return ran;
    },
  };
  await Promise.all([startGateway(), deploy('v1')]);
  // Once a worker of it has asked for work.
  await until('v1 as the current build', () => plant.perdura('upgrade', 'current', 'v1'));
  tell(`${WORKERS} workers of v1 and a gateway are there`);
  return plant;
}

async function live(
  { minutes, atOnce, tell }: WeekOptions,
  scene: OpenScene,
  plant: Plant,
): Promise<Omit<WeekReport, 'compared'> & { readonly people: People }> {
  const begin = Date.now();
  const { perdura, workers } = plant;
  const { redisCluster: redis } = scene;
  const cluster = scene.cluster!;
  const people = createPeople(
    { client: plant.client, gateway: plant.gateway, leaving: scene.leaving.signal },
    `week-${scene.taskQueue.slice(-8)}`,
  );
  const days: Day[] = [];
  const told = (since: number, before: number): number[] =>
    people.all
      // Who waits for a decision is no measure.
      .filter(({ kind }) => kind !== 'waits')
      // clock: a figure that is told
      .flatMap((person) => person.told.flatMap((one) => (one.end >= since && one.end < before ? [one.end - one.begin] : [])));
  const day = async (name: string, act: (happened: (what: string) => void) => Promise<void>): Promise<void> => {
    const dawn = Date.now();
    const happened: string[] = [];
    const note = (what: string): void => {
      happened.push(what);
      tell(`${name}, ${seconds(Date.now() - dawn)}: ${what}`);
    };
    await act(note);
    await people.goOn(Date.now());
    // A day has its length, as people ordered it: not a bound.
    await sleep(Math.max(0, dawn + (60_000 * minutes) / DAYS - Date.now()));
    const turnMs = told(dawn, Date.now());
    days.push({ name, happened, turnMs });
    tell(`${name} is over: ${turnMs.length} turns, the longest took ${seconds(Math.max(0, ...turnMs))}`);
  };
  const conversationsOn = async (build: BuildId): Promise<number> => {
    const { stdout } = await perdura('upgrade', '-o', 'json');
    const { builds } = JSON.parse(stdout) as { builds: readonly { build: string; conversations: number }[] };
    return builds.find((one) => one.build === build)?.conversations ?? 0;
  };
  /** All but those inside a turn that waits for a person. */
  const moved = (from: BuildId, staying: number): Promise<unknown> =>
    until(`no more than ${staying} conversations on ${from}`, async () => {
      await perdura('upgrade', '--wake');
      return (await conversationsOn(from)) <= staying;
    });
  const stopAll = async (build: BuildId): Promise<void> => {
    for (const worker of workers[build].splice(0)) await plant.end(worker, 'stop');
  };
  const backup = join(scene.dir, 'backup');
  const [quiet, waiting]: [Person[], Person[]] = [[], []];
  const waits: Promise<void>[] = [];
  let asked: unknown[] = [];

  await day('Monday', async (happened) => {
    for (let n = 0; n < atOnce; n += 1) await people.begin('talks');
    for (let n = 0; n < QUIET; n += 1) quiet.push(await people.begin('quiet'));
    for (let n = 0; n < WAITING; n += 1) waiting.push(await people.begin('waits'));
    for (const person of waiting) {
      const wait = people.say(person, 'pay', false);
      // They are waited for on Saturday.
      wait.catch(() => undefined);
      waits.push(wait);
    }
    await Promise.all(quiet.map((person) => people.say(person, 'note')));
    asked = await Promise.all(waiting.map(people.waiting));
    happened(
      `${atOnce} people talk, half of what they say through the gateway; ${QUIET} say one thing; ${WAITING} payments wait for a decision`,
    );
    const { stdout } = await perdura('admin', 'backup', backup);
    happened(`perdura admin backup, while they talk: ${stdout.trim().replace(backup, 'backup')}`);
    await Promise.all(quiet.map((person) => people.say(person, 'pay')));
    happened(`the ${QUIET} pay something, which the backup does not have, and are quiet for the rest of the week`);
  });

  await day('Tuesday', async (happened) => {
    await people.begin('talks');
    happened('one more begins to talk, whom the backup does not know');
    const bundle = join(plant.folders.v2!, 'dist', 'workflow-bundle.js');
    const checked = JSON.parse((await perdura('check-upgrade', '--bundle', bundle, '-o', 'json')).stdout) as { counts: Counts };
    const { replays, stays, breaks } = checked.counts;
    happened(
      `perdura check-upgrade by v2: ${replays + stays} open conversations, of which ${stays} stay on v1 until they hand over; ${breaks} would break`,
    );
    await plant.deploy('v2');
    await until('v2 with a worker', () => perdura('upgrade', 'ramp', 'v2', '25'));
    happened(`${WORKERS} workers of v2 beside those of v1; perdura upgrade ramp v2 25`);
    await people.goOn(Date.now());
    const [master] = await redis.masters();
    const killMaster = async (): Promise<number> => {
      await sleep(100);
      const at = Date.now();
      await redis.kill(master!);
      await redis.whole();
      return Date.now() - at;
    };
    const [tookMs] = await Promise.all([killMaster(), perdura('upgrade', 'current', 'v2')]);
    happened(
      `perdura upgrade current v2, and a master of the Redis Cluster is killed (kill -9) meanwhile; its replica is the master after ${seconds(tookMs)}`,
    );
    await moved('v1', WAITING);
    happened(`all are on v2 but the ${WAITING} that wait inside a turn`);
    await redis.restart(master!);
    happened('the killed one is back, as a replica');
  });

  await day('Wednesday', async (happened) => {
    await perdura('upgrade', 'current', 'v1');
    await moved('v2', 0);
    happened('v2 is rolled back: perdura upgrade current v1, --wake; none is on v2 any more');
    await stopAll('v2');
    happened('the workers of v2 are stopped');
  });

  await day('Thursday', async (happened) => {
    await cluster.kill('history', 0);
    happened('one of two history nodes of Temporal is killed (kill -9), and stays away for the day');
  });

  await day('Friday', async (happened) => {
    cluster.start('history');
    await Promise.all(redis.nodes.map((node) => redis.kill(node)));
    happened('the history node is back; all six processes of the Redis Cluster are killed at once, and their data is gone');
    await sleep(3_000);
    const other = await startRedisCluster({ onStart: ({ pid }) => dieWithUs(pid) });
    scene.onClose(() => other.stop());
    await plant.moveTo(other.url);
    happened('a new, empty Redis Cluster; workers and gateway are ended and started again with it, while people talk');
    const { stdout } = await perdura('admin', 'restore', backup);
    happened(`perdura admin restore of Monday's backup into it, while they talk: ${lastLine(stdout)}`);
  });

  await day('Saturday', async (happened) => {
    await plant.deploy('v2');
    await until('v2 with a worker', () => perdura('upgrade', 'current', 'v2'));
    await moved('v1', WAITING);
    happened('v2 once more, and all move there');
    const now = await Promise.all(waiting.map(people.waiting));
    if (JSON.stringify(now) !== JSON.stringify(asked))
      throw new Error(`what waited on Monday waits otherwise on Saturday: ${JSON.stringify(asked)}, ${JSON.stringify(now)}`);
    await Promise.all(waiting.map((person, n) => people.approve(person, now[n]!)));
    await Promise.all(waits);
    happened(`the ${WAITING} payments that have waited since Monday are approved, by the ids and hashes of Monday, and made`);
    await moved('v1', 0);
    await stopAll('v1');
    happened('none is on v1 any more; its workers are stopped');
  });

  await day('Sunday', async (happened) => {
    for (const old of workers.v2.splice(0)) {
      await plant.start('v2');
      await plant.end(old, 'stop');
      await people.goOn(Date.now());
    }
    happened('the workers are replaced one after the other: SIGTERM');
    for (const old of workers.v2.splice(0)) {
      await plant.start('v2');
      await plant.end(old, 'kill');
      await people.goOn(Date.now());
    }
    happened('and again: SIGKILL');
    const [first = [], second = []] = [quiet.slice(0, QUIET / 2), quiet.slice(QUIET / 2)];
    await Promise.all(first.map((person) => people.say(person, 'words')));
    let healed = 0;
    for (const { id } of second)
      healed += (JSON.parse((await perdura('admin', 'heal', id, '-o', 'json')).stdout) as { restored: number }).restored;
    happened(
      `of the ${QUIET} quiet ones ${first.length} are spoken to again, ${second.length} are healed by perdura admin heal: ${healed} entries that the backup did not have`,
    );
    if (healed === 0) throw new Error('nothing had to be healed: the backup had what was said after it');
  });

  await people.rest();
  return { minutes: (Date.now() - begin) / 60_000, days, people };
}

async function ofTemporal(scene: OpenScene, { builds, deaths }: Plant, people: People): Promise<Row[]> {
  const replayed = await replayAll(scene, Infinity, undefined, builds);
  const on = (build: BuildId): number => replayed.filter((one) => one.build === build).length;
  const talkers = people.all.filter(({ kind }) => kind === 'talks');
  const strayed = talkers.flatMap(({ id }) => {
    const seen = new Set(replayed.filter(({ workflowId }) => workflowId === id).map(({ build }) => build));
    return [...seen].sort().join() === 'v1,v2' ? [] : [`${id} was on ${[...seen].join(' and ') || 'no build'} alone`];
  });
  return [
    {
      what: `histories that replay by the build that made them (${on('v1')} of v1, ${on('v2')} of v2)`,
      count: replayed.length,
      wrong: [
        ...replayed.flatMap(({ workflowId, problem }) => (problem === undefined ? [] : [`${workflowId}: ${problem}`])),
        ...replayFailures(replayed.map(({ history }) => history)),
      ],
    },
    { what: 'people who talked all the week: each on both builds', count: talkers.length, wrong: strayed },
    { what: 'processes that ended by themselves', count: 0, wrong: [...deaths, ...(scene.cluster?.deaths() ?? [])] },
  ];
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}
