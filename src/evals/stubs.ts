/** What answers tool calls in an eval: the eval's stubs, what was recorded of them, or the tools themselves. */
import { isClientTool } from '../conversation/protocol/message.js';
import { isRecord } from '../platform/json.js';
import type { JsonObject, JsonValue } from '../records/message.js';
import { builtinTools } from '../tools/builtin/index.js';
import { TOOL_NAME_PATTERN } from '../tools/define-tool.js';
import type { Tool, ToolPolicy, ToolResult } from '../tools/tool.js';
import type { ToolStub } from './index.js';
import { callKey, type RecordedResult } from './recorded.js';

export interface Stubs {
  /** In place of the tools that there are. */
  replace(tools: readonly Tool[]): readonly Tool[];
}

/** A person answers it, whom the eval plays. */
const NEVER_STUBBED: ReadonlySet<string> = new Set(['ask_user']);
const OTHERS = '*';
/** As a tool that was there when it was recorded and is not here: of an MCP server, or one that was removed. */
const ABSENT: Pick<Tool, 'description' | 'inputSchema' | 'policy'> & { readonly policy: ToolPolicy } = {
  description: 'A tool of the recorded conversation.',
  inputSchema: { type: 'object', additionalProperties: true },
  policy: { repeatable: true, quick: false, timeoutMs: 60_000 },
};

/** `results` absent: nothing was recorded. */
export function createStubs(stubs: Readonly<Record<string, ToolStub>>, results: readonly RecordedResult[] | undefined): Stubs {
  const recorded = createRecordedResults(results ?? []);
  const find = (name: string): ToolStub | undefined => (Object.hasOwn(stubs, name) ? stubs[name] : undefined);
  const others = find(OTHERS);

  const answer = async (name: string, input: JsonValue): Promise<ToolResult> => {
    const named = find(name);
    const result = named === undefined ? recorded.take(name, input) : undefined;
    if (result) return result.outcome === 'ok' ? { ok: true, content: result.text } : { ok: false, error: result.text };
    const stub = named ?? others;
    if (stub !== undefined) {
      const given = typeof stub === 'function' ? await stub(isRecord(input) ? (input as JsonObject) : { value: input }) : stub;
      if (typeof given === 'string') return { ok: true, content: given };
      if (isRecord(given) && typeof given.error === 'string') return { ok: false, error: given.error };
      throw new Error(`the stub of ${name} must answer a text, or { error: 'a text' }`);
    }
    return { ok: false, error: `no result of ${name} was recorded for these arguments, and the eval has no stub for it` };
  };
  const isStubbed = (name: string): boolean => {
    if (NEVER_STUBBED.has(name)) return find(name) !== undefined;
    return find(name) !== undefined || others !== undefined || results !== undefined;
  };

  return {
    replace(tools) {
      const known = new Set(tools.map(({ name }) => name));
      const missing = [...new Set([...Object.keys(stubs), ...recorded.names])].filter(
        (name) => !known.has(name) && name !== OTHERS && TOOL_NAME_PATTERN.test(name) && !isClientTool(name),
      );
      const absent = missing.map((name): Tool => ({ ...ABSENT, name, run: (input) => answer(name, input) }));
      return [...tools.map((tool) => (isStubbed(tool.name) ? standIn(tool, answer) : tool)), ...absent];
    },
  };
}

/**
 * The model is offered the same tool, and the same calls wait for a person. What built-in tools look at before a call, files and
 * addresses, is not there.
 */
function standIn(tool: Tool, answer: (name: string, input: JsonValue) => Promise<ToolResult>): Tool {
  const { name, description, inputSchema, policy, schemaViolation, mustFit, examine } = tool;
  const isBuiltin = builtinTools.some((one) => one.name === name);
  const { taskQueue: _, ...here } = policy;
  return {
    ...{ name, description, inputSchema, policy: here },
    ...(schemaViolation && { schemaViolation }),
    ...(mustFit !== undefined && { mustFit }),
    ...(examine && !isBuiltin && { examine }),
    async run(input) {
      const violation = await schemaViolation?.(input);
      return violation === undefined ? answer(name, input) : { ok: false, error: violation };
    },
  };
}

/** The nth call with these arguments gets the nth result; one more often gets the last. */
function createRecordedResults(results: readonly RecordedResult[]) {
  const byCall = new Map<string, RecordedResult[]>();
  for (const result of results) {
    const key = callKey(result.name, result.input);
    byCall.set(key, [...(byCall.get(key) ?? []), result]);
  }
  return {
    names: results.map(({ name }) => name),
    take(name: string, input: JsonValue): RecordedResult | undefined {
      const left = byCall.get(callKey(name, input));
      return left !== undefined && left.length > 1 ? left.shift() : left?.[0];
    },
  };
}
