/** What is known of models: how much they take and what they cost. Names are `provider/model`; prices as published in November 2026. */
import { ModelFailure, type ModelUsage } from './model.js';

/** US dollars per million tokens. */
export interface Price {
  readonly input: number;
  /** Read from a cache. */
  readonly cached: number;
  /** Written to a cache. */
  readonly cacheWrite: number;
  readonly output: number;
}

export interface ModelLimits {
  readonly contextTokens: number;
  readonly maxOutputTokens: number;
  /** null where it is not known: the cost is then unknown too, never zero. */
  readonly price: Price | null;
  /** What every token of a request costs whose prompt is over so many tokens. */
  readonly longPrompt?: { readonly overTokens: number; readonly price: Price };
}

/** Small enough for any model of today. */
const UNKNOWN: ModelLimits = { contextTokens: 200_000, maxOutputTokens: 32_000, price: null };

const MODELS: ReadonlyMap<string, ModelLimits> = new Map(
  Object.entries({
    'anthropic/claude-fable-5-1': large(price(10, 0.25, 50)),
    'anthropic/claude-fable-5': large(price(10, 1, 50)),
    'anthropic/claude-mythos-5-1': large(price(10, 0.25, 50)),
    'anthropic/claude-mythos-5': large(price(10, 1, 50)),
    'anthropic/claude-opus-5-5': large(price(4, 0.2, 20)),
    'anthropic/claude-opus-5': large(price(5, 0.5, 25)),
    'anthropic/claude-opus-4-8': large(price(5, 0.5, 25)),
    'anthropic/claude-opus-4-7': large(price(5, 0.5, 25)),
    'anthropic/claude-opus-4-6': large(price(5, 0.5, 25)),
    'anthropic/claude-opus-4-5': small(price(5, 0.5, 25)),
    'anthropic/claude-sonnet-5-5': large(price(2, 0.1, 10)),
    'anthropic/claude-sonnet-5': large(price(2, 0.2, 10)),
    'anthropic/claude-sonnet-4-6': { contextTokens: 1_000_000, maxOutputTokens: 64_000, price: price(3, 0.3, 15) },
    'anthropic/claude-sonnet-4-5': small(price(3, 0.3, 15)),
    'anthropic/claude-haiku-5-5': {
      ...large(price(0.1, 0.01, 0.5)),
      longPrompt: { overTokens: 100_000, price: price(0.5, 0.05, 2.5) },
    },
    'anthropic/claude-haiku-4-5': small(price(1, 0.1, 5)),
  }),
);

/** `name` may carry a date (`…-20251001`). An unknown model gets cautious limits and no price. */
export function modelLimits(name: string): ModelLimits {
  return MODELS.get(name) ?? MODELS.get(name.replace(/-\d{8}$/, '')) ?? UNKNOWN;
}

/** null where the model's price is not known. */
export function costUsd(name: string, usage: ModelUsage): number | null {
  const { price: usual, longPrompt } = modelLimits(name);
  const rate = longPrompt && usage.inputTokens > longPrompt.overTokens ? longPrompt.price : usual;
  if (!rate) return null;
  const written = usage.cacheWriteTokens ?? 0;
  const plain = Math.max(0, usage.inputTokens - usage.cachedTokens - written);
  const millionths = plain * rate.input + usage.cachedTokens * rate.cached + written * rate.cacheWrite + usage.outputTokens * rate.output;
  return millionths / 1_000_000;
}

/** Splits at the first slash: a model's own name may have more of them. */
export function splitModel(name: string): { readonly provider: string; readonly model: string } {
  const [, provider, model] = /^([^/\s]+)\/(\S+)$/.exec(name) ?? [];
  if (provider === undefined || model === undefined) {
    throw new ModelFailure(
      'not-found',
      `cannot use the model ${JSON.stringify(name)}: it takes provider and model, like anthropic/claude-sonnet-5-5. ` +
        'Correct PERDURA_MODEL, or "model" in agent.json or at the start of the conversation.',
    );
  }
  return { provider, model };
}

/** A write for five minutes costs a quarter more than plain input, on all of them. */
function price(input: number, cached: number, output: number): Price {
  return { input, cached, cacheWrite: input * 1.25, output };
}

function large(price: Price): ModelLimits {
  return { contextTokens: 1_000_000, maxOutputTokens: 128_000, price };
}

function small(price: Price): ModelLimits {
  return { contextTokens: 200_000, maxOutputTokens: 64_000, price };
}
