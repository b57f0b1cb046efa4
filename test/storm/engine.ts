/**
 * A storm: people who talk to many conversations at once, while everything that they stand on is killed, stopped, filled up and lied to.
 * Then it is quiet, and what was said and done is checked: each message answered once and in order, each effect committed once, each side
 * effect done once, each request to a model well-formed, each history replayed.
 *
 * The seed repeats what is said and done. The moments at which it meets a process are never the same again: so the logs and histories of
 * what was violated are kept.
 */
import { closeSync, openSync } from 'node:fs';
import { cp, mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { historyToJSON } from '@temporalio/common/lib/proto-utils';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { replayAll, type Replayed } from '../support/replays.js';
import { openScene, type OpenScene } from '../support/scene.js';
import { openBuilds } from './builds.js';
import { censusOf, replayFailures } from './census.js';
import { mountDisk } from './disk.js';
import { checkEffects } from './effects-log.js';
import { startFaults, type Faults } from './faults.js';
import { createJournal, wordsOf, type Journal } from './journal.js';
import { startLoad } from './load.js';
import { createStormModel, type StormModel } from './model.js';
import { talk, type Talk, type TalkOptions } from './person.js';
import { playAgain } from './played-again.js';
import { chance, chanceOf, pick, seed } from './random.js';
import { toReport, type StormReport, type Violation } from './report.js';
import { startWrongRedis } from './wrong-redis.js';

export interface StormOptions {
  readonly minutes: number;
  readonly store: 'redis' | 'redis-cluster' | 'files';
  /** Temporal is a cluster, whose processes are killed one by one and all of a service. */
  readonly cluster: boolean;
  /** Workers are of two builds (Worker Versioning), of which now one and now the other takes what is new. */
  readonly builds: boolean;
  /** Then all of them are played again (whatif), with nothing changed. */
  readonly again: boolean;
  /** Conversations at a time. */
  readonly atOnce: number;
  readonly betweenFaultsMs: number;
  /** Everything that it made stays. */
  readonly keep: boolean;
  /** A folder for what was violated. */
  readonly keepIn: string;
  /** It may mount a disk: it has a namespace of its own. */
  readonly mayMount: boolean;
  readonly tell: (line: string) => void;
  readonly stop: AbortSignal;
}

const REST_MS = 180_000;
/** How long people come to rest in the storm before it ends. */
const LAST_MS = 20_000;
const TOLD_EVERY_MS = 30_000;

/** A consolidation that a dead worker had is waited for no longer than this. */
const memory = { consolidationTimeout: 3_000 };
const AGENTS = {
  default: { memory },
  brief: { memory, limits: { handOver: { events: 32 } } },
  small: {
    maxTokens: 500,
    tools: ['get_time', 'note', 'pay', 'delegate'],
    memory: { ...memory, enabled: false },
    context: { maxTokens: 6_000, safetyMargin: 500 },
    limits: { handOver: { events: 40 } },
  },
};

export async function runStorm(options: StormOptions): Promise<StormReport> {
  // A replay that fails is told once, at the end.
  Runtime.install({
    // Whoever stops a storm has its figures all the same.
    shutdownSignals: [],
    logger: new DefaultLogger('ERROR', () => undefined),
    telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } },
  });
  const journal = createJournal();
  const model = createStormModel(journal, chanceOf(-2));
  const { disk, scene } = await openStage(options, model);
  try {
    return await storm(options, scene, journal, model, disk);
  } finally {
    if (options.keep && disk) await cp(join(scene.dir, 'redis'), join(scene.dir, 'redis-at-the-end'), { recursive: true });
    await scene.close();
  }
}

async function openStage({ store, cluster, mayMount, keep }: StormOptions, model: StormModel) {
  let disk: Awaited<ReturnType<typeof mountDisk>> | undefined;
  const scene = await openScene({
    ...{
      redis: store === 'redis-cluster' ? ('cluster' as const) : store === 'redis',
      ownTemporal: cluster ? ('cluster' as const) : true,
      ledger: true,
      answer: model.answer,
      keepHits: false,
      keep,
    },
    // What it has answered is on its disk, also where that is full: then it ends.
    redisArgs: ['--appendfsync', 'always'],
    ...(mayMount && store === 'redis' && { onRedisFolder: async (folder: string) => void (disk = await mountDisk(folder)) }),
  });
  scene.letToolsEnd();
  for (const [name, config] of Object.entries(AGENTS)) {
    await mkdir(join(scene.dir, 'agents', name), { recursive: true });
    const approvals = [{ tool: 'pay', policy: 'ask' }];
    const delegation = { agents: Object.keys(AGENTS) };
    await writeFile(join(scene.dir, 'agents', name, 'agent.json'), JSON.stringify({ approvals, delegation, ...config }));
  }
  return { scene, disk };
}

async function storm(
  options: StormOptions,
  scene: OpenScene,
  journal: Journal,
  model: StormModel,
  disk: Awaited<ReturnType<typeof mountDisk>> | undefined,
): Promise<StormReport> {
  const { minutes, store, betweenFaultsMs: betweenMs, tell } = options;
  const storeLog = join(scene.dir, 'store-log');
  closeSync(openSync(storeLog, 'a'));
  const wrongRedis = store === 'redis' ? await startWrongRedis(scene.redis.port, chanceOf(-3)) : undefined;
  if (wrongRedis) scene.onClose(() => wrongRedis.close());
  const hasCluster = store === 'redis-cluster';
  const builds = options.builds ? await openBuilds(scene) : undefined;
  const faults = await startFaults({ scene, random: chance, betweenMs, storeLog, wrongRedis, disk, builds, hasCluster });
  const stopLoad = startLoad();
  scene.onClose(stopLoad);

  const begin = Date.now();
  const until = begin + 60_000 * minutes;
  // clock: how long a storm lasts is what it was asked for
  const isOver = (): boolean => options.stop.aborted || Date.now() > until;
  const talks: Talk[] = [];
  const violations: Violation[] = [];
  const standings = new Map<string, string>();
  const progress = setInterval(() => {
    tell(wordsOfProgress(begin, faults, journal, talks, violations));
    if (isOver()) standings.forEach((words, id) => tell(`  not at rest: ${id}: ${words}`));
  }, TOLD_EVERY_MS);
  const talking = Promise.all(
    Array.from({ length: options.atOnce }, async (_, at) => {
      for (let n = at; !isOver(); n += options.atOnce) {
        const ended = await oneTalk(scene, journal, faults, n, { isOver, onStanding: (id, words) => void standings.set(id, words) });
        talks.push(ended);
        standings.delete(ended.id);
        const found = violationsOf(ended, journal);
        found.forEach(({ row, what }) => tell(`violated: ${row}: ${what.slice(0, 2_000)}`));
        violations.push(...found);
      }
    }),
  );
  await Promise.race([
    talking,
    sleep(until - Date.now() + LAST_MS, undefined, { ref: false, signal: options.stop }).catch(() => undefined),
  ]);
  stopLoad();
  model.clearUp();
  await faults.end();
  await talking;
  clearInterval(progress);
  tell(`${wordsOfProgress(begin, faults, journal, talks, violations)}; replaying what there is`);

  const replayed = await replayAll(scene, Infinity, undefined, builds?.codes);
  const effects = await checkEffects(storeLog);
  const again = options.again ? await playAgain(scene) : undefined;
  violations.push(
    ...ofHistories(replayed),
    ...(again?.violations ?? []),
    ...effects.violations.map((what): Violation => ({ row: 'an effect is committed once', what })),
    ...model.doubled.map((id): Violation => ({ row: 'no message is doubled', what: `${id} stood twice in one request` })),
    ...scene.api.problems.map((what): Violation => ({ row: 'no request is malformed', what })),
    ...doneTwice(scene).map((what): Violation => ({ row: 'no side effect is done twice', what })),
    ...[...faults.crashed, ...(scene.cluster?.deaths() ?? [])].map((what): Violation => ({ row: 'no process ends by itself', what })),
  );
  const keptIn = violations.length > 0 ? await keep(options.keepIn, violations, talks, replayed, journal) : undefined;
  const replays = { histories: replayed.length, broken: replayed.filter(({ problem }) => problem !== undefined).length };
  return toReport({
    ...{ seed, minutes: (Date.now() - begin) / 60_000, talks, violations, journal, model, faults, effects, replays, keptIn },
    census: censusOf(replayed.map(({ history }) => history)),
    sideEffects: scene.ledger().filter(({ what, name }) => what === 'start' && name === 'pay').length,
    lostAnswers: wrongRedis?.lost() ?? 0,
    playedAgain: { conversations: again?.conversations ?? 0, turns: again?.turns ?? 0 },
  });
}

function oneTalk(
  scene: OpenScene,
  journal: Journal,
  faults: Faults,
  n: number,
  told: Pick<TalkOptions, 'isOver' | 'onStanding'>,
): Promise<Talk> {
  const { temporal, taskQueue, client } = scene;
  const random = chanceOf(n);
  const name = taskQueue.slice(-12);
  return talk({
    ...{ temporal, client, taskQueue, journal, random, ...told },
    id: `storm-${n}-${name}`,
    scope: `${name}-${pick(random, [1, 2, 3])}`,
    kind: random() < 0.7 ? 'customer' : 'tester',
    gateway: { url: faults.gateway().url, token: faults.gateway().token },
    deeds: pick(random, [10, 20, 30]),
    restMs: REST_MS,
  });
}

function violationsOf({ id, forks, trouble, audited }: Talk, journal: Journal): Violation[] {
  if (trouble !== undefined) return [{ row: 'every conversation comes to rest', what: `${id}: ${trouble}`, conversation: id }];
  const orders = [id, ...forks].flatMap((one) => journal.check(one));
  return [
    ...(audited?.lost ?? []).map((what): Violation => ({ row: 'no message is lost', what, conversation: id })),
    ...(audited?.doubled ?? []).map((what): Violation => ({ row: 'no message is doubled', what, conversation: id })),
    ...orders.map((what): Violation => ({ row: 'a queue is answered in order', what, conversation: id })),
  ];
}

function ofHistories(replayed: readonly Replayed[]): Violation[] {
  return replayed.flatMap(({ workflowId, runId, problem, history }) =>
    [...(problem === undefined ? [] : [problem]), ...replayFailures([history])].map((what): Violation => ({
      row: 'every history replays',
      what: `${workflowId} (run ${runId}): ${what}`,
      conversation: workflowId,
    })),
  );
}

function doneTwice(scene: OpenScene): string[] {
  const begun = scene
    .ledger()
    .flatMap(({ what, name, item, callId }) => (what === 'start' && name === 'pay' ? [`${item} (${callId})`] : []));
  return begun.filter((item, i) => begun.indexOf(item) !== i).map((item) => `pay ${item} has begun twice`);
}

function wordsOfProgress(
  begin: number,
  faults: Faults,
  { counts }: Journal,
  talks: readonly Talk[],
  { length }: readonly Violation[],
): string {
  const said = `${counts.accepted} messages, ${counts.answered} answers in ${talks.length} conversations`;
  return `${((Date.now() - begin) / 60_000).toFixed(1)} min: ${faults.kills()} kills, ${said}, ${length} violations`;
}

/** What was said, and the histories, of what was violated. */
async function keep(
  folder: string,
  violations: readonly Violation[],
  talks: readonly Talk[],
  replayed: readonly Replayed[],
  journal: Journal,
): Promise<string> {
  const dir = await mkdtemp(join(folder, `perdura-storm-violated-${seed}-`));
  await writeFile(join(dir, 'violations.json'), JSON.stringify(violations, null, 1));
  for (const id of new Set(violations.flatMap(({ conversation }) => conversation ?? []))) {
    const of = talks.find((one) => id.startsWith(one.id));
    const log = [of?.id ?? id, ...(of?.forks ?? [])].flatMap((one) => journal.log(one).map(wordsOf));
    await writeFile(join(dir, `${id}.json`), JSON.stringify({ talk: of, log }, null, 1));
    for (const { workflowId, runId, problem, history } of replayed.filter((one) => one.workflowId.startsWith(of?.id ?? id)))
      await writeFile(
        join(dir, `${workflowId}-${runId}.json`),
        JSON.stringify({ problem, history: JSON.parse(historyToJSON(history)) as unknown }, null, 1),
      );
  }
  return dir;
}
