/**
 * Whether the model may be called now, from numbers alone. The workflow asks before it starts a step, and the step asks again with what
 * it found (settings, what tools that rode brought and spent): one function, so that both decide alike.
 */
import type { TurnError } from '../protocol/contract.js';
import type { AgentSettings } from './settings.js';
import type { Usage } from '../../records/message.js';
import { checkThresholds } from '../../records/token-usage.js';
import type { Budget } from '../../records/identity.js';

export interface CallNumbers {
  /** The last reported prompt and answer, plus an estimate of what came since. */
  readonly contextTokens: number;
  /** Of these, what leaves by itself after the next answer (citing.ts). */
  readonly shownOnce: number;
  /** Prompt tokens as the provider last counted them; null once that count is no longer true. */
  readonly reported: number | null;
  /** Tokens that the context keeps from which leaving something out of the prompt is worth a try; null: between turns. */
  readonly truncatesFrom: number | null;
  /** Tokens that the context keeps from which a compaction is worth a try; null: between turns. */
  readonly compactsFrom: number | null;
  /** Of the whole conversation, sub-agents included. */
  readonly usage: Usage;
  /** As the start or `raiseBudget` said; null: the agent's own. */
  readonly budget: Budget | null;
}

export type GateSettings = Pick<AgentSettings, 'contextBudget' | 'compactionRatio' | 'thresholds' | 'budget'>;

export type Obstacle = 'budget' | 'truncation' | 'compaction';

/** What is to be done before the call, in the order of design section 4; undefined: call. */
export function obstacleTo(numbers: CallNumbers, settings: GateSettings): Obstacle | undefined {
  if (overBudget(numbers.usage, numbers.budget ?? settings.budget ?? {})) return 'budget';
  if (needsTruncation(numbers, settings)) return 'truncation';
  return contextPressure(numbers, settings) ? 'compaction' : undefined;
}

/** Over the truncation line: the oldest leaves the prompt before anything else is done about it. */
export function needsTruncation(numbers: CallNumbers, settings: GateSettings): boolean {
  const { contextTokens, shownOnce, truncatesFrom } = numbers;
  return truncatesFrom !== null && contextTokens - shownOnce >= truncatesFrom && usageOf(numbers, settings).needsTruncation;
}

/** Why older turns should become memory now; undefined when they need not. */
export function contextPressure(numbers: CallNumbers, settings: GateSettings): 'ratio' | 'budget' | 'hard' | undefined {
  const { contextBudget, compactionRatio, thresholds } = settings;
  const { reported, contextTokens, shownOnce, compactsFrom } = numbers;
  if (compactsFrom === null || contextTokens - shownOnce < compactsFrom || !thresholds.autoCompact) return undefined;
  if (reported !== null && reported > contextBudget) return 'budget';
  if (reported !== null && reported > compactionRatio * contextBudget) return 'ratio';
  // What is shown once leaves by itself, as long as it fits.
  return usageOf(numbers, settings).forceCompaction || contextTokens > contextBudget ? 'hard' : undefined;
}

/** Of what the context keeps. */
export function usageOf({ contextTokens, shownOnce }: CallNumbers, { thresholds }: GateSettings): ReturnType<typeof checkThresholds> {
  const { soft, hard, truncation } = thresholds;
  return checkThresholds(contextTokens - shownOnce, { softThreshold: soft, hardThreshold: hard, truncationThreshold: truncation });
}

/** Why no model is asked any more; undefined while there is something left. */
export function overBudget(usage: Usage, { maxCostUsd, maxTokens }: Budget): TurnError | undefined {
  const how = 'raise it (perdura budget, or the update raiseBudget) and say "continue"';
  const { costUsd } = usage;
  if (maxCostUsd !== undefined && costUsd !== null && costUsd >= maxCostUsd) {
    return { type: 'budget', message: `The conversation has used $${costUsd.toFixed(4)} of its $${maxCostUsd}; ${how}.` };
  }
  const tokens = usage.inputTokens + usage.outputTokens;
  if (maxTokens !== undefined && tokens >= maxTokens) {
    return { type: 'budget', message: `The conversation has used ${tokens} of its ${maxTokens} tokens; ${how}.` };
  }
  return undefined;
}
