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

const FOLDER = 'make that folder writable, or start in another one';

const FILE_FAILURES: Readonly<Record<string, string>> = {
  EACCES: FOLDER,
  EPERM: FOLDER,
  EROFS: 'its disk is read-only: start in another folder',
  ENOSPC: 'its disk is full: free some space',
  EDQUOT: 'its disk is full for this user: free some space',
  ENOTDIR: 'a file stands where a folder is needed: move it away',
  EEXIST: 'a file stands where a folder is needed: move it away',
};

/** What the file system refuses is named with what to do. */
export function asSentence(error: unknown): unknown {
  const { code = '', path, syscall } = error as NodeJS.ErrnoException;
  if (syscall === undefined || error instanceof CliError) return error;
  // Node makes the folders above too, and says this where they cannot be made, as on a disk that is read-only.
  const advice = code === 'ENOENT' && syscall === 'mkdir' ? FOLDER : FILE_FAILURES[code];
  if (advice === undefined) return error;
  return new CliError(`cannot write ${path ?? 'what is needed here'} (${code}); ${advice}`, EXIT.unreachable, { cause: error });
}
