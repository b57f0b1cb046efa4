/** How long a prompt may be (seed 000, section 10): `input_budget = max_context_tokens - max_output_tokens - safety_margin`. */
import { answerTokens, type ContextWindow, type Model } from '../../models/model.js';
import { defaultSafetyMargin, splitModel, type ModelLimits, type Models } from '../../models/known-models.js';
import { thresholdsAt } from '../../records/token-usage.js';
import type { Thresholds } from '../../conversation/state/settings.js';
import { type AgentConfig, agentConfigSchema } from '../../agents/agent-config.js';
import type { CountTokens } from '../../memory/tokens.js';
import type { Tool } from '../../tools/tool.js';
import { AgentConfigError } from '../../agents/load-agent.js';
import type { ActivityDependencies } from '../dependencies.js';

/** Settings may leave no room by mistake; this minimum lets the model still report it. */
const MIN_TOKENS = 1_000;
const MAX_MEMORY_ANSWER = 16_384;

/**
 * The context window that a model's server reports; undefined if the registry knows it. An agent's size for its model does not apply to
 * other models that answer questions beside the conversation.
 */
export async function findContextWindow(
  models: Models,
  { context }: AgentConfig,
  { model, agentModel = model }: { readonly model: string; readonly agentModel?: string },
): Promise<ContextWindow | undefined> {
  const { isDeclared, contextTokens } = models.limits(model);
  const wanted = (model === agentModel ? context.maxTokens : undefined) ?? (isDeclared ? contextTokens : undefined);
  return findModel(models, model)?.contextWindow?.(splitModel(model).model, wanted);
}

/** The same for any model. */
export function windowFinder(models: Models, config: AgentConfig, agentModel: string): (name: string) => Promise<number | undefined> {
  return async (name) => (await findContextWindow(models, config, { model: name, agentModel }))?.tokens;
}

/** Undefined for an unknown name, which the call refuses. */
function findModel(models: Models, name: string): Model | undefined {
  try {
    return models(name);
  } catch {
    return undefined;
  }
}

/** `window`: of `findContextWindow`. */
export function inputBudget({ context, maxTokens }: AgentConfig, known: ModelLimits, window?: ContextWindow): number {
  if (window) {
    const margin = context.safetyMargin ?? Math.min(defaultSafetyMargin(window.tokens), Math.floor(window.tokens / 16));
    return Math.max(MIN_TOKENS, window.tokens - answerTokens(maxTokens, window.tokens) - margin);
  }
  const most = context.maxTokens ?? known.contextTokens;
  const margin = context.safetyMargin ?? (context.maxTokens === undefined ? known.safetyMargin : defaultSafetyMargin(context.maxTokens));
  return Math.max(MIN_TOKENS, most - maxTokens - margin);
}

/**
 * An agent's sizes apply to the first model of its list; they are limited for other models, and for one whose window a user has declared.
 */
export function limitedTo(config: AgentConfig, model: string, { contextTokens, maxOutputTokens, isDeclared }: ModelLimits): AgentConfig {
  if ((config.models?.indexOf(model) ?? 0) < 1 && !isDeclared) return config;
  const { context } = config;
  const most = Math.min(config.maxTokens, maxOutputTokens);
  return {
    ...config,
    maxTokens: isDeclared ? answerTokens(most, contextTokens) : most,
    context: { ...context, ...(context.maxTokens !== undefined && { maxTokens: Math.min(context.maxTokens, contextTokens) }) },
  };
}

/** Input budget of a question beside the conversation. */
export function besideBudget(
  config: AgentConfig,
  {
    model,
    agentModel,
    maxTokens,
    limits,
    window,
  }: {
    readonly model: string;
    readonly agentModel: string;
    readonly maxTokens: number;
    readonly limits: ModelLimits;
    readonly window?: ContextWindow | undefined;
  },
): number {
  const { maxTokens: most, ...context } = config.context;
  return inputBudget({ ...config, maxTokens, context: { ...context, ...(model === agentModel && { maxTokens: most }) } }, limits, window);
}

/** Output tokens for a whole MEMORY.md and an entry of HISTORY: limited by the model, and so that the question has room. */
export function memoryAnswerTokens({ context }: AgentConfig, known: ModelLimits, window?: ContextWindow): number {
  const most = window?.tokens ?? context.maxTokens ?? known.contextTokens;
  return Math.max(MIN_TOKENS, Math.min(MAX_MEMORY_ANSWER, known.maxOutputTokens, Math.floor(most / 4)));
}

/** Design section 4: all limits scale by `min(1, input_budget / truncation)`. */
export function scaleThresholds(config: AgentConfig, budget: number, offered: readonly { readonly name: string }[]): Thresholds {
  const { compactAt, advanced, autoCompactEnabled } = config.context;
  const isShare = compactAt !== undefined && compactAt <= 1;
  const { softThreshold, hardThreshold, truncationThreshold } = thresholdsAt(isShare ? compactAt * budget : compactAt, advanced);
  const scale = Math.min(1, budget / truncationThreshold);
  const hard = Math.floor(hardThreshold * scale);
  return {
    // Beside a share, what is set in tokens may be out of order.
    soft: Math.min(Math.floor(softThreshold * scale), hard),
    hard,
    truncation: Math.max(Math.floor(truncationThreshold * scale), hard),
    autoCompact: autoCompactEnabled,
    suggests: offered.some(({ name }) => name === 'compact_context'),
  };
}

export function compactionRatio({ context }: AgentConfig, known: ModelLimits): number {
  return context.compactionRatio ?? known.compactionRatio;
}

/** What every prompt of an agent takes before the first message. */
export function fixedTokens(
  system: string,
  tools: readonly Pick<Tool, 'name' | 'description' | 'inputSchema'>[],
  count: CountTokens,
): number {
  const described = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  return count(system) + count(JSON.stringify(described));
}

/**
 * An agent's settings for a step that can do without them. Undefined if the files are unusable: the turn reports that, and the step uses
 * the defaults.
 */
export async function usableConfig(
  { agents }: Pick<ActivityDependencies, 'agents'>,
  { agent, scope }: { readonly agent: string; readonly scope: string },
): Promise<AgentConfig | undefined> {
  try {
    return (await agents(agent, scope)).config;
  } catch (error) {
    if (error instanceof AgentConfigError) return undefined;
    throw error;
  }
}

/** Unusable files must not lose messages. */
export async function configOrDefaults(...args: Parameters<typeof usableConfig>): Promise<AgentConfig> {
  return (await usableConfig(...args)) ?? agentConfigSchema.parse({});
}
