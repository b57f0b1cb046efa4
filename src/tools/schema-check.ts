/**
 * Whether data fits a JSON Schema that a client has sent. It is judged in threads beside the worker, each question within a time: no schema
 * holds up a conversation but its sender's.
 *
 * @rule tools/schemas-beside-the-worker: A schema from outside is compiled and run only in a thread that is ended after its time. (test:
 *   test/tools/schema-check.test.ts)
 */
import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import pLimit from 'p-limit';
import { errorMessage } from '../platform/errors.js';
import { startThread } from './child-program.js';
import type { SchemaQuestion, SchemaVerdict } from './schema-thread.js';

const MAX_MS = 2_000;
const MEMORY_MB = 128;
/** Each may take all of a processor for its time. */
const THREADS = 2;

/** `maxMs`: how long it may be judged, the start of a thread not counted. Never throws. */
export type SchemaCheck = (question: SchemaQuestion, maxMs?: number) => Promise<SchemaVerdict>;

export function createSchemaCheck(): SchemaCheck {
  const inTurn = pLimit(THREADS);
  const idle = new Set<Worker>();
  const begin = async (): Promise<Worker> => {
    const thread = await startThread(require.resolve('./schema-thread'), MEMORY_MB);
    thread.once('exit', () => idle.delete(thread));
    await once(thread, 'message');
    return thread;
  };
  return (question, maxMs = MAX_MS) =>
    inTurn(async () => {
      try {
        const [waiting] = idle;
        const thread = waiting ?? (await begin());
        idle.delete(thread);
        const verdict = await ask(thread, question, maxMs);
        if (verdict === undefined) {
          await thread.terminate();
          return { kind: 'unusable', why: `to compare data with it takes more than ${maxMs} ms or ${MEMORY_MB} MB` };
        }
        // One that waits for a question keeps no process alive.
        thread.unref();
        idle.add(thread);
        return verdict;
      } catch (error) {
        return { kind: 'unusable', why: `it could not be looked at: ${errorMessage(error)}` };
      }
    });
}

/** Undefined: it did not answer in time, or ended. */
function ask(thread: Worker, question: SchemaQuestion, maxMs: number): Promise<SchemaVerdict | undefined> {
  return new Promise((resolve) => {
    const end = (verdict?: SchemaVerdict): void => {
      clearTimeout(timer);
      thread.off('message', end).off('exit', ended);
      resolve(verdict);
    };
    const ended = (): void => end();
    const timer = setTimeout(ended, maxMs);
    thread.on('message', end).on('exit', ended);
    thread.ref();
    thread.postMessage(question);
  });
}

/** The worker's: one for all conversations. */
export const checkSchema = createSchemaCheck();
