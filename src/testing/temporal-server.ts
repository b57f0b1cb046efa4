/** A Temporal dev server for tests: on a port that is free, with everything in memory unless a file is named. */
import { spawn, type ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer, type AddressInfo } from 'node:net';
import { randomUUID } from 'node:crypto';
import { Connection } from '@temporalio/client';
import { SERVER_FLAGS, findInstalledTemporal, WAYS_TO_GET_TEMPORAL } from '../cli/services/temporal-binary.js';
import { createClient, type PerduraClient } from '../client.js';
import { openTestProject, type TestOptions } from './project.js';

/** A server that runs until it is stopped, or until the process that started it ends. */
export interface TestServer {
  /** `host:port`. */
  readonly address: string;
  readonly pid: number;
  /** SIGTERM, and until it has ended. */
  stop(): Promise<void>;
  /** SIGKILL: what the server had acknowledged must be in its file. */
  kill(): Promise<void>;
}

/** What `startTemporalServer` is given. */
export interface TestServerOptions {
  /** Default: one that is free. */
  readonly port?: number;
  /** Its database; without it everything is in memory. */
  readonly dbFile?: string;
  /** The program `temporal`; default: on PATH, in Go's folder, or in Perdura's cache. None is downloaded. */
  readonly program?: string;
  /** More arguments of `temporal server start-dev`. */
  readonly flags?: readonly string[];
}

const READY_WITHIN_MS = 60_000;

/** Starts a server and resolves once it answers. One server can serve all tests of a run. Throws where the machine has no `temporal`. */
export async function startTemporalServer({ port, dbFile, program, flags = [] }: TestServerOptions = {}): Promise<TestServer> {
  const path = program ?? (await installed());
  const usedPort = port ?? (await freePort());
  const child = spawn(
    path,
    [
      ...['server', 'start-dev', '--headless', '--ip', '127.0.0.1', '--port', String(usedPort), '--log-level', 'error'],
      ...SERVER_FLAGS.dynamicConfig,
      ...flags,
      ...(dbFile === undefined ? [] : ['--db-filename', dbFile]),
    ],
    { stdio: 'ignore' },
  );
  const end = (signal: NodeJS.Signals) => async (): Promise<void> => {
    process.off('exit', endWithUs);
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await ended;
  };
  const endWithUs = (): void => void child.kill('SIGKILL');
  process.once('exit', endWithUs);
  const address = `127.0.0.1:${usedPort}`;
  try {
    await answers(address, path, child);
  } catch (error) {
    await end('SIGKILL')();
    throw error;
  }
  return { address, pid: child.pid ?? 0, stop: end('SIGTERM'), kill: end('SIGKILL') };
}

async function installed(): Promise<string> {
  const found = await findInstalledTemporal();
  if (found) return found.path;
  throw new Error(`cannot start a Temporal server for this test. ${WAYS_TO_GET_TEMPORAL}`);
}

async function answers(address: string, path: string, child: ChildProcess): Promise<void> {
  let failed: Error | undefined;
  child.once('error', (error) => (failed = error));
  for (const deadline = Date.now() + READY_WITHIN_MS; ; await sleep(50)) {
    if (failed) throw new Error(`cannot start ${path}: ${failed.message}`, { cause: failed });
    if (child.exitCode !== null) throw new Error(`${path} ended with code ${child.exitCode} before it answered on ${address}`);
    if (Date.now() > deadline) throw new Error(`${path} did not answer on ${address} within ${READY_WITHIN_MS / 1000} s`);
    const connection = await Connection.connect({ address, connectTimeout: 500 }).catch(() => undefined);
    const ready = await connection?.workflowService.describeNamespace({ namespace: 'default' }).then(
      () => true,
      () => false,
    );
    await connection?.close();
    if (ready) return;
  }
}

/** A port that nothing listens on now. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

// The real thing in a test: a Temporal server, a worker and a client, started and closed together.

/** What `startWithTemporal` is given. */
export interface WithTemporalOptions extends TestOptions {
  /** `host:port` of a server that runs; without it one is started for this test and stopped with it. */
  readonly address?: string;
}

/** A worker that takes work, and a client for it. */
export interface WithTemporal {
  readonly client: PerduraClient;
  readonly address: string;
  /** Of this worker alone. */
  readonly taskQueue: string;
  /** Stops the worker, and another one goes on in its place: what a worker's end must not lose can be tested so. */
  restartWorker(): Promise<void>;
  /** Ends client, worker and server, and deletes the test's folder. */
  close(): Promise<void>;
}

/**
 * Starts a Temporal dev server, where `address` names none, and a worker with the project's agents and extensions. It takes about three
 * seconds, so start it once for many tests. Throws where the machine has no `temporal`, and says how to get it.
 *
 * ```ts
 * const perdura = await startWithTemporal({ model: createScriptedModel(['Hello!']) });
 * const { text } = await perdura.client.send('chat-1', 'hi', { start: { agent: 'default' } });
 * await perdura.close();
 * ```
 */
export async function startWithTemporal(options: WithTemporalOptions): Promise<WithTemporal> {
  const ends: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (let end = ends.pop(); end; end = ends.pop()) await end();
  };
  try {
    const project = await openTestProject(options);
    ends.push(project.close);
    const address = options.address ?? (await ownServer(ends));
    const taskQueue = `test-${randomUUID()}`;
    const config = project.settings({ TEMPORAL_ADDRESS: address, PERDURA_TASK_QUEUE: taskQueue });
    // Native code, which a test in memory need not load.
    const { createWorkerWith } = await import('../worker.js');

    let stopWorker = async (): Promise<void> => {};
    const startWorker = async (): Promise<void> => {
      let ready = (): void => undefined;
      const isReady = new Promise<void>((resolve) => (ready = resolve));
      const worker = createWorkerWith({ ...project.extensions, config, onReady: () => ready() }, { answering: options.model });
      const running = worker.run();
      await Promise.race([isReady, running]);
      stopWorker = async () => {
        worker.shutdown();
        await running;
      };
    };
    await startWorker();
    ends.push(() => stopWorker());
    const client = await createClient(config);
    ends.push(() => client.close());
    return {
      client,
      address,
      taskQueue,
      async restartWorker() {
        await stopWorker();
        await startWorker();
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function ownServer(ends: (() => Promise<unknown>)[]): Promise<string> {
  const server = await startTemporalServer({ flags: SERVER_FLAGS.searchAttributes });
  ends.push(server.stop);
  return server.address;
}
