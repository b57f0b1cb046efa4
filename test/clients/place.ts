/** The real thing for clients: Temporal, Redis, the built worker and the built gateway in processes of their own, and a scripted model. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { saidIn } from '../support/echo-model.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { startMessagesApi } from '../support/provider-apis/messages-api.js';
import { gate, text, type Gate, type Reply } from '../support/provider-apis/reply.js';
import { dieWithUs } from '../support/reaper.js';
import { startRedis } from '../support/redis-server.js';
import { startTemporal } from '../support/temporal-server.js';
import { PRODUCT, startWorkerProcess, type WorkerProcess } from '../support/worker-process.js';
import { scriptedReply } from './scripted-model.js';
import { ONE_BREATH, SPOKEN, type ClientPlace } from './suite.js';

const TOKEN = 'a-token-that-only-tests-have';

export interface OpenPlace extends ClientPlace {
  /** What the model's API would have refused. */
  readonly problems: readonly string[];
  close(): Promise<void>;
}

export interface PlaceOptions {
  /** More settings of worker and gateway. */
  readonly env?: Readonly<Record<string, string>>;
  /** agent.json of each agent. Default: one, `default`, with all as it is. */
  readonly agents?: Readonly<Record<string, object>>;
  /** What the model says. Default: it answers as `answerTo` does. */
  readonly answer?: (request: ApiRequest) => Reply;
}

export async function openPlace(cacheDir: string, options: PlaceOptions = {}): Promise<OpenPlace> {
  const ends: (() => unknown)[] = [];
  const close = async (): Promise<void> => {
    for (let end = ends.pop(); end; end = ends.pop()) await Promise.resolve(end()).catch(() => undefined);
  };
  try {
    return await build(cacheDir, options, ends, close);
  } catch (error) {
    await close();
    throw error;
  }
}

async function build(
  cacheDir: string,
  { env: more = {}, agents = { default: {} }, answer }: PlaceOptions,
  ends: (() => unknown)[],
  close: () => Promise<void>,
): Promise<OpenPlace> {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-clients-'));
  ends.push(() => rm(dir, { recursive: true, force: true, maxRetries: 3 }));
  for (const [name, config] of Object.entries(agents)) {
    await mkdir(join(dir, 'agents', name), { recursive: true });
    await writeFile(join(dir, 'agents', name, 'agent.json'), JSON.stringify(config));
  }

  let held: Gate | undefined;
  const spoken = (): Reply => {
    const hold = held;
    held = undefined;
    return { ...text(SPOKEN), chunks: { size: 6, delayMs: 20 }, ...(hold && { hold }) };
  };
  const api = await startMessagesApi({
    answer: (request) => {
      if (answer) return answer(request);
      const said = saidIn(request).at(-1) ?? '';
      return said.includes(ONE_BREATH) ? spoken() : scriptedReply(request);
    },
  });
  ends.push(() => api.close());
  const [redis, temporal] = await Promise.all([startRedis(), startTemporal()]);
  for (const server of [redis, temporal]) {
    const spare = dieWithUs(server.pid);
    ends.push(() => server.stop().then(spare));
  }
  const env = {
    TEMPORAL_ADDRESS: temporal.address,
    REDIS_URL: redis.url,
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test',
    PERDURA_AGENTS_DIR: join(dir, 'agents'),
    PERDURA_WORKSPACE: join(dir, 'workspace'),
    PERDURA_TASK_QUEUE: `clients-${randomUUID()}`,
    PERDURA_GATEWAY_TOKEN: TOKEN,
    PERDURA_LOG_LEVEL: 'warn',
    ...more,
  };
  let worker: WorkerProcess;
  const startWorker = async (): Promise<void> => {
    worker = startWorkerProcess({ env, cwd: dir });
    const own = worker;
    ends.push(() => own.kill());
    await own.ready;
  };
  await startWorker();
  const gateway = await startGateway(env, dir);
  ends.push(gateway.stop);

  return {
    url: gateway.url,
    token: TOKEN,
    cacheDir,
    problems: api.problems,
    memory: () => heldBy(gateway.pid),
    async killedMeanwhile(act) {
      const hold = gate({ chars: 20 });
      held = hold;
      const acting = act();
      const early = acting.then(
        () => Promise.reject(new Error('it ended before the model had said a word')),
        (error: unknown) => Promise.reject(error as Error),
      );
      await Promise.race([hold.reached, early]);
      early.catch(() => undefined);
      await worker.kill();
      hold.release();
      await startWorker();
      return acting;
    },
    close,
  };
}

async function startGateway(
  env: Readonly<Record<string, string>>,
  cwd: string,
): Promise<{ url: string; pid: number; stop: () => Promise<void> }> {
  const child = spawn(
    process.execPath,
    [join(PRODUCT, 'dist', 'cli', 'main.js'), 'serve', '--port', '0', '-o', 'json', '--requests-per-minute', '1000000'],
    {
      cwd,
      env: { PATH: process.env['PATH'] ?? '', HOME: cwd, PERDURA_TRUST: '1', ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const spare = dieWithUs(child.pid ?? 0);
  const ended = once(child, 'close').then(spare);
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
  };
  let output = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    output += String(chunk);
    const url = /"url":\s*"([^"]+)"/.exec(output)?.[1];
    if (url === undefined) continue;
    child.stdout.resume();
    return { url, pid: child.pid ?? 0, stop };
  }
  throw new Error(`the gateway ended before it served: ${output}`);
}

/** Bytes that a process holds, on Linux; 0 elsewhere. */
async function heldBy(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
}
