/** How long a prompt may be (seed 000, section 10): `input_budget = max_context_tokens - max_output_tokens - safety_margin`. */
import { answerTokens, type ContextWindow, type Model } from '../../models/model.js';
import { defaultSafetyMargin, splitModel, type ModelLimits, type Models } from '../../models/known-models.js';
import type { Thresholds } from '../../conversation/state/settings.js';
import { type AgentConfig, agentConfigSchema } from '../../agents/agent-config.js';
import type { CountTokens } from '../../memory/tokens.js';
import type { Tool } from '../../tools/tool.js';
import { AgentConfigError } from '../../agents/load-agent.js';
import type { ActivityDependencies } from '../dependencies.js';

/** A budget that leaves no room is a mistake in settings; the smallest still lets the model say so. */
const SMALLEST = 1_000;
const MAX_MEMORY_ANSWER = 16_384;

/**
 * The context window of a model whose server tells it; undefined where the registry knows. An agent's setting of its model's size does not hold for
 * no other one that it names for a question beside the conversation.
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

/** A name that no provider has is for the call to refuse. */
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
    return Math.max(SMALLEST, window.tokens - answerTokens(maxTokens, window.tokens) - margin);
  }
  const most = context.maxTokens ?? known.contextTokens;
  const margin = context.safetyMargin ?? (context.maxTokens === undefined ? known.safetyMargin : defaultSafetyMargin(context.maxTokens));
  return Math.max(SMALLEST, most - maxTokens - margin);
}

/**
 * What an agent sets of sizes holds for the first model of its list; another one may take or give less, and so may one whose window a
 * user has declared.
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

/** Of a question beside the conversation. */
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

/** Of a whole MEMORY.md and an entry of HISTORY: as much as that may be, as the model gives, and as leaves room for the question. */
export function memoryAnswerTokens({ context }: AgentConfig, known: ModelLimits, window?: ContextWindow): number {
  const most = window?.tokens ?? context.maxTokens ?? known.contextTokens;
  return Math.max(SMALLEST, Math.min(MAX_MEMORY_ANSWER, known.maxOutputTokens, Math.floor(most / 4)));
}

/** Design section 4: all limits scale by `min(1, input_budget / truncation)`. */
export function scaleThresholds(config: AgentConfig, budget: number, offered: readonly { readonly name: string }[]): Thresholds {
  const { thresholds, autoCompactEnabled } = config.context;
  const scale = Math.min(1, budget / thresholds.truncation);
  return {
    soft: Math.floor(thresholds.soft * scale),
    hard: Math.floor(thresholds.hard * scale),
    truncation: Math.floor(thresholds.truncation * scale),
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
 * An agent's settings, for a step that has something to do also where they cannot be read. Undefined where its files cannot be used: the turn
 * reports that, and the step goes by the defaults.
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

/** Such files are no reason to lose messages. */
export async function configOrDefaults(...of: Parameters<typeof usableConfig>): Promise<AgentConfig> {
  return (await usableConfig(...of)) ?? agentConfigSchema.parse({});
}
