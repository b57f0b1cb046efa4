/** JSON Schemas as servers and people write them, at random, each with data that fits it. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { toModern } from '../../src/platform/json-schema/drafts.js';
import type { JsonObject, JsonValue } from '../../src/records/message.js';

export interface SchemaCase {
  readonly schema: JsonObject;
  /** It has no property that the schema does not name. */
  readonly data: JsonValue;
}

const ajv = new Ajv2020({
  strict: false,
  logger: false,
  validateFormats: false,
  validateSchema: false,
  ownProperties: true,
  code: { optimize: false },
});

export function fits(schema: JsonObject, data: JsonValue): boolean {
  try {
    return ajv.validate(schema, data);
  } finally {
    ajv.removeSchema(schema);
  }
}

type Case = fc.Arbitrary<{ readonly schema: JsonValue; readonly data: JsonValue }>;

const described = fc.constantFrom<JsonObject>({}, {}, { description: 'Words.' }, { title: 'Name', default: null });

const leaf: Case = fc
  .tuple(
    fc.constantFrom<{ schema: JsonObject; data: JsonValue }>(
      { schema: { type: 'string' }, data: 'a' },
      { schema: { type: 'string', minLength: 2, maxLength: 9, pattern: '^[a-z-.]+$' }, data: 'abc' },
      { schema: { type: 'string', format: 'uuid' }, data: '00000000-0000-4000-8000-000000000000' },
      { schema: { type: 'string', format: 'date-time' }, data: '2026-11-27T00:00:00Z' },
      { schema: { type: 'integer', minimum: 0, exclusiveMaximum: 10 }, data: 3 },
      { schema: { type: 'integer', minimum: 1, exclusiveMinimum: true }, data: 2 },
      { schema: { type: 'number', multipleOf: 0.5, exclusiveMinimum: -1 }, data: 1.5 },
      { schema: { type: 'boolean' }, data: true },
      { schema: { type: ['string', 'null'] }, data: null },
      { schema: { type: ['string', 'integer', 'null'], minLength: 1 }, data: 4 },
      { schema: { type: 'string', nullable: true, enum: ['a', 'b'] }, data: 'b' },
      { schema: { type: ['string', 'null'], enum: ['a', null] }, data: null },
      { schema: { enum: ['', 'asc', 'desc'] }, data: '' },
      { schema: { type: 'string', enum: ['', 'x'] }, data: 'x' },
      { schema: { enum: [1, 2, 'many', true, null] }, data: true },
      { schema: { type: 'integer', enum: [2, 4, 8] }, data: 4 },
      { schema: { const: 'fixed' }, data: 'fixed' },
      { schema: { const: 7 }, data: 7 },
      { schema: { const: false }, data: false },
      { schema: {}, data: ['any', { thing: 1 }] },
      { schema: { type: 'array' }, data: [1] },
      { schema: { type: 'object' }, data: {} },
      { schema: { type: 'object', additionalProperties: { type: 'number' } }, data: { x: 1 } },
      { schema: { type: 'object', patternProperties: { '^x-': { type: 'string' } }, additionalProperties: false }, data: { 'x-a': 'b' } },
    ),
    described,
  )
  .map(([{ schema, data }, words]) => ({ schema: { ...schema, ...words }, data }));

const anything: Case = fc.constant({ schema: true, data: 'anything' });

function list(inner: Case): Case {
  return fc
    .tuple(fc.array(inner, { minLength: 1, maxLength: 3 }), fc.constantFrom('each', 'tuple', 'old tuple', 'closed tuple'))
    .map(([all, kind]): { schema: JsonObject; data: JsonValue } => {
      const [first = { schema: {}, data: null }] = all;
      const schemas = all.map(({ schema }) => schema);
      const data = all.map((one) => one.data);
      switch (kind) {
        case 'tuple':
          return { schema: { type: 'array', prefixItems: schemas }, data };
        case 'old tuple':
          return { schema: { type: 'array', items: schemas, additionalItems: false }, data };
        case 'closed tuple':
          return { schema: { type: 'array', prefixItems: schemas, items: false, minItems: 1 }, data };
        default:
          return { schema: { type: 'array', items: first.schema, uniqueItems: false }, data: [first.data, first.data] };
      }
    });
}

const NAMES = ['a', 'b', 'kind', 'with.dot', 'constructor', '$weird', 'description'] as const;

/** At the top Anthropic takes no others. */
const TOP_NAMES = ['a', 'b', 'kind', 'with.dot', 'constructor', 'description'] as const;

function object(inner: Case, names: readonly string[] = NAMES): fc.Arbitrary<SchemaCase> {
  const property = fc.tuple(inner, fc.constantFrom('required', 'given', 'absent'));
  return fc
    .tuple(
      fc.uniqueArray(fc.tuple(fc.constantFrom(...names), property), { selector: ([name]) => name, maxLength: 4 }),
      fc.constantFrom<JsonObject>(
        {},
        {},
        { additionalProperties: false },
        { unevaluatedProperties: false },
        { propertyNames: { maxLength: 80 } },
      ),
    )
    .map(([properties, rest]) => {
      const required = properties.filter(([, [, use]]) => use === 'required').map(([name]) => name);
      return {
        schema: {
          type: 'object',
          properties: Object.fromEntries(properties.map(([name, [{ schema }]]) => [name, schema])),
          ...(required.length > 0 && { required }),
          ...rest,
        },
        data: Object.fromEntries(properties.filter(([, [, use]]) => use !== 'absent').map(([name, [{ data }]]) => [name, data])),
      };
    });
}

function choice(inner: Case): Case {
  return fc
    .tuple(fc.array(inner, { minLength: 1, maxLength: 3 }), fc.constantFrom('anyOf', 'oneOf'), described, fc.boolean())
    .map(([all, word, words, hasFalse]) => ({
      schema: { ...words, [word]: [...all.map(({ schema }) => schema), ...(hasFalse ? [false] : [])] },
      data: all[0]?.data ?? null,
    }));
}

/** Marks a schema that becomes an entry of `$defs`. */
const SHARED = 'x-shared';

function shared(inner: Case): Case {
  return fc.tuple(inner, described).map(([{ schema, data }, words]) => ({ schema: { [SHARED]: schema, ...words }, data }));
}

const value: Case = fc.letrec<{ value: { schema: JsonValue; data: JsonValue } }>((tie) => {
  const inner = tie('value');
  return {
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      leaf,
      anything,
      list(inner),
      object(inner),
      choice(inner),
      shared(inner),
      object(inner).map(({ schema, data }) => ({ schema: { allOf: [schema, { description: 'More of it.' }] }, data })),
    ),
  };
}).value;

const branches = fc
  .tuple(
    object(value, ['a', 'b', 'with.dot']),
    fc.array(object(value, ['c', 'd', 'kind']), { minLength: 1, maxLength: 3 }),
    fc.constantFrom('anyOf', 'oneOf', 'allOf'),
  )
  // Data that fits another branch by chance says nothing of the one that it was made for.
  .filter(([, [first]]) => first !== undefined && fitsSchema(first))
  .map(([own, all, word]) => {
    const { additionalProperties: _, unevaluatedProperties: _closed, ...open } = own.schema;
    const others = all.map(({ schema: { additionalProperties: _a, unevaluatedProperties: _u, ...rest } }) => rest as JsonObject);
    const data = word === 'allOf' ? Object.assign({}, ...all.map((one) => one.data)) : all[0]?.data;
    return { schema: { ...(open as JsonObject), [word]: others }, data: { ...(own.data as JsonObject), ...(data as JsonObject) } };
  });

const conditional = fc.tuple(object(value, ['a', 'b']), object(value, ['c'])).map(([own, then]) => {
  const { additionalProperties: _, unevaluatedProperties: _closed, ...open } = own.schema;
  return {
    schema: {
      ...(open as JsonObject),
      if: { required: ['c'] },
      then: then.schema['properties'] ? { properties: then.schema['properties'] } : {},
      else: {},
    },
    data: { ...(own.data as JsonObject), ...(then.data as JsonObject) },
  };
});

/** Of a tool's arguments: branches at the top, conditions, and references, also to itself. */
export const toolCases: fc.Arbitrary<SchemaCase> = fc
  .tuple(
    fc.oneof({ weight: 3, arbitrary: object(value, TOP_NAMES) }, { weight: 3, arbitrary: branches }, { weight: 1, arbitrary: conditional }),
    fc.boolean(),
    fc.boolean(),
  )
  .map(([{ schema, data }, isRecursive, isTyped]) => {
    const { type, ...rest } = schema as JsonObject;
    const whole = { ...(isTyped && { type: type as string }), ...rest } as JsonObject;
    if (!isRecursive) return withDefs({ schema: whole, data });
    const properties = { ...(whole['properties'] as JsonObject), again: { $ref: '#' } };
    return withDefs({ schema: { ...whole, properties }, data: { ...(data as JsonObject), again: data } });
  });

/** Of an answer: an object of what strict mode can say, more or less. */
export const answerCases: fc.Arbitrary<SchemaCase> = object(
  fc.letrec<{ value: { schema: JsonValue; data: JsonValue } }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      leaf.filter(({ schema }) => isSimple(schema)),
      list(tie('value')).filter(
        ({ schema }) => !('prefixItems' in (schema as JsonObject)) && !Array.isArray((schema as JsonObject)['items']),
      ),
      object(tie('value')),
      shared(tie('value')),
    ),
  })).value,
).map(withDefs);

function isSimple(schema: JsonValue): boolean {
  const { type, enum: values, const: only, additionalProperties, patternProperties } = schema as JsonObject;
  if (additionalProperties !== undefined || patternProperties !== undefined || type === 'object' || type === 'array') return false;
  return type !== undefined || values !== undefined || only !== undefined;
}

/** The old words of some cases stand for drafts that are judged by others. */
export function fitsSchema(one: SchemaCase): boolean {
  const { schema, data } = withDefs(one);
  return fits(toModern(schema), data);
}

function withDefs({ schema, data }: SchemaCase): SchemaCase {
  const defs: Record<string, JsonValue> = {};
  const hoist = (node: JsonValue): JsonValue => {
    if (typeof node !== 'object' || node === null) return node;
    if (Array.isArray(node)) return (node as JsonValue[]).map(hoist);
    const inner = Object.fromEntries(Object.entries(node as JsonObject).map(([key, one]) => [key, hoist(one)]));
    const { [SHARED]: hoisted, ...beside } = inner;
    if (hoisted === undefined) return inner;
    const name = `d${Object.keys(defs).length}`;
    defs[name] = hoisted;
    return { ...beside, $ref: `#/$defs/${name}` };
  };
  const whole = hoist(schema) as JsonObject;
  return { schema: Object.keys(defs).length === 0 ? whole : { ...whole, $defs: defs }, data };
}
