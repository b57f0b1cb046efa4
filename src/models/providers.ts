/** Which provider a `provider/model` asks for: the client of a new one is registered here. */
import type { Embedder } from './embedder.js';
import { createAnthropicModel } from './anthropic/client.js';
import { createGeminiModel } from './gemini/client.js';
import { type Model, ModelFailure, type SilenceLimits } from './model.js';
import { createOllamaModel, type OllamaOptions, createOllamaEmbedder } from './ollama/client.js';
import type { KeyedOptions } from './guarded-call.js';
import { createOpenAIModel, createOpenAIResponsesModel, createOpenAIEmbedder } from './openai/client.js';
import { createModelLimits, declaredFor, splitModel, type BuiltinProvider, type DeclaredModels, type Models } from './known-models.js';

export interface ProviderOptions {
  readonly anthropic?: KeyedOptions;
  /** For both of its APIs, `openai/…` and `openai-responses/…`. */
  readonly openai?: KeyedOptions;
  readonly gemini?: KeyedOptions;
  readonly ollama?: OllamaOptions;
  /** Custom providers, by the name before the slash. */
  readonly custom?: Readonly<Record<string, Model>>;
  /** What the user says that models cost and take. */
  readonly declared?: DeclaredModels;
  /** How long a provider may be silent, by the name before the slash; `*` for those that are not named. */
  readonly silence?: Readonly<Record<string, SilenceLimits>>;
}

/** Finds the provider of a `provider/model`. Each has one client, and with it one pool of connections. */
export function createModels(options: ProviderOptions): Models {
  const { declared = {} } = options;
  const builtin: Readonly<Record<BuiltinProvider, Model>> = {
    anthropic: createAnthropicModel(options.anthropic ?? {}),
    openai: createOpenAIModel({ ...options.openai, compat: (model) => declaredFor(declared, `openai/${model}`)?.compat }),
    'openai-responses': createOpenAIResponsesModel(options.openai ?? {}),
    gemini: createGeminiModel(options.gemini ?? {}),
    ollama: createOllamaModel(options.ollama ?? {}),
  };
  const { silence = {} } = options;
  const custom = Object.entries(options.custom ?? {}).map(([name, model]) => [name, model.named?.(name) ?? model] as const);
  const all: readonly (readonly [string, Model])[] = [...Object.entries(builtin), ...custom];
  const providers = new Map(all.map(([name, model]) => [name, withSilence(model, silence[name] ?? silence['*'])]));
  const choose = (name: string): Model => {
    const { provider } = splitModel(name);
    const model = providers.get(provider);
    if (model) return model;
    throw new ModelFailure(
      'not-found',
      `cannot use the model ${JSON.stringify(name)}: there is no provider ${JSON.stringify(provider)}. Known ones: ${[...providers.keys()].join(', ')}.`,
    );
  };
  return Object.assign(choose, { limits: createModelLimits(options.declared) });
}

/** Whatever else the model can do, it does. */
function withSilence(model: Model, silence: SilenceLimits | undefined): Model {
  if (silence === undefined) return model;
  const stream: Model['stream'] = (request, options) => model.stream(request, { silence, ...options });
  return new Proxy(model, {
    get(_, property) {
      const value: unknown = property === 'stream' ? stream : Reflect.get(model, property);
      return typeof value === 'function' ? (value.bind(model) as unknown) : value;
    },
  });
}

/** The one that turns texts into vectors, where one is wanted; a name is `ollama/<model>` or `openai/<model>`. */
export function createEmbedder(
  wanted: string | Embedder | undefined,
  { openai = {}, ollama = {} }: Pick<ProviderOptions, 'openai' | 'ollama'>,
): Embedder | undefined {
  if (typeof wanted !== 'string') return wanted;
  const { provider, model } = splitModel(wanted);
  return provider === 'ollama' ? createOllamaEmbedder(model, ollama) : createOpenAIEmbedder(model, openai);
}
