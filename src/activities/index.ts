/** The effects of a conversation. Dependencies come in once, here; the type is what workflows see. */
import { Context } from '@temporalio/activity';
import type { AgentLoader } from '../agents/load-agent.js';
import type {
  AskMemoryInput,
  ConsolidateInput,
  Consolidated,
  Evicted,
  EvictInput,
  Remembered,
  RememberInput,
} from '../conversation/activity-io/memory-effects.js';
import type {
  HealInput,
  ModelStepInput,
  ModelStepResult,
  Recalled,
  RecallInput,
  StoreStepInput,
  StoreStepResult,
} from '../conversation/activity-io/effects.js';
import type { CompactInput, Compacted, TruncateInput, Truncated, UncompactInput } from '../conversation/activity-io/compaction-effects.js';
import type { NotifyInput, RunToolInput, ToolFinished } from '../conversation/activity-io/tool-effects.js';
import type { OpenedOrigin, OpenOriginInput, RewindInput, Rewound } from '../conversation/activity-io/lineage-effects.js';
import type { Forgotten, Reviewed } from '../conversation/protocol/memory-contract.js';
import type { CompactionPlugins } from '../memory/channel/compaction-plugin.js';
import type { CompactorRegistry } from '../memory/compaction/compactor.js';
import type { Processors } from '../memory/processors.js';
import type { ModelHook } from '../models/hooks.js';
import type { Model } from '../models/model.js';
import type { Healed } from '../heal/heal.js';
import type { ConversationKey, Store } from '../stores/store.js';
import type { ServerTools } from '../tools/mcp/server-tools.js';
import type { ToolRegistry } from '../tools/registry.js';
import { askMemory, type AskMemory } from './memory/ask-memory.js';
import { care, type CareInput } from './memory/care.js';
import { compact, uncompact } from './context/compact.js';
import { consolidate } from './memory/consolidate.js';
import { readHealed } from './context/context.js';
import { forget, review, type ForgetInput, type ReviewInput } from './memory/decide-memory.js';
import { toApplicationFailure } from './failures.js';
import type { RememberedBy } from './memory/heal-memory.js';
import { startHeartbeat } from './heartbeat.js';
import { keyOf } from './key.js';
import { evict } from './memory/evict.js';
import { lookAfter, type LookAfterInput, type StatusOf } from './look-after.js';
import { modelStep } from './model-step/model-step.js';
import { notifyOfWait, type Notify } from './notify.js';
import { openOrigin } from './lineage/open-origin.js';
import { recall } from './store/recall.js';
import { remember } from './memory/remember.js';
import { rewind } from './lineage/rewind.js';
import { runTool } from './tools/run-tool.js';
import { storeStep } from './store/store-step.js';
import { truncate } from './context/truncate.js';

export interface ActivityDependencies {
  readonly store: Store;
  readonly models: (name: string) => Model;
  readonly agents: AgentLoader;
  readonly tools: ToolRegistry;
  /** Those of agents' MCP servers. Without it agents have none. */
  readonly serverTools?: ServerTools;
  /** Real path that file tools stay inside. */
  readonly workspace: string;
  /** For conversations and agents that name none. */
  readonly defaultModel: string;
  /** Rebuilds from history what the store has lost; of a life that has ended by one of its runs. Without it a gap stays one. */
  readonly heal?: (key: ConversationKey, run?: string) => Promise<Healed>;
  /** How the memory workflow is told what to consolidate. Without it nothing is ever consolidated by a model. */
  readonly askMemory?: AskMemory;
  /** What history says was written to a scope's memory. Without it a memory that a store has lost stays lost. */
  readonly rememberedBy?: RememberedBy;
  /** Versions of MEMORY.md that could not be brought back: not tried again by this worker. */
  readonly lostMemories?: Set<string>;
  /** Whether our search attributes are registered where the worker works. Asked once in each run of a conversation. */
  readonly hasSearchAttributes?: () => Promise<boolean>;
  /** Of what people say, and of what tools answer; in their order, before it is stored. */
  readonly processors?: Processors;
  readonly hooks?: readonly ModelHook[];
  /** Default: `WorkingFlowCompactor` alone. */
  readonly compactors?: CompactorRegistry;
  /** By tool: what stands for long results, beside the built-in ones. */
  readonly compactionPlugins?: CompactionPlugins;
  /** How Temporal says that a workflow stands, such as RUNNING. Without it sub-agents of earlier runs are not looked after. */
  readonly statusOf?: StatusOf;
  /** Tells somebody that a person is waited for. Without it nobody is told. */
  readonly notify?: Notify;
  /** Milliseconds; tests shorten them. */
  readonly modelTimeouts?: { readonly idleMs?: number; readonly totalMs?: number };
}

export interface Activities {
  'model-step'(input: ModelStepInput): Promise<ModelStepResult>;
  'store-step'(input: StoreStepInput): Promise<StoreStepResult>;
  recall(input: RecallInput): Promise<Recalled>;
  heal(input: HealInput): Promise<void>;
  compact(input: CompactInput): Promise<Compacted>;
  uncompact(input: UncompactInput): Promise<void>;
  'ask-memory'(input: AskMemoryInput): Promise<void>;
  evict(input: EvictInput): Promise<Evicted>;
  'open-origin'(input: OpenOriginInput): Promise<OpenedOrigin>;
  rewind(input: RewindInput): Promise<Rewound>;
  consolidate(input: ConsolidateInput): Promise<Consolidated>;
  remember(input: RememberInput): Promise<Remembered>;
  forget(input: ForgetInput): Promise<Forgotten>;
  review(input: ReviewInput): Promise<Reviewed>;
  care(input: CareInput): ReturnType<typeof care>;
  'look-after'(input: LookAfterInput): Promise<string>;
  truncate(input: TruncateInput): Promise<Truncated>;
  notify(input: NotifyInput): Promise<void>;
  'run-tool'(input: RunToolInput): Promise<ToolFinished>;
}

export function createActivities(given: ActivityDependencies): Activities {
  const dependencies: ActivityDependencies = { lostMemories: new Set(), ...given };
  const { store } = dependencies;
  return {
    'model-step': (input) => classified(modelStep(dependencies, input)),
    'store-step': (input) => classified(storeStep(dependencies, input)),
    recall: (input) => classified(recall(store, input)),
    heal: (input) => classified(healBySlots(dependencies, input)),
    compact: (input) => classified(compact(dependencies, input)),
    uncompact: (input) => classified(uncompact(store, input)),
    'ask-memory': (input) => classified(askMemory(dependencies.askMemory, input)),
    evict: (input) => classified(evict(store, input)),
    'open-origin': (input) => classified(openOrigin(dependencies, input)),
    rewind: (input) => classified(rewind(dependencies, input)),
    consolidate: (input) => classified(consolidate(dependencies, input)),
    remember: (input) => classified(remember(store, input)),
    forget: (input) => classified(forget(store, input)),
    review: (input) => classified(review(store, input)),
    care: (input) => classified(care(dependencies, input)),
    'look-after': (input) => classified(lookAfter(dependencies.statusOf, input)),
    truncate: (input) => classified(truncate(dependencies, input)),
    notify: (input) => classified(notifyOfWait(dependencies, input)),
    'run-tool': (input) => classified(runTool(dependencies, input)),
  };
}

/** Reading what is missing heals it; the workflow looks again afterwards. */
async function healBySlots(dependencies: ActivityDependencies, { identity, slots }: HealInput): Promise<void> {
  const stopHeartbeat = startHeartbeat(Context.current());
  try {
    await readHealed(dependencies, keyOf(identity), slots);
  } finally {
    stopHeartbeat();
  }
}

/** Every failure leaves an activity in the classifier's words. */
async function classified<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw toApplicationFailure(error);
  }
}
