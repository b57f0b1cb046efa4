/**
 * JSON Schemas as people and servers write them: which draft one is of, and the same in the words of draft 2020-12. Pure. What comes in
 * is bounded already, in bytes and in depth.
 */
import type { JsonObject, JsonValue } from '../../records/message.js';
import { isRecord } from '../json.js';

/** Those that a validator knows. Draft-06 is judged as draft-07, which has all of its words, and so is draft-04 once its bounds are rewritten. */
export type Draft = 'draft-07' | '2019-09' | '2020-12';

const DRAFTS: readonly (readonly [RegExp, Draft])[] = [
  [/^https?:\/\/json-schema\.org\/draft-0[467]\/schema#?$/, 'draft-07'],
  [/^https?:\/\/json-schema\.org\/draft\/2019-09\/schema#?$/, '2019-09'],
  // Without a date it means the newest.
  [/^https?:\/\/json-schema\.org\/(draft\/2020-12\/)?schema#?$/, '2020-12'],
];
const DRAFT_04 = /\/draft-04\//;
const KNOWN = 'draft-04, draft-06, draft-07, 2019-09 and 2020-12';

/** A schema for the validator of its draft, or why there is none. */
type DraftedSchema = { readonly draft: Draft; readonly schema: JsonObject } | { readonly why: string };

/**
 * Without `$schema` a schema is of 2020-12, unless a word of it says that it is older. What no draft means, but a validator would take for
 * an order, is left out: `$async`, `id`, `nullable` without a type.
 */
export function readDraft({ $schema: named, ...schema }: JsonObject): DraftedSchema {
  const uri = named === undefined ? undefined : typeof named === 'string' ? named : JSON.stringify(named);
  const draft = uri === undefined ? undefined : DRAFTS.find(([pattern]) => pattern.test(uri))?.[1];
  if (uri !== undefined && draft === undefined) {
    return { why: `its $schema ${JSON.stringify(uri.slice(0, 200))} is not known here: known are ${KNOWN}` };
  }
  let hasTuple = false;
  const rewritesBounds = uri === undefined || DRAFT_04.test(uri);
  const tidy = (node: JsonObject): JsonObject => {
    hasTuple ||= Array.isArray(node['items']);
    const entries = Object.entries(node).flatMap(([key, value]): (readonly [string, JsonValue])[] => {
      if (key === '$async') return [];
      if (key === 'id') return typeof value === 'string' && DRAFT_04.test(uri ?? '') ? [['$id', value]] : [];
      if (key === 'nullable') return node['type'] !== undefined && value === true ? [[key, value]] : [];
      return rewritesBounds ? boundsAsNumbers(node, key, value) : [[key, value]];
    });
    return Object.fromEntries(entries);
  };
  const tidied = mapSchemas(schema, tidy);
  return { draft: draft ?? (hasTuple ? 'draft-07' : '2020-12'), schema: tidied };
}

/** In the words of 2020-12, whatever draft it is of; servers often name one and write another. Without `$schema`. */
export function toModern({ $schema: _, ...schema }: JsonObject): JsonObject {
  return mapSchemas(schema, (node) => Object.fromEntries(Object.entries(node).flatMap(([key, value]) => modernWords(node, key, value))));
}

function modernWords(node: JsonObject, key: string, value: JsonValue): (readonly [string, JsonValue])[] {
  const isNullable = node['nullable'] === true;
  switch (key) {
    case '$async':
    case 'nullable':
      return [];
    case 'type':
      return [[key, isNullable && typeof value === 'string' && value !== 'null' ? [value, 'null'] : value]];
    case 'enum':
      return [[key, isNullable && Array.isArray(value) && !value.includes(null) ? [...(value as JsonValue[]), null] : value]];
    case 'items':
      if (!Array.isArray(value)) return [[key, value]];
      return value.length === 0 ? [] : [['prefixItems', value]];
    case 'additionalItems':
      return Array.isArray(node['items']) ? [['items', value]] : [];
    case 'dependencies':
      return isRecord(value) ? dependents(value as JsonObject) : [];
    default:
      return boundsAsNumbers(node, key, value);
  }
}

/** Draft-04's `exclusiveMinimum: true` beside `minimum`. */
function boundsAsNumbers(node: JsonObject, key: string, value: JsonValue): (readonly [string, JsonValue])[] {
  if (key === 'minimum' || key === 'maximum') {
    return node[key === 'minimum' ? 'exclusiveMinimum' : 'exclusiveMaximum'] === true ? [] : [[key, value]];
  }
  if ((key !== 'exclusiveMinimum' && key !== 'exclusiveMaximum') || typeof value !== 'boolean') return [[key, value]];
  const bound = node[key === 'exclusiveMinimum' ? 'minimum' : 'maximum'];
  return value && typeof bound === 'number' ? [[key, bound]] : [];
}

function dependents(dependencies: JsonObject): (readonly [string, JsonValue])[] {
  const entries = Object.entries(dependencies);
  const lists = entries.filter(([, value]) => Array.isArray(value));
  const schemas = entries.filter(([, value]) => !Array.isArray(value));
  return [
    ...(lists.length > 0 ? [['dependentRequired', Object.fromEntries(lists)] as const] : []),
    ...(schemas.length > 0 ? [['dependentSchemas', Object.fromEntries(schemas)] as const] : []),
  ];
}

const ONE: ReadonlySet<string> = new Set([
  ...['additionalItems', 'additionalProperties', 'contains', 'contentSchema', 'else', 'if', 'items', 'not', 'propertyNames', 'then'],
  ...['unevaluatedItems', 'unevaluatedProperties'],
]);
const LIST: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'items', 'oneOf', 'prefixItems']);
const NAMED: ReadonlySet<string> = new Set(['$defs', 'definitions', 'dependencies', 'dependentSchemas', 'patternProperties', 'properties']);

/** The schemas directly in `schema`, each replaced by what `change` makes of it; values that are no schemas stay as they are. */
export function mapInner(schema: JsonObject, change: (inner: JsonValue) => JsonValue): JsonObject {
  const changed = (inner: JsonValue): JsonValue => (isRecord(inner) || typeof inner === 'boolean' ? change(inner) : inner);
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => {
      if (Array.isArray(value)) return [key, LIST.has(key) ? (value as JsonValue[]).map(changed) : value];
      if (isRecord(value) && NAMED.has(key)) {
        return [key, Object.fromEntries(Object.entries(value as JsonObject).map(([name, inner]) => [name, changed(inner)]))];
      }
      return [key, ONE.has(key) ? changed(value) : value];
    }),
  );
}

/** Every object in the place of a schema, the innermost first. */
function mapSchemas(schema: JsonObject, change: (node: JsonObject) => JsonObject): JsonObject {
  return change(mapInner(schema, (inner) => (isRecord(inner) ? mapSchemas(inner as JsonObject, change) : inner)));
}
