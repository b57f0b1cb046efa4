/** Tools that a request of OpenAI's clients brings. */
import { z } from 'zod';
import type { ClientTool, JsonObject } from '../../records/message.js';
import { checkTools, type MustCall } from '../core/client-calls.js';
import { optional } from '../core/read-body.js';
import { unsupported } from '../core/errors.js';

const described = { name: z.string(), description: optional(z.string()), parameters: optional(z.record(z.string(), z.unknown())) };

/** Chat Completions has the function in a separate field, Responses in the tool itself. */
const tool = z.looseObject({
  type: z.string(),
  function: z.looseObject(described).optional(),
  ...described,
  name: z.string().optional(),
});

export const toolFields = {
  tools: optional(z.array(tool)),
  tool_choice: optional(
    z.union([
      z.string(),
      z.looseObject({ type: z.string(), name: z.string().optional(), function: z.looseObject({ name: z.string() }).optional() }),
    ]),
  ),
  parallel_tool_calls: optional(z.boolean()),
};

type Wanted = z.output<z.ZodObject<typeof toolFields>>;

export function readTools({
  tools = [],
  tool_choice: choice = 'auto',
  parallel_tool_calls: parallel = true,
}: Wanted): readonly ClientTool[] {
  if (choice === 'none') return [];
  const mustCall = readMustCall(choice);
  if (tools.length === 0 && mustCall === undefined) return [];
  if (!parallel) throw unsupported('a model that calls one tool at a time', 'parallel_tool_calls');
  return checkTools(
    tools.map(({ type, function: nested, ...flat }, at) => {
      if (type !== 'function') throw unsupported(`a tool of the type ${JSON.stringify(type.slice(0, 40))}`, `tools.${at}.type`);
      const { name = '', description, parameters } = nested ?? flat;
      return { name, ...(description !== undefined && { description }), inputSchema: (parameters ?? {}) as JsonObject };
    }),
    mustCall,
  );
}

function readMustCall(choice: NonNullable<Wanted['tool_choice']>): MustCall {
  if (choice === 'auto') return undefined;
  if (choice === 'required') return 'any';
  const name = typeof choice === 'string' || choice.type !== 'function' ? undefined : (choice.function?.name ?? choice.name);
  if (name === undefined)
    throw unsupported('a tool_choice other than "auto", "none", "required" and a function by its name', 'tool_choice');
  return { name };
}
