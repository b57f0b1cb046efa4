/** A Temporal dev server for tests: on a port that is free, with everything in memory unless a file is named. */
import { spawn, type ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { SERVER_FLAGS, findInstalledTemporal, WAYS_TO_GET_TEMPORAL } from '../cli/services/temporal-binary.js';
import { freePort } from './free-port.js';

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
