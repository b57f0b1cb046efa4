/**
 * Tools that a message brings: the program that sent it runs them. The model is offered them in that message's turn, and a call of one
 * waits for its sender as a question waits for a person.
 */
import * as v from 'valibot';
import { LIMITS } from './limits.js';
import { bytes, flag, is, like, list, reader, strict, wellFormed } from './schema.js';
import type { JsonObject, JsonValue } from '../../records/message.js';
import { isRecord } from '../../platform/json.js';

/**
 * The model knows a client's tool by this and its name. No tool of an agent begins so (tools/registry.ts), so that none is ever shadowed, and
 * the answer of such a tool is never taken for the answer of a trusted one.
 */
const PREFIX = 'client__';

/** Providers take 64 characters, and the prefix is among them. */
const NAME = /^[a-zA-Z0-9_-]{1,56}$/;

export function toPrefixed(name: string): string {
  return `${PREFIX}${name}`;
}

export function isClientTool(name: string): boolean {
  return name.startsWith(PREFIX);
}

/** As the client calls it. */
export function withoutPrefix(name: string): string {
  return isClientTool(name) ? name.slice(PREFIX.length) : name;
}

const inputSchema = v.pipe(
  is<JsonObject>('a JSON Schema of an object', isRecord),
  v.transform((schema): JsonObject => ({ ...schema, type: schema['type'] ?? 'object' })),
  v.check(({ type }) => type === 'object', 'must have the type "object"'),
);

export const clientToolsSchema = v.pipe(
  list(strict({ name: like(NAME), description: v.optional(wellFormed), inputSchema, mustCall: flag }), LIMITS.tools),
  v.check((tools) => new Set(tools.map(({ name }) => name)).size === tools.length, 'has two tools of one name'),
  bytes(LIMITS.toolsBytes),
);

export const readClientTools = reader(clientToolsSchema, 'message.tools');

/** What the model reads of an answer. */
export function resultText(output: JsonValue): string {
  const text = (typeof output === 'string' ? output : JSON.stringify(output)).toWellFormed();
  return text === '' ? '(The tool answered without a word.)' : text;
}
