/**
 * What providers refuse of the schema of a tool's arguments, in their words. Pure. Written from what they document and from refusals in
 * public issues, which each check names.
 */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { isRecord } from './check-fields.js';

type Schema = Record<string, unknown>;

const branching = ['oneOf', 'anyOf', 'allOf', 'enum', 'not'];

/** OpenAI: nspady/google-calendar-mcp#39, goruck/home-generative-agent#545, inboxapi/cli#106, digitalocean-labs/mcp-digitalocean#265. */
export function openaiSchemaProblem(schema: Schema): string | undefined {
  if (schema.type !== 'object') {
    return `schema must be a JSON Schema of 'type: "object"', got 'type: "${String(schema.type ?? 'None')}"'.`;
  }
  if (branching.some((word) => word in schema) || 'const' in schema) {
    return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.";
  }
  if (!isRecord(schema.properties)) return 'In context=(), object schema missing properties.';
  return firstIn(schema, [], (node, at) => {
    const types: unknown[] = [node.type].flat();
    if (types.includes('array') && node.items === undefined) return `In context=(${at.join(', ')}), array schema missing items.`;
    return Array.isArray(node.items)
      ? `${JSON.stringify(node.items)} is not of type 'object', 'boolean'.`
      : danglingReference(schema, node);
  });
}

/** It takes a while to compile, and nothing that is checked goes into it. */
const draft = new Ajv2020({ strict: false, logger: false, validateFormats: false });

/** Anthropic: anthropics/claude-code#5973, beautyfree/appstore-connect-mcp#2, Dokploy/mcp#74. */
export function anthropicSchemaProblem(schema: Schema): string | undefined {
  if (schema.type === undefined) return '.type: Field required';
  if (schema.type !== 'object') return ".type: Input should be 'object'";
  if (['oneOf', 'allOf', 'anyOf'].some((word) => word in schema)) {
    return ': input_schema does not support oneOf, allOf, or anyOf at the top level';
  }
  const names = isRecord(schema.properties) ? Object.keys(schema.properties) : [];
  if (names.some((name) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(name))) {
    return ".properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'";
  }
  const isOne = draft.validateSchema(schema) === true && firstIn(schema, [], (node) => danglingReference(schema, node)) === undefined;
  return isOne ? undefined : ': JSON schema is invalid. It must match JSON Schema draft 2020-12';
}

const geminiWords = new Set([
  ...['$id', '$defs', '$ref', '$anchor', 'type', 'format', 'title', 'description', 'enum', 'items', 'prefixItems', 'minItems', 'maxItems'],
  ...['minimum', 'maximum', 'anyOf', 'oneOf', 'properties', 'additionalProperties', 'required', 'propertyOrdering'],
]);

/**
 * Gemini's `parametersJsonSchema` and `responseJsonSchema`, from what `@google/genai` says beside the latter; sbroenne/mcp-server-excel#607,
 * elastic/kibana#286302, agent-infra/sandbox#83. Stricter than the API where it ignores what it does not support.
 */
export function geminiSchemaProblem(schema: Schema): string | undefined {
  if (schema.type !== 'object') return 'schema at top-level must be of type object';
  return firstIn(schema, [], (node, at) => {
    const place = `properties[${at.join('.')}]`;
    const odd = Object.keys(node).find((key) => !geminiWords.has(key));
    if (odd !== undefined) return `${place}: ${odd} is not supported`;
    if (Object.values(isRecord(node.properties) ? node.properties : {}).some((inner) => !isRecord(inner))) return `${place}: not a schema`;
    const types: unknown[] = [node.type].flat().filter((type) => type !== 'null');
    if (types.length > 1) return `${place}.type: proto field is not repeating`;
    if (types.includes('array') && node.items === undefined) return `${place}.items: missing field`;
    if (node.items !== undefined && !isRecord(node.items)) return `${place}.items: not a schema`;
    if (Array.isArray(node.enum)) {
      if (node.enum.length === 0) return `${place}.enum: should be non-empty for STRING type with enum format`;
      if (node.enum.some((value) => typeof value !== 'string' && typeof value !== 'number'))
        return `${place}.enum: only allowed for STRING type`;
      if (node.enum.includes('')) return `${place}.enum[${node.enum.indexOf('')}]: cannot be empty`;
    }
    const required: readonly unknown[] = Array.isArray(node.required) ? node.required : [];
    const missing = required.find((name) => !Object.hasOwn(isRecord(node.properties) ? node.properties : {}, String(name)));
    if (missing !== undefined) return `${place}.required[${required.indexOf(missing)}]: property is not defined`;
    if (Array.isArray(node.anyOf) && Object.keys(node).some((key) => !['anyOf', 'title', 'description', '$defs'].includes(key))) {
      return `${place}: when using any_of, it must be the only field set`;
    }
    const reference = danglingReference(schema, node);
    return reference && `reference to undefined schema at ${place}`;
  });
}

/** Ollama's Go structs: can1357/oh-my-pi#4488, ollama/ollama#10328, ollama/ollama#18051. */
export function ollamaSchemaProblem(schema: Schema): string | undefined {
  const into = (value: unknown, field: string, type: string): string =>
    `json: cannot unmarshal ${Array.isArray(value) ? 'array' : isRecord(value) ? 'object' : typeof value} into Go struct field ${field} of type ${type}`;
  if (typeof schema.type !== 'string') return into(schema.type, 'ToolFunctionParameters.tools.function.parameters.type', 'string');
  if (!isRecord(schema.properties)) {
    return into(schema.properties, 'ToolFunctionParameters.tools.function.parameters.properties', 'map[string]api.ToolProperty');
  }
  const problem = (property: unknown): string | undefined => {
    if (!isRecord(property)) return into(property, 'ToolFunctionParameters.tools.function.parameters.properties', 'api.ToolProperty');
    const { type, description, required, enum: values, anyOf, properties } = property;
    if (type !== undefined && [type].flat().some((one) => typeof one !== 'string'))
      return into(type, 'ToolProperty.type', 'api.PropertyType');
    if (description !== undefined && typeof description !== 'string') return into(description, 'ToolProperty.description', 'string');
    if (required !== undefined && !isListOfTexts(required)) return into(required, 'ToolProperty.required', '[]string');
    if (values !== undefined && !Array.isArray(values)) return into(values, 'ToolProperty.enum', '[]interface {}');
    const inner: readonly unknown[] = [...(Array.isArray(anyOf) ? anyOf : []), ...Object.values(isRecord(properties) ? properties : {})];
    return inner.map(problem).find((found) => found !== undefined);
  };
  if (schema.required !== undefined && !isListOfTexts(schema.required)) {
    return into(schema.required, 'ToolFunctionParameters.tools.function.parameters.required', '[]string');
  }
  return Object.values(schema.properties)
    .map(problem)
    .find((found) => found !== undefined);
}

function isListOfTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

function danglingReference(root: Schema, { $ref: reference }: Schema): string | undefined {
  if (reference === undefined) return undefined;
  const steps = String(reference).replace(/^#\/?/, '').split('/');
  const target = steps.filter((step) => step !== '').reduce<unknown>((at, step) => (isRecord(at) ? at[step] : undefined), root);
  return String(reference).startsWith('#') && target !== undefined ? undefined : `reference to undefined schema ${String(reference)}`;
}

const named = ['properties', '$defs', 'definitions', 'patternProperties', 'dependentSchemas'];
const listed = ['anyOf', 'oneOf', 'allOf', 'prefixItems'];
const single = ['items', 'additionalProperties', 'not', 'contains', 'if', 'then', 'else', 'propertyNames', 'unevaluatedProperties'];

/** The first problem of a schema or of one inside of it. */
function firstIn(
  schema: Schema,
  at: readonly string[],
  find: (node: Schema, at: readonly string[]) => string | undefined,
): string | undefined {
  const found = find(schema, at);
  if (found !== undefined) return found;
  const inner: (readonly [string, unknown])[] = [
    ...named.flatMap((key) => (isRecord(schema[key]) ? Object.entries(schema[key]) : [])),
    ...listed.flatMap((key) =>
      Array.isArray(schema[key]) ? schema[key].map((one: unknown, index) => [`${key}.${index}`, one] as const) : [],
    ),
    ...single.map((key) => [key, schema[key]] as const),
  ];
  for (const [name, one] of inner) {
    const deeper = isRecord(one) ? firstIn(one, [...at, name], find) : undefined;
    if (deeper !== undefined) return deeper;
  }
  return undefined;
}
