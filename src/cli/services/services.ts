/** Everything a chat needs beside itself, found or started in order, one line each; and the way to stop what was started. */
import { join, basename, dirname } from 'node:path';
import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { findUserConfig, needsStandIn, temporalConnection, type Config, type TemporalConnection, queueFile } from '../../config.js';
import { type Person, canAsk, confirm } from '../terminal/input.js';
import type { Output } from '../terminal/output.js';
import { asSentence, checkStore } from './before-start.js';
import { uiLink, hasWorker, openNamespace } from './temporal-connection.js';
import { useTemporalServer, type ServerPlace } from './temporal-server.js';
import { startWorkerProcess, describeWorkerChange, type WorkerChange, type WorkerProcess } from './worker-process.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { timeoutSignal, orAborted } from '../../platform/promises.js';
import { withoutSecrets } from '../../platform/redis-address.js';
import { findOthers, describeTakenQueue } from '../../client/temporal/worker-place.js';
import { openStore } from '../../stores/open.js';

export interface Services {
  uiLink(conversation: string): string | undefined;
  /** `host:port` of the Temporal server. */
  readonly address: string;
  /** Of the worker, and so of conversations that are started beside it. */
  readonly taskQueue: string;
  /** Shows deaths of the worker in another way than as lines; returns the way to end that. */
  watchWorker(show: (change: WorkerChange) => void): () => void;
  readonly uiPort?: number;
  /** Where the server writes, if this folder started it. */
  readonly serverLog?: string;
  /** Stops what was started here, in the reverse order; `hurry` makes it short. */
  stop(hurry: AbortSignal): Promise<void>;
}

export interface ServiceOptions {
  readonly place?: ServerPlace;
  /** False: the server alone. A project that runs its worker itself wants no second one, which would lack its tools. */
  readonly hasWorker?: boolean;
}

/** `signal` gives up; nothing that was started stays behind then, nor after an error. */
export async function startServices(
  config: Config,
  { output, person }: { readonly output: Output; readonly person: Person },
  signal: AbortSignal,
  { place, hasWorker = true }: ServiceOptions = {},
): Promise<Services> {
  const started: ((hurry: AbortSignal) => Promise<void>)[] = [];
  const stop = async (hurry: AbortSignal): Promise<void> => {
    for (const end of started.splice(0).reverse()) await end(hurry);
  };
  try {
    const temporal = at(await temporalConnection(config), place);
    await reportStore(config, output);
    reportModel(config, output);

    const inLines = (change: WorkerChange): void => {
      if (change.kind === 'away') output.problem(describeWorkerChange(change));
      else output.report('Worker', describeWorkerChange(change));
    };
    let showChange = inLines;
    const startWorker = (): WorkerProcess =>
      startWorkerProcess({
        command: [join(__dirname, '..', 'main.js'), 'worker', '--await-begin'],
        cwd: config.cwd,
        // A server that a flag named is the worker's server too.
        env: {
          ...config.env,
          ...config.temporalEnv,
          ...(place === undefined || temporal.named ? {} : { TEMPORAL_ADDRESS: temporal.connectionOptions.address }),
        },
        logFile: join(config.cwd, '.perdura', 'worker.log'),
        pidFile: join(config.cwd, '.perdura', 'worker.pid'),
        keepsSpare: true,
        changed: (change) => showChange(change),
      });
    const worker = hasWorker ? startWorker() : undefined;
    if (worker) started.push(worker.stop);
    const server = await useTemporalServer(config, temporal, (text) => output.report('Temporal', text), signal, place);
    // To be stopped after the worker, which still talks to it.
    started.unshift(server.leave);
    signal.throwIfAborted();

    const taskQueue = worker ? await chooseQueue(config, temporal, { output, person }) : config.taskQueue;
    if (worker) {
      const begin = Date.now();
      worker.begin(taskQueue);
      await orAborted(signal, worker.ready);
      output.report(
        'Worker',
        `started in ${((Date.now() - begin) / 1000).toFixed(1)} s on task queue ${taskQueue}, ends with this command`,
      );
    } else {
      output.report('Worker', `none, since --no-worker says so; yours takes work from task queue ${taskQueue}`);
    }
    return {
      uiLink: (conversation) => uiLink(temporal, server.uiPort, conversation),
      address: temporal.connectionOptions.address,
      taskQueue,
      watchWorker(show) {
        showChange = show;
        return () => (showChange = inLines);
      },
      uiPort: server.uiPort,
      serverLog: server.log,
      stop,
    };
  } catch (error) {
    await stop(timeoutSignal(2000));
    throw asSentence(error);
  }
}

/** A server that is started here may be at another place than the usual one; one that was named is where it is. */
function at(temporal: TemporalConnection, place: ServerPlace | undefined): TemporalConnection {
  if (place === undefined || temporal.named) return temporal;
  return { ...temporal, connectionOptions: { ...temporal.connectionOptions, address: `127.0.0.1:${place.port}` } };
}

async function reportStore(config: Config, output: Output): Promise<void> {
  await checkStore(config, 0);
  const { redisUrl, memoryDir } = config;
  if (redisUrl === undefined) output.report('Memory', `files in ${memoryDir}, since REDIS_URL is not set`);
  else output.report('Memory', `Redis at ${withoutSecrets(redisUrl)}, since REDIS_URL says so`);
}

function reportModel(config: Config, output: Output): void {
  if (!config.model.startsWith('anthropic/') && findUserConfig(config.cwd)) return output.report('Model', `${config.model}, of your own`);
  if (config.anthropicApiKey !== undefined) return output.report('Model', `${config.model}, with ANTHROPIC_API_KEY`);
  if (config.anthropicBaseUrl !== undefined) return output.report('Model', `${config.model}, at ANTHROPIC_BASE_URL, without a key`);
  if (!needsStandIn(config)) return output.report('Model', config.model);
  output.report(
    'Model',
    'NOT A MODEL: scripted answers, since ANTHROPIC_API_KEY is not set (tools and memory are real); put a key into .env',
  );
}

// Which task queue this folder's worker takes: the one of the settings, or a separate one where another folder's worker has that.

/** Asks the person, where there is one; else a worker of another store is an error. */
async function chooseQueue(
  config: Config,
  temporal: TemporalConnection,
  { output, person }: { readonly output: Output; readonly person: Person },
): Promise<string> {
  const { taskQueue } = config;
  const connection = await openNamespace(temporal);
  try {
    const { namespace } = temporal;
    // The usual case: no other worker is there, and no store need be read.
    if (!(await hasWorker(connection, namespace, taskQueue))) return taskQueue;
    // Which agents there are, the worker's code decides: it refuses by itself.
    const place = { store: await readStoreId(config), agents: '' };
    const other = (await findOthers(connection, { namespace, taskQueue, place })).find(({ differs }) => differs === 'store');
    if (other === undefined) return taskQueue;
    const taken = describeTakenQueue(taskQueue, other);
    if (!canAsk(person)) throw new CliError(taken, EXIT.usage);
    const name = nameFor(config.cwd);
    output.say(`\n  ${taken}\n`);
    if (!(await confirm(person, `Use task queue ${name} for this folder from now on?`, true)))
      throw new CliError(`not started: ${taken}`, EXIT.usage);
    await mkdir(dirname(queueFile(config.cwd)), { recursive: true });
    await writeFile(queueFile(config.cwd), `${name}\n`);
    output.report('Queue', `${name}, for this folder from now on (.perdura/task-queue)`);
    return name;
  } finally {
    await connection.close();
  }
}

async function readStoreId(config: Config): Promise<string> {
  const store = openStore(config);
  try {
    return await store.id();
  } finally {
    await store.close();
  }
}

/** Two folders of one name have two. */
function nameFor(cwd: string): string {
  const folder = realpathSync(cwd);
  const name = basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 40);
  return `perdura-${name === '' ? '' : `${name}-`}${createHash('sha256').update(folder).digest('hex').slice(0, 4)}`;
}
