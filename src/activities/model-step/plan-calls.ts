/** How each call of an answer is to be run: it travels with the answer, so that settings never come from the workflow's bundle. */
import { randomBytes } from 'node:crypto';
import { log } from '@temporalio/activity';
import type { AgentConfig } from '../../agents/agent-config.js';
import type { ToolPlan, WorkflowAction } from '../../conversation/activity-io/tool-effects.js';
import { callFingerprint } from '../../memory/call-fingerprint.js';
import type { AssistantBlock } from '../../records/message.js';
import { approvalFor } from '../../tools/approval-rules.js';
import { callIdentity } from '../../tools/call-identity.js';
import type { Tool, ToolPolicy } from '../../tools/tool.js';

/** A tool that is not there still gets a plan: its run answers that it is not there. */
const MISSING: ToolPolicy = { quick: true, repeatable: true, timeoutMs: 1_000 };

export interface Planning {
  readonly offered: readonly Tool[];
  readonly config: AgentConfig;
  readonly agent: string;
  readonly workspace: string;
}

export async function planCalls(blocks: readonly AssistantBlock[], planning: Planning): Promise<ToolPlan[]> {
  return Promise.all(blocks.flatMap((block) => (block.kind === 'tool-call' ? [planCall(block, planning)] : [])));
}

async function planCall(
  { name, input }: Extract<AssistantBlock, { kind: 'tool-call' }>,
  { offered, config, agent, workspace }: Planning,
): Promise<ToolPlan> {
  const tool = offered.find((one) => one.name === name);
  const { quick, repeatable, timeoutMs, attempts = 1 } = tool?.policy ?? MISSING;
  const plan: ToolPlan = {
    rides: quick && repeatable && attempts === 1,
    repeatable,
    timeoutMs: config.limits.toolTimeoutMs ?? timeoutMs,
    fingerprint: callFingerprint(name, input),
  };
  if (!tool) return plan;
  const misfit = tool.misfit?.(input);
  if (misfit !== undefined) return { ...plan, approval: { policy: 'deny', why: misfit } };
  const examined = await tool.examine?.(input, { workspace });
  const { policy, why } = approvalFor(config.approvals, tool, input, agent, examined);
  if (policy === 'ask' && examined?.asks) log.warn('a person is asked about a call', { tool: name, why: examined.asks.why });
  const workflowAction = tool.workflowAction?.(input, {
    agent,
    approvalExpiryMs: config.approvalExpiryMs,
    delegation: { ...config.delegation, ...sharing(config) },
  });
  return {
    ...plan,
    ...(attempts > 1 && { attempts }),
    ...(tool.verify && { verifiable: true }),
    ...(policy === 'ask' && {
      approval: {
        policy,
        expiresMs: config.approvalExpiryMs,
        ...(why === undefined ? {} : { why }),
        ...(examined?.asks?.overRules !== true && { same: callIdentity(name, input, examined?.real) }),
      },
    }),
    ...(policy === 'deny' && {
      approval: { policy, why: why ?? `agent "${agent}" does not allow ${name} with these arguments (approvals in its agent.json).` },
    }),
    ...(workflowAction && { workflowAction: withCapability(workflowAction) }),
  };
}

/** Made here: what a workflow draws by chance is made of its run id, which any reader of lists knows. */
function withCapability(action: WorkflowAction): WorkflowAction {
  return action.kind === 'delegate' ? { ...action, capability: randomBytes(24).toString('base64url') } : action;
}

function sharing({ memory: { enabled, shareWithSubAgents } }: AgentConfig): { readonly memory?: 'shared' | 'snapshot' } {
  if (!enabled || shareWithSubAgents === false) return {};
  return { memory: shareWithSubAgents === true ? 'shared' : 'snapshot' };
}
