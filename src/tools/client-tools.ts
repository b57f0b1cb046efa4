/**
 * Tools of the program that sent a message, as the model is offered them. They never run here: a call waits for their program, which is
 * trusted with no more than what they answer.
 */
import type { ClientTool, JsonObject } from '../records/message.js';
import { readClientTools, toPrefixed } from '../conversation/protocol/message.js';
import { truncate } from '../records/text.js';
import { hasHidden, withoutHidden } from './hidden-text.js';
import { schemaCheck } from '../platform/json-schema/check.js';
import { readSchema, strangeArgument } from './mcp/server-tool.js';
import type { Tool } from './tool.js';

const MAX_WHY = 500;

/** Why a provider would refuse these tools; undefined for nothing. */
export function clientToolsRefusal(tools: readonly ClientTool[]): string | undefined {
  for (const { name, inputSchema } of tools) {
    const schema = readSchema(inputSchema);
    const strange = typeof schema === 'string' ? undefined : strangeArgument(schema);
    const why = strange === undefined ? schema : `its argument ${JSON.stringify(strange.slice(0, 100))} has a name that providers refuse`;
    if (typeof why === 'string') return `the tool "${name}" cannot be used: ${why}`;
  }
  return undefined;
}

/** `json`: as they lie in the store. Undefined: there are none, or the store has lost them. A reference to anything else brings none. */
export function parseClientTools(json: string | undefined): readonly ClientTool[] {
  try {
    const read = readClientTools(JSON.parse(json ?? '[]'));
    return read.ok ? read.value : [];
  } catch {
    return [];
  }
}

/** One that no provider takes is left out. */
export function toTools(tools: readonly ClientTool[]): readonly Tool[] {
  return tools.flatMap((tool) => {
    const inputSchema = readSchema(tool.inputSchema);
    return typeof inputSchema === 'string' || strangeArgument(inputSchema) !== undefined ? [] : [toTool(tool, inputSchema)];
  });
}

/** Names of those of which one must be called before anything else; empty: the model may answer as it likes. */
export function toBeCalled(tools: readonly ClientTool[]): ReadonlySet<string> {
  return new Set(tools.flatMap(({ name, mustCall }) => (mustCall ? [toPrefixed(name)] : [])));
}

function toTool({ name, description = '', inputSchema: given }: ClientTool, inputSchema: JsonObject): Tool {
  return {
    name: toPrefixed(name),
    description: (hasHidden(description) ? withoutHidden(description) : description).trim() || `The tool ${name} of the client.`,
    inputSchema,
    policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
    // As its program has written it: what a model is shown may say less.
    mustFit: true,
    schemaViolation: async (input) => {
      const verdict = await schemaCheck.judge({ schema: given, data: input });
      return verdict.kind === 'violated' ? truncate(`the arguments do not fit the tool's schema: ${verdict.problems}`, MAX_WHY) : undefined;
    },
    workflowAction: (_input, { approvalExpiryMs }) => ({ kind: 'ask-client', expiresMs: approvalExpiryMs }),
    run: () => Promise.resolve({ ok: false, error: 'it runs with the client alone' }),
  };
}
