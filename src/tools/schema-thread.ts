/**
 * A separate program, run as a thread and never imported: whether data fits a JSON Schema that a stranger has written. In a thread, since a
 * pattern, or references that lead back, can be made so that this takes hours, and the worker must go on and be able to end it.
 */
import { parentPort } from 'node:worker_threads';
import { Ajv } from 'ajv';
import type { JsonObject, JsonValue } from '../records/message.js';

export interface SchemaQuestion {
  readonly schema: JsonObject;
  readonly data: JsonValue;
}

/** `fits`, or how it does not, or why the schema itself cannot be used. */
export type SchemaVerdict =
  | { readonly kind: 'fits' }
  | { readonly kind: 'violated'; readonly problems: string }
  | { readonly kind: 'unusable'; readonly why: string };

const MAX_PROBLEMS = 2_000;

function judge({ schema, data }: SchemaQuestion): SchemaVerdict {
  try {
    const validate = new Ajv({ strict: false, logger: false, validateFormats: false }).compile(schema);
    if (validate(data)) return { kind: 'fits' };
    const problems = (validate.errors ?? []).map(
      ({ instancePath, message }) => `${instancePath || '(the whole)'} ${message ?? 'does not fit'}`,
    );
    return { kind: 'violated', problems: problems.join('; ').slice(0, MAX_PROBLEMS) };
  } catch (error) {
    return { kind: 'unusable', why: (error instanceof Error ? error.message : 'unknown').slice(0, MAX_PROBLEMS) };
  }
}

parentPort?.on('message', (question: SchemaQuestion) => parentPort?.postMessage(judge(question)));
// Loaded: from now on the time of a question counts.
parentPort?.postMessage('ready');
