/** The effects of a conversation. Dependencies come in once, here; the type is what workflows see. */
import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type {
  AskMemoryInput,
  ConsolidateInput,
  Consolidated,
  Evicted,
  EvictInput,
  Remembered,
  RememberInput,
  CompactInput,
  Compacted,
  TruncateInput,
  Truncated,
  UncompactInput,
} from '../conversation/context/compaction-effects.js';
import type { DeliverInput, GcOutcome, RetentionOutcome, WebhookDelivery, WebhookOutcome } from '../conversation/outbox/webhook-effects.js';
import type { HealInput, Recalled, RecallInput, StoreStepInput, StoreStepResult } from '../conversation/outbox/writes.js';
import type {
  MadeTitle,
  ModelStepInput,
  ModelStepResult,
  TitleInput,
  RunToolInput,
  ToolFinished,
} from '../conversation/turn/model-step-effects.js';
import type { OpenedOrigin, OpenOriginInput, RewindInput, Rewound } from '../conversation/lineage/lineage-effects.js';
import type { Forgotten, Reviewed } from '../conversation/protocol/memory-contract.js';
import { care, type CareInput } from './memory/care.js';
import { compact, uncompact } from './context/compact.js';
import { truncate, readHealed } from './context/context.js';
import { consolidate, askMemory } from './memory/consolidate.js';
import { forget, review, type ForgetInput, type ReviewInput, remember } from './memory/decide-memory.js';
import { withHeartbeat, makeWorkspace, ofConversation } from './key.js';
import { failureWithoutSecrets, toApplicationFailure } from './failures.js';
import { createRecall } from '../memory/recall/recall.js';
import { modelsWithoutSecrets } from '../models/without-secrets.js';
import { createKnownSecrets, type KnownSecrets } from '../platform/known-secrets.js';
import { evict } from './memory/evict.js';
import { createRateLimiter, withinLimits } from './rate-limiter.js';
import { modelStep } from './model-step/model-step.js';
import { openOrigin } from './lineage/open-origin.js';
import { rewind } from './lineage/past.js';
import { runTool } from './tools/run-tool.js';
import { makeTitle } from './make-title.js';
import { deliver, postWebhook } from './webhooks/deliver.js';
import { storeStep, recall } from './store-step.js';
import { createTenantBudgets } from './tenant-budgets.js';
import type { ActivityDependencies, ConversationDependencies } from './dependencies.js';
import type { ConversationIdentity } from '../records/identity.js';

export interface LookAfterInput {
  readonly child: string;
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
  deliver(input: DeliverInput): Promise<void>;
  'post-webhook'(delivery: WebhookDelivery): Promise<WebhookOutcome>;
  retain(input: object): Promise<RetentionOutcome>;
  collect(input: object): Promise<GcOutcome>;
  title(input: TitleInput): Promise<MadeTitle>;
  'run-tool'(input: RunToolInput): Promise<ToolFinished>;
}

export function createActivities(given: ActivityDependencies): Activities {
  const { secrets = createKnownSecrets() } = given;
  const tenantBudgets = createTenantBudgets(given, given.tenantBudgetRules);
  const store = tenantBudgets?.counting(given.store) ?? given.store;
  const models = modelsWithoutSecrets(given.models, secrets);
  const limiter = createRateLimiter({ limits: store.rateLimits, models }, given.now);
  const dependencies = {
    lostMemories: new Set<string>(),
    recall: createRecall({ store }),
    limiter,
    ...given,
    store,
    models,
    secrets,
    tenantBudgets,
  };
  const classified = <T>(work: () => Promise<T>): Promise<T> => leaving(secrets, work);
  return {
    'model-step': ofOne(dependencies, beating(inWorkspace(modelStep))),
    'store-step': ofOne(dependencies, storeStep),
    recall: ofOne(dependencies, recall),
    heal: ofOne(dependencies, beating(healBySlots)),
    compact: ofOne(dependencies, compact),
    uncompact: ofOne(dependencies, uncompact),
    'ask-memory': ofOne(dependencies, askMemory),
    evict: ofOne(dependencies, evict),
    'open-origin': ofOne(dependencies, beating(openOrigin)),
    rewind: ofOne(dependencies, beating(rewind)),
    consolidate: (input) => classified(() => beating(consolidate)(ofScope(dependencies, input.scope), input)),
    remember: (input) => classified(() => remember(store, input)),
    forget: (input) => classified(() => forget(store, input)),
    review: (input) => classified(() => review(store, input)),
    care: (input) => classified(() => beating(care)(ofScope(dependencies, input.scope), input)),
    'look-after': (input) => classified(() => lookAfter(dependencies, input)),
    truncate: ofOne(dependencies, truncate),
    deliver: ofOne(dependencies, deliver),
    'post-webhook': (delivery) => classified(() => beating(postWebhook)(dependencies, delivery)),
    retain: () => classified(() => beating(retain)(dependencies, {})),
    collect: () => classified(() => beating(collect)(dependencies, {})),
    title: ofOne(dependencies, makeTitle),
    'run-tool': ofOne(dependencies, beating(inWorkspace(runTool))),
  };
}

/** Which conversation an activity works for is found once, here: what it calls has it among its dependencies. */
function ofOne<Input extends { readonly identity: ConversationIdentity }, Output>(
  dependencies: ActivityDependencies & { readonly secrets: KnownSecrets },
  perform: (dependencies: ConversationDependencies, input: Input) => Promise<Output>,
): (input: Input) => Promise<Output> {
  return (input) => leaving(dependencies.secrets, async () => perform(ofConversation(dependencies, input.identity), input));
}

/** For work on a scope's memory. */
function ofScope<Dependencies extends ActivityDependencies>(dependencies: Dependencies, scope: string): Dependencies {
  return { ...dependencies, models: withinLimits(dependencies.models, dependencies.limiter, scope) };
}

/** Where tools run, or are looked at. */
function inWorkspace<Input, Output>(
  perform: (dependencies: ConversationDependencies, input: Input) => Promise<Output>,
): (dependencies: ConversationDependencies, input: Input) => Promise<Output> {
  return async (dependencies, input) => {
    await makeWorkspace(dependencies.workspace, dependencies.key.scope);
    return perform(dependencies, input);
  };
}

/** Reading what is missing heals it; the workflow looks again afterwards. */
async function healBySlots(dependencies: ConversationDependencies, { slots }: HealInput): Promise<void> {
  await readHealed(dependencies, slots);
}

/** How a sub-agent of an earlier run stands. */
async function lookAfter({ workflowStatus }: ActivityDependencies, { child }: LookAfterInput): Promise<string> {
  if (workflowStatus) return workflowStatus(child);
  throw ApplicationFailure.nonRetryable(`cannot look after ${child}: this worker has no way to ask Temporal`, 'not-available');
}

/** Which conversations are kept for how long is the worker's setting. */
async function retain({ retain: work }: ActivityDependencies): Promise<RetentionOutcome> {
  const { cancellationSignal } = Context.current();
  return work ? work(cancellationSignal) : { deleted: 0, kept: 0 };
}

async function collect({ collect: work }: ActivityDependencies): Promise<GcOutcome> {
  const { cancellationSignal } = Context.current();
  if (work) return work(cancellationSignal);
  throw ApplicationFailure.nonRetryable('nothing is collected: this worker has no way to do it', 'not-available');
}

/** With signs of life for as long as it runs. */
function beating<Dependencies, Input, Output>(
  perform: (dependencies: Dependencies, input: Input) => Promise<Output>,
): (dependencies: Dependencies, input: Input) => Promise<Output> {
  return (dependencies, input) => withHeartbeat(Context.current(), () => perform(dependencies, input));
}

/** Every failure leaves an activity in the classifier's words; and nothing that this worker knows as a secret enters history. */
async function leaving<T>(secrets: KnownSecrets, work: () => Promise<T>): Promise<T> {
  try {
    return secrets.redactIn(await work());
  } catch (error) {
    throw failureWithoutSecrets(toApplicationFailure(error), secrets);
  }
}
