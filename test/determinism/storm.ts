/**
 * A determinism storm. Many conversations at once, each with a person who says, asks and decides by chance and at any moment, while
 * their workers forget, stop, die and are replaced. Then every history of every run is replayed, those of sub-agents and memories too:
 * what does not replay, no worker could take up again.
 *
 * Dozens of conversations; with PERDURA_LONG=1 hundreds, for minutes. PERDURA_SEED repeats what is said and done. The moments at which
 * it meets a worker are never the same again: the history of a failure is kept in a file, and that one fails every time.
 */
import { mkdtemp, mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { replayAll, type Replayed } from '../support/replays.js';
import { figure, LONG, outage, sceneTest, seconds, type Scene } from '../support/scene.js';
import { censusOf, replayFailures, type Census } from './census.js';
import { startLoad } from './load.js';
import { answerByPlan } from './plans.js';
import { chance, chanceOf, pick, seed } from './random.js';
import { talk, type Talk } from './talk.js';
import { startWeather } from './workers.js';

const CONVERSATIONS = LONG ? 200 : 12;
const AT_ONCE = LONG ? 16 : 12;
const DEEDS = LONG ? 25 : 12;
const REST_MS = 180_000;
const WITHIN_MS = LONG ? 2_400_000 : 900_000;

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

// A replay that fails is told once, by the test.
Runtime.install({ logger: new DefaultLogger('ERROR', () => undefined), telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } } });

/** With a Temporal that is killed too it is one of the storm alone, and its store are files. */
export function stormTest({ killsServer }: { readonly killsServer: boolean }): void {
  sceneTest(
    `${CONVERSATIONS} conversations in a storm${killsServer ? ' that kills Temporal too' : ''}: every history of every run replays`,
    { ...(killsServer ? { ownTemporal: true } : { redis: true }), ledger: true, answer: answerByPlan, keepHits: false },
    (scene) => storm(scene, killsServer),
    WITHIN_MS,
  );
}

/** Of tasks that fail as not deterministic, those that `replayFailures` knows and passes are shown in the figure: `nondeterministic`. */
async function storm(scene: Scene, killsServer: boolean): Promise<void> {
  scene.letToolsEnd();
  await writeAgents(scene);
  const begin = Date.now();
  const weather = await startWeather(scene, chance, { killsServer });
  const load = startLoad();
  scene.onClose(load);
  const from = Date.now();
  const calm = countdown(CONVERSATIONS, () => {
    load();
    return weather.end();
  });
  const talks = await inTurns(CONVERSATIONS, AT_ONCE, (n) => oneTalk(scene, n, calm.count));
  await calm.done;
  const replayFrom = Date.now();
  const replayed = await replayAll(scene);
  const census = censusOf(replayed.map(({ history }) => history));
  const broken = replayed.filter(({ problem }) => problem !== undefined);

  const atRest = talks.flatMap(({ ms, trouble }) => (trouble === undefined ? [ms] : [0]));

  figure(
    `determinism storm (seed ${seed}): ${CONVERSATIONS} conversations, ${replayed.length} histories, ${broken.length} of which did not replay; ` +
      `${wordsOf(census)}; workers ${wordsOf(weather.counts)}; started in ${seconds(from - begin)}, ` +
      `talked for ${seconds(replayFrom - from)} (one for ${seconds(Math.max(...atRest))} at most, of those that came to rest), replayed in ${seconds(Date.now() - replayFrom)}`,
  );
  const restless = talks.filter(({ trouble }) => trouble !== undefined);
  const failed = replayed.filter(({ history }) => replayFailures([history]).length > 0);
  if (broken.length + failed.length + restless.length > 0) {
    const dir = await keep({ broken: [...broken, ...failed], restless, talks, replayed });
    figure(`the histories, and what was said, are kept in ${dir}; PERDURA_SEED=${seed} says the same again`);
  }
  expect(broken.map(({ workflowId, runId, problem }) => `${workflowId} (run ${runId}): ${problem}`)).toEqual([]);
  expect(restless.map(({ id, trouble }) => `${id}: ${trouble}`)).toEqual([]);
  expect(failed.flatMap(({ workflowId, history }) => replayFailures([history]).map((what) => `${workflowId}: ${what}`))).toEqual([]);
  // A storm in which these did not happen proves nothing.
  for (const name of ['updates', 'signals', 'handOvers', 'children', 'timedOut'] as const)
    expect({ [name]: census[name] }).not.toEqual({ [name]: 0 });
  if (killsServer) expect(weather.counts.servers).toBeGreaterThan(0);
}

async function oneTalk(scene: Scene, n: number, onSaid: () => void): Promise<Talk> {
  const { temporal, taskQueue } = scene;
  const random = chanceOf(n);
  if (n < AT_ONCE) await outage(3_000 * random());
  const scope = `${taskQueue.slice(-12)}-${pick(random, [1, 2])}`;
  return talk({ temporal, taskQueue, id: `storm-${n}-${taskQueue.slice(-12)}`, scope, random, deeds: DEEDS, onSaid, restMs: REST_MS });
}

async function writeAgents({ dir }: Scene): Promise<void> {
  for (const [name, config] of Object.entries(AGENTS)) {
    await mkdir(join(dir, 'agents', name), { recursive: true });
    const approvals = [{ tool: 'pay', policy: 'ask' }];
    const delegation = { agents: Object.keys(AGENTS) };
    await writeFile(join(dir, 'agents', name, 'agent.json'), JSON.stringify({ approvals, delegation, ...config }));
  }
}

/** After the last count `act` is done, once. */
function countdown(from: number, act: () => Promise<void>): { readonly count: () => void; readonly done: Promise<void> } {
  let left = from;
  let last = (): void => undefined;
  const over = new Promise<void>((resolve) => (last = resolve));
  return {
    count() {
      left -= 1;
      if (left === 0) last();
    },
    done: over.then(act),
  };
}

/** Results in order; at most `atOnce` at a time. */
async function inTurns<T>(count: number, atOnce: number, work: (n: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const one = async (): Promise<void> => {
    for (let n = next++; n < count; n = next++) results[n] = await work(n);
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  return results;
}

function wordsOf(counts: Census | Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${count} ${name}`)
    .join(', ');
}

async function keep({
  broken,
  restless,
  talks,
  replayed,
}: {
  broken: readonly Replayed[];
  restless: readonly Talk[];
  talks: readonly Talk[];
  replayed: readonly Replayed[];
}): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), `perdura-storm-${seed}-`));
  const ofRestless = replayed.filter(({ workflowId }) => restless.some(({ id }) => workflowId.startsWith(id)));
  for (const { workflowId, runId, problem, history } of new Set([...broken, ...ofRestless])) {
    const log = talks.find(({ id }) => workflowId.startsWith(id))?.log ?? [];
    await writeFile(
      join(dir, `${workflowId}-${runId}.json`),
      JSON.stringify({ problem, log, history: JSON.parse(historyToJSON(history)) as unknown }, null, 1),
    );
  }
  for (const one of restless) await writeFile(join(dir, `${one.id}-restless.json`), JSON.stringify(one, null, 1));
  return dir;
}
