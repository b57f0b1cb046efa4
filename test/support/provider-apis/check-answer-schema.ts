/** What APIs that hold an answer to a schema refuse of it. Pure. */
import { isRecord } from './check-fields.js';

export interface SchemaRules {
  /** Each property of an object must be required. */
  readonly allRequired: boolean;
  /** Whether numbers and lists may have bounds. */
  readonly bounds: boolean;
}

export interface SchemaProblem {
  /** The keys that lead to it. */
  readonly at: readonly string[];
  readonly why: string;
}

const neverTaken = ['minLength', 'maxLength', 'allOf', 'not', 'patternProperties', 'uniqueItems', 'oneOf', 'if'];
const bounding = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minItems', 'maxItems'];

export function strictSchemaProblem(
  schema: Record<string, unknown>,
  rules: SchemaRules,
  at: readonly string[] = [],
): SchemaProblem | undefined {
  if (at.length === 0 && schema.type !== 'object') return { at, why: `schema must be a JSON Schema of 'type: "object"'` };
  const odd = [...neverTaken, ...(rules.bounds ? [] : bounding)].find((word) => word in schema);
  if (odd !== undefined) return { at, why: `'${odd}' is not permitted` };
  if (schema.type === undefined && schema.enum === undefined && schema.anyOf === undefined && schema.$ref === undefined) {
    return { at, why: "schema must have a 'type' key" };
  }
  if (schema.type === 'array' && !isRecord(schema.items)) return { at, why: 'array schema missing items' };
  const { properties, additionalProperties, required } = schema;
  if (schema.type === 'object' && additionalProperties !== false) {
    return { at, why: "'additionalProperties' is required to be supplied and to be false" };
  }
  const needed: readonly unknown[] = Array.isArray(required) ? required : [];
  const missing = rules.allRequired && isRecord(properties) ? Object.keys(properties).find((key) => !needed.includes(key)) : undefined;
  if (missing !== undefined) {
    return { at, why: `'required' is required to be supplied and to be an array including every key in properties. Missing '${missing}'` };
  }
  const inner: (readonly [readonly string[], unknown])[] = [
    ...(isRecord(properties) ? Object.entries(properties).map(([key, value]) => [['properties', key], value] as const) : []),
    ...(schema.items === undefined ? [] : [[['items'], schema.items] as const]),
    ...(Array.isArray(schema.anyOf) ? schema.anyOf.map((value: unknown, index) => [['anyOf', String(index)], value] as const) : []),
  ];
  for (const [keys, value] of inner) {
    if (!isRecord(value)) return { at: [...at, ...keys], why: 'schema must be an object' };
    const found = strictSchemaProblem(value, rules, [...at, ...keys]);
    if (found) return found;
  }
  return undefined;
}
