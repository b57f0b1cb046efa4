/** The effects of a conversation. Dependencies come in once, here; the type is what workflows see. */
import { Context } from '@temporalio/activity';
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
import { care, type CareInput } from './memory/care.js';
import { compact, uncompact } from './context/compact.js';
import { truncate } from './context/truncate.js';
import { consolidate, askMemory } from './memory/consolidate.js';
import { readHealed } from './context/context.js';
import { forget, review, type ForgetInput, type ReviewInput } from './memory/decide-memory.js';
import { toApplicationFailure } from './failures.js';
import { startHeartbeat } from './heartbeat.js';
import { keyOf } from './key.js';
import { evict } from './memory/evict.js';
import { lookAfter, type LookAfterInput } from './look-after.js';
import { modelStep } from './model-step/model-step.js';
import { notifyOfWait } from './notify.js';
import { openOrigin } from './lineage/open-origin.js';
import { remember } from './memory/remember.js';
import { rewind } from './lineage/rewind.js';
import { runTool } from './tools/run-tool.js';
import { storeStep, recall } from './store-step.js';
import type { ActivityDependencies } from './dependencies.js';

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
    evict: (input) => classified(evict(dependencies, input)),
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
