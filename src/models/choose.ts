import { type AnthropicOptions, createAnthropicModel } from './anthropic/client.js';
import { type Model, ModelFailure } from './model.js';
import { splitModel } from './registry.js';

export interface ProviderOptions {
  readonly anthropic?: AnthropicOptions;
  /** Address of the scripted stand-in, which speaks the Messages API. Its "models" have no price, because they are none. */
  readonly offlineUrl?: string;
  /** One's own, by the name before the slash. */
  readonly own?: Readonly<Record<string, Model>>;
}

/** Finds the provider of a `provider/model`. Each has one client, and with it one pool of connections. */
export function createModels(options: ProviderOptions): (name: string) => Model {
  const providers = new Map<string, Model>([['anthropic', createAnthropicModel(options.anthropic ?? {})]]);
  if (options.offlineUrl !== undefined) providers.set('offline', createAnthropicModel({ apiKey: 'offline', baseURL: options.offlineUrl }));
  for (const [name, model] of Object.entries(options.own ?? {})) providers.set(name, model);
  return (name) => {
    const { provider } = splitModel(name);
    const model = providers.get(provider);
    if (model) return model;
    throw new ModelFailure(
      'not-found',
      `cannot use the model ${JSON.stringify(name)}: there is no provider ${JSON.stringify(provider)}. Known ones: ${[...providers.keys()].join(', ')}.`,
    );
  };
}
