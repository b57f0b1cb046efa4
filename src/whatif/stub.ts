/** What stands for the result of a call that no recording answers: by the project's function, or by the schema of the tool's results. */
import { decodeStep } from '../platform/json-schema/normal-form.js';
import { isRecord } from '../platform/json.js';
import type { JsonObject, JsonValue } from '../records/message.js';
import type { Tool } from '../tools/tool.js';

/** A call of a tool that no recording answers, as a stub gets it. */
export interface UnknownCall {
  readonly conversation: string;
  readonly turn: string;
  readonly name: string;
  readonly input: JsonValue;
}

/** Answers in place of a tool. Undefined: it knows nothing of this one. */
export type Stub = (call: UnknownCall) => string | undefined | Promise<string | undefined>;

/** What a module of stubs exports as default. Throws a sentence for what is none. */
export function toStub(exported: unknown, file: string): Stub {
  if (typeof exported === 'function') {
    return async (call) => toText(await (exported as (call: unknown) => unknown)(call));
  }
  if (typeof exported === 'object' && exported !== null) {
    const byName = new Map(Object.entries(exported));
    return async (call) => {
      const found: unknown = byName.get(call.name);
      return toText(typeof found === 'function' ? await (found as (input: JsonValue, call: unknown) => unknown)(call.input, call) : found);
    };
  }
  throw new Error(
    `${file} is no stubs: export as default a function of a call ({ name, input, turn, conversation }), or an object from the name of a tool to a result or a function of its arguments`,
  );
}

function toText(result: unknown): string | undefined {
  return result === undefined || typeof result === 'string' ? result : JSON.stringify(result);
}

/** Where the project says nothing. A tool of an MCP server, and one without `output`, says nothing of its results either. */
export function standIn(name: string, { outputSchema }: Pick<Tool, 'outputSchema'> = {}): string {
  if (outputSchema === undefined)
    return `(${name} was not run: no recording has this call, and nothing says what ${name} answers. This stands for its result.)`;
  const value = sample(outputSchema, outputSchema, MAX_DEPTH);
  return typeof value === 'string' ? value : JSON.stringify(value);
}

const MAX_DEPTH = 12;
const MAX_ITEMS = 20;

/** The least that fits, where that is simple: what is optional is left out. Of a schema that leads to itself no more than `left` levels. */
function sample(schema: JsonValue | undefined, root: JsonObject, left: number): JsonValue {
  if (!isRecord(schema) || left === 0) return null;
  const { $ref, const: only, enum: few, default: usual, examples, anyOf, oneOf, allOf } = schema as JsonObject;
  if (typeof $ref === 'string') return sample(follow($ref, root), root, left - 1);
  if (only !== undefined) return only;
  for (const list of [usual === undefined ? [] : [usual], examples, few]) if (Array.isArray(list) && list[0] !== undefined) return list[0];
  for (const list of [anyOf, oneOf]) if (Array.isArray(list)) return sample(list[0], root, left - 1);
  if (Array.isArray(allOf)) {
    const parts = allOf.map((one) => sample(one, root, left - 1));
    return parts.every(isRecord) ? Object.fromEntries(parts.flatMap((part) => Object.entries(part as JsonObject))) : (parts[0] ?? null);
  }
  return sampleOfType(schema as JsonObject, (inner) => sample(inner, root, left - 1));
}

function sampleOfType(schema: JsonObject, inner: (schema: JsonValue | undefined) => JsonValue): JsonValue {
  const { type, properties, required, items, prefixItems, minItems, minLength, minimum, exclusiveMinimum, maximum } = schema;
  switch (Array.isArray(type) ? type[0] : (type ?? (properties === undefined ? undefined : 'object'))) {
    case 'object': {
      const all = isRecord(properties) ? (properties as JsonObject) : {};
      const names = Array.isArray(required) ? required.filter((one) => typeof one === 'string') : [];
      return Object.fromEntries(names.map((name) => [name, inner(all[name])]));
    }
    case 'array': {
      const first = Array.isArray(prefixItems) ? prefixItems.map(inner) : [];
      const more = Math.min(MAX_ITEMS, typeof minItems === 'number' ? minItems : 0) - first.length;
      return [...first, ...Array.from({ length: Math.max(0, more) }, () => inner(items))];
    }
    case 'string':
      return 'text'.padEnd(Math.min(typeof minLength === 'number' ? minLength : 0, 1_000), '.');
    case 'integer':
    case 'number':
      if (typeof minimum === 'number' && minimum > 0) return minimum;
      if (typeof exclusiveMinimum === 'number' && exclusiveMinimum >= 0) return exclusiveMinimum + 1;
      return typeof maximum === 'number' && maximum < 0 ? maximum : 0;
    case 'boolean':
      return false;
    default:
      return null;
  }
}

/** `#/$defs/NAME`, and other places of the same schema. */
function follow(ref: string, root: JsonObject): JsonValue | undefined {
  if (!ref.startsWith('#')) return undefined;
  const steps = ref.split('/').slice(1);
  return steps.reduce<JsonValue | undefined>((at, step) => {
    const name = decodeStep(step);
    return isRecord(at) && Object.hasOwn(at, name) ? (at as JsonObject)[name] : undefined;
  }, root);
}
