import { CliError, EXIT } from '../terminal/exit.js';

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
