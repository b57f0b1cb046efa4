/**
 * Whether a JSON Schema that others have written can be used, and whether data fits it. It is judged in threads beside the process, each
 * question within a time: no schema holds up a conversation but its sender's. Every schema of a stranger is judged here, by its draft
 * (drafts.ts), before a model is paid for an answer that has to fit it.
 *
 * @rule platform/schemas-beside-the-worker: A schema from outside is compiled and run only in a thread that is ended after its time. (test:
 *   test/platform/json-schema/check.test.ts)
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { Ajv2020 } from 'ajv/dist/2020.js';
import pLimit from 'p-limit';
import type { JsonObject, JsonValue } from '../../records/message.js';
import { errorMessage } from '../errors.js';
import { startThread } from '../processes.js';
import { readDraft } from './drafts.js';
import type { SchemaQuestion, SchemaVerdict } from './thread.js';

const MAX_MS = 2_000;
const MEMORY_MB = 128;
/** Each may take all of a processor for its time. */
const THREADS = 2;
/** Of schemas that could be used: a turn asks again for each of its calls. */
const REMEMBERED = 1_000;

interface SchemaCheck {
  /** Whether data fits. `maxMs`: how long it may be judged, the start of a thread not counted. Never throws. */
  judge(question: { readonly schema: JsonObject; readonly data: JsonValue }, maxMs?: number): Promise<SchemaVerdict>;
  /** Why a schema cannot be used, with its place; undefined for one that can. Never throws. */
  refusal(schema: JsonObject, maxMs?: number): Promise<string | undefined>;
}

export function createSchemaCheck(): SchemaCheck {
  const inTurn = pLimit(THREADS);
  const idle = new Set<Worker>();
  const usable = new Set<string>();
  const begin = async (): Promise<Worker> => {
    const thread = await startThread(require.resolve('./thread'), MEMORY_MB);
    thread.once('exit', () => idle.delete(thread));
    await once(thread, 'message');
    return thread;
  };
  const askThread = (question: SchemaQuestion, maxMs: number): Promise<SchemaVerdict> =>
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
  const judge = async (schema: JsonObject, data: readonly JsonValue[], maxMs: number): Promise<SchemaVerdict> => {
    const drafted = readDraft(schema);
    return 'why' in drafted ? { kind: 'unusable', why: drafted.why } : askThread({ ...drafted, data }, maxMs);
  };
  return {
    judge: ({ schema, data }, maxMs = MAX_MS) => judge(schema, [data], maxMs),
    async refusal(schema, maxMs = MAX_MS) {
      const key = createHash('sha256').update(JSON.stringify(schema)).digest('base64');
      if (usable.has(key)) return undefined;
      const verdict = await judge(schema, [], maxMs);
      if (verdict.kind === 'unusable') return verdict.why;
      const [oldest = ''] = usable;
      if (usable.size >= REMEMBERED) usable.delete(oldest);
      usable.add(key);
      return undefined;
    },
  };
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

/** The process's: one for all conversations. */
export const schemaCheck = createSchemaCheck();

/**
 * What of a message cannot be used as a schema: of its answer, or of a tool that it brings. Checked wherever a message comes in, so that it
 * is refused before it begins a turn.
 */
export async function messageSchemaRefusal({
  output,
  tools = [],
}: {
  readonly output?: JsonObject;
  readonly tools?: readonly { readonly name: string; readonly inputSchema: JsonObject }[];
}): Promise<string | undefined> {
  const why = output && (await schemaCheck.refusal(output));
  if (why !== undefined) return `message.output cannot be used: ${why}`;
  for (const { name, inputSchema } of tools) {
    const wrong = await schemaCheck.refusal(inputSchema);
    if (wrong !== undefined) return `the input schema of the tool ${JSON.stringify(name)} cannot be used: ${wrong}`;
  }
  return undefined;
}

/** Made once for a whole list: it takes longer to make than to use. Only looks whether it is a schema of 2020-12, and runs nothing of it. */
export function createSyntaxCheck(): (schema: JsonObject) => string | undefined {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false });
  return (schema) => (ajv.validateSchema(schema) === true ? undefined : ajv.errorsText());
}
