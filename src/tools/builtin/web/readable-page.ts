/** HTML -> Markdown in a thread with limits of its own (page-to-markdown.ts). */
import { Worker } from 'node:worker_threads';
import pLimit from 'p-limit';
import { ownProgram } from '../../own-program.js';
import type { Page, ReadablePage } from './page-to-markdown.js';
import { missingPackage, PAGE_PACKAGES } from '../../../platform/optional-package.js';
import { timeoutSignal } from '../../../platform/timeout-signal.js';

const MAX_MS = 10_000;
const MEMORY_MB = 512;

/** Each may take that much. */
const inTurn = pLimit(3);

/** Undefined for a page that takes too long, too much memory, or breaks it. Throws the signal's reason, and `MissingPackage`. */
export function readablePage(page: Page, signal: AbortSignal, longestMs = MAX_MS): Promise<ReadablePage | undefined> {
  return inTurn(() => inThread(page, signal, longestMs));
}

async function inThread(page: Page, signal: AbortSignal, longestMs: number): Promise<ReadablePage | undefined> {
  const program = await ownProgram(require.resolve('./page-to-markdown'));
  signal.throwIfAborted();
  const thread = new Worker(program.kind === 'file' ? program.path : program.code, {
    eval: program.kind === 'code',
    workerData: page,
    env: {},
    // Whatever it prints is a stranger's.
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB, stackSizeMb: 4 },
  });
  const stopped = AbortSignal.any([signal, timeoutSignal(longestMs)]);
  try {
    return await new Promise((resolve, reject) => {
      thread.once('message', (message: ReadablePage) => resolve(message));
      thread.once('error', (error) => {
        const missing = missingPackage(error, PAGE_PACKAGES);
        if (missing) reject(missing);
        else resolve(undefined);
      });
      thread.once('exit', () => resolve(undefined));
      stopped.addEventListener('abort', () => resolve(undefined), { once: true });
    });
  } finally {
    await thread.terminate();
    signal.throwIfAborted();
  }
}
