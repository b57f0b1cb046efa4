/**
 * Schemas of tools' arguments as providers take them. What each of them refuses differs, and one schema that is refused costs the whole
 * request. What fits a schema fits its form; where a form says less, the arguments are compared with the schema itself.
 *
 * What is known of each, from what they document and from refusals that people have reported:
 * - all: an object at the top, with properties, without `oneOf`, `anyOf`, `allOf`, `enum`, `not` (anthropics/claude-code#5973,
 *   nspady/google-calendar-mcp#39); a list says what is in it (digitalocean-labs/mcp-digitalocean#265).
 * - Anthropic: valid in draft 2020-12 (Dokploy/mcp#74).
 * - Gemini: the words that `@google/genai` documents beside `responseJsonSchema`; values of an enum are texts that are not empty, or numbers
 *   (sbroenne/mcp-server-excel#607); required is only what has a schema; references it can follow (agent-infra/sandbox#83).
 * - Ollama: Go structs that take no boolean for a schema (can1357/oh-my-pi#4488) and know few words (ollama/ollama#11444).
 */
import type { JsonObject, JsonValue } from '../records/message.js';
import { isRecord } from '../platform/json.js';
import { mapInner, toModern } from '../platform/json-schema/drafts.js';
import { inlineRefs, intersect, mergeConjunction, mergeTop } from '../platform/json-schema/normal-form.js';
import { asList, asObject, toWellFormedJson } from './wire.js';

/** Who takes a form: `full` knows most words of 2020-12, `gemini` a documented few, `ollama` those that it passes on. */
export type SchemaTaker = 'full' | 'gemini' | 'ollama';

/** Characters of a form: every prompt has it, and its schema may have half as many bytes (tools/mcp/server-tool.ts). */
const MAX_FORM = 64 * 1024;
/** Of what stands once beside `anyOf`, and again in each of its members. */
const MAX_REPEATED = 16 * 1024;

/** A schema never changes, and every request has those of all tools. */
const FORMS: Readonly<Record<SchemaTaker, WeakMap<JsonObject, JsonObject>>> = {
  full: new WeakMap(),
  gemini: new WeakMap(),
  ollama: new WeakMap(),
};

/** Of a tool's arguments. Pure; a schema that needs no change keeps its bytes. */
export function toToolSchema(inputSchema: JsonObject, taker: SchemaTaker): JsonObject {
  const known = FORMS[taker].get(inputSchema);
  if (known) return known;
  const form = makeToolSchema(inputSchema, taker);
  FORMS[taker].set(inputSchema, form);
  return form;
}

function makeToolSchema(inputSchema: JsonObject, taker: SchemaTaker): JsonObject {
  const recursion = taker === 'full' ? 'kept' : 'cut';
  const modern = toModern(inputSchema);
  for (const maxNodes of [2_000, 200, 0]) {
    const form = mergeTop(toForm(mergeTop(inlineRefs(modern, { recursion, maxNodes })), taker));
    if (JSON.stringify(form).length <= MAX_FORM) return toWellFormedJson(form);
  }
  // The names of its arguments say more than a tool that is not there.
  const names = Object.keys(asObject(mergeTop(inlineRefs(modern, { recursion: 'cut', maxNodes: 0 }))['properties']));
  return toWellFormedJson({ type: 'object', properties: Object.fromEntries(names.map((name) => [name, {}])) });
}

/** A schema in the place of another. */
function asForm(value: JsonValue, taker: SchemaTaker): JsonValue {
  if (isRecord(value)) return toForm(value as JsonObject, taker);
  return value === false ? { not: {} } : {};
}

export function toForm(schema: JsonObject, taker: SchemaTaker): JsonObject {
  const plain = withoutFalse(taker === 'full' ? schema : withPlainText(mergeConjunction(schema)));
  const closing = Object.entries(plain).filter(([key, value]) => CLOSING.includes(key) && typeof value === 'boolean');
  const form = { ...mapInner(plain, (inner) => asForm(inner, taker)), ...Object.fromEntries(closing) };
  return taker === 'gemini' ? toGeminiWords(form) : withItems(form);
}

/** Words whose value may be a boolean with every provider. */
const CLOSING: readonly string[] = ['additionalProperties', 'unevaluatedProperties', 'unevaluatedItems'];

/** `false` says that something may not be there: it is left out where it stands, or put in numbers. */
function withoutFalse(schema: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(schema).flatMap(([key, value]): [string, JsonValue][] => {
      const list = asList(value) as readonly JsonValue[];
      switch (key) {
        case 'properties':
          return [[key, Object.fromEntries(Object.entries(asObject(value)).filter(([, one]) => one !== false))]];
        case 'required':
          return [[key, [...new Set(list.filter((name) => typeof name === 'string'))]]];
        case 'items':
          return value === false ? [['maxItems', asList(schema['prefixItems']).length]] : [[key, value]];
        case 'maxItems':
          return schema['items'] === false ? [] : [[key, value]];
        case 'anyOf':
        case 'oneOf':
        case 'allOf':
        case 'enum': {
          const left = key === 'enum' ? list : list.filter((one) => one !== false && (key !== 'allOf' || one !== true));
          return left.length === 0 ? [] : [[key, left]];
        }
        default:
          return [[key, value]];
      }
    }),
  );
}

function withPlainText(schema: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(schema).flatMap(([key, value]): [string, JsonValue][] => {
      if (key === 'const') return [['enum', [value]]];
      if (key === 'enum' && 'const' in schema) return [];
      if (key === 'oneOf') return 'anyOf' in schema ? [] : [['anyOf', value]];
      return [[key, value]];
    }),
  );
}

function withItems(schema: JsonObject): JsonObject {
  return typesIn(schema).includes('array') && schema['items'] === undefined ? { ...schema, items: {} } : schema;
}

export function typesIn({ type }: JsonObject): readonly JsonValue[] {
  return type === undefined ? [] : ([type].flat() as JsonValue[]);
}

// Gemini's words.

const GEMINI_WORDS: ReadonlySet<string> = new Set([
  ...['type', 'format', 'title', 'description', 'enum', 'items', 'prefixItems', 'minItems', 'maxItems', 'minimum', 'maximum', 'anyOf'],
  ...['properties', 'additionalProperties', 'required', 'propertyOrdering'],
]);
const GEMINI_FORMATS: readonly JsonValue[] = ['date-time', 'date', 'time'];
/** Characters of a word that is told in a description. */
const MAX_TOLD = 200;

function toGeminiWords(schema: JsonObject): JsonObject {
  const { anyOf, enum: listed, description: _, title: _title, ...beside } = toKnownWords(schema);
  const { description, title } = toKnownWords(schema);
  const explained: JsonObject = { ...(title !== undefined && { title }), ...(description !== undefined && { description }) };
  const kinds = listed === undefined ? [] : groupByType(asList(listed) as JsonValue[], typesIn(beside));
  // Beside `anyOf` stands nothing but what explains it: what stood there is in each of its members.
  if (kinds.length > 1) return { ...explained, anyOf: kinds };
  if (kinds[0]) return keepOrder(schema, { ...beside, ...explained, ...kinds[0], ...joinDescriptions(explained, kinds[0]) });
  if (anyOf !== undefined && JSON.stringify(beside).length * asList(anyOf).length <= MAX_REPEATED) {
    return { ...explained, anyOf: asList(anyOf).map((one) => toGeminiWords(mergeConjunction(intersect(beside, asObject(one))))) };
  }
  const types = typesIn(beside).filter((type) => type !== 'null');
  if (types.length > 1) return { ...explained, anyOf: typesIn(beside).map((type) => toGeminiWords({ ...beside, type })) };
  return withItems(keepOrder(schema, { ...beside, ...explained }));
}

function toKnownWords(schema: JsonObject): JsonObject {
  const { properties, required, exclusiveMinimum, exclusiveMaximum, format, pattern, patternProperties } = schema;
  const known = Object.fromEntries(Object.entries(schema).filter(([key]) => GEMINI_WORDS.has(key)));
  const told = [
    ...(format === undefined || GEMINI_FORMATS.includes(format) ? [] : [`Format: ${String(format)}.`]),
    ...(typeof pattern === 'string' && pattern.length <= MAX_TOLD ? [`Pattern: ${pattern}`] : []),
  ];
  const names = asList(required).filter((name) => typeof name === 'string' && Object.hasOwn(asObject(properties), name));
  const { format: _, required: _required, additionalProperties: others, ...rest } = known;
  return {
    ...rest,
    ...(told.length > 0 && { description: [schema['description'], ...told].filter((words) => typeof words === 'string').join(' ') }),
    ...(GEMINI_FORMATS.includes(format ?? null) && { format: format as string }),
    ...(typeof exclusiveMinimum === 'number' && { minimum: Math.max(exclusiveMinimum, asNumber(schema['minimum'], -Infinity)) }),
    ...(typeof exclusiveMaximum === 'number' && { maximum: Math.min(exclusiveMaximum, asNumber(schema['maximum'], Infinity)) }),
    ...(names.length > 0 && { required: names as string[] }),
    ...(others !== undefined && patternProperties === undefined && { additionalProperties: others }),
  };
}

/** The same bytes for what needed no change. */
function keepOrder(given: JsonObject, form: JsonObject): JsonObject {
  const first = Object.keys(given).filter((key) => key in form);
  return Object.fromEntries([...new Set([...first, ...Object.keys(form)])].map((key) => [key, form[key] as JsonValue]));
}

function joinDescriptions({ description: a }: JsonObject, { description: b }: JsonObject): JsonObject {
  const words = [a, b].filter((one) => typeof one === 'string');
  return words.length === 0 ? {} : { description: words.join(' ') };
}

function asNumber(value: JsonValue | undefined, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise;
}

/** The values of an enum by their kinds, each with its type. An empty text may not be listed: then the texts are told. */
function groupByType(values: readonly JsonValue[], types: readonly JsonValue[]): JsonObject[] {
  const texts = values.filter((value) => typeof value === 'string');
  const numbers = values.filter((value) => typeof value === 'number');
  const kinds: JsonObject[] = [
    ...(texts.length === 0
      ? []
      : [texts.includes('') ? { type: 'string', description: `One of ${JSON.stringify(texts)}.` } : { type: 'string', enum: texts }]),
    ...(numbers.length === 0 ? [] : [{ type: numbers.every(Number.isInteger) ? 'integer' : 'number', enum: numbers }]),
    ...(values.some((value) => typeof value === 'boolean') ? [{ type: 'boolean' }] : []),
    ...(values.some((value) => isRecord(value)) ? [{ type: 'object' }] : []),
    ...(values.some((value) => Array.isArray(value)) ? [{ type: 'array', items: {} }] : []),
    ...(values.includes(null) ? [{ type: 'null' }] : []),
  ];
  const fits = (type: JsonValue | undefined): boolean => types.some((one) => one === type || (one === 'number' && type === 'integer'));
  return types.length === 0 ? kinds : kinds.filter(({ type }) => fits(type));
}
