import type { ModelHook } from '../models/hooks.js';
import { costUsd } from '../models/registry.js';
import { countAnswer } from './metrics.js';

/** Token usage tracking, a hook as any other (seed 000, phase D): the provider's own numbers, counted per model. */
export const usageTracking: ModelHook = {
  name: 'token-usage-tracking',
  afterInvoke: (_messages, { usage }, { model }) => countAnswer(model, { ...usage, costUsd: costUsd(model, usage) }),
};
