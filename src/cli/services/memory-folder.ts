/** The folder of the file store, looked at before anybody talks: a disk that is full would stop the first answer, and say so late. */
import { access, constants, mkdir, statfs } from 'node:fs/promises';
import { CliError, EXIT } from '../terminal/exit.js';

/** Less than this, and a turn may not fit. */
const TOO_LITTLE = 10 * 1024 ** 2;

export async function checkMemoryFolder(dir: string, tooLittle = TOO_LITTLE): Promise<void> {
  await mkdir(dir, { recursive: true });
  await access(dir, constants.W_OK);
  const { bavail, bsize } = await statfs(dir);
  if (bavail * bsize >= tooLittle) return;
  throw new CliError(
    `cannot keep conversations in ${dir}: its disk is full (${Math.floor((bavail * bsize) / 1024)} KiB free); free some space, or set PERDURA_MEMORY_DIR`,
    EXIT.unreachable,
  );
}
