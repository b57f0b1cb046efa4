/** Servers that peers need, each new and in a folder of its own. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** Else its development server lets a step wait 50 ms for the next poll, and a retry 1 s, which measures that and not a peer. */
const TUNED = [
  'history.transferProcessorMaxPollRPS=2000',
  'system.enableActivityEagerExecution=true',
  'history.timerProcessorMaxTimeShift="20ms"',
];

export async function startTemporal(folder) {
  const root = process.env.PERDURA_ROOT ?? '../..';
  const { findTemporalBinary } = createRequire(import.meta.url)(`${root}/dist/cli/services/temporal-binary.js`);
  const { path } = await findTemporalBinary((text) => process.stderr.write(`  Temporal: ${text}\n`));
  const [port, database] = [await freePort(), join(folder, 'temporal.db')];
  const flags = TUNED.flatMap((flag) => ['--dynamic-config-value', flag]);
  const child = spawn(
    path,
    ['server', 'start-dev', '--headless', '--port', String(port), '--db-filename', database, '--log-level', 'error', ...flags],
    {
      stdio: 'ignore',
    },
  );
  await untilOpen(port, child);
  await sleep(1_500);
  return { address: `127.0.0.1:${port}`, database, stop: () => stop(child) };
}

/** Debian's: it refuses to run as root, so then as the user that its package has made. */
export async function startPostgres(folder) {
  const versions = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql').toSorted() : [];
  if (versions.length === 0) throw new Error('PostgreSQL is not here: apt-get install postgresql');
  const bin = join('/usr/lib/postgresql', versions.at(-1), 'bin');
  const [data, port] = [join(folder, 'postgres'), await freePort()];
  mkdirSync(data);
  const isRoot = process.getuid() === 0;
  if (isRoot) {
    const { stdout } = await run('id', ['-u', 'postgres']);
    chownSync(data, Number(stdout), Number(stdout));
  }
  const as = isRoot ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups'] : [];
  const start = (...command) => [...as, ...command];
  const [first, ...rest] = start(join(bin, 'initdb'), '-D', data, '-A', 'trust', '-U', 'bench');
  await run(first, rest, { cwd: '/' });
  const [program, ...flags] = start(join(bin, 'postgres'), '-D', data, '-p', String(port), '-k', '', '-h', '127.0.0.1');
  const child = spawn(program, flags, { stdio: 'ignore', cwd: '/' });
  await untilOpen(port, child);
  await sleep(1_000);
  return { url: `postgres://bench@127.0.0.1:${port}/postgres`, stop: () => stop(child, 'SIGINT') };
}

async function stop(child, signal = 'SIGTERM') {
  if (child.exitCode !== null) return;
  child.kill(signal);
  await Promise.race([once(child, 'exit'), sleep(5_000).then(() => child.kill('SIGKILL'))]);
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

async function untilOpen(port, child) {
  for (let tries = 0; tries < 150; tries += 1) {
    if (child.exitCode !== null) throw new Error(`${child.spawnfile} ended with code ${child.exitCode}`);
    const socket = connect(port, '127.0.0.1');
    const isOpen = await Promise.race([
      once(socket, 'connect').then(
        () => true,
        () => false,
      ),
      sleep(500, false),
    ]);
    socket.destroy();
    if (isOpen) return;
    await sleep(200);
  }
  throw new Error(`${child.spawnfile} did not listen on port ${port} within 30 s`);
}
