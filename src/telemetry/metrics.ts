/**
 * Our counters, beside those of Temporal's SDK and on the same endpoint (PERDURA_METRICS_ADDRESS). Without that setting the
 * SDK's meter does nothing. To be called inside activities, which adds namespace, task queue and activity type.
 *
 * No label has a value per conversation, per message or of a model's invention: that many series would be a leak. A counter counts work
 * that was done, not requests: an attempt that finds its work committed counts nothing.
 */
import { metricMeter, type Info } from '@temporalio/activity';
import { uncachedTokens, type Usage, type ToolOutcome } from '../records/message.js';
import { ModelFailure, type ModelHook } from '../models/model.js';
import { isTransient, LONG_WAIT_MS } from '../records/turn-end.js';
import { costUsd, type ModelLimits } from '../models/known-models.js';

function count(name: string, description: string, value: number, labels: Readonly<Record<string, string>> = {}): void {
  if (value > 0) metricMeter.createCounter(name, undefined, description).add(value, labels);
}

/** Counters of the SDK are whole numbers, hence millionths. A model without a known price adds nothing to the cost. */
export function countAnswer(model: string, usage: Usage): void {
  const { cachedTokens, cacheWriteTokens = 0, outputTokens, costUsd } = usage;
  const tokens = 'Tokens of model calls; input is what no cache had, and written what one keeps now';
  count('perdura_tokens_total', tokens, uncachedTokens(usage), { model, kind: 'input' });
  count('perdura_tokens_total', tokens, cachedTokens, { model, kind: 'cached' });
  count('perdura_tokens_total', tokens, cacheWriteTokens, { model, kind: 'written' });
  count('perdura_tokens_total', tokens, outputTokens, { model, kind: 'output' });
  count('perdura_cost_microdollars_total', 'Cost of model calls in millionths of a US dollar', Math.round((costUsd ?? 0) * 1e6), { model });
  count('perdura_model_answers_total', 'Model calls that gave an answer', 1, { model });
}

/** Attempts at a model call after the first, whether the model had failed or a worker had died. */
export function countRetry({ attempt }: Info): void {
  if (attempt > 1) count('perdura_model_retries_total', 'Attempts at a model call after the first', 1);
}

/** `next`: tried again at once, after a wait that the conversation shows, or not at all. */
export function countModelFailure(error: unknown, { attempt, retryPolicy }: Info): void {
  if (!(error instanceof ModelFailure)) return;
  const { kind, options } = error;
  const isLast = attempt >= (retryPolicy?.maximumAttempts || Infinity) || (options.retryAfterMs ?? 0) > LONG_WAIT_MS;
  const next = !isTransient(kind) ? 'stop' : isLast ? 'wait' : 'retry';
  count('perdura_model_failures_total', 'Model calls that failed, and what comes next', 1, { kind, next });
}

/** A call that waits in line for a provider's limit (activities/rate-limiter.ts), and for how long at least. */
export function countLimitWait(model: string, isBackground: boolean, ms: number): void {
  const labels = { model, who: isBackground ? 'background' : 'person' };
  count('perdura_limit_waits_total', "Model calls that were not made yet, to keep a provider's limit", 1, labels);
  count('perdura_limit_wait_milliseconds_total', 'Milliseconds that these calls were told to wait', ms, labels);
}

/** A call that was given up for the next model of the agent's list. */
export function countFallback(labels: { readonly from: string; readonly to: string; readonly reason: string }): void {
  count('perdura_model_fallbacks_total', 'Model calls that were left for the next model of the list', 1, labels);
}

/** `tool` is a name that this worker knows; what a model made up counts as `unknown`. */
export function countTool(tool: string | undefined, outcome: ToolOutcome): void {
  count('perdura_tool_calls_total', 'Tool calls by how they ended', 1, { tool: tool ?? 'unknown', outcome });
}

export function countHeal({ restored, complete }: { readonly restored: number; readonly complete: boolean }): void {
  count('perdura_heals_total', 'Times that traces were rebuilt from history', 1, { complete: String(complete) });
  count('perdura_healed_entries_total', 'Entries that came back from history', restored);
}

/** Token usage tracking, a hook as any other (seed 000, phase D): the provider's numbers, counted per model. */
export function usageTracking(limits: (model: string) => ModelLimits): ModelHook {
  return {
    name: 'token-usage-tracking',
    afterInvoke: (_messages, { usage }, { model }) => countAnswer(model, { ...usage, costUsd: costUsd(limits(model), usage) }),
  };
}
