/** The effects of a conversation. Dependencies come in once, here; the type is what workflows see. */
import { Context } from '@temporalio/activity';
import type { AgentLoader } from '../agents/load-agent.js';
import type {
  CallModelInput,
  CompactInput,
  Compacted,
  HealInput,
  ModelAnswer,
  Recalled,
  RecallInput,
  Recorded,
  RecordInput,
  RunToolInput,
  ToolFinished,
  UncompactInput,
} from '../conversation/effects.js';
import type { Processors } from '../memory/processors.js';
import type { ModelHook } from '../models/hooks.js';
import type { Model } from '../models/model.js';
import type { Healed } from '../heal/heal.js';
import type { ConversationKey, Store } from '../stores/store.js';
import type { ToolRegistry } from '../tools/registry.js';
import { callModel } from './call-model.js';
import { compact, uncompact } from './compact.js';
import { readHealed } from './context.js';
import { toApplicationFailure } from './failures.js';
import { startHeartbeat } from './heartbeat.js';
import { keyOf } from './key.js';
import { persist, type PersistInput } from './persist.js';
import { recall } from './recall.js';
import { record } from './record.js';
import { runTool } from './run-tool.js';

export interface ActivityDependencies {
  readonly store: Store;
  readonly models: (name: string) => Model;
  readonly agents: AgentLoader;
  readonly tools: ToolRegistry;
  /** Real path that file tools stay inside. */
  readonly workspace: string;
  /** For conversations and agents that name none. */
  readonly defaultModel: string;
  /** Rebuilds from history what the store has lost. Without it a gap stays one. */
  readonly heal?: (key: ConversationKey) => Promise<Healed>;
  /** Whether our search attributes are registered where the worker works. Quick: asked inside a local activity. */
  readonly hasSearchAttributes?: () => Promise<boolean>;
  /** Of what people say, and of what tools answer; in their order, before it is stored. */
  readonly processors?: Processors;
  readonly hooks?: readonly ModelHook[];
  /** Milliseconds; tests shorten them. */
  readonly modelTimeouts?: { readonly idleMs?: number; readonly totalMs?: number };
}

export interface Activities {
  record(input: RecordInput): Promise<Recorded>;
  persist(input: PersistInput): Promise<void>;
  recall(input: RecallInput): Promise<Recalled>;
  heal(input: HealInput): Promise<void>;
  compact(input: CompactInput): Promise<Compacted>;
  uncompact(input: UncompactInput): Promise<void>;
  'call-model'(input: CallModelInput): Promise<ModelAnswer>;
  'run-tool'(input: RunToolInput): Promise<ToolFinished>;
}

export function createActivities(dependencies: ActivityDependencies): Activities {
  const { store } = dependencies;
  return {
    record: (input) => classified(record(dependencies, input)),
    persist: (input) => classified(persist(store, input)),
    recall: (input) => classified(recall(store, input)),
    heal: (input) => classified(healBySlots(dependencies, input)),
    compact: (input) => classified(compact(dependencies, input)),
    uncompact: (input) => classified(uncompact(store, input)),
    'call-model': (input) => classified(callModel(dependencies, input)),
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
