/** What activities are given, once, by the worker. */
import type { JsonValue, Media, ToolOutcome } from '../records/message.js';
import type { ModelStepInput, ModelStepResult, RunToolInput, ToolFinished } from '../conversation/turn/model-step-effects.js';
import type { AgentLoader } from '../agents/load-agent.js';
import type { CompactionPlugins } from '../memory/channel/compaction-plugin.js';
import type { CompactorRegistry } from '../memory/compaction/compactor.js';
import type { Processors } from '../memory/processors.js';
import type { ModelHook } from '../models/model.js';
import type { Circuits } from '../models/circuit-breaker.js';
import type { Models } from '../models/known-models.js';
import type { Healed } from '../heal/heal.js';
import type { GcOutcome, RetentionOutcome, WebhookDelivery } from '../conversation/outbox/webhook-effects.js';
import type { WebhookEventType } from '../records/turn-end.js';
import type { ConversationIdentity } from '../records/identity.js';
import type { KnownSecrets } from '../platform/known-secrets.js';
import type { BackgroundEmbedding } from '../memory/recall/open-recall.js';
import type { Recall } from '../memory/recall/recall.js';
import type { TenantBudgets } from './tenant-budgets.js';
import type { ConversationKey, Store } from '../stores/store.js';
import type { ServerTools } from '../tools/mcp/server-tools.js';
import type { ToolRegistry } from '../tools/tool.js';
import type { TenantBudgetRule } from '../records/tenant-budget.js';
import type { RateLimiter } from './rate-limiter.js';
import type { RememberedWrite } from '../heal/restore-memory.js';
import type { AskedConsolidation } from '../conversation/protocol/memory-contract.js';

export interface ActivityDependencies {
  readonly store: Store;
  /** The search indexes of all messages, shared by all of a worker's tools. Default: a new one, of the default size. */
  readonly recall?: Recall;
  /** Makes vectors of messages. Without it none are made, and searches go by words. */
  readonly embedding?: Pick<BackgroundEmbedding, 'note' | 'takeOwed'>;
  readonly models: Models;
  readonly agents: AgentLoader;
  readonly tools: ToolRegistry;
  /** Those of agents' MCP servers. Without it agents have none. */
  readonly serverTools?: ServerTools;
  /** Of conversations that neither their start nor their agent gives one. Without it they go on by themselves. */
  readonly defaultExecutionMode?: 'auto' | 'stepping';
  /** Real path that file tools stay inside. */
  readonly workspace: string;
  /** For conversations and agents that name none. */
  readonly defaultModel: string;
  /** Rebuilds from history what the store has lost; of a life that has ended by one of its runs. Without it a gap stays one. */
  readonly heal?: (key: ConversationKey, run?: string) => Promise<Healed>;
  /** How requests reach the memory workflow. Without it nothing is ever consolidated by a model. */
  readonly askMemory?: AskMemory;
  /** What history says was written to a scope's memory. Without it a memory that a store has lost stays lost. */
  readonly rememberedBy?: RememberedBy;
  /** Versions of MEMORY.md that could not be brought back: not tried again by this worker. */
  readonly lostMemories?: Set<string>;
  /** Deletes what was over or idle for long enough. Without it everything is kept. */
  readonly retain?: (stop: AbortSignal) => Promise<RetentionOutcome>;
  /** Ends idle conversations, and archives what is old. Without it nothing of it is done. */
  readonly collect?: (stop: AbortSignal) => Promise<GcOutcome>;
  /** Whether our search attributes are registered where the worker works. Checked once in each run of a conversation. */
  readonly hasSearchAttributes?: () => Promise<boolean>;
  /** Of what people say, and of what tools answer; in their order, before it is stored. */
  readonly processors?: Processors;
  readonly hooks?: readonly ModelHook[];
  /** Told of each call of a tool and its arguments, before it runs: for traces. */
  readonly toolCalled?: (callId: string, input: JsonValue) => void;
  /** Default: `WorkingFlowCompactor` alone. */
  readonly compactors?: CompactorRegistry;
  /** By tool: what stands for long results, beside the built-in ones. */
  readonly compactionPlugins?: CompactionPlugins;
  /** How Temporal says that a workflow stands, such as RUNNING. Without it sub-agents of earlier runs are not looked after. */
  readonly workflowStatus?: ReadWorkflowStatus;
  /** Where events go. Without it this worker asks for none, and posts none. */
  readonly webhooks?: Webhooks;
  /** Begins the delivery of an event; of one that has begun, does nothing. */
  readonly startDelivery?: (delivery: WebhookDelivery) => Promise<void>;
  /** By which its tenant knows a tenant's conversation; its Temporal id where it has no other. */
  readonly readPublicId?: (workflowId: string) => Promise<string>;
  /** Whether a call still waits for a person. Without it, and where it rejects, it does. */
  readonly isWaiting?: (conversation: string, callId: string) => Promise<boolean>;
  /** Before what has an effect. Undefined: this worker's lease holds. Rejects where another worker goes on with the running activity. */
  readonly confirmLease?: () => Promise<void> | undefined;
  /** Whether this worker ends: to an activity that a person has stopped Temporal does not say it. Without it, never. */
  readonly isEnding?: () => boolean;
  /** Which models cannot answer now, as this worker has seen. Without it each is called every time. */
  readonly circuits?: Pick<Circuits, 'refusal' | 'note'>;
  /** Keeps to the limits of providers, together with all workers. Without it only refusals do. */
  readonly limiter?: RateLimiter;
  /** What tenants may use in a day and a month. Default: nothing is set. */
  readonly tenantBudgetRules?: readonly TenantBudgetRule[];
  /** Made of these rules. */
  readonly tenantBudgets?: Pick<TenantBudgets, 'usedUp'> | undefined;
  /** Of conversations that are played again. Without it everything is done and looked up. */
  readonly recorded?: Recorded;
  /** Whether Temporal's page may show the first words of messages; false: no title is made of them either. Default: titles alone. */
  readonly showsWords?: boolean;
  /** Values that nothing shows: neither what models and tools say, nor what activities answer. */
  readonly secrets?: KnownSecrets;
  /** Epoch milliseconds, as tools and models see the time. Default: the machine's clock. */
  readonly now?: () => number;
  /** Milliseconds; tests shorten them. */
  readonly modelTimeouts?: { readonly idleMs?: number; readonly totalMs?: number };
}

/** How a tool's run ended, before anything is kept of it. */
export interface ToolEnd extends Media, Pick<ToolFinished, 'task' | 'files' | 'appContext' | 'contextChange'> {
  readonly outcome: ToolOutcome;
  readonly text: string;
}

/** What was recorded, in place of the world (whatif/). Undefined where it says nothing: then the product does as it would. */
export interface Recorded {
  /** How this call ended. */
  tool(input: RunToolInput, argument: JsonValue): Promise<ToolEnd | undefined>;
  /** The notice of earlier messages that came before this call; null: there was none. */
  recalled(input: ModelStepInput): string | null | undefined;
  /** What the session's first prompt began with; null: with nothing. */
  base(input: ModelStepInput): Exclude<ModelStepResult['base'], undefined> | null | undefined;
}

/** A store, and whose traces in it: one life of one conversation. */
export interface TraceStore {
  readonly store: Store;
  readonly key: ConversationKey;
}

/** What an activity of one conversation is given: all of the above, and which conversation it works for. */
export interface ConversationDependencies extends ActivityDependencies, TraceStore {
  readonly identity: ConversationIdentity;
}

/** The endpoints of a worker's settings. */
export interface Webhooks {
  /** Of which events that of this scope is to hear; of none where there is no endpoint. */
  eventsFor(identity: ConversationIdentity): readonly WebhookEventType[];
  /** One attempt. Never rejects. */
  post(delivery: Posted, signal: AbortSignal): Promise<PostOutcome>;
}

export type Posted = Pick<WebhookDelivery, 'id' | 'identity' | 'body'>;

/**
 * `failed`: to be tried again. Its message says nothing of the address, which may be a secret. `retryAfterMs`: what the receiver asks for.
 */
export type PostOutcome =
  | { readonly kind: 'delivered' | 'gone'; readonly status: number }
  | { readonly kind: 'failed'; readonly message: string; readonly retryAfterMs?: number };

/** What history says was written to a scope's memory. */
export type RememberedBy = (scope: string) => Promise<readonly RememberedWrite[]>;

/** Temporal's name of the status; `NOT_FOUND` for a workflow that it does not know. */
export type ReadWorkflowStatus = (workflowId: string) => Promise<string>;

/** Sends the workflow `memory:<scope>` a request, and starts it where it does not run. Sent twice it is one request: it has an id. */
export type AskMemory = (scope: string, request: AskedConsolidation) => Promise<void>;
