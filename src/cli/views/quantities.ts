/** Numbers and times as people read them. */
import type { Usage } from '../../records/message.js';
import type { TimeFormat } from '../args/global-options.js';
import type { Status } from '../../conversation/protocol/contract.js';
import type { Budget } from '../../records/identity.js';
import { describeCached, formatCount, formatDuration } from '../../records/time-in-words.js';

export { describeCached, describePrefix, formatQuantity, formatCount, formatDuration } from '../../records/time-in-words.js';

/** `raw` is epoch milliseconds. */
export function formatTime(ms: number, format: TimeFormat, now: number): string {
  switch (format) {
    case 'iso':
      return new Date(ms).toISOString();
    case 'raw':
      return String(ms);
    case 'relative':
      return ms > now + 500 ? `in ${formatDuration(ms - now)}` : now - ms < 1000 ? 'just now' : `${formatDuration(now - ms)} ago`;
  }
}

export function formatCost(usd: number | null): string {
  return usd === null ? 'cost not known' : `$${usd.toFixed(usd > 0 && usd < 1 ? 4 : 2)}`;
}

export function formatUsage(usage: Usage): string {
  const { inputTokens, outputTokens, costUsd } = usage;
  const cached = describeCached(usage);
  return `${formatCount(inputTokens)} in${cached === '' ? '' : ` (${cached})`}, ${formatCount(outputTokens)} out · ${formatCost(costUsd)}`;
}

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 * 1024 ? `${Math.round(bytes / 1024)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/** A conversation's budget as people read it. */
export function describeBudget(budget: Budget | null): string {
  const { maxCostUsd, maxTokens } = budget ?? {};
  const limits = [
    ...(maxCostUsd === undefined ? [] : [formatCost(maxCostUsd)]),
    ...(maxTokens === undefined ? [] : [`${formatCount(maxTokens)} tokens`]),
  ];
  return limits.length === 0 ? 'no limit' : `at most ${limits.join(' and ')}`;
}

export function describeUse({ usage: { costUsd, inputTokens, outputTokens } }: Pick<Status, 'usage'>): string {
  return `used: ${formatCost(costUsd)}, ${formatCount(inputTokens + outputTokens)} tokens`;
}

/** Which model answers, and who has chosen it. */
export function describeModel({ model, chosenModel, agent }: Pick<Status, 'model' | 'chosenModel' | 'agent'>): string {
  if (chosenModel !== undefined && chosenModel !== null) return `${chosenModel}, chosen for this conversation`;
  return model === null ? `the model of agent ${agent}: its name is known with the next answer` : `${model}, the model of agent ${agent}`;
}

/** Where what was there before a turn was answered again is now. */
export function describeBranch(id: string, { cut, branch }: { readonly cut: number; readonly branch: number | null }): string {
  if (branch === null) return 'there was nothing to keep of what was there before';
  const what = cut === 1 ? 'the old turn is' : `the ${formatCount(cut)} old turns are`;
  return `${what} kept: \`perdura show ${id} --branch ${branch}\``;
}
