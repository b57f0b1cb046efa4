/** What a scenario plays on: a world, one conversation, and workers that can be killed. */
import { fork, type ChildProcess } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { startWorld } from '../support/world.js';
import type { Scenario, Stage, WorkerProcess } from './scenarios.js';
import { GO, MARK, recordedTools } from './tools.js';

const PATIENCE_MS = 120_000;

export async function startStage(scenario: Scenario, where: { address: string; bundlePath: string }): Promise<Stage> {
  const { world: options = () => ({}), workers = 'here', redis: needsRedis = false } = scenario;
  let redis = needsRedis ? await startRestartableRedis() : undefined;
  const world = await startWorld({
    tools: recordedTools,
    engine: 'temporal',
    ...options(),
    address: where.address,
    worker: workers === 'here',
    ...(redis ? { redisUrl: redis.url } : {}),
  });
  const id = world.id();
  const children: ChildProcess[] = [];

  const startProcess = async (lost: readonly string[] = []): Promise<WorkerProcess> => {
    const child = fork(join(__dirname, 'worker-process.ts'), {
      execArgv: ['--require', join(__dirname, '../stores/register-swc.cjs')],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    children.push(child);
    const ready = new Promise<void>((resolve, reject) => {
      child.once('message', () => resolve());
      child.once('exit', (code) => reject(new Error(`the worker process ended with ${code} before it was ready`)));
    });
    const { taskQueue, dir, api } = world;
    child.send({
      address: where.address,
      taskQueue,
      dir,
      apiUrl: api.url,
      bundlePath: where.bundlePath,
      attributes: scenario.attributes ?? false,
      lost,
    });
    await ready;
    return { kill: () => kill(child), freeze: () => void child.kill('SIGSTOP') };
  };

  return {
    world,
    id,
    startProcess,
    toolRuns: () => until('a tool that runs', async () => existsSync(join(world.dir, 'workspace', MARK))),
    letGo: () => writeFileSync(join(world.dir, 'workspace', GO), ''),
    breakAgent: () => writeFileSync(join(world.dir, 'agents', 'default', 'agent.json'), '{ "no such": "field" }'),
    killRedis: async () => redis?.kill(),
    emptyRedis: async () => {
      const own = new Redis(redis?.url ?? '');
      await own.flushall();
      await own.quit();
    },
    restartRedis: async () => void (redis = await redis?.restart()),
    until,
    async settled() {
      let before = -1;
      await until('a conversation at rest', async () => {
        const { status, historyLength } = await world.temporal.workflow.getHandle(id).describe();
        if (status.name !== 'RUNNING') return true;
        const { phase, queued } = await world.client.status(id);
        const atRest = phase === 'idle' && queued === 0 && historyLength === before;
        before = historyLength;
        if (!atRest) await pause(300);
        return atRest;
      });
    },
    async end() {
      // The conversation ends first, so that no worker of a later recording meets it.
      await world.temporal.workflow
        .getHandle(id)
        .terminate('recorded')
        .catch(() => undefined);
      await Promise.all(children.map(kill));
      await world.close();
      await redis?.end();
    },
  };
}

interface RestartableRedis {
  readonly url: string;
  kill(): Promise<void>;
  restart(): Promise<RestartableRedis>;
  end(): Promise<void>;
}

async function startRestartableRedis(port?: number, dir?: string): Promise<RestartableRedis> {
  const own = dir ?? (await mkdtemp(join(tmpdir(), 'perdura-redis-')));
  const server: RedisServer = await startRedis({ dir: own, appendonly: true, ...(port === undefined ? {} : { port }) });
  return {
    url: server.url,
    kill: () => server.kill(),
    restart: () => startRestartableRedis(server.port, own),
    async end() {
      await server.stop();
      await rm(own, { recursive: true, force: true });
    },
  };
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
}

/** What cannot be asked yet, because the conversation is still starting, is not so yet. */
async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const since = Date.now();
  let trouble: unknown;
  while (!(await isSo().catch((error: unknown) => ((trouble = error), false)))) {
    // clock: only a hang meets this bound
    if (Date.now() - since > PATIENCE_MS) throw new Error(`waited ${PATIENCE_MS / 1000} s for ${what}`, { cause: trouble });
    await pause(20);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
