/** `perdura dev`: a Temporal server and a worker, or the server alone, kept running until Ctrl+C. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { temporalConnection, type Config } from '../config.js';
import { CliError, EXIT } from './terminal/exit.js';
import { onInterrupt, onTermination } from './terminal/interrupts.js';
import type { CliContext } from './session/context.js';
import { usualPlace, type ServerPlace } from './services/temporal-server.js';
import { startServices } from './services/services.js';

export interface DevOptions {
  readonly port?: number;
  readonly uiPort?: number;
  readonly dbFilename?: string;
  /** False: without a worker. */
  readonly worker?: boolean;
}

export async function dev(options: DevOptions, { surroundings, output, closed, config: load }: CliContext): Promise<number> {
  const config = load();
  const { signals } = surroundings;
  const { named, connectionOptions } = await temporalConnection(config);
  const { worker: hasWorker, ...ofServer } = options;
  const isOurs = Object.values(ofServer).some((value) => value !== undefined);
  if (named && isOurs) {
    throw new CliError(
      `--port, --ui-port and --db-filename are for a server of our own, and TEMPORAL_* or its profile names ${connectionOptions.address}: unset them`,
      EXIT.usage,
    );
  }
  const place = placeOf(config, options);
  const leave = new AbortController();
  const end = (exitCode: number) => leave.abort(new CliError('ended', exitCode));
  const stopListening = [onTermination(signals, end), onInterrupt(signals, () => end(EXIT.ok))];
  closed.addEventListener('abort', () => end(EXIT.ok), { once: true });
  try {
    const services = await startServices(config, { output, person: surroundings }, leave.signal, { place, hasWorker });
    for (const line of banner(services)) output.line(line);
    output.note('to talk: perdura chat, in this folder and another terminal; Ctrl+C ends what was started here');
    await ended(leave.signal);
    output.note('ending what was started …');
    const hurry = new AbortController();
    const stopHurrying = onInterrupt(signals, () => hurry.abort());
    await services.stop(hurry.signal);
    stopHurrying();
  } catch (error) {
    if (!leave.signal.aborted) throw error;
  } finally {
    for (const stop of stopListening) stop();
  }
  return leave.signal.reason instanceof CliError ? leave.signal.reason.exitCode : EXIT.ok;
}

function placeOf(config: Config, { port, uiPort, dbFilename }: DevOptions): ServerPlace {
  const usual = usualPlace(config);
  const own = port ?? usual.port;
  return {
    port: own,
    uiPort: uiPort ?? own + 1000,
    database: dbFilename !== undefined ? resolve(config.cwd, dbFilename) : databaseOf(config, own, usual),
  };
}

/** Two servers cannot share a database. */
function databaseOf(config: Config, port: number, usual: ServerPlace): string {
  return port === usual.port ? usual.database : join(config.cwd, '.perdura', `temporal-${port}.db`);
}

/** The three lines that `temporal server start-dev` prints; those that are known. */
function banner({
  address,
  uiPort,
  serverLog,
}: {
  readonly address: string;
  readonly uiPort?: number;
  readonly serverLog?: string;
}): string[] {
  const metrics = serverLog === undefined ? undefined : /Metrics:\s+(\S+)/.exec(readLog(serverLog))?.[1];
  return [
    `Server:   ${address}`,
    ...(uiPort === undefined ? [] : [`UI:       http://127.0.0.1:${uiPort}`]),
    ...(metrics === undefined ? [] : [`Metrics:  ${metrics}`]),
  ];
}

function readLog(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function ended(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done();
    else signal.addEventListener('abort', () => done(), { once: true });
  });
}
