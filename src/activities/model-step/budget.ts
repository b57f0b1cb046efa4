/** How long a prompt may be (seed 000, section 10): `input_budget = max_context_tokens - max_output_tokens - safety_margin`. */
import { modelLimits, safetyMarginOf } from '../../models/registry.js';
import type { Thresholds } from '../../conversation/activity-io/settings.js';
import type { AgentConfig } from '../../agents/agent-config.js';
import type { CountTokens } from '../../memory/tokens.js';
import type { Tool } from '../../tools/tool.js';

/** A budget that leaves no room is somebody's mistake; the smallest still lets the model say so. */
const SMALLEST = 1_000;
const MAX_MEMORY_ANSWER = 16_384;

export function inputBudget({ context, maxTokens }: AgentConfig, model: string): number {
  const known = modelLimits(model);
  const most = context.maxTokens ?? known.contextTokens;
  const margin = context.safetyMargin ?? (context.maxTokens === undefined ? known.safetyMargin : safetyMarginOf(context.maxTokens));
  return Math.max(SMALLEST, most - maxTokens - margin);
}

/** Of a question beside the conversation. What an agent says of its own model's size is said of no other one that it names for this. */
export function besideBudget(
  config: AgentConfig,
  { model, own, maxTokens }: { readonly model: string; readonly own: string; readonly maxTokens: number },
): number {
  const { maxTokens: most, ...context } = config.context;
  return inputBudget({ ...config, maxTokens, context: { ...context, ...(model === own && { maxTokens: most }) } }, model);
}

/** Of a whole MEMORY.md and an entry of HISTORY: as much as that may be, as the model gives, and as leaves room for the question. */
export function memoryAnswerTokens({ context }: AgentConfig, model: string): number {
  const known = modelLimits(model);
  const most = context.maxTokens ?? known.contextTokens;
  return Math.max(SMALLEST, Math.min(MAX_MEMORY_ANSWER, known.maxOutputTokens, Math.floor(most / 4)));
}

/** Design section 4: all limits scale by `min(1, input_budget / truncation)`. */
export function thresholdsOf(config: AgentConfig, model: string, offered: readonly { readonly name: string }[]): Thresholds {
  const { thresholds, autoCompactEnabled } = config.context;
  const scale = Math.min(1, inputBudget(config, model) / thresholds.truncation);
  return {
    soft: Math.floor(thresholds.soft * scale),
    hard: Math.floor(thresholds.hard * scale),
    truncation: Math.floor(thresholds.truncation * scale),
    autoCompact: autoCompactEnabled,
    suggests: offered.some(({ name }) => name === 'compact_context'),
  };
}

export function compactionRatio({ context }: AgentConfig, model: string): number {
  return context.compactionRatio ?? modelLimits(model).compactionRatio;
}

/** What every prompt of an agent takes before a word is said. */
export function fixedTokens(
  system: string,
  tools: readonly Pick<Tool, 'name' | 'description' | 'inputSchema'>[],
  count: CountTokens,
): number {
  const described = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  return count(system) + count(JSON.stringify(described));
}
