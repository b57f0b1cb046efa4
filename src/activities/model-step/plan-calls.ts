/** Plans for the calls of an answer. They travel with it, so that settings never come from the workflow's bundle. */
import { randomBytes } from 'node:crypto';
import { log } from '@temporalio/activity';
import type { AgentConfig } from '../../agents/agent-config.js';
import type { ToolPlan, WorkflowAction } from '../../conversation/turn/model-step-effects.js';
import type { AssistantBlock } from '../../records/message.js';
import { approvalFor } from '../../tools/approval-rules.js';
import { callFingerprint } from '../../memory/bodies.js';
import { callIdentity } from '../../tools/call-identity.js';
import type { ExamineContext, Tool, ToolPolicy } from '../../tools/tool.js';

/** An unknown tool gets a plan too: its run answers that there is no such tool. */
const MISSING: ToolPolicy = { quick: true, repeatable: true, timeoutMs: 1_000 };

interface Planning {
  readonly offered: readonly Tool[];
  readonly config: AgentConfig;
  readonly agent: string;
  readonly place: ExamineContext;
}

export async function planCalls(blocks: readonly AssistantBlock[], planning: Planning): Promise<ToolPlan[]> {
  return Promise.all(blocks.flatMap((block) => (block.kind === 'tool-call' ? [planCall(block, planning)] : [])));
}

async function planCall(
  { name, input }: Extract<AssistantBlock, { kind: 'tool-call' }>,
  { offered, config, agent, place }: Planning,
): Promise<ToolPlan> {
  const tool = offered.find((one) => one.name === name);
  const { quick, repeatable, timeoutMs, attempts = 1, taskQueue } = tool?.policy ?? MISSING;
  const plan: ToolPlan = {
    rides: quick && repeatable && attempts === 1 && taskQueue === undefined,
    repeatable,
    timeoutMs: config.limits.toolTimeoutMs ?? timeoutMs,
    fingerprint: callFingerprint(name, input),
    ...(taskQueue !== undefined && { taskQueue }),
  };
  if (!tool) return plan;
  const examined = await tool.examine?.(input, place);
  const { policy, why } = approvalFor(config.approvals, tool, input, agent, examined);
  const schemaViolation = policy === 'ask' || tool.mustFit ? await tool.schemaViolation?.(input) : undefined;
  if (schemaViolation !== undefined) return { ...plan, approval: { policy: 'deny', why: schemaViolation } };
  if (policy === 'ask' && examined?.asks) {
    log.warn('a person has to approve a call', { tool: name, ...(!examined.asks.isPrivate && { why: examined.asks.why }) });
  }
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

/** Made by the worker: random values in a workflow derive from its run id, which lists show. */
function withCapability(action: WorkflowAction): WorkflowAction {
  return action.kind === 'delegate' ? { ...action, capability: randomBytes(24).toString('base64url') } : action;
}

function sharing({ memory: { enabled, shareWithSubAgents } }: AgentConfig): { readonly memory?: 'shared' | 'snapshot' } {
  if (!enabled || shareWithSubAgents === false) return {};
  return { memory: shareWithSubAgents === true ? 'shared' : 'snapshot' };
}
