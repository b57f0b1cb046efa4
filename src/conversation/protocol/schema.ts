/**
 * What the schemas of records from outside are made of. Each number, text and list that comes in passes one of these before anything is done
 * with it. Nothing here throws: a refusal says where, what must stand there, and the limit.
 */
import * as v from 'valibot';
import { CHILD_PATTERN, CONVERSATION_PATTERN, ID_PATTERN, LIFE_PATTERN, LIMITS } from './limits.js';
import type { JsonObject, JsonValue } from '../../records/message.js';
import { truncate, utf8Length } from '../../records/text.js';
import { LAST_TIME } from '../../records/text.js';
import { isRecord } from '../../platform/json.js';

export type Checked<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reason: string };

type Schema = v.GenericSchema;

/** What the payload converter puts in the place of an argument that it could not read. */
export const UNREADABLE = 'perdura/unreadable';

const SHOWN_KEY = 64;
const SHOWN_REASON = 200;

/** A refusal calls the payload by `name`. `most` bounds the payload as a whole. */
export function read<S extends Schema>(
  schema: S,
  payload: unknown,
  name: string,
  most: { readonly depth: number; readonly values: number } = LIMITS,
): Checked<v.InferOutput<S>> {
  if (ArrayBuffer.isView(payload)) return refuse(`${name} must not be bytes`);
  if (isUnreadable(payload)) return refuse(`${name} could not be decoded: ${truncate(payload[UNREADABLE], SHOWN_REASON)}`);
  // A list would pass for an object without fields.
  if ('entries' in schema && Array.isArray(payload)) return refuse(`${name} must be an object${tellKind(payload)}`);
  const excess = findExcess(payload, most.depth, most.values);
  if (excess !== undefined) return refuse(`${name} ${excess}`);
  const parsed = v.safeParse(schema, payload, { abortEarly: true });
  if (parsed.success) return { ok: true, value: parsed.output };
  const [{ path = [], message }] = parsed.issues;
  return refuse(`${name}${path.map(({ key }) => toStep(key)).join('')} ${message}`);
}

/** The way to read a record, which is called `name`. */
export function reader<S extends Schema>(schema: S, name: string): (payload: unknown) => Checked<v.InferOutput<S>> {
  return (payload) => read(schema, payload, name);
}

/** The way to read a record of one field: the answer is its value. */
export function fieldReader<S extends Schema>(name: string, field: string, schema: S): (payload: unknown) => Checked<v.InferOutput<S>> {
  const record = strict({ [field]: schema });
  return (payload) => {
    const fields = read(record, payload, name);
    return fields.ok ? { ok: true, value: (fields.value as Readonly<Record<string, unknown>>)[field] as v.InferOutput<S> } : fields;
  };
}

export function refuse(reason: string): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason };
}

export function isDeeperThan(value: unknown, levels: number): boolean {
  return findExcess(value, levels, Infinity) !== undefined;
}

/** Level by level, so that what is too deep cannot overflow the stack either, and no further than to the first value too many. */
function findExcess(value: unknown, levels: number, values: number): string | undefined {
  let level: unknown[] = [value];
  let seen = 0;
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > levels) return `is nested deeper than ${levels} levels`;
    const next: unknown[] = [];
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue;
      const inner = Object.values(item) as unknown[];
      seen += inner.length;
      if (seen > values) return `has more than ${values} values`;
      for (const one of inner) next.push(one);
    }
    level = next;
  }
  return undefined;
}

/** A sender may use a field of that name: only a text comes from Perdura. */
function isUnreadable(payload: unknown): payload is { [UNREADABLE]: string } {
  return isRecord(payload) && typeof payload[UNREADABLE] === 'string';
}

function toStep(key: unknown): string {
  return typeof key === 'number' ? `[${key}]` : `.${truncate(String(key), SHOWN_KEY)}`;
}

/** Texts are not repeated: they may be long, or not fit to be shown. */
function tellKind(input: unknown): string {
  if (typeof input === 'string') return '';
  if (typeof input !== 'object' || input === null) return `, not ${String(input)}`;
  return Array.isArray(input) ? `, not a list of ${input.length}` : ', not an object';
}

// Values.

export const is = <T>(what: string, test: (value: unknown) => boolean) =>
  v.custom<T>(test, ({ input }) => `must be ${what}${tellKind(input)}`);

export const text = is<string>('a text', (value) => typeof value === 'string');
export const wellFormed = v.pipe(
  text,
  v.transform((value) => value.toWellFormed()),
);
export const bool = is<boolean>('true or false', (value) => typeof value === 'boolean');
/** True, or left out. */
export const flag = v.optional(v.literal(true, 'must be true, or left out'));
/** Any JSON. */
export const json = v.custom<JsonValue>((value) => value !== undefined, 'is missing');
export const object = is<JsonObject>('an object', isRecord);

export const oneOf = <const Values extends readonly string[]>(...values: Values) =>
  v.picklist(values, `must be one of ${values.join(', ')}`);

/** `most` in UTF-16 units. */
export const shortText = (most: number) =>
  is<string>(
    `a text of 1 to ${most} characters`,
    (value) => typeof value === 'string' && value !== '' && value.length <= most && value.isWellFormed(),
  );

/** A text that people read: what is more than these UTF-16 units is cut off. */
export const beginning = (most: number) =>
  v.pipe(
    text,
    v.transform((value) => truncate(value.toWellFormed(), most)),
  );

/** `must`: in words, with an example. */
export const like = (pattern: RegExp, must = `match ${pattern.source}`) =>
  v.custom<string>((value) => typeof value === 'string' && pattern.test(value), `must ${must}`);

/** UTF-8 bytes of a text, or of JSON. */
export const bytes = <T>(most: number, advice = '') =>
  v.check<T, (issue: { readonly input: T }) => string>(
    (value) => countBytes(value) <= most,
    ({ input }) => `is ${countBytes(input)} bytes, the limit is ${most}${advice}`,
  );

function countBytes(value: unknown): number {
  return utf8Length(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));
}

/** Of a slot, a session, messages. */
export const count = (most: number = LIMITS.number, least = 0) =>
  is<number>(
    `a whole number from ${least} to ${most}`,
    (value) => typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most,
  );

/** A number that may have a fraction. JSON has `1e999`, which is infinite. */
export const amount = (what: string, most: number) =>
  is<number>(`a number of ${what} from 0 to ${most}`, (value) => typeof value === 'number' && value >= 0 && value <= most);

/** Epoch milliseconds that a date can show. */
export const time = amount('milliseconds', LAST_TIME);

export const id = like(ID_PATTERN);
export const messageId = shortText(LIMITS.idLength);
export const life = like(LIFE_PATTERN, 'be the id of a run');
export const callId = like(/^turn_\d{4,15}\/c\d{1,6}$/, 'look like "turn_0001/c1"');
/** At most as long as a number stays exact. */
export const turn = like(/^turn_\d{4,15}$/, 'look like "turn_0007"');
/** What a sub-agent was given at its start, by which it is known. */
export const capability = like(/^[\w-]{16,64}$/, 'be the one of its start');
export const conversation = is<string>(
  'the id of a conversation',
  (value) => typeof value === 'string' && (CONVERSATION_PATTERN.test(value) || CHILD_PATTERN.test(value)),
);

// Records.

/** With these fields and no other. */
export function strict<const Entries extends v.ObjectEntries>(entries: Entries) {
  return v.pipe(v.strictObject(entries, explain(entries)), v.readonly());
}

/** Other fields may be there, as later versions add some: they do not come along. */
export function part<const Entries extends v.ObjectEntries>(entries: Entries) {
  return v.pipe(v.object(entries, explain(entries)), v.readonly());
}

export function list<const Item extends Schema>(item: Item, most = Infinity, least = 0) {
  const what = most === Infinity ? 'a list' : least === 0 ? `a list of at most ${most}` : `a list of ${least} to ${most}`;
  const isList = is<unknown[]>(what, (value) => Array.isArray(value) && value.length >= least && value.length <= most);
  return v.pipe(isList, v.array(item), v.readonly());
}

/** The first ones of a list: what is more is left out. */
export function firstOf<const Item extends Schema>(item: Item, most: number) {
  const isList = is<unknown[]>('a list', (value) => Array.isArray(value));
  const cut = v.transform((items: unknown[]) => items.slice(0, most));
  return v.pipe(isList, cut, v.array(item), v.readonly());
}

/** Null is as good as nothing. */
export const optionalOrNull = <const Wrapped extends Schema>(schema: Wrapped) =>
  v.optional(
    v.pipe(
      v.nullable(schema),
      v.transform((value) => value ?? undefined),
    ),
  );

export const usage = part({
  inputTokens: amount('tokens', LIMITS.tokens),
  cachedTokens: amount('tokens', LIMITS.tokens),
  outputTokens: amount('tokens', LIMITS.tokens),
  costUsd: v.nullable(amount('dollars', LIMITS.usd)),
});

/** What a conversation may use in all; `{}` takes every limit away. */
export const budget = strict({
  maxCostUsd: v.optional(amount('dollars', Number.MAX_SAFE_INTEGER)),
  maxTokens: v.optional(amount('tokens', Number.MAX_SAFE_INTEGER)),
  within: v.optional(oneOf('agent')),
});

/** One life of a conversation. */
export const place = part({ conversation, life });

/** Of an object: no object, a field that is missing, or one too many. */
function explain(entries: v.ObjectEntries): (issue: v.BaseIssue<unknown>) => string {
  return ({ input, expected, path }) => {
    const missing = path && entries[String(path[0].key)];
    if (expected === 'never') return `is not a field; known are ${Object.keys(entries).join(', ')}`;
    if (missing) return v.safeParse(missing, undefined).issues?.[0].message ?? 'is missing';
    return `must be an object${typeof input === 'string' ? ', not a text' : tellKind(input)}`;
  };
}
