/** A conversation's budget as people read it. */
import type { Status } from '../../conversation/protocol/contract.js';
import type { Budget } from '../../records/identity.js';
import { formatCost, formatCount } from './quantities.js';

export function budgetInWords(budget: Budget | null): string {
  const { maxCostUsd, maxTokens } = budget ?? {};
  const limits = [
    ...(maxCostUsd === undefined ? [] : [formatCost(maxCostUsd)]),
    ...(maxTokens === undefined ? [] : [`${formatCount(maxTokens)} tokens`]),
  ];
  return limits.length === 0 ? 'no limit' : `at most ${limits.join(' and ')}`;
}

export function usedInWords({ usage: { costUsd, inputTokens, outputTokens } }: Pick<Status, 'usage'>): string {
  return `used: ${formatCost(costUsd)}, ${formatCount(inputTokens + outputTokens)} tokens`;
}
