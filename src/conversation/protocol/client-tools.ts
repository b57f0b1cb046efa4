/**
 * Tools that a message brings: the program that sent it runs them. The model is offered them in that message's turn, and a call of one
 * waits for its sender as a question waits for a person. Checked as messages are (input.ts); nothing here throws.
 */
import { LIMITS } from './limits.js';
import { nameOf, readFields, refuse, type Checked } from './fields.js';
import type { ClientTool, JsonObject, JsonValue } from '../../records/message.js';
import { utf8Length } from '../../records/text.js';
import { isRecord } from '../../platform/json.js';

/**
 * The model knows a client's tool by this and its name. No tool of an agent begins so (tools/registry.ts), so that none is ever shadowed, and
 * what such a tool answers is never taken for what a trusted one said.
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

export function readClientTools(given: unknown): Checked<readonly ClientTool[]> {
  if (!Array.isArray(given)) return refuse(`message.tools must be a list, got ${nameOf(given)}`);
  if (given.length > LIMITS.tools) return refuse(`message.tools has ${given.length} tools, the limit is ${LIMITS.tools}`);
  const tools: ClientTool[] = [];
  for (const [i, one] of (given as unknown[]).entries()) {
    const where = `message.tools[${i}]`;
    const fields = readFields(one, where, ['name', 'description', 'inputSchema', 'mustCall']);
    if (!fields.ok) return fields;
    const { name, description, inputSchema, mustCall } = fields.value;
    if (typeof name !== 'string' || !NAME.test(name)) return refuse(`${where}.name must match ${NAME.source}`);
    if (tools.some((other) => other.name === name)) return refuse(`${where}.name is that of another tool: "${name}"`);
    if (description !== undefined && typeof description !== 'string') return refuse(`${where}.description must be a text`);
    if (mustCall !== undefined && mustCall !== true) return refuse(`${where}.mustCall must be true, or left out`);
    if (!isRecord(inputSchema)) return refuse(`${where}.inputSchema must be a JSON Schema of an object`);
    const { type = 'object' } = inputSchema as { readonly type?: unknown };
    if (type !== 'object') return refuse(`${where}.inputSchema.type must be "object"`);
    tools.push({
      name,
      ...(description !== undefined && { description: description.toWellFormed() }),
      inputSchema: { ...(inputSchema as JsonObject), type: 'object' },
      ...(mustCall === true && { mustCall }),
    });
  }
  const bytes = utf8Length(JSON.stringify(tools));
  return bytes > LIMITS.toolsBytes
    ? refuse(`message.tools has ${bytes} bytes of JSON, the limit is ${LIMITS.toolsBytes}`)
    : { ok: true, value: tools };
}

/** What the model reads of an answer. */
export function resultText(output: JsonValue): string {
  const text = (typeof output === 'string' ? output : JSON.stringify(output)).toWellFormed();
  return text === '' ? '(The tool answered without a word.)' : text;
}
