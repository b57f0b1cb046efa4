/** How a model calls tools: by itself, or in its text. */
import type { AgentConfig } from '../../agents/agent-config.js';
import { withTextTools } from '../../models/text-tools/model.js';
import type { Model } from '../../models/model.js';
import { modelLimits } from '../../models/registry.js';

/** agent.json has the last word, then the provider, then what is known of the model of this name. */
export function withToolsOf(native: Model, name: string, { textTools }: Pick<AgentConfig, 'textTools'>): Model {
  const format = textTools ?? native.textTools ?? modelLimits(name).textTools ?? 'off';
  return format === 'off' ? native : withTextTools(native, format);
}
