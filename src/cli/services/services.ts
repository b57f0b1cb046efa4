/** Everything a chat needs beside itself, found or started in order, one line each; and the way to stop what was started. */
import { join } from 'node:path';
import type { Config } from '../../config.js';
import { temporalConnection } from '../../config.js';
import type { Output } from '../output.js';
import { checkRedis } from './redis-check.js';
import { uiLink } from './temporal-connection.js';
import { useTemporalServer } from './temporal-server.js';
import { startWorkerProcess } from './worker-process.js';

export interface Services {
  uiLink(conversation: string): string | undefined;
  /** Stops what was started here, in the reverse order; `hurry` makes it short. */
  stop(hurry: AbortSignal): Promise<void>;
}

/** `signal` gives up; nothing that was started stays behind then, nor after an error. */
export async function startServices(config: Config, output: Output, signal: AbortSignal): Promise<Services> {
  const started: ((hurry: AbortSignal) => Promise<void>)[] = [];
  const stop = async (hurry: AbortSignal): Promise<void> => {
    for (const end of started.splice(0).reverse()) await end(hurry);
  };
  try {
    const temporal = await temporalConnection(config);
    await reportStore(config, output);
    reportModel(config, output);

    const server = await useTemporalServer(config, temporal, (text) => output.report('Temporal', text), signal);
    started.push(server.leave);
    signal.throwIfAborted();

    const begin = Date.now();
    const worker = startWorkerProcess({
      command: [join(__dirname, '..', 'main.js'), 'worker'],
      cwd: config.cwd,
      logFile: join(config.cwd, '.perdura', 'worker.log'),
      say: (text) => output.report('Worker', text),
    });
    started.push(worker.stop);
    await abortable(worker.ready, signal);
    output.report(
      'Worker',
      `started in ${((Date.now() - begin) / 1000).toFixed(1)} s on task queue ${config.taskQueue}, ends with this chat`,
    );
    return { uiLink: (conversation) => uiLink(temporal, server.uiPort, conversation), stop };
  } catch (error) {
    await stop(AbortSignal.timeout(2000));
    throw error;
  }
}

/** Redis that was asked for and is down is an error, never a reason to write files: memory would seem lost. */
async function reportStore(config: Config, output: Output): Promise<void> {
  if (config.redisUrl === undefined) return output.report('Memory', `files in ${config.memoryDir}, since REDIS_URL is not set`);
  output.report('Memory', `Redis at ${await checkRedis(config.redisUrl)}, since REDIS_URL says so`);
}

function reportModel(config: Config, output: Output): void {
  if (config.anthropicApiKey !== undefined) return output.report('Model', `${config.model}, with ANTHROPIC_API_KEY`);
  if (config.anthropicBaseUrl !== undefined) return output.report('Model', `${config.model}, at ANTHROPIC_BASE_URL, without a key`);
  output.report('Model', 'NOT A MODEL: scripted answers, since ANTHROPIC_API_KEY is not set (tools and memory are real)');
}

async function abortable(work: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  let stop!: () => void;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error);
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
