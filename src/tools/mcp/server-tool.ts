/**
 * One tool of a server's list, made harmless, or the reason why it is left out: whatever stands here goes into every prompt of the
 * agent, and a schema that a provider refuses would end every turn.
 */
import { createHash } from 'node:crypto';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { z } from 'zod';
import type { JsonObject, JsonValue } from '../../records/message.js';
import { listIssues } from '../result-text.js';
import { hasHidden, withoutHidden } from '../hidden-text.js';

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
/** As Anthropic wants them; others take more. */
const PROPERTY_NAME = /^[a-zA-Z0-9_.-]{1,64}$/;

const answerSchema = z.object({
  name: z.string().min(1).max(MAX_NAME),
  description: z.string().optional(),
  inputSchema: z.looseObject({ type: z.literal('object').optional() }).optional(),
  annotations: z.object({ readOnlyHint: z.boolean().optional(), idempotentHint: z.boolean().optional() }).optional(),
});

/** Made once for a whole list: it takes longer to make than to use. Answers what is wrong with a schema, undefined for nothing. */
type SchemaCheck = (schema: JsonObject) => string | undefined;

function createSchemaCheck(): SchemaCheck {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false });
  return (schema) => (ajv.validateSchema(schema) === true ? undefined : ajv.errorsText());
}

/** Of a whole list, in its order: those that are beyond `MAX_LIST` together are not looked at. */
export function readServerTools(server: string, items: readonly unknown[]): { readonly tools: ServerTool[]; readonly leftOut: LeftOut[] } {
  const check = createSchemaCheck();
  const tools: ServerTool[] = [];
  const leftOut: LeftOut[] = [];
  let size = 0;
  for (const item of items) {
    const one = size > MAX_LIST ? { tool: nameIn(item), reason: TOO_MUCH } : readServerTool(server, item, check);
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

function readServerTool(server: string, given: unknown, check: SchemaCheck): ServerTool | LeftOut {
  const checked = answerSchema.safeParse(given);
  if (!checked.success) return { tool: nameIn(given), reason: listIssues(checked.error.issues).join('; ') };
  const { name, description = '', annotations = {} } = checked.data;
  // Of what was given, not of what zod made of it: that has lost a `__proto__`.
  const schema = readSchema((given as { inputSchema?: JsonObject }).inputSchema ?? {}, check);
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
  return JSON.stringify(sorted({ description, inputSchema, readOnly, idempotent }), null, 2);
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

/** The schema as providers take it, or why it cannot be used. */
export function readSchema(given: JsonObject, check: SchemaCheck = createSchemaCheck()): JsonObject | string {
  if (depthExceeds(given, DEEPEST_SCHEMA)) return `its input schema is deeper than ${DEEPEST_SCHEMA} levels`;
  if (JSON.stringify(given).length > 4 * MAX_SCHEMA) return `its input schema has more than ${MAX_SCHEMA} bytes`;
  const { $schema: _, anyOf: _any, oneOf: _one, allOf: _all, ...rest } = given;
  const schema = { ...(withCappedTexts(rest) as JsonObject), type: 'object' };
  const text = JSON.stringify(schema);
  if (Buffer.byteLength(text) > MAX_SCHEMA) return `its input schema has more than ${MAX_SCHEMA} bytes`;
  if (hasHidden(text)) return 'its input schema has characters that cannot be seen';
  const properties = 'properties' in schema && typeof schema.properties === 'object' ? Object.keys(schema.properties ?? {}) : [];
  const strange = properties.find((name) => !PROPERTY_NAME.test(name) || name === '__proto__');
  if (strange !== undefined) return `its argument ${JSON.stringify(strange.slice(0, 100))} has a name that providers refuse`;
  const wrong = check(schema);
  return wrong === undefined ? schema : `its input schema is no JSON Schema: ${wrong.slice(0, 300)}`;
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

function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value as Record<string, JsonValue>).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}

function nameIn(given: unknown): string {
  const name: unknown = typeof given === 'object' && given !== null && 'name' in given ? given.name : undefined;
  return typeof name === 'string' && name !== '' ? withoutHidden(name.slice(0, 100)) : '(without a name)';
}
