/**
 * The tools that a played conversation is offered: those of the candidate's project, and those of MCP servers as they were recorded, since no
 * server is called. What a recorded call needed of people, it needs again, whatever lies at its paths now.
 */
import { callFingerprint } from '../memory/bodies.js';
import type { ToolPlan } from '../conversation/turn/model-step-effects.js';
import type { JsonValue } from '../records/message.js';
import { isServerToolName } from '../tools/mcp/server-tool.js';
import type { ServerTools } from '../tools/mcp/server-tools.js';
import type { ToolDescription } from '../models/model.js';
import type { Tool } from '../tools/tool.js';

/** These look at nothing but the conversation, and change nothing else: they may run. */
export const IN_SANDBOX: ReadonlySet<string> = new Set([
  ...['store_in_memory', 'retrieve_from_memory', 'query_memory', 'set_task', 'read_episode', 'get_time', 'open_memory'],
  ...['search_memory', 'search_history'],
]);

/** How a call was planned then; undefined where it is not recorded. */
export type FindPlan = (name: string, input: JsonValue | undefined) => ToolPlan | undefined;

export function inSandbox(tool: Tool, planOf: FindPlan): Tool {
  const { examine } = tool;
  if (!examine) return tool;
  return {
    ...tool,
    async examine(input, place) {
      const plan = planOf(tool.name, input);
      if (!plan) return examine(input, place);
      const { approval } = plan;
      if (approval?.policy !== 'ask') return {};
      return { asks: { why: approval.why ?? 'a person was asked', ...(approval.same === undefined && { overRules: true }) } };
    },
  };
}

/** `offered`: what the model was told of tools, as it is known now. */
export function recordedServers(offered: () => Promise<readonly ToolDescription[]>, planOf: FindPlan): ServerTools {
  return {
    async of() {
      const theirs = (await offered()).filter(({ name }) => isServerToolName(name));
      return { tools: theirs.map((description) => toTool(description, planOf)), waiting: new Map(), isSignInNeeded: false };
    },
    close: () => Promise.resolve(),
  };
}

const TIMEOUT_MS = 60_000;

function toTool({ name, description, inputSchema }: ToolDescription, planOf: FindPlan): Tool {
  const known = planOf(name, undefined);
  const asks = known?.approval?.policy === 'ask';
  return {
    ...{ name, description, inputSchema },
    policy: {
      ...{ repeatable: known?.repeatable ?? false, quick: known?.rides ?? false, timeoutMs: known?.timeoutMs ?? TIMEOUT_MS },
      ...(asks && { approval: 'ask' as const }),
    },
    run: () => Promise.resolve({ ok: false, error: `${name} is a tool of an MCP server, which is not called here` }),
  };
}

/** Plans of recorded answers, by name and arguments; of any arguments where none are given. */
export function createPlans(answers: () => Iterable<{ readonly plans: readonly ToolPlan[]; readonly names: readonly string[] }>): FindPlan {
  return (name, input) => {
    const wanted = input === undefined ? undefined : callFingerprint(name, input);
    for (const { plans, names } of answers()) {
      const at = wanted === undefined ? names.indexOf(name) : plans.findIndex(({ fingerprint }) => fingerprint === wanted);
      if (at >= 0 && plans[at]) return plans[at];
    }
    return undefined;
  };
}
