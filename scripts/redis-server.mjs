import { findOnPath, installWithApt } from './programs.mjs';

const WAYS = `Ways to get redis-server:
  Debian, Ubuntu   sudo apt-get install redis-server
  macOS            brew install redis
  from source      https://redis.io/docs/latest/operate/oss_and_stack/install/
then run the command again.`;

/** A real redis-server: on PATH, else from Debian's packages where we may install, else the ways to get one. */
export async function findRedisServer() {
  const found = findOnPath('redis-server');
  if (found !== undefined) return { path: found, reason: 'on PATH' };
  const look = () => findOnPath('redis-server', `${process.env.PATH ?? ''}:/usr/bin`);
  return { path: await installWithApt('redis-server', { title: 'Redis', ways: WAYS, look }), reason: 'installed by apt-get' };
}
