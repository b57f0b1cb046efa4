/** The file system's failures in words: what was attempted, on what, what to do. */
import { DocumentRefused, LifeDeleted, StoreUnavailable } from '../store.js';
import { errorCode, errorMessage } from '../../platform/errors.js';

const ADVICE: { readonly [code: string]: string } = {
  ENOSPC: 'the disk is full: free space there',
  EDQUOT: 'the disk quota is used up: free space there',
  EACCES: 'it may not be accessed: see its owner and permissions',
  EPERM: 'it may not be accessed: see its owner and permissions',
  EROFS: 'the file system is read-only',
  EISDIR: 'a directory is where a file of the store belongs: move it away',
  ENOTDIR: 'a file is where a directory of the store belongs: move it away',
  EMFILE: 'this process has too many files open: raise its limit',
  EIO: 'the disk failed: see the system log',
};

export function toUnavailable(attempt: string, path: string, error: unknown): StoreUnavailable {
  if (error instanceof StoreUnavailable) return error;
  const reason = errorMessage(error);
  const advice = ADVICE[errorCode(error) ?? ''] ?? 'the write may have been applied, and is safe to repeat';
  return new StoreUnavailable(`cannot ${attempt} in ${path}: ${reason}; ${advice}`, { cause: error });
}

/** Runs what touches documents; what a person must see to (DocumentRefused), and what was erased (LifeDeleted), stays what it is. */
export async function describeErrors<T>(path: string, attempt: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof DocumentRefused || error instanceof LifeDeleted ? error : toUnavailable(attempt, path, error);
  }
}

/** There is no such file. */
export function isAbsent(error: unknown): boolean {
  return errorCode(error) === 'ENOENT';
}

/** Undefined where there is no such file. */
export async function unlessAbsent<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

/** Something else is where a file of the store belongs. */
export function isForeign(error: unknown): boolean {
  return ['EISDIR', 'ENOTDIR', 'ELOOP'].includes(errorCode(error) ?? '');
}
