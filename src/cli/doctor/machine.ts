/** Node, the folders we write to, and the room on their disks. */
import { randomUUID } from 'node:crypto';
import { mkdir, rm, statfs, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Config } from '../../config.js';
import { messageOf } from '../terminal/exit.js';
import type { Finding } from './finding.js';
import { broken, ok, warning } from './finding.js';

const MINIMUM_NODE = [20, 19] as const;
const LITTLE = 1024 ** 3;
const TOO_LITTLE = 100 * 1024 ** 2;

export function checkNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isEnough = major > MINIMUM_NODE[0] || (major === MINIMUM_NODE[0] && minor >= MINIMUM_NODE[1]);
  return isEnough
    ? ok('Node', version)
    : broken('Node', `${version}, and ${MINIMUM_NODE.join('.')} is needed`, 'nvm install 22, or https://nodejs.org');
}

export async function checkFolder(what: string, dir: string, setting: string): Promise<Finding> {
  const file = join(dir, `.perdura-doctor-${randomUUID()}`);
  try {
    await mkdir(dir, { recursive: true });
    await writeFile(file, 'doctor\n');
    return ok(what, `${dir} can be written`);
  } catch (error) {
    const full = (error as NodeJS.ErrnoException).code === 'ENOSPC';
    return broken(
      what,
      `cannot write to ${dir}: ${messageOf(error)}`,
      full ? 'free space on that disk' : `chmod u+w '${dir}', or set ${setting}`,
    );
  } finally {
    await rm(file, { force: true }).catch(() => {});
  }
}

export async function checkDisk(config: Config): Promise<Finding> {
  try {
    const { bavail, bsize } = await statfs(await firstThatExists(config.cwd));
    const free = bavail * bsize;
    const found = `${(free / 1024 ** 3).toFixed(1)} GiB free at ${config.cwd}`;
    if (free < TOO_LITTLE) return broken('Disk', found, 'free space: Temporal and the store write here');
    return free < LITTLE ? warning('Disk', found, 'free space before it runs out') : ok('Disk', found);
  } catch (error) {
    return warning('Disk', `cannot be asked: ${messageOf(error)}`, 'look with df -h');
  }
}

async function firstThatExists(dir: string): Promise<string> {
  return statfs(dir).then(
    () => dir,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' && dirname(dir) !== dir) return firstThatExists(dirname(dir));
      throw error;
    },
  );
}
