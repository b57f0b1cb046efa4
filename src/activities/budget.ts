/** How long a prompt may be (seed 000, section 10): `input_budget = max_context_tokens - max_output_tokens - safety_margin`. */
import { modelLimits } from '../models/registry.js';
import type { AgentConfig } from '../agents/agent-config.js';

/** A budget that leaves no room is somebody's mistake; the smallest still lets the model say so. */
const SMALLEST = 1_000;

export function inputBudget({ context, maxTokens }: AgentConfig, model: string): number {
  const most = context.maxTokens ?? modelLimits(model).contextTokens;
  return Math.max(SMALLEST, most - maxTokens - context.safetyMargin);
}
