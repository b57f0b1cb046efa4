/**
 * Tools of the program that sent a message, as the model is offered them. They never run here: a call waits for their program, which is
 * trusted with no more than what they answer.
 */
import type { ClientTool } from '../records/message.js';
import { toPrefixed } from '../conversation/protocol/message.js';
import { truncate } from '../records/text.js';
import { hasHidden, withoutHidden } from './hidden-text.js';
import { readSchema } from './mcp/server-tool.js';
import { checkSchema } from './schema-check.js';
import type { Tool } from './tool.js';

const MAX_WHY = 500;

/** Why a provider would refuse these tools; undefined for nothing. */
export function clientToolsRefusal(tools: readonly ClientTool[]): string | undefined {
  for (const { name, inputSchema } of tools) {
    const schema = readSchema(inputSchema);
    if (typeof schema === 'string') return `the tool "${name}" cannot be used: ${schema}`;
  }
  return undefined;
}

/** `json`: as they lie in the store. Undefined: there are none, or the store has lost them. One that no provider takes is left out. */
export function clientTools(json: string | undefined): readonly Tool[] {
  if (json === undefined) return [];
  return (JSON.parse(json) as readonly ClientTool[]).flatMap((tool) => {
    const inputSchema = readSchema(tool.inputSchema);
    return typeof inputSchema === 'string' ? [] : [toTool({ ...tool, inputSchema })];
  });
}

/** Names of those of which one must be called before anything else; empty: the model may answer as it likes. */
export function toBeCalled(json: string | undefined): ReadonlySet<string> {
  const tools = json === undefined ? [] : (JSON.parse(json) as readonly ClientTool[]);
  return new Set(tools.flatMap(({ name, mustCall }) => (mustCall ? [toPrefixed(name)] : [])));
}

function toTool({ name, description = '', inputSchema }: ClientTool): Tool {
  return {
    name: toPrefixed(name),
    description: (hasHidden(description) ? withoutHidden(description) : description).trim() || `The tool ${name} of the client.`,
    inputSchema,
    policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
    // Of a schema that cannot be used, such as one with a reference to nowhere, the program has to look for itself.
    schemaViolation: async (input) => {
      const verdict = await checkSchema({ schema: inputSchema, data: input });
      return verdict.kind === 'violated' ? truncate(`the arguments do not fit the tool's schema: ${verdict.problems}`, MAX_WHY) : undefined;
    },
    workflowAction: (_input, { approvalExpiryMs }) => ({ kind: 'ask-client', expiresMs: approvalExpiryMs }),
    run: () => Promise.resolve({ ok: false, error: 'it runs with the client alone' }),
  };
}
