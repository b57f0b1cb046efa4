/**
 * A schema in a plainer form that means the same, or a little less where no plainer words mean the same: what fits the schema fits the
 * form. Pure, and the same form for the same schema.
 *
 * - `inlineRefs`: references are replaced by what they refer to; one that leads back to itself stays as a reference, or is cut.
 * - `mergeTop`: the top is one object, without `oneOf`, `anyOf`, `allOf` and conditions; it has the properties of all branches.
 */
import type { JsonObject, JsonValue } from '../../records/message.js';
import { isRecord } from '../json.js';
import { mapInner } from './drafts.js';

/** Schemas of a form up to which references are inlined, each counted whenever it is: those that double would make it endless. */
const MAX_NODES = 2_000;
/** Words of a schema that refer, or name what is referred to: after `inlineRefs` nothing needs them. */
const REFERRING: ReadonlySet<string> = new Set([
  ...['$ref', '$dynamicRef', '$recursiveRef', '$defs', 'definitions', '$id', 'id', '$anchor', '$dynamicAnchor', '$recursiveAnchor'],
  ...['$comment', '$vocabulary'],
]);
/** They explain, and decide nothing. */
const EXPLAINING: ReadonlySet<string> = new Set([
  ...['title', 'description', 'default', 'examples', 'deprecated', 'readOnly', 'writeOnly'],
]);

/**
 * `recursion`: what becomes of a reference that leads back, and of all beyond `maxNodes`. Kept, it refers to an entry of the form's
 * `$defs`; cut, it is a value of that kind, with a word that it goes on. One that leads nowhere says nothing.
 */
export function inlineRefs(
  root: JsonObject,
  { recursion, maxNodes = MAX_NODES }: { readonly recursion: 'kept' | 'cut'; readonly maxNodes?: number },
): JsonObject {
  const anchors = findAnchors(root);
  const names = new Map<JsonValue, string>();
  const defs = new Map<string, JsonValue>();
  let nodes = 0;

  const walk = (node: JsonValue, open: readonly JsonValue[]): JsonValue => {
    nodes += 1;
    if (!isRecord(node)) return node;
    const schema = node as JsonObject;
    const reference = [schema['$ref'], schema['$dynamicRef'], schema['$recursiveRef']].find((one) => typeof one === 'string');
    const rest = Object.fromEntries(Object.entries(schema).filter(([key]) => !REFERRING.has(key)));
    const beside = mapInner(rest, (inner) => walk(inner, open));
    const target = reference === undefined ? undefined : findTarget(root, anchors, reference);
    if (target === undefined) return beside;
    const leadsBack = open.includes(target) || nodes > maxNodes;
    if (leadsBack)
      return intersect(recursion === 'kept' ? { $ref: `#/$defs/${nameReference(target, reference ?? '')}` } : cutAt(target), beside);
    const inlined = walk(target, [...open, target]);
    return isRecord(inlined) ? intersect(inlined as JsonObject, beside) : inlined === false ? false : beside;
  };

  const nameReference = (target: JsonValue, reference: string): string => {
    const known = names.get(target);
    if (known !== undefined) return known;
    const base = (reference.split('/').at(-1) ?? '').replace(/[^a-zA-Z0-9_]/g, '') || 'root';
    const taken = new Set(names.values());
    let name = base;
    for (let n = 2; taken.has(name); n++) name = `${base}_${n}`;
    names.set(target, name);
    const body = walk(target, [target]);
    // One that is nothing but itself says nothing.
    defs.set(name, isRecord(body) && (body as JsonObject)['$ref'] === `#/$defs/${name}` ? {} : body);
    return name;
  };

  const form = walk(root, [root]) as JsonObject;
  return defs.size === 0 ? form : { ...form, $defs: Object.fromEntries(defs) };
}

function cutAt(target: JsonValue): JsonObject {
  const { type, title } = isRecord(target) ? (target as JsonObject) : {};
  const name = typeof title === 'string' ? ` (${title})` : '';
  return { ...(typeof type === 'string' && { type }), description: `Nested further${name}, as the one that it is in.` };
}

/** Schemas by the names that they give themselves. */
function findAnchors(root: JsonObject): ReadonlyMap<string, JsonValue> {
  const found = new Map<string, JsonValue>();
  const look = (node: JsonValue): JsonValue => {
    if (!isRecord(node)) return node;
    const schema = node as JsonObject;
    for (const key of ['$anchor', '$dynamicAnchor']) if (typeof schema[key] === 'string') found.set(`#${schema[key]}`, schema);
    for (const key of ['$id', 'id']) if (typeof schema[key] === 'string') found.set(schema[key].replace(/#$/, ''), schema);
    mapInner(schema, look);
    return schema;
  };
  look(root);
  return found;
}

function findTarget(root: JsonObject, anchors: ReadonlyMap<string, JsonValue>, reference: string): JsonValue | undefined {
  if (reference === '#' || reference === '') return root;
  const named = anchors.get(reference) ?? anchors.get(reference.replace(/#$/, ''));
  if (named !== undefined || !reference.startsWith('#/')) return named;
  const steps = reference.slice(2).split('/').map(decodeStep);
  let at: JsonValue = root;
  for (const [index, step] of steps.entries()) {
    if (typeof at !== 'object' || at === null) return undefined;
    const place: JsonObject = at as JsonObject;
    // `#/items/0` of a schema that had its tuple in `items` before.
    const key = step === 'items' && /^\d+$/.test(steps[index + 1] ?? '') && Array.isArray(place['prefixItems']) ? 'prefixItems' : step;
    if (!Object.hasOwn(place, key)) return undefined;
    at = place[key] as JsonValue;
  }
  return isRecord(at) || typeof at === 'boolean' ? at : undefined;
}

/** A name in a reference, `#/$defs/NAME`. */
export function decodeStep(step: string): string {
  const plain = step.replaceAll('~1', '/').replaceAll('~0', '~');
  try {
    return decodeURIComponent(plain);
  } catch {
    return plain;
  }
}

// Two schemas as one. What fits both fits it.

const LARGEST: ReadonlySet<string> = new Set(['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties', 'minContains']);
const SMALLEST: ReadonlySet<string> = new Set(['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties']);
const SCHEMAS: ReadonlySet<string> = new Set(['additionalProperties', 'unevaluatedProperties', 'items', 'unevaluatedItems']);
/** Words that only mean something together. */
const TOGETHER: readonly (readonly string[])[] = [
  ['if', 'then', 'else'],
  ['contains', 'minContains', 'maxContains'],
];

/** Where two words have no common one, that of `b` goes into `allOf`. What explains is taken from `b`, where it has it. */
export function intersect(a: JsonObject, b: JsonObject): JsonObject {
  const joined: JsonObject = { ...a };
  const apart: JsonObject = {};
  const whole = TOGETHER.filter((words) => words.some((word) => word in a) && words.some((word) => word in b)).flat();
  for (const [key, value] of Object.entries(b)) {
    const other = a[key];
    const both = other === undefined || isSame(other, value) ? value : joinWord(key, other, value);
    if (both === undefined || whole.includes(key)) set(apart, key, value);
    else set(joined, key, both);
  }
  if (Object.keys(apart).length === 0) return joined;
  return { ...joined, allOf: [...listIn(joined, 'allOf'), apart] };
}

function joinWord(key: string, a: JsonValue, b: JsonValue): JsonValue | undefined {
  if (EXPLAINING.has(key)) return b;
  if (SCHEMAS.has(key)) return intersectValues(a, b);
  if (typeof a === 'number' && typeof b === 'number') {
    return LARGEST.has(key) ? Math.max(a, b) : SMALLEST.has(key) ? Math.min(a, b) : undefined;
  }
  switch (key) {
    case 'properties':
    case 'patternProperties':
      return isRecord(a) && isRecord(b) ? joinProperties(a as JsonObject, b as JsonObject) : undefined;
    case 'required':
      return [...new Set([...asList(a), ...asList(b)])];
    case 'uniqueItems':
      return a === true || b === true;
    case 'allOf':
      return [...asList(a), ...asList(b)];
    case 'type':
      return joinTypes(a, b);
    case 'enum': {
      const others = new Set(asList(b).map((one) => JSON.stringify(one)));
      const common = asList(a).filter((one) => others.has(JSON.stringify(one)));
      return common.length > 0 ? common : undefined;
    }
    default:
      return undefined;
  }
}

function joinProperties(a: JsonObject, b: JsonObject): JsonObject {
  const joined: JsonObject = { ...a };
  for (const [name, value] of Object.entries(b)) {
    set(joined, name, Object.hasOwn(a, name) ? intersectValues(a[name] as JsonValue, value) : value);
  }
  return joined;
}

function joinTypes(a: JsonValue, b: JsonValue): JsonValue | undefined {
  const [some, others] = [[a].flat() as JsonValue[], [b].flat() as JsonValue[]];
  const isIn = (type: JsonValue, types: readonly JsonValue[]): boolean =>
    types.includes(type) || (type === 'integer' && types.includes('number'));
  const common = [...new Set([...some.filter((type) => isIn(type, others)), ...others.filter((type) => isIn(type, some))])];
  return common.length === 0 ? undefined : common.length === 1 ? common[0] : common;
}

function intersectValues(a: JsonValue, b: JsonValue): JsonValue {
  if (a === false || b === false) return false;
  if (!isRecord(a)) return b;
  return isRecord(b) ? (isSame(a, b) ? a : intersect(a as JsonObject, b as JsonObject)) : a;
}

/** `allOf` as one schema, as far as there is one. */
export function mergeConjunction({ allOf, ...schema }: JsonObject): JsonObject {
  const members = asList(allOf ?? []).filter((one): one is JsonObject => isRecord(one));
  return members.reduce<JsonObject>((merged, member) => intersect(merged, mergeConjunction(member)), schema);
}

// The top of a tool's arguments.

const BRANCHING: readonly string[] = [
  ...['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentSchemas', 'enum', 'const', '$ref', 'unevaluatedProperties'],
];

interface Flat {
  readonly properties: JsonObject;
  readonly required: readonly JsonValue[];
  /** It takes no other properties. */
  readonly isClosed: boolean;
}

const OPEN: Flat = { properties: {}, required: [], isClosed: false };

/** Whether the form of the top may say less than the schema. */
export function hasBranches(schema: JsonObject): boolean {
  return BRANCHING.some((key) => key in schema);
}

/**
 * One object with the properties of all branches: required is what every branch requires. Where branches differ in what they say of a
 * property, any of it fits. What the branches require beyond that is in its description, for the model to read.
 */
export function mergeTop(schema: JsonObject): JsonObject {
  const named = isRecord(schema['properties']) ? schema['properties'] : {};
  if (!hasBranches(schema)) return { ...schema, type: 'object', properties: named as JsonObject };
  const { properties, required, isClosed } = flatten(schema) ?? OPEN;
  const rest = Object.fromEntries(Object.entries(schema).filter(([key]) => !BRANCHING.includes(key)));
  const description = [schema['description'], describeBranches(schema, required)].filter((words) => typeof words === 'string');
  return {
    ...rest,
    ...(description.length > 0 && { description: description.join('\n') }),
    type: 'object',
    properties,
    ...((required.length > 0 || 'required' in rest) && { required: [...required] }),
    ...(isClosed && { additionalProperties: false }),
  };
}

/** Undefined: no object fits it. */
function flatten(value: JsonValue): Flat | undefined {
  if (value === false) return undefined;
  if (!isRecord(value)) return OPEN;
  const schema = value as JsonObject;
  if (schema['type'] !== undefined && ![schema['type']].flat().includes('object')) return undefined;
  const properties = isRecord(schema['properties']) ? (schema['properties'] as JsonObject) : {};
  const isClosed = schema['additionalProperties'] === false || schema['unevaluatedProperties'] === false;
  let flat: Flat = { properties, required: asList(schema['required'] ?? []), isClosed };
  for (const member of listIn(schema, 'allOf')) flat = both(flat, flatten(member) ?? OPEN);
  for (const key of ['anyOf', 'oneOf']) {
    if (Array.isArray(schema[key])) flat = both(flat, either(flat, listIn(schema, key).map(flatten)));
  }
  const conditional = [
    ...('if' in schema ? [[schema['then'] ?? true, schema['else'] ?? true]] : []),
    ...Object.values(isRecord(schema['dependentSchemas']) ? (schema['dependentSchemas'] as JsonObject) : {}).map((inner) => [inner, true]),
  ];
  for (const branches of conditional) flat = both(flat, either(flat, branches.map(flatten)));
  return flat;
}

function both(a: Flat, b: Flat): Flat {
  return {
    properties: joinProperties(a.properties, b.properties),
    required: [...new Set([...a.required, ...b.required])],
    isClosed: a.isClosed || b.isClosed,
  };
}

function either({ properties: common }: Flat, all: readonly (Flat | undefined)[]): Flat {
  const branches = all.filter((branch) => branch !== undefined);
  const [first] = branches;
  if (!first) return OPEN;
  const properties: JsonObject = {};
  for (const name of new Set(branches.flatMap((branch) => Object.keys(branch.properties)))) {
    const saying = branches.flatMap((branch) => (Object.hasOwn(branch.properties, name) ? [branch.properties[name] as JsonValue] : []));
    // A branch that says nothing of it leaves it as it is.
    if (!Object.hasOwn(common, name) || saying.length === branches.length) set(properties, name, toChoice(saying));
  }
  return {
    properties,
    required: first.required.filter((name) => branches.every(({ required }) => required.includes(name))),
    isClosed: branches.every(({ isClosed }) => isClosed),
  };
}

function toChoice(schemas: readonly JsonValue[]): JsonValue {
  const different = distinct(schemas).filter((one) => one !== false);
  const [first = false] = different;
  if (different.length < 2) return first;
  if (different.some((one) => !isRecord(one))) return {};
  const lists = different.map((one) => listedValues(one as JsonObject));
  const listed = lists.every((list) => list !== undefined) ? lists.flat() : undefined;
  const types = new Set((different as JsonObject[]).map(({ type }) => JSON.stringify(type)));
  if (!listed) return { anyOf: different };
  const type = types.size === 1 ? (first as JsonObject)['type'] : undefined;
  return { ...(type !== undefined && { type }), enum: distinct(listed) };
}

function distinct(values: readonly JsonValue[]): readonly JsonValue[] {
  return [...new Map(values.map((one) => [JSON.stringify(one), one])).values()];
}

/** Of a schema that lists its values and says no more. */
function listedValues(schema: JsonObject): readonly JsonValue[] | undefined {
  if (Object.keys(schema).some((key) => key !== 'const' && key !== 'enum' && key !== 'type' && !EXPLAINING.has(key))) return undefined;
  if (schema['const'] !== undefined) return [schema['const']];
  return Array.isArray(schema['enum']) ? (schema['enum'] as JsonValue[]) : undefined;
}

const MAX_BRANCHES = 8;

function describeBranches(schema: JsonObject, always: readonly JsonValue[]): string | undefined {
  const key = ['oneOf', 'anyOf'].find((one) => Array.isArray(schema[one]));
  if (key === undefined) return undefined;
  const sets = listIn(schema, key).map((branch) => (flatten(branch)?.required ?? []).filter((name) => !always.includes(name)));
  const named = [...new Set(sets.map((names) => names.join(', ')))].filter((names) => names !== '');
  if (named.length < 2) return undefined;
  const shown = named.slice(0, MAX_BRANCHES).map((names) => `(${names})`);
  return `Give ${key === 'oneOf' ? 'exactly one' : 'at least one'} of these: ${shown.join(', ')}${named.length > shown.length ? ', …' : ''}.`;
}

function listIn(schema: JsonObject, key: string): readonly JsonValue[] {
  return asList(schema[key] ?? []);
}

function asList(value: JsonValue): readonly JsonValue[] {
  return Array.isArray(value) ? (value as JsonValue[]) : [];
}

/** As an entry whatever its name: `__proto__` is one like any other. */
function set(object: JsonObject, name: string, value: JsonValue): void {
  Object.defineProperty(object, name, { value, enumerable: true, writable: true, configurable: true });
}

function isSame(a: JsonValue, b: JsonValue): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [some, others] = [a as JsonObject, b as JsonObject];
  const names = Object.keys(some);
  return (
    names.length === Object.keys(others).length &&
    names.every((name) => Object.hasOwn(others, name) && isSame(some[name] as JsonValue, others[name] as JsonValue))
  );
}
