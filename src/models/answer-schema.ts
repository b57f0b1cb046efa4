/**
 * A schema for an answer, as providers that hold a model to one take it. What they refuse of a schema differs; what is sent is
 * the part that all of them take. Nothing is sent where it is not known to be taken: the caller compares the answer with the schema
 * in any case.
 */
import { shownText, type JsonObject, type JsonValue } from '../records/message.js';
import { isRecord } from '../platform/json.js';
import { mapInner, toModern } from '../platform/json-schema/drafts.js';
import { inlineRefs, intersect, mergeConjunction } from '../platform/json-schema/normal-form.js';
import type { AnswerSchema, ModelRequest, ModelResponse, StreamOptions } from './model.js';
import { asList, asObject, toWellFormedJson, toWireName } from './wire.js';
import { modelLimits } from './known-models.js';
import { toForm, typesIn } from './tool-schema.js';

/** OpenAI takes an object only if all of its properties are required. */
const ALL_REQUIRED: ReadonlySet<string> = new Set(['openai', 'openai-responses']);
/** What Anthropic's grammars take of a schema: properties that may be absent, and values of several types. */
const MAX_OPTIONAL = 24;
const MAX_UNIONS = 16;
/** Objects and lists inside each other, and characters of names and values, with OpenAI. */
const MAX_LEVELS = 10;
const MAX_STRICT = 120_000;

/** Undefined where there is none to send: the request has none, the model is not known to take one, or no strict schema expresses it. */
export function sentSchema(provider: string, { model, answerSchema }: ModelRequest): AnswerSchema | undefined {
  if (!answerSchema || !modelLimits(`${provider}/${model}`).answerSchema) return undefined;
  const strict = toStrictSchema(answerSchema.schema, { allRequired: ALL_REQUIRED.has(provider) });
  if (!strict || (provider === 'anthropic' && !fitsGrammar(strict))) return undefined;
  const schema = provider === 'gemini' ? toForm(strict, 'gemini') : strict;
  return { name: toWireName(answerSchema.name), schema: toWellFormedJson(schema) };
}

function fitsGrammar(strict: JsonObject): boolean {
  const count = (value: JsonValue): readonly [number, number] => {
    if (!isRecord(value)) return [0, 0];
    const schema = value as JsonObject;
    const inner: [number, number] = [0, 0];
    mapInner(schema, (one) => {
      const [optional, unions] = count(one);
      inner[0] += optional;
      inner[1] += unions;
      return one;
    });
    const absent = Object.keys(asObject(schema['properties'])).length - asList(schema['required']).length;
    return [inner[0] + Math.max(0, absent), inner[1] + ('anyOf' in schema ? 1 : 0)];
  };
  const [optional, unions] = count(strict);
  return optional <= MAX_OPTIONAL && unions <= MAX_UNIONS;
}

/**
 * The same in strict words: references are inlined and every object is closed. `allRequired`: each has all of its properties, and an
 * optional one may be null (`withoutAbsent` undoes that). Bounds, patterns and formats are left out. Undefined for what strict mode cannot
 * express: an object of any keys, a schema that contains itself, a list of unlike items, a root that is no object.
 */
export function toStrictSchema(schema: JsonObject, { allRequired }: { readonly allRequired: boolean }): JsonObject | undefined {
  const whole = mergeConjunction(inlineRefs(toModern(schema), { recursion: 'kept' }));
  if (whole['type'] !== 'object' || ['$defs', 'anyOf', 'oneOf', 'enum', 'const'].some((key) => key in whole)) return undefined;
  const strict = strictValue(whole, { allRequired, levels: MAX_LEVELS });
  return strict && JSON.stringify(strict).length <= MAX_STRICT ? strict : undefined;
}

interface Strictness {
  readonly allRequired: boolean;
  readonly levels: number;
}

function strictValue(value: JsonValue, how: Strictness): JsonObject | undefined {
  if (!isRecord(value) || how.levels === 0) return undefined;
  const schema = mergeConjunction(value as JsonObject);
  const { description, enum: values, const: only, anyOf, oneOf, title: _, ...beside } = schema;
  const described: JsonObject = typeof description === 'string' ? { description } : {};
  const listed = only === undefined ? values : [only];
  if (Array.isArray(listed)) return strictList(listed as JsonValue[], typesIn(schema), described);
  const choices: unknown = anyOf ?? oneOf;
  if (Array.isArray(choices)) {
    const strict = whole(
      (choices as JsonValue[]).map((one) => strictValue(isRecord(one) ? intersect(beside, one as JsonObject) : one, how)),
    );
    return strict && strict.length > 0 ? { ...described, anyOf: strict } : undefined;
  }
  const [type, ...others] = typesIn(schema);
  if (others.length > 0) {
    const strict = whole(typesIn(schema).map((one) => strictValue({ ...beside, type: one }, how)));
    return strict && { ...described, anyOf: strict };
  }
  switch (type) {
    case 'string':
    case 'number':
    case 'integer':
    case 'boolean':
    case 'null':
      return { type, ...described };
    case 'array': {
      if (schema['prefixItems'] !== undefined) return undefined;
      const item = strictValue(schema['items'] ?? null, { ...how, levels: how.levels - 1 });
      return item && { type, ...described, items: item };
    }
    case 'object':
      return strictObject(schema, described, { ...how, levels: how.levels - 1 });
    default:
      return undefined;
  }
}

function strictList(values: readonly JsonValue[], types: readonly JsonValue[], described: JsonObject): JsonObject | undefined {
  if (values.some((value) => typeof value === 'object' && value !== null)) return undefined;
  const kinds = (['string', 'number', 'boolean'] as const).flatMap((kind): JsonObject[] => {
    const some = values.filter((value) => typeof value === kind);
    const type = kind === 'number' && some.every(Number.isInteger) ? 'integer' : kind;
    return some.length === 0 ? [] : [{ type, enum: some }];
  });
  const all = [...kinds, ...(values.includes(null) ? [{ type: 'null' }] : [])];
  const fits = (type: JsonValue | undefined): boolean => types.some((one) => one === type || (one === 'number' && type === 'integer'));
  const fitting = types.length === 0 ? all : all.filter(({ type }) => fits(type));
  const [first, second] = fitting;
  if (!first) return undefined;
  return second ? { ...described, anyOf: fitting } : { type: first['type'] as string, ...described, ...first };
}

function strictObject(
  { properties, required, additionalProperties: others, patternProperties }: JsonObject,
  described: JsonObject,
  how: Strictness,
): JsonObject | undefined {
  if (!isRecord(properties) || patternProperties !== undefined || (others !== undefined && others !== false)) return undefined;
  const needed = asList(required);
  const names = Object.keys(properties);
  const values = whole(
    names.map((name) => {
      const value = strictValue(properties[name] as JsonValue, how);
      if (!value || !how.allRequired || needed.includes(name) || allowsNull(properties[name] as JsonValue)) return value;
      return { anyOf: [value, { type: 'null' }] };
    }),
  );
  if (!values) return undefined;
  return {
    type: 'object',
    ...described,
    properties: Object.fromEntries(names.map((name, at) => [name, values[at] as JsonObject])),
    required: how.allRequired ? names : names.filter((name) => needed.includes(name)),
    additionalProperties: false,
  };
}

function whole<T>(values: readonly (T | undefined)[]): T[] | undefined {
  const there = values.filter((value) => value !== undefined);
  return there.length === values.length ? there : undefined;
}

/**
 * Where a model has to write null for what is absent, its text is held back until it is whole: then without these nulls, as the schema
 * wants it. Every other answer is told as it comes.
 */
export async function streamWithoutAbsent(
  { answerSchema }: Pick<ModelRequest, 'answerSchema'>,
  options: StreamOptions,
  stream: (options: StreamOptions) => Promise<ModelResponse>,
): Promise<ModelResponse> {
  if (!answerSchema || !hasAddedNulls(answerSchema)) return stream(options);
  const response = await stream({ ...options, onDelta: (delta) => (delta.kind === 'text' ? undefined : options.onDelta(delta)) });
  const blocks = response.blocks.map((block) =>
    block.kind === 'text' && typeof block.text === 'string'
      ? { ...block, text: textWithoutAbsent(block.text, answerSchema.schema) }
      : block,
  );
  for (const block of blocks) if (block.kind === 'text') options.onDelta({ kind: 'text', text: shownText(block.text) });
  return { ...response, blocks };
}

function hasAddedNulls({ schema }: AnswerSchema): boolean {
  const [all, some] = [true, false].map((allRequired) => JSON.stringify(toStrictSchema(schema, { allRequired })));
  return all !== some;
}

function textWithoutAbsent(text: string, schema: JsonObject): string {
  try {
    const answer = JSON.parse(text) as JsonValue;
    const undone = withoutAbsent(answer, schema);
    return JSON.stringify(undone) === JSON.stringify(answer) ? text : JSON.stringify(undone);
  } catch {
    return text;
  }
}

/** An answer to a schema of `allRequired`, without the nulls that stand there for properties that are absent. */
export function withoutAbsent(answer: JsonValue, schema: JsonObject): JsonValue {
  return undo(answer, [inlineRefs(toModern(schema), { recursion: 'cut' })]);
}

function undo(value: JsonValue, given: readonly JsonValue[]): JsonValue {
  const schemas = given.flatMap(alternatives);
  if (Array.isArray(value)) {
    const items = schemas.flatMap(({ items: one }) => (one === undefined ? [] : [one]));
    return (value as JsonValue[]).map((one) => undo(one, items));
  }
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value as JsonObject).flatMap(([name, one]): [string, JsonValue][] => {
      const inner = schemas.flatMap(({ properties }) =>
        Object.hasOwn(asObject(properties), name) ? [asObject(properties)[name] as JsonValue] : [],
      );
      if (one === null && inner.length > 0 && !inner.some(allowsNull)) return [];
      return [[name, undo(one, inner)]];
    }),
  );
}

function alternatives(schema: JsonValue): JsonObject[] {
  if (!isRecord(schema)) return [];
  const { anyOf, oneOf, allOf } = schema as JsonObject;
  return [schema as JsonObject, ...([anyOf, oneOf, allOf].flatMap(asList) as JsonValue[]).flatMap(alternatives)];
}

function allowsNull(value: JsonValue): boolean {
  if (!isRecord(value)) return value === true;
  const schema = value as JsonObject;
  const { enum: listed, const: only, anyOf, oneOf, allOf } = schema;
  const some = (list: JsonValue | undefined): boolean => list === undefined || (asList(list) as JsonValue[]).some(allowsNull);
  return (
    (typesIn(schema).length === 0 || typesIn(schema).includes('null')) &&
    (listed === undefined || asList(listed).includes(null)) &&
    (only === undefined || only === null) &&
    some(anyOf) &&
    some(oneOf) &&
    (allOf === undefined || (asList(allOf) as JsonValue[]).every(allowsNull))
  );
}
