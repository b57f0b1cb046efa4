import { existsSync } from 'node:fs';
import { findOnPath, runProgram } from './programs.mjs';
import { Missing, report } from './report.mjs';

const WAYS = `Ways to get redis-server:
  Debian, Ubuntu   sudo apt-get install redis-server
  macOS            brew install redis
  from source      https://redis.io/docs/latest/operate/oss_and_stack/install/
then run the command again.`;

/** A real redis-server: on PATH, else from Debian's packages where we may install, else the ways to get one. */
export async function findRedisServer() {
  const found = findOnPath('redis-server');
  if (found !== undefined) return { path: found, reason: 'on PATH' };
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version') || findOnPath('apt-get') === undefined) {
    throw new Missing(`The tests need redis-server, and it is not on PATH.\n\n${WAYS}`);
  }
  report('Redis', 'installing redis-server with apt-get, since it is not on PATH …');
  const install = () =>
    // RUNLEVEL=1 keeps the package from starting a server of its own.
    runProgram('apt-get', ['install', '-y', '--no-install-recommends', 'redis-server'], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
    });
  let result = await install();
  if (result.code !== 0) {
    await runProgram('apt-get', ['update']);
    result = await install();
  }
  const installed = findOnPath('redis-server', `${process.env.PATH ?? ''}:/usr/bin`);
  if (installed === undefined) {
    throw new Missing(
      `${result.output.trim()}\n\nThe tests need redis-server, and apt-get could not install it (code ${result.code}).\n\n${WAYS}`,
    );
  }
  return { path: installed, reason: 'installed by apt-get' };
}
