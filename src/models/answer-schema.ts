/**
 * A schema for an answer, as providers that hold a model to one take it. What they refuse of a schema differs; what is sent is
 * the part that all of them take. Nothing is sent where it is not known to be taken: the caller reads the answer with care
 * in any case.
 */
import type { JsonObject, JsonValue } from '../records/message.js';
import type { AnswerSchema, ModelRequest } from './model.js';
import { asObject, toWellFormedJson, toWireName } from './wire.js';
import { modelLimits } from './known-models.js';
import { isRecord } from '../platform/json.js';

/** Undefined where there is none to send: the request has none, the model is not known to take one, or no strict schema expresses it. */
export function sentSchema(provider: string, { model, answerSchema }: ModelRequest): AnswerSchema | undefined {
  if (!answerSchema || !modelLimits(`${provider}/${model}`).answerSchema) return undefined;
  const schema = toStrictSchema(answerSchema.schema);
  return schema && { name: toWireName(answerSchema.name), schema: toWellFormedJson(schema) };
}

/**
 * The same in strict words: every object is closed and has all of its properties, and an optional one may be null. Bounds, patterns
 * and formats are left out. Undefined for what strict mode cannot express: an object of any keys, a reference, a root that is no object.
 */
export function toStrictSchema(schema: JsonObject): JsonObject | undefined {
  return schema.type === 'object' ? strictValue(schema) : undefined;
}

function strictValue(schema: JsonValue): JsonObject | undefined {
  const { type, description, enum: values, const: only, anyOf, oneOf, items } = asObject(schema);
  const described: JsonObject = typeof description === 'string' ? { description } : {};
  const listed: unknown = only === undefined ? values : [only];
  if (Array.isArray(listed)) return { ...(typeof type === 'string' && { type }), ...described, enum: listed as JsonValue[] };
  const choices: unknown = anyOf ?? oneOf;
  if (Array.isArray(choices)) {
    const strict = whole((choices as JsonValue[]).map(strictValue));
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
      const item = strictValue(items ?? null);
      return item && { type, ...described, items: item };
    }
    case 'object':
      return strictObject(asObject(schema), described);
    default:
      return undefined;
  }
}

function strictObject({ properties, required, additionalProperties: others }: JsonObject, described: JsonObject): JsonObject | undefined {
  if (!isRecord(properties) || (others !== undefined && others !== false)) return undefined;
  const needed: readonly JsonValue[] = Array.isArray(required) ? (required as JsonValue[]) : [];
  const names = Object.keys(properties);
  const values = whole(
    names.map((name) => {
      const value = strictValue(properties[name] as JsonValue);
      return value && (needed.includes(name) ? value : { anyOf: [value, { type: 'null' }] });
    }),
  );
  if (!values) return undefined;
  const entries = names.map((name, at) => [name, values[at] as JsonObject] as const);
  return { type: 'object', ...described, properties: Object.fromEntries(entries), required: names, additionalProperties: false };
}

function whole<T>(values: readonly (T | undefined)[]): T[] | undefined {
  const there = values.filter((value) => value !== undefined);
  return there.length === values.length ? there : undefined;
}
