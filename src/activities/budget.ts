/** How long a prompt may be (seed 000, section 10): `input_budget = max_context_tokens - max_output_tokens - safety_margin`. */
import { modelLimits, safetyMarginOf } from '../models/registry.js';
import type { AgentConfig } from '../agents/agent-config.js';

/** A budget that leaves no room is somebody's mistake; the smallest still lets the model say so. */
const SMALLEST = 1_000;

export function inputBudget({ context, maxTokens }: AgentConfig, model: string): number {
  const known = modelLimits(model);
  const most = context.maxTokens ?? known.contextTokens;
  const margin = context.safetyMargin ?? (context.maxTokens === undefined ? known.safetyMargin : safetyMarginOf(context.maxTokens));
  return Math.max(SMALLEST, most - maxTokens - margin);
}

export function compactionRatio({ context }: AgentConfig, model: string): number {
  return context.compactionRatio ?? modelLimits(model).compactionRatio;
}
