/**
 * A separate program, run as a thread and never imported: whether data fits a JSON Schema that a stranger has written. In a thread, since a
 * pattern, or references that lead back, can be made so that this takes hours, and the worker must go on and be able to end it.
 */
import { parentPort } from 'node:worker_threads';
import { Ajv, type Options } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { JsonObject, JsonValue } from '../../records/message.js';
import type { Draft } from './drafts.js';

export interface SchemaQuestion {
  readonly draft: Draft;
  readonly schema: JsonObject;
  /** In a list, so that none is another question: whether the schema can be used at all. */
  readonly data: readonly JsonValue[];
}

/** `fits`, or how it does not, or why the schema itself cannot be used. */
export type SchemaVerdict =
  | { readonly kind: 'fits' }
  | { readonly kind: 'violated'; readonly problems: string }
  | { readonly kind: 'unusable'; readonly why: string };

const MAX_PROBLEMS = 2_000;
/** Of a schema that is none: the first say enough. */
const MAX_PLACES = 3;

/** Patterns are written for many languages: with `u`, JavaScript refuses some that others take, such as `[\w-.]`. */
const regExp = Object.assign(
  (pattern: string, flags: string): RegExp => {
    try {
      return new RegExp(pattern, flags);
    } catch {
      return new RegExp(pattern);
    }
  },
  { code: 'new RegExp' },
);

/** Without inherited properties: an absent `constructor` is absent. */
const OPTIONS: Options = {
  ...{ strict: false, logger: false, validateFormats: false, validateSchema: false },
  ...{ ownProperties: true, code: { regExp } },
};

function create(draft: Draft): Ajv {
  switch (draft) {
    case 'draft-07':
      return new Ajv(OPTIONS);
    case '2019-09':
      return new Ajv2019(OPTIONS);
    case '2020-12':
      return new Ajv2020(OPTIONS);
  }
}

/** Of the drafts themselves, which take a while to compile; nothing of a stranger's goes into them. */
const drafts = new Map<Draft, Ajv>();

function judge({ draft, schema, data }: SchemaQuestion): SchemaVerdict {
  try {
    const known = drafts.get(draft) ?? create(draft);
    drafts.set(draft, known);
    if (known.validateSchema(schema) !== true) return { kind: 'unusable', why: places(known).slice(0, MAX_PROBLEMS) };
    const validate = create(draft).compile(schema);
    if (data.every((one) => validate(one))) return { kind: 'fits' };
    const problems = (validate.errors ?? []).map(
      ({ instancePath, message }) => `${instancePath || '(the whole)'} ${message ?? 'does not fit'}`,
    );
    return { kind: 'violated', problems: problems.join('; ').slice(0, MAX_PROBLEMS) };
  } catch (error) {
    return { kind: 'unusable', why: explain(error, schema).slice(0, MAX_PROBLEMS) };
  }
}

/** One problem for each place: the others only say what else it could have been. */
function places({ errors }: Ajv): string {
  const first = new Map<string, string>();
  for (const { instancePath, message = 'is wrong' } of errors ?? []) if (!first.has(instancePath)) first.set(instancePath, message);
  const deepest = [...first].filter(([path]) => ![...first.keys()].some((other) => other.startsWith(`${path}/`)));
  return deepest
    .slice(0, MAX_PLACES)
    .map(([path, message]) => `at ${path || 'its top'} it ${message}`)
    .join('; ');
}

const REFERENCES: readonly string[] = ['$ref', '$dynamicRef', '$recursiveRef'];

function explain(error: unknown, schema: JsonObject): string {
  const message = error instanceof Error ? error.message : 'unknown';
  const missing = error instanceof Error && 'missingRef' in error ? String(error.missingRef) : undefined;
  if (missing !== undefined) {
    const isIt = (key: string, value: unknown): boolean =>
      REFERENCES.includes(key) && typeof value === 'string' && (missing.endsWith(value) || value.endsWith(missing));
    return `at ${pathTo(schema, isIt) ?? 'a place in it'} it refers to ${missing}, which is not in it, and no other schema is fetched`;
  }
  const isBroken = (key: string, value: unknown): boolean =>
    (key === 'pattern' && typeof value === 'string' && isNoPattern(value)) ||
    (key === 'patternProperties' && typeof value === 'object' && Object.keys(value ?? {}).some(isNoPattern));
  const broken = /regular expression/i.test(message) ? pathTo(schema, isBroken) : undefined;
  return broken === undefined ? message : `at ${broken} it has no regular expression: ${message}`;
}

function isNoPattern(pattern: string): boolean {
  try {
    regExp(pattern, 'u');
    return false;
  } catch {
    return true;
  }
}

/** As a JSON pointer. */
function pathTo(value: unknown, isIt: (key: string, value: unknown) => boolean, path = ''): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    const here = `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    if (isIt(key, inner)) return here;
    const deeper = pathTo(inner, isIt, here);
    if (deeper !== undefined) return deeper;
  }
  return undefined;
}

parentPort?.on('message', (question: SchemaQuestion) => parentPort?.postMessage(judge(question)));
// Loaded: from now on the time of a question counts.
parentPort?.postMessage('ready');
