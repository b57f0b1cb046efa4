/** A real Temporal dev server of our own, with the two flags of the product, on free ports. */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';

export interface TemporalServer {
  readonly address: string;
  readonly pid: number;
  stop(): Promise<void>;
  /** SIGKILL: what it had acknowledged must be in its file. */
  kill(): Promise<void>;
}

export interface TemporalServerOptions {
  readonly port?: number;
  /** Without it everything is in memory. */
  readonly dbFile?: string;
  /** Without the server's own long waits (IMPATIENCE). */
  readonly impatient?: boolean;
}

const IMPATIENCE = [
  // Runs of one conversation may begin sooner than a second apart.
  'history.workflowIdReuseMinimalInterval="0s"',
  // What is deleted is gone once the server has noted how far it got: else only every 30 s.
  'history.transferProcessorUpdateAckInterval="1s"',
  'history.visibilityProcessorUpdateAckInterval="1s"',
].flatMap((setting) => ['--dynamic-config-value', setting]);

export async function startTemporal({ port, dbFile, impatient }: TemporalServerOptions = {}): Promise<TemporalServer> {
  const own = port ?? (await freePort());
  const program = spawn(
    temporalProgram(),
    [
      ...['server', 'start-dev', '--headless', '--ip', '127.0.0.1', '--port', String(own), '--log-level', 'error'],
      ...['--dynamic-config-value', 'system.enableActivityEagerExecution=true'],
      ...['--dynamic-config-value', 'history.transferProcessorMaxPollRPS=2000'],
      ...['--dynamic-config-value', 'history.maximumBufferedEventsBatch=2000'],
      ...['--dynamic-config-value', 'history.maxInFlightUpdates=100'],
      ...(impatient ? IMPATIENCE : []),
      ...(dbFile === undefined ? [] : ['--db-filename', dbFile]),
    ],
    { stdio: 'ignore' },
  );
  const address = `127.0.0.1:${own}`;
  await answers(address, program);
  const end = (signal: NodeJS.Signals) => async (): Promise<void> => {
    if (program.exitCode !== null || program.signalCode !== null) return;
    const ended = new Promise((resolve) => program.once('exit', resolve));
    program.kill(signal);
    await ended;
  };
  return { address, pid: program.pid ?? 0, stop: end('SIGTERM'), kill: end('SIGKILL') };
}

export function temporalProgram(): string {
  const named = process.env['PERDURA_TEST_TEMPORAL'];
  const built = join(homedir(), 'go', 'bin', 'temporal');
  return named ?? (existsSync(built) ? built : 'temporal');
}

async function answers(address: string, program: ChildProcess): Promise<void> {
  for (;;) {
    if (program.exitCode !== null) throw new Error(`temporal ended with code ${program.exitCode} before it answered on ${address}`);
    const connection = await Connection.connect({ address, connectTimeout: 500 }).catch(() => undefined);
    const ready = await connection?.workflowService.describeNamespace({ namespace: 'default' }).then(
      () => true,
      () => false,
    );
    await connection?.close();
    if (ready) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
