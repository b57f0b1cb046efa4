/**
 * Decides from numbers alone whether the model may be called now. The workflow decides before it starts a step, and the step again with its
 * settings and tool results; both use one function, so that they agree.
 */
import type { TurnError } from '../protocol/contract.js';
import type { AgentSettings } from '../state/settings.js';
import type { Usage } from '../../records/message.js';
import { checkThresholds } from '../../records/token-usage.js';
import type { Budget } from '../../records/identity.js';
import { effectiveBudget, toUsd, type Amount } from '../../records/shared-budget.js';

export interface CallNumbers {
  /** The last reported prompt and answer, plus an estimate of what came since. */
  readonly contextTokens: number;
  /** Of these, tokens of results that are shown whole only until the next answer (citing.ts). */
  readonly shownOnce: number;
  /** Prompt tokens as the provider last counted them; null once that count is no longer true. */
  readonly reported: number | null;
  /** Tokens of an estimated token; absent: 1. */
  readonly tokenRatio?: number;
  /** Lasting tokens (`contextTokens - shownOnce`) from which a truncation is worth a try; null: between turns. */
  readonly truncatesFrom: number | null;
  /** The same for a compaction. */
  readonly compactsFrom: number | null;
  /** Of the whole conversation, sub-agents included. */
  readonly usage: Usage;
  /** Set by the start or `raiseBudget`; null: the agent's budget. */
  readonly budget: Budget | null;
}

export type GateSettings = Pick<AgentSettings, 'contextBudget' | 'compactionRatio' | 'thresholds' | 'budget'>;

export type Obstacle = 'budget' | 'truncation' | 'compaction';

/** What must happen before the call, in the order of design section 4; undefined: call now. */
export function obstacleTo(numbers: CallNumbers, settings: GateSettings): Obstacle | undefined {
  if (overBudget(numbers.usage, effectiveBudget(numbers.budget, settings.budget))) return 'budget';
  if (needsTruncation(numbers, settings)) return 'truncation';
  return contextPressure(numbers, settings) ? 'compaction' : undefined;
}

/** True over the truncation threshold, where the oldest messages leave the prompt first of all. */
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
  // Results that are shown once leave by themselves: they count only if the prompt does not fit.
  return usageOf(numbers, settings).forceCompaction || contextTokens > contextBudget ? 'hard' : undefined;
}

/** Checks the lasting tokens against the thresholds. */
export function usageOf({ contextTokens, shownOnce }: CallNumbers, { thresholds }: GateSettings): ReturnType<typeof checkThresholds> {
  const { soft, hard, truncation } = thresholds;
  return checkThresholds(contextTokens - shownOnce, { softThreshold: soft, hardThreshold: hard, truncationThreshold: truncation });
}

/** Why the budget allows no further call; undefined while something is left. */
export function overBudget({ inputTokens, outputTokens, costUsd }: Usage, budget: Budget): TurnError | undefined {
  const tokens = inputTokens + outputTokens;
  return usedUp({ tokens, costUsd }, budget, { who: 'The conversation has', how: 'raise it (perdura budget, or the update raiseBudget)' });
}

/** The same for the shared budget of `conversation`. */
export function overSharedBudget(used: Amount, limit: Budget, conversation: string): TurnError {
  const who = `${conversation} and its sub-agents have together`;
  const how = `raise the budget of ${conversation} (perdura budget ${conversation}, or the update raiseBudget)`;
  const costUsd = toUsd(used);
  return (
    usedUp({ tokens: used.tokens, costUsd }, limit, { who, how }) ?? { type: 'budget', message: `${who} used all of the budget; ${how}.` }
  );
}

function usedUp(
  { tokens, costUsd }: { readonly tokens: number; readonly costUsd: number | null },
  { maxCostUsd, maxTokens }: Budget,
  { who, how }: { readonly who: string; readonly how: string },
): TurnError | undefined {
  const toError = (what: string): TurnError => ({ type: 'budget', message: `${who} used ${what}; ${how} and say "continue".` });
  if (maxCostUsd !== undefined && costUsd !== null && costUsd >= maxCostUsd) return toError(`$${costUsd.toFixed(4)} of its $${maxCostUsd}`);
  if (maxTokens !== undefined && tokens >= maxTokens) return toError(`${tokens} of its ${maxTokens} tokens`);
  return undefined;
}
