/**
 * The dev server, shared by the chats of one folder.
 *
 * 1. It runs detached: Ctrl+C in a chat does not reach it, and it outlives a chat that was killed.
 * 2. `.perdura/temporal.pid` says which process it is; a later start finds it there and takes it over.
 * 3. Each chat leaves its pid in `.perdura/chats/`; the last one to leave stops the server.
 * 4. All of that happens under one lock, so that two starts make one server.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, openSync, closeSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadMachine, type Config, type Environment, type TemporalConnection } from '../../config.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { OWN_DATABASE } from '../trust/folder-contents.js';
import { rememberOwnDatabase } from '../trust/folder-trust.js';
import { SERVER_FLAGS, findTemporalBinary } from './temporal-binary.js';
import { withLock } from '../lock.js';
import { readCommand, endProcess, lastLines } from './programs.js';
import { isAlive } from '../../platform/processes.js';
import { checkTemporal, isListening, probeTemporal, setRetention } from './temporal-connection.js';

export interface TemporalServer {
  /** Where its page is, if it has one. */
  readonly uiPort: number | undefined;
  /** What it writes, when this folder started it. */
  readonly log?: string;
  /** Stops the server if it is ours and no other chat of this folder uses it. */
  leave(hurry: AbortSignal): Promise<void>;
}

export type Say = (text: string) => void;

/** Where the server is to be. */
export interface ServerPlace {
  readonly port: number;
  readonly uiPort: number;
  readonly database: string;
}

const RETENTION_DAYS = 30;

/** Where a dev server listens by default, with its state in this folder. */
export function usualPlace(config: Config): ServerPlace {
  return { port: 7233, uiPort: 8233, database: join(config.cwd, OWN_DATABASE.name) };
}

/** Finds a server or starts one. A failure ends the server that it started. */
export async function useTemporalServer(
  config: Config,
  temporal: TemporalConnection,
  say: Say,
  signal: AbortSignal,
  place: ServerPlace = usualPlace(config),
): Promise<TemporalServer> {
  if (temporal.named) {
    await checkTemporal(temporal);
    say(`${temporal.connectionOptions.address}, namespace ${temporal.namespace}, since TEMPORAL_* or its profile says so`);
    return { uiPort: undefined, leave: async () => {} };
  }
  const files = chooseFiles(config, place);
  await rememberOwnDatabase(config);
  mkdirSync(files.chats, { recursive: true });
  const uiPort = await withLock(files.lock, async () => {
    const port = await findOrStart(files, temporal, say, signal);
    writeFileSync(join(files.chats, String(process.pid)), '');
    return port;
  });

  let leaving = false;
  const watching = watchServer(
    files,
    () => leaving,
    async () => {
      say('the server has ended: starting it again …');
      await withLock(files.lock, () => findOrStart(files, temporal, say, signal));
    },
  );
  return {
    uiPort,
    log: (await findServer(files)) === undefined ? undefined : files.log,
    async leave(hurry) {
      leaving = true;
      clearInterval(watching);
      await withLock(files.lock, async () => {
        rmSync(join(files.chats, String(process.pid)), { force: true });
        if (otherChats(files).length > 0) return;
        const pid = await findServer(files);
        if (pid !== undefined) await endProcess(pid, 10_000, hurry);
        rmSync(files.pid, { force: true });
      });
    },
  };
}

interface Files {
  readonly place: ServerPlace;
  /** `host:port`. */
  readonly address: string;
  readonly lock: string;
  readonly pid: string;
  readonly chats: string;
  readonly log: string;
  /** Of the settings; with it the server's program is looked for and started. */
  readonly env: Environment;
}

/** A server on another port is another server, and has other files. */
function chooseFiles(config: Config, place: ServerPlace): Files {
  const folder = join(config.cwd, '.perdura');
  const suffix = place.port === usualPlace(config).port ? '' : `-${place.port}`;
  return {
    place,
    address: `127.0.0.1:${place.port}`,
    lock: join(folder, `services${suffix}.lock`),
    pid: join(folder, `temporal${suffix}.pid`),
    chats: join(folder, `chats${suffix}`),
    log: join(folder, `temporal${suffix}.log`),
    env: config.env,
  };
}

async function findOrStart(files: Files, temporal: TemporalConnection, say: Say, signal: AbortSignal): Promise<number | undefined> {
  const running = await findServer(files);
  const answer = await probeTemporal(files.address);
  if (answer === 'temporal') {
    await checkTemporal(temporal);
    const whose =
      running === undefined
        ? 'not started by us, so it is left running'
        : otherChats(files).length > 0
          ? 'another chat of this folder started it'
          : `left by an earlier start (process ${running}), which this one takes over`;
    say(`found on ${files.address}: ${whose}`);
    return (await isListening(`127.0.0.1:${files.place.uiPort}`)) ? files.place.uiPort : undefined;
  }
  // Ours, but silent: it hangs, or its start was cut off.
  if (running !== undefined) await endProcess(running, 2000);
  if (answer === 'something-else' && (await isListening(files.address))) {
    throw new CliError(
      `cannot start Temporal on ${files.address}: a program that is not Temporal has that port; stop it, or set TEMPORAL_ADDRESS`,
      EXIT.unreachable,
    );
  }
  return startServer(files, temporal, say, signal);
}

async function startServer(files: Files, temporal: TemporalConnection, say: Say, signal: AbortSignal): Promise<number> {
  const binary = await findTemporalBinary(say, { machine: loadMachine(files.env), signal });
  signal.throwIfAborted();
  const begin = Date.now();
  const uiPort = await freePortFrom(files.place.uiPort);
  const pid = spawnServer(files, binary.path, uiPort);
  try {
    await waitUntilReady(files, pid, temporal, signal);
    await setRetention(temporal, RETENTION_DAYS);
  } catch (error) {
    await endProcess(pid, 2000);
    rmSync(files.pid, { force: true });
    throw error;
  }
  const seconds = ((Date.now() - begin) / 1000).toFixed(1);
  say(`started on ${files.address} in ${seconds} s, since none answered there (${binary.path}, ${binary.reason})`);
  return uiPort;
}

function spawnServer(files: Files, program: string, uiPort: number): number {
  const flags = [
    ...['--ip', '127.0.0.1', '--port', String(files.place.port), '--ui-port', String(uiPort), '--db-filename', files.place.database],
    ...['--log-level', 'warn'],
    ...SERVER_FLAGS.dynamicConfig,
    ...SERVER_FLAGS.searchAttributes,
  ];
  try {
    renameSync(files.log, `${files.log}.old`);
  } catch {
    // There was none.
  }
  const log = openSync(files.log, 'a');
  const child = spawn(program, ['server', 'start-dev', ...flags], { env: { ...files.env }, detached: true, stdio: ['ignore', log, log] });
  closeSync(log);
  // Without a listener a program that cannot be started would end us; waitUntilReady sees that it is not alive.
  child.on('error', () => {});
  child.unref();
  if (child.pid === undefined) throw new CliError(`cannot start ${program}: check that it may be executed`, EXIT.unreachable);
  writeFileSync(files.pid, `${child.pid}\n`);
  return child.pid;
}

async function waitUntilReady(files: Files, pid: number, temporal: TemporalConnection, signal: AbortSignal): Promise<void> {
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await sleep(50)) {
    signal.throwIfAborted();
    if (!isAlive(pid)) break;
    if (!(await isListening(files.address))) continue;
    const isReady = await checkTemporal(temporal).then(
      () => true,
      () => false,
    );
    if (isReady) return;
  }
  const what = isAlive(pid) ? 'was not ready within 60 s' : 'ended at once';
  throw new CliError(
    `Temporal was started and ${what}. The end of ${files.log}:\n${lastLines(files.log, 5)}\nRepair what it says, or set TEMPORAL_ADDRESS to another server.`,
    EXIT.unreachable,
  );
}

/** Pid of the server that a chat of this folder started and that is still alive. */
async function findServer(files: Files): Promise<number | undefined> {
  const pid = Number(readText(files.pid)) || undefined;
  if (pid === undefined || !isAlive(pid)) return undefined;
  return (await readCommand(pid))?.includes(files.place.database) ? pid : undefined;
}

function otherChats(files: Files): number[] {
  return readdirSync(files.chats)
    .map(Number)
    .filter((pid) => {
      if (pid === process.pid) return false;
      if (isAlive(pid)) return true;
      rmSync(join(files.chats, String(pid)), { force: true });
      return false;
    });
}

/** Our server is not our child when another chat started it, so it is looked at rather than listened to. */
function watchServer(files: Files, isLeaving: () => boolean, restart: () => Promise<void>): NodeJS.Timeout {
  let busy = false;
  const look = async (): Promise<void> => {
    const pid = Number(readText(files.pid)) || undefined;
    if (busy || isLeaving() || pid === undefined || isAlive(pid)) return;
    busy = true;
    try {
      await restart();
    } finally {
      busy = false;
    }
  };
  // A failed restart is tried again at the next look; clients meanwhile retry by themselves.
  return setInterval(() => void look().catch(() => {}), 1000).unref();
}

/** The first free one; a page is not worth failing for. */
async function freePortFrom(port: number): Promise<number> {
  for (let candidate = port; candidate < port + 20; candidate += 1) {
    if (!(await isListening(`127.0.0.1:${candidate}`))) return candidate;
  }
  return port;
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
