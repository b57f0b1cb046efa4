/**
 * Whether the model may be called now, from numbers alone. The workflow asks before it starts a step, and the step asks again with what
 * it found (settings, what tools that rode brought and spent): one function, so that both decide alike.
 */
import type { TurnError } from '../protocol/contract.js';
import type { AgentSettings } from '../state/settings.js';
import type { Usage } from '../../records/message.js';
import { checkThresholds } from '../../records/token-usage.js';
import type { Budget } from '../../records/identity.js';
import { toUsd, type Amount } from '../../records/shared-budget.js';

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
  /** Set by the start or `raiseBudget`; null: the agent's budget. */
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

/** Why no model is called any more; undefined while there is something left. */
export function overBudget({ inputTokens, outputTokens, costUsd }: Usage, budget: Budget): TurnError | undefined {
  const tokens = inputTokens + outputTokens;
  return usedUp({ tokens, costUsd }, budget, { who: 'The conversation has', how: 'raise it (perdura budget, or the update raiseBudget)' });
}

/** The same of a budget that is shared; `conversation`: whose it is. */
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
  const say = (what: string): TurnError => ({ type: 'budget', message: `${who} used ${what}; ${how} and say "continue".` });
  if (maxCostUsd !== undefined && costUsd !== null && costUsd >= maxCostUsd) return say(`$${costUsd.toFixed(4)} of its $${maxCostUsd}`);
  if (maxTokens !== undefined && tokens >= maxTokens) return say(`${tokens} of its ${maxTokens} tokens`);
  return undefined;
}
