/** What a turn goes by: the agent's files and the worker's settings, as a model step has found them. */
import type { Budget } from '../../records/identity.js';
import type { WebhookEventType } from '../../records/turn-end.js';

/** What an agent's files and the worker's settings say, as of the start of a turn. */
export interface AgentSettings {
  /** Of everything below and of the files behind it: unchanged means nothing to report. */
  readonly hash: string;
  /** The beginning of the hash of the agent's files. */
  readonly agentHash: string;
  readonly model: string;
  readonly maxTokens: number;
  readonly maxToolRounds: number;
  /** Tokens that a prompt may have: what the model takes, less its answer and a margin (seed 000, section 10). */
  readonly contextBudget: number;
  /** Share of the budget from which a reported prompt is compacted. */
  readonly compactionRatio: number;
  /** Estimate of the system prompt and the tools together. */
  readonly fixedTokens: number;
  /** Which the worker counts with; absent where the model's is not public: then texts are estimated by their scripts. */
  readonly tokenizer?: string;
  readonly handOver: { readonly events: number; readonly bytes: number; readonly updates: number };
  readonly thresholds: Thresholds;
  /** Of a conversation whose start names none. */
  readonly budget?: Budget;
  /** Of an agent that names several models. */
  readonly fallback?: FallbackSettings;
  /** True: a step's summary may show a message before the step has taken it in: no input processor would have changed it. */
  readonly showsWords?: true;
  /** Who makes titles that no person gives. Absent: a rule does. */
  readonly titles?: 'model';
  /** Of which events a webhook of the worker is to hear. Absent: of none. */
  readonly webhooks?: readonly WebhookEventType[];
  readonly memory: MemorySettings;
}

/** The agent's list of models, as seen from the one that these settings are of. */
export interface FallbackSettings {
  /** The list's first: each turn begins with it. */
  readonly first: string;
  /** Those after this one, in their order. */
  readonly next: readonly string[];
  /** How often each of them is called before the next is. */
  readonly tries: number;
}

/** Seed 001, Configuration; and the scope's MEMORY.md as of the start of the turn. */
export interface MemorySettings {
  /** Messages, since the last consolidation, beyond which older ones are consolidated. */
  readonly window: number;
  /** How many of the newest are not. */
  readonly keep: number;
  /** When consolidated messages leave the context: at once, or once it has passed the soft threshold. */
  readonly trim: 'when-needed' | 'at-window';
  /** Milliseconds that a conversation waits for a consolidation. */
  readonly timeoutMs: number;
  readonly version: string;
  /** How many things the scope is to forget: 0 spares the look at which. */
  readonly forgotten: number;
}

/** The size of a model that took less than was assumed. It holds as long as the model and the assumption do. */
export interface LearnedBudget {
  readonly model: string;
  /** `contextBudget` by the agent's files and what is known of the model. */
  readonly assumed: number;
  /** Tokens that a prompt may have. */
  readonly tokens: number;
}

/** The one place where a learned size takes effect: settings as they were found, for the model as it is. */
export function withLearnedBudget<S extends SizedSettings>(settings: S, learned: LearnedBudget | undefined): S {
  if (learned?.model !== settings.model || learned.assumed !== settings.contextBudget) return settings;
  return scaledTo(settings, learned.tokens);
}

/** All limits scale together (design section 4). */
export function scaledTo<S extends SizedSettings>(settings: S, contextBudget: number): S {
  const { thresholds } = settings;
  const scale = Math.min(1, contextBudget / thresholds.truncation);
  const scaled = (tokens: number): number => Math.floor(tokens * scale);
  return {
    ...settings,
    contextBudget,
    thresholds: {
      ...thresholds,
      soft: scaled(thresholds.soft),
      hard: scaled(thresholds.hard),
      truncation: scaled(thresholds.truncation),
    },
  };
}

type SizedSettings = Pick<AgentSettings, 'model' | 'contextBudget' | 'thresholds'>;

export interface ConfigureRequest {
  /** The start argument's model; it wins over agent.json and PERDURA_MODEL. */
  readonly model: string | null;
  /** Of the agent's list: the one that is called in place of the first, which has failed. */
  readonly fallback?: string;
  readonly knownHash: string | null;
  /** Version of MEMORY.md at the turn before; absent where there was none. */
  readonly knownMemory?: string;
}

export type Configured =
  | { readonly kind: 'unchanged' }
  /** `mode`: of conversations whose start names none. Absent: they go on by themselves. */
  | { readonly kind: 'settings'; readonly settings: AgentSettings; readonly mode?: 'stepping' }
  /** `webhooks`: as in the settings, which are not known then. */
  | { readonly kind: 'unusable'; readonly type: string; readonly message: string; readonly webhooks?: AgentSettings['webhooks'] };

/** What of the settings a call needs. */
export type CallSettings = Pick<
  AgentSettings,
  'agentHash' | 'model' | 'contextBudget' | 'compactionRatio' | 'thresholds' | 'budget' | 'fallback'
> & {
  readonly memory: Pick<MemorySettings, 'version' | 'forgotten'>;
};

/** Tokens (seed 004, Token-Based Thresholds), for a model of that size already. */
export interface Thresholds {
  readonly soft: number;
  readonly hard: number;
  readonly truncation: number;
  readonly autoCompact: boolean;
  /** True: the model has the tool to act on a hint. */
  readonly suggests: boolean;
}
