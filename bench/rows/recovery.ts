/**
 * How long a conversation stands still when its worker is killed with -9: from the kill until the turn is answered, by a second worker that
 * runs already, or by the next one of a supervisor. Model and tool answer at once after the kill, so this is what recovery takes.
 */
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, type PerduraClient } from '../../src/client.js';
import { startWorkerProcess } from '../../src/cli/services/worker-process.js';
import { loadConfig } from '../../src/config.js';
import { blocksOf, textOf, type ApiRequest } from '../../test/support/provider-apis/api-request.js';
import { startMessagesApi } from '../../test/support/provider-apis/messages-api.js';
import { callTool, text, type Reply } from '../../test/support/provider-apis/reply.js';
import { startRedis } from '../../test/support/redis-server.js';
import { median } from '../pairs.js';
import type { Measured, Row } from '../row.js';
import type { Surroundings } from '../surroundings.js';
import { createInstallation, MAIN, startWorkerChild, type RunningWorker } from '../worker-child.js';

const PLACES = ['model call', 'repeatable tool', 'other tool', 'any moment'] as const;
type Place = (typeof PLACES)[number];
const WAYS = ['a second worker', 'a supervisor'] as const;
type Way = (typeof WAYS)[number];
const STORES = ['redis', 'file'] as const;

const P50_MS = 2_000;
const P95_MS = 4_000;
/** How long a model and a tool take before the kill, where its moment is random. */
const WORK_MS = 500;
const LOOK_MS = 20;
/** What lives shorter is started again after a pause by the supervisor, and without a spare one beside it. */
const LIFE_MS = 7_000;
/** Of a turn that does not come back. */
const MAX_MS = 120_000;

export const recovery: Row = {
  name: 'recovery',
  async measure(surroundings, { kills }) {
    const measured: Measured[] = [];
    for (const store of STORES) {
      await inTrial(surroundings, store, async (trial) => {
        for (const way of WAYS) {
          for (const place of PLACES) {
            const times = await trial.kill(way, place, kills);
            const [p50, p95] = [median(times), at(times, 0.95)];
            process.stderr.write(`  … recovery: ${place}, ${way}, ${store}: ${times.map((ms) => ms.toFixed(0)).join(' ')}\n`);
            measured.push({
              row: `recovery: kill -9 in ${place === 'any moment' ? '' : 'a '}${place}, ${way} goes on (${store}), p95`,
              product: p95,
              unit: 'ms',
              toHold: `p50 ≤ ${P50_MS}, p95 ≤ ${P95_MS}`,
              holds: p50 <= P50_MS && p95 <= P95_MS,
              notes: [`p50 ${p50.toFixed(0)} ms, slowest ${Math.max(...times).toFixed(0)} ms, of ${times.length} kills`],
            });
          }
        }
      });
    }
    return measured;
  },
};

interface Trial {
  /** Milliseconds from each kill until its turn was answered. */
  kill(way: Way, place: Place, times: number): Promise<readonly number[]>;
}

async function inTrial(surroundings: Surroundings, store: (typeof STORES)[number], work: (trial: Trial) => Promise<void>): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-bench-recovery-'));
  const redis = store === 'redis' ? await startRedis({ appendonly: true }) : undefined;
  const scene = { ...surroundings, dir, hold: join(dir, 'hold') };
  const held = new AbortController();
  const api = await startMessagesApi({ strict: false, keepHits: false, answer: (request) => answer(request, scene.hold, held.signal) });
  try {
    const { address } = surroundings;
    const env = await createInstallation(dir, { address, redisUrl: redis?.url, modelUrl: api.url, taskQueue: `recovery-${store}` });
    await writeFile(join(dir, 'perdura.config.cjs'), TOOLS);
    const client = await createClient(loadConfig(env, dir), { workerPatienceMs: Infinity });
    try {
      await work({ kill: (way, place, times) => killTimes({ ...scene, client, env }, way, place, times) });
    } finally {
      await client.close();
    }
  } finally {
    held.abort();
    await api.close();
    await redis?.stop();
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
  }
}

interface Scene extends Pick<Surroundings, 'temporal'> {
  readonly dir: string;
  /** While this file is there, a tool and a model wait. */
  readonly hold: string;
  readonly client: PerduraClient;
  readonly env: NodeJS.ProcessEnv;
}

async function killTimes(scene: Scene, way: Way, place: Place, times: number): Promise<readonly number[]> {
  const workers = [await startWorker(scene, way), ...(way === 'a second worker' ? [await startWorker(scene, way)] : [])];
  const measured: number[] = [];
  try {
    // Loads what the first turn of a worker loads.
    await scene.client.send(`warm-up-${randomUUID()}`, { text: 'say hello' }, { start: {} });
    for (let number = 0; number < times; number += 1) {
      if (way === 'a supervisor') await sleep(LIFE_MS);
      measured.push(await killOnce(scene, place, workers));
      // Whichever was killed has a successor before the next kill: without a supervisor it is started here.
      for (const [i, worker] of workers.entries()) if (worker.isGone()) workers[i] = await startWorker(scene, way);
    }
  } finally {
    rmSync(scene.hold, { force: true });
    for (const worker of workers) await worker.stop();
  }
  return measured;
}

async function killOnce({ client, temporal, hold }: Scene, place: Place, workers: readonly RunningWorker[]): Promise<number> {
  const { id } = await client.start(undefined);
  const isRandom = place === 'any moment';
  if (!isRandom) writeFileSync(hold, '');
  const answered = client.send(id, { text: place });
  answered.catch(() => undefined);
  if (isRandom) await sleep(Math.random() * 4 * WORK_MS);
  else await until(`${place} that waits`, () => existsSync(`${hold}.reached`));
  const { raw } = await temporal.workflow.getHandle(id).describe();
  const runs = raw.pendingActivities?.[0]?.lastWorkerIdentity?.split('@')[0];
  const victim = workers.find(({ pid }) => String(pid()) === runs) ?? workers[Math.floor(Math.random() * workers.length)];
  rmSync(hold, { force: true });
  rmSync(`${hold}.reached`, { force: true });
  const begin = performance.now();
  const killed = victim?.kill();
  const timer = new AbortController();
  await Promise.race([
    answered,
    sleep(MAX_MS, undefined, { signal: timer.signal }).then(() => Promise.reject(new Error(`${id} stands still`))),
  ]);
  timer.abort();
  const ms = performance.now() - begin;
  // Answered before it was gone, it would be taken for one that runs.
  await killed;
  return ms;
}

async function startWorker(scene: Scene, way: Way): Promise<RunningWorker> {
  return way === 'a supervisor' ? startSupervised(scene) : startWorkerChild(scene.dir, scene.env);
}

/** As `npm start` and `perdura up` have it: its successor is started by the product. */
async function startSupervised({ dir, env }: Scene): Promise<RunningWorker> {
  const pidFile = join(dir, `${randomUUID()}.pid`);
  const pid = (): number => Number(readFileSync(pidFile, 'utf8'));
  const files = { cwd: dir, logFile: `${pidFile}.log`, pidFile };
  const worker = startWorkerProcess({
    ...{ command: [MAIN, 'worker', '--await-begin'], ...files, env: { ...process.env, ...env } },
    ...{ keepsSpare: true, changed: () => undefined },
  });
  worker.begin(env['PERDURA_TASK_QUEUE'] ?? '');
  await worker.ready;
  return { pid, isGone: () => false, kill: async () => void process.kill(pid(), 'SIGKILL'), stop: () => worker.stop(AbortSignal.abort()) };
}

const ANSWER = 'It is done.';

/** By what the person wants: an answer that waits, a tool that waits, or a tool and two answers that take a while. */
async function answer({ messages }: ApiRequest, hold: string, end: AbortSignal): Promise<Reply> {
  const last = messages.findLastIndex(({ role, content }) => role === 'user' && textOf(content) !== '');
  const wanted = textOf(messages[last]?.content);
  const hasRun = messages.slice(last + 1).some(({ content }) => blocksOf(content).some(({ type }) => type === 'tool_use'));
  if (wanted === 'any moment') await sleep(WORK_MS);
  if (wanted === 'model call' && existsSync(hold)) {
    const until = new Promise((resolve) => end.addEventListener('abort', resolve));
    return { text: ANSWER, holdAfter: { chars: 1, until, onReached: () => writeFileSync(`${hold}.reached`, '') } };
  }
  const tool = { 'repeatable tool': 'repeat', 'other tool': 'once', 'any moment': 'work' }[wanted];
  return tool === undefined || hasRun ? text(ANSWER) : callTool(tool, {});
}

const TOOLS = `
const { existsSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const hold = join(__dirname, 'hold');
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const { defineTool, z } = require(${JSON.stringify(join(MAIN, '..', '..', 'index.js'))});
const wait = async () => {
  if (existsSync(hold)) {
    writeFileSync(hold + '.reached', '');
    await sleep(600_000);
  }
  return 'done';
};
const tool = (name, repeatable, run) =>
  defineTool({ name, description: name, input: z.object({}), policy: { repeatable, timeoutMs: 600_000 }, run });
module.exports = {
  tools: [tool('repeat', true, wait), tool('once', false, wait), tool('work', true, () => sleep(${WORK_MS}).then(() => 'done'))],
};
`;

async function until(what: string, look: () => boolean): Promise<void> {
  for (const deadline = performance.now() + MAX_MS; !look(); await sleep(LOOK_MS)) {
    if (performance.now() > deadline) throw new Error(`no ${what} within ${MAX_MS} ms`);
  }
}

function at(times: readonly number[], part: number): number {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * part) - 1] ?? NaN;
}
