/**
 * One tool of a server's list, made harmless, or the reason why it is left out: whatever stands here goes into every prompt of the
 * agent, and a schema that a provider refuses would end every turn.
 */
import { withSortedKeys } from '../../platform/json.js';
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { JsonObject, JsonValue } from '../../records/message.js';
import { listIssues } from '../result-text.js';
import { hasHidden, withoutHidden } from '../hidden-text.js';
import type { AgentKey, Pins, ServerPins, ToolPin } from '../../stores/store.js';
import { createSyntaxCheck } from '../../platform/json-schema/check.js';
import { toModern } from '../../platform/json-schema/drafts.js';
import { inlineRefs, mergeTop } from '../../platform/json-schema/normal-form.js';
import { headerFault } from './revision.js';

export interface ServerTool {
  readonly server: string;
  /** As the server calls it. */
  readonly tool: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly readOnly: boolean;
  readonly idempotent: boolean;
}

export interface LeftOut {
  readonly tool: string;
  readonly reason: string;
}

/** Characters; what follows is cut. */
const MAX_DESCRIPTION = 2_048;
const MAX_NAME = 500;
/** Bytes of JSON. */
const MAX_SCHEMA = 32 * 1024;
const DEEPEST_SCHEMA = 24;
/** Characters of all tools of one server that are offered: they stand in every prompt. */
const MAX_LIST = 256 * 1024;
const TOO_MUCH = `the tools of this server have more than ${MAX_LIST} characters together; name those that are wanted on the server's side`;
/** Of an argument, as Anthropic wants it; others take more. */
const PROPERTY_NAME = /^[a-zA-Z0-9_.-]{1,64}$/;
const FOREIGN_LETTERS = /[^a-zA-Z0-9_.-]+/g;

const answerSchema = z.object({
  name: z.string().min(1).max(MAX_NAME),
  description: z.string().optional(),
  inputSchema: z.looseObject({}).nullish(),
  annotations: z.object({ readOnlyHint: z.boolean().optional(), idempotentHint: z.boolean().optional() }).optional(),
});

type SyntaxCheck = ReturnType<typeof createSyntaxCheck>;

/** Of a whole list, in its order: those that are beyond `MAX_LIST` together are not looked at. `hasHeaders`: arguments go into headers. */
export function readServerTools(
  server: string,
  items: readonly unknown[],
  { hasHeaders = false } = {},
): { readonly tools: ServerTool[]; readonly leftOut: LeftOut[] } {
  const check = createSyntaxCheck();
  const tools: ServerTool[] = [];
  const leftOut: LeftOut[] = [];
  let size = 0;
  for (const item of items) {
    const one = size > MAX_LIST ? { tool: nameIn(item), reason: TOO_MUCH } : readServerTool(server, item, { check, hasHeaders });
    if ('reason' in one) {
      leftOut.push(one);
      continue;
    }
    size += promptSize(one);
    if (size > MAX_LIST) leftOut.push({ tool: one.tool, reason: TOO_MUCH });
    else tools.push(one);
  }
  return { tools, leftOut };
}

/** In characters, about: what a tool costs each prompt. */
export function promptSize({ tool, description, inputSchema }: ServerTool): number {
  return tool.length + description.length + JSON.stringify(inputSchema).length;
}

function readServerTool(
  server: string,
  given: unknown,
  { check, hasHeaders }: { readonly check: SyntaxCheck; readonly hasHeaders: boolean },
): ServerTool | LeftOut {
  const checked = answerSchema.safeParse(given);
  if (!checked.success) return { tool: nameIn(given), reason: listIssues(checked.error.issues).join('; ') };
  const { name, description = '', annotations = {} } = checked.data;
  // Of what was given, not of what zod made of it: that has lost a `__proto__`.
  const { inputSchema } = given as { inputSchema?: JsonObject | null };
  const schema = (hasHeaders ? headerFault(inputSchema) : undefined) ?? readSchema(inputSchema ?? {}, check);
  if (typeof schema === 'string') return { tool: name, reason: schema };
  return {
    server,
    tool: name,
    description: capped(description).trim() || `The tool ${withoutHidden(name)} of the MCP server ${server}.`,
    inputSchema: schema,
    readOnly: annotations.readOnlyHint === true,
    idempotent: annotations.idempotentHint === true,
  };
}

/** What a person accepts: everything about a tool that a model is shown, or that decides how it is run. The order of keys does not count. */
export function acceptedText({ description, inputSchema, readOnly, idempotent }: ServerTool): string {
  return JSON.stringify(withSortedKeys({ description, inputSchema, readOnly, idempotent }), null, 2);
}

export function hashOfText(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Without invisible characters; of a long one no more is looked at than may be shown. */
function capped(given: string): string {
  const read = withoutHidden(given.slice(0, 4 * MAX_DESCRIPTION));
  const text = given.length > 4 * MAX_DESCRIPTION ? read.padEnd(MAX_DESCRIPTION + 1) : read;
  const characters = Array.from(text.slice(0, 2 * MAX_DESCRIPTION + 2));
  if (characters.length <= MAX_DESCRIPTION) return text;
  return `${characters.slice(0, MAX_DESCRIPTION).join('')}… [cut here: ${given.length} characters]`;
}

/**
 * The schema in the words of draft 2020-12, an object at its top, or why it cannot be used. Which draft it names does not count: servers
 * name one and write another. What providers do not take of it is theirs to rewrite (models/tool-schema.ts).
 */
export function readSchema(given: JsonObject, check: SyntaxCheck = createSyntaxCheck()): JsonObject | string {
  if (depthExceeds(given, DEEPEST_SCHEMA)) return `its input schema is deeper than ${DEEPEST_SCHEMA} levels`;
  if (JSON.stringify(given).length > 4 * MAX_SCHEMA) return `its input schema has more than ${MAX_SCHEMA} bytes`;
  if (given['type'] !== undefined && ![given['type']].flat().includes('object')) return 'its input schema is not one of an object';
  const schema = { ...(withCappedTexts(toModern(given)) as JsonObject), type: 'object' };
  const text = JSON.stringify(schema);
  if (Buffer.byteLength(text) > MAX_SCHEMA) return `its input schema has more than ${MAX_SCHEMA} bytes`;
  if (hasHidden(text)) return 'its input schema has characters that cannot be seen';
  const wrong = check(schema);
  if (wrong !== undefined) return `its input schema is no JSON Schema: ${wrong.slice(0, 300)}`;
  const reserved = argumentNames(schema).find((name) => name === '__proto__');
  return reserved === undefined ? schema : `its argument ${reserved} has a name that providers refuse`;
}

function argumentNames(schema: JsonObject): readonly string[] {
  return Object.keys(readTop(schema)['properties'] as JsonObject);
}

function readTop(schema: JsonObject): JsonObject {
  return mergeTop(inlineRefs(schema, { recursion: 'kept' }));
}

/** The first argument whose name a provider refuses; `fromWire` of `withSafeNames` is for those that can be renamed. */
export function strangeArgument(schema: JsonObject): string | undefined {
  return argumentNames(schema).find((name) => !PROPERTY_NAME.test(name));
}

/**
 * Arguments by names that every provider takes, and the way back to those that the server knows. A schema whose names are all taken stays
 * as it is.
 */
export function withSafeNames(schema: JsonObject): { readonly schema: JsonObject; readonly fromWire: (input: JsonObject) => JsonObject } {
  if (strangeArgument(schema) === undefined) return { schema, fromWire: (input) => input };
  const top = readTop(schema);
  const names = argumentNames(schema);
  const taken = new Set(names.filter((name) => PROPERTY_NAME.test(name)));
  const safe = new Map<string, string>();
  for (const name of names) {
    const base = name.replace(FOREIGN_LETTERS, '_').slice(0, MAX_LENGTH) || '_';
    let renamed = PROPERTY_NAME.test(name) ? name : base;
    for (let n = 2; renamed !== name && taken.has(renamed); n++) renamed = `${base.slice(0, MAX_LENGTH - 4)}_${n}`;
    taken.add(renamed);
    safe.set(name, renamed);
  }
  const back = new Map([...safe].map(([name, renamed]) => [renamed, name]));
  const rename = (values: JsonObject, by: ReadonlyMap<string, string>): JsonObject =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [by.get(name) ?? name, value]));
  const { properties, required, dependentRequired: _, dependentSchemas: _schemas, ...rest } = top;
  return {
    schema: {
      ...rest,
      properties: rename(properties as JsonObject, safe),
      ...(Array.isArray(required) && { required: (required as string[]).map((name) => safe.get(name) ?? name) }),
    },
    fromWire: (input) => rename(input, back),
  };
}

function depthExceeds(value: JsonValue | undefined, left: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return left === 0 || Object.values(value).some((inner) => depthExceeds(inner, left - 1));
}

/** Words of a schema that only explain. A property that is called `description` is an object, and no words. */
function withCappedTexts(value: JsonValue | undefined): JsonValue | undefined {
  if (Array.isArray(value)) return value.map((inner) => withCappedTexts(inner) ?? null);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      typeof inner === 'string' && (key === 'description' || key === 'title') ? capped(inner) : withCappedTexts(inner),
    ]),
  ) as JsonObject;
}

function nameIn(given: unknown): string {
  const name: unknown = typeof given === 'object' && given !== null && 'name' in given ? given.name : undefined;
  return typeof name === 'string' && name !== '' ? withoutHidden(name.slice(0, 100)) : '(without a name)';
}

// `mcp__<server>__<tool>`, the name under which a model knows a server's tool.
//
// - Two tools never share a name by accident: the server's part holds no `__` and does not end in `_`, so the first `__` after it is where
//   it ends. `acme_` + `status` and `acme` + `_status` are two names.
// - A name that does not fit providers' pattern (`^[a-zA-Z0-9_-]{1,64}$`) is shortened to one that does, and ends in a hash of the whole.
// - If two tools come to one name all the same, it belongs to neither.

const PREFIX = 'mcp__';
const MAX_LENGTH = 64;
const MAX_SERVER = 24;
const DIGEST = 8;

export function toolName(server: string, tool: string): string {
  const begin = `${serverPrefix(server)}`;
  const room = MAX_LENGTH - begin.length;
  const isPlain = /^[a-zA-Z0-9_-]+$/.test(tool) && tool.length <= room;
  return `${begin}${isPlain ? tool : `${toSlug(tool, room - DIGEST - 1)}_${shortHash(tool)}`}`;
}

/** What the names of all tools of a server begin with. */
export function serverPrefix(server: string): string {
  const isPlain = /^[a-zA-Z0-9_-]+$/.test(server) && server.length <= MAX_SERVER && !server.includes('__') && !server.endsWith('_');
  return `${PREFIX}${isPlain ? server : `${toSlug(server, MAX_SERVER - DIGEST - 1)}-${shortHash(server)}`}__`;
}

export function isServerToolName(name: string): boolean {
  return name.startsWith(PREFIX);
}

/** Without `_`, so that no two of them stand beside each other. */
function toSlug(text: string, room: number): string {
  const slug = text
    .slice(0, 4 * room)
    .replace(/[^a-zA-Z0-9]+/g, '-')
    .replace(/^-/, '')
    .slice(0, room)
    .replace(/-$/, '');
  return slug || 'x';
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, DIGEST);
}

/** Which name leads to which tool. A Map, since an object would answer to `constructor`. */
interface Named {
  readonly server: string;
  readonly tool: string;
}

interface ToolTable<T extends Named> {
  readonly byName: ReadonlyMap<string, T>;
  readonly refused: readonly (Named & { readonly reason: string })[];
}

/** A built-in tool keeps its name, and a name that two tools claim leads to neither. */
export function toolTable<T extends Named>(tools: readonly T[], taken: ReadonlySet<string>): ToolTable<T> {
  const sharing = new Map<string, T[]>();
  for (const tool of tools) {
    const name = toolName(tool.server, tool.tool);
    sharing.set(name, [...(sharing.get(name) ?? []), tool]);
  }
  const byName = new Map<string, T>();
  const refused: (Named & { reason: string })[] = [];
  for (const [name, [first, ...others]] of sharing) {
    if (first === undefined) continue;
    const reason = taken.has(name)
      ? `a built-in tool is named ${name}`
      : others.length > 0
        ? `${others.length + 1} tools would be named ${name}, and a call could mean any of them`
        : undefined;
    if (reason === undefined) byName.set(name, first);
    else refused.push(...[first, ...others].map(({ server, tool }) => ({ server, tool, reason })));
  }
  return { byName, refused };
}

// What has been accepted of each server's tools (S34): one that is new since, or whose words have changed, is not offered and does not run.

const accepted = z.object({
  description: z.string(),
  inputSchema: z.record(z.string(), z.unknown()),
  readOnly: z.boolean(),
  idempotent: z.boolean(),
});

export function toPin(tool: ServerTool): ToolPin {
  const text = acceptedText(tool);
  return { server: tool.server, tool: tool.tool, hash: hashOfText(text), text };
}

/** Undefined for a pin that was damaged: such a tool waits for a person. */
export function toServerTool({ server, tool, hash, text }: ToolPin): ServerTool | undefined {
  if (hashOfText(text) !== hash) return undefined;
  try {
    const checked = accepted.safeParse(JSON.parse(text));
    return checked.success ? { server, tool, ...checked.data, inputSchema: checked.data.inputSchema as JsonObject } : undefined;
  } catch {
    return undefined;
  }
}

/** `new`: its server was not accepted yet, and is by the first worker that sees it. */
export type ToolState = 'accepted' | 'added' | 'changed' | 'new';

/** A tool as its server describes it `now`, beside what was accepted of it. */
export interface JudgedTool {
  readonly state: ToolState;
  readonly now: ToolPin;
  readonly pin?: ToolPin;
  /** What the pin says, where it can be read. */
  readonly accepted?: ServerTool;
}

export function createToolJudge({ accepted: pins, servers }: ServerPins): (tool: ServerTool) => JudgedTool {
  const known = new Map(pins.map((pin) => [toKey(pin), pin]));
  return (tool) => {
    const now = toPin(tool);
    const pin = known.get(toKey(tool));
    if (pin === undefined) return { state: servers.includes(tool.server) ? 'added' : 'new', now };
    const read = toServerTool(pin);
    return { state: read !== undefined && pin.hash === now.hash ? 'accepted' : 'changed', now, pin, ...(read && { accepted: read }) };
  };
}

/** What was accepted of an agent's servers. One that is seen for the first time is accepted as it is. */
export async function readPins(store: Pins, key: AgentKey, live: ReadonlyMap<string, readonly ServerTool[]>): Promise<ServerPins> {
  const known = await store.list(key);
  const first = [...live].filter(([server]) => !known.servers.includes(server));
  if (first.length === 0) return known;
  for (const [server, tools] of first) await store.acceptServer(key, server, tools.map(toPin));
  // Another worker may have been first, with other tools.
  return await store.list(key);
}

/** Writes down what waits of a server, where that is not known yet: the page, the doctor and `perdura mcp accept` show it to people. */
export async function noteWaiting(
  store: Pins,
  key: AgentKey,
  { waiting: before }: ServerPins,
  waiting: ReadonlyMap<string, readonly ToolPin[]>,
): Promise<void> {
  const listed = (pins: readonly ToolPin[]): string => JSON.stringify(pins.map(({ tool, hash }) => [tool, hash]).sort());
  for (const [server, pins] of waiting) {
    if (listed(pins) !== listed(before.filter((pin) => pin.server === server))) await store.wait(key, server, pins);
  }
}

function toKey({ server, tool }: Pick<ToolPin, 'server' | 'tool'>): string {
  return JSON.stringify([server, tool]);
}
