/**
 * Whether data fits a JSON Schema that a client or a tool's server has sent. It is judged in threads beside the worker, each question within
 * a time: no schema holds up a conversation but its sender's.
 *
 * @rule tools/schemas-beside-the-worker: A schema from outside is compiled and run only in a thread that is ended after its time. (test:
 *   test/tools/schema-check.test.ts)
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import pLimit from 'p-limit';
import { childProgram } from './child-program.js';
import type { SchemaQuestion, SchemaVerdict } from './schema-thread.js';

const MAX_MS = 2_000;
const MEMORY_MB = 128;
/** Each may take all of a processor for its time. */
const THREADS = 2;

/** What `createSchemaCheck` makes. Never throws. */
export type SchemaCheck = (question: SchemaQuestion) => Promise<SchemaVerdict>;

/** `maxMs`: of one question, the thread's start not counted. */
export function createSchemaCheck(maxMs = MAX_MS): SchemaCheck {
  const inTurn = pLimit(THREADS);
  const idle: Worker[] = [];
  const begin = async (): Promise<Worker> => {
    const program = await childProgram(require.resolve('./schema-thread'));
    const thread = new Worker(program.kind === 'file' ? program.path : program.code, {
      eval: program.kind === 'code',
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB, stackSizeMb: 4 },
    });
    await once(thread, 'message');
    return thread;
  };
  return (question) =>
    inTurn(async () => {
      let thread: Worker;
      try {
        thread = idle.pop() ?? (await begin());
      } catch (error) {
        return { kind: 'unusable', why: `it could not be looked at: ${String(error)}` };
      }
      const verdict = await ask(thread, question, maxMs);
      if (verdict === undefined) {
        await thread.terminate();
        return { kind: 'unusable', why: `to compare data with it takes more than ${maxMs} ms or ${MEMORY_MB} MB` };
      }
      thread.unref();
      idle.push(thread);
      return verdict;
    });
}

/** Undefined: it did not answer in time, or broke. */
function ask(thread: Worker, question: SchemaQuestion, maxMs: number): Promise<SchemaVerdict | undefined> {
  return new Promise((resolve) => {
    const end = (verdict?: SchemaVerdict): void => {
      clearTimeout(timer);
      thread.off('message', end).off('error', broken).off('exit', broken);
      resolve(verdict);
    };
    const broken = (): void => end();
    const timer = setTimeout(end, maxMs);
    thread.on('message', end).on('error', broken).on('exit', broken);
    thread.ref();
    thread.postMessage(question);
  });
}

/** The worker's: one for all conversations. */
export const checkSchema = createSchemaCheck();
