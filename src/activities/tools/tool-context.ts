/** What a tool finds around it: its conversation's memory channel and episodes, and the scope's HISTORY. */
import type { Context } from '@temporalio/activity';
import { windowFinder } from '../model-step/prompt-budget.js';
import type { AgentConfig } from '../../agents/agent-config.js';
import type { RunToolInput } from '../../conversation/turn/model-step-effects.js';
import { NO_USAGE, type Usage, type JsonObject } from '../../records/message.js';
import { readTenant, type CallInTree, type MemoryThen, type ParentLink, type SharedMemory } from '../../records/identity.js';
import type { AgentMemory, ItemPlace } from '../../records/memory/agent-memory.js';
import { itemId } from '../../memory/channel/items-of-entries.js';
import { openMemory, withOthers, type OpenMemory } from '../../memory/channel/open-memory.js';
import { createAsker, summarizers } from '../ask-model.js';
import type { ConversationDependencies } from '../dependencies.js';
import { createRecall } from '../../memory/recall/recall.js';
import { readEpisodes } from '../../memory/past-life.js';
import type { ConversationKey } from '../../stores/store.js';
import type { ExamineContext, ToolContext } from '../../tools/tool.js';

interface Surroundings {
  readonly input: RunToolInput;
  readonly config: AgentConfig;
  readonly memory: AgentMemory;
  readonly shared: JsonObject;
  readonly signal: AbortSignal;
}

/** Where calls of an agent are examined and run. */
export function placeOfCalls(
  { workspace, identity }: Pick<ConversationDependencies, 'workspace' | 'identity'>,
  { sandbox }: Pick<AgentConfig, 'sandbox'>,
): ExamineContext {
  const tenant = readTenant(identity.scope);
  return { workspace, sandbox, ...(tenant !== undefined && { tenant }) };
}

export function toolContext(dependencies: ConversationDependencies, { input, config, memory, shared, signal }: Surroundings): ToolContext {
  const { store, key, identity, recall = createRecall({ store }), now = Date.now } = dependencies;
  const { namespace, scope, conversation, life } = key;
  const { turn, callId } = input;
  return {
    ...placeOfCalls(dependencies, config),
    commandHosts: config.commandHosts,
    signal,
    conversation,
    turn,
    callId,
    idempotencyKey: `${namespace}/${life}/${callId}`,
    now: () => new Date(now()),
    memory,
    context: shared,
    history: () => store.documents.history({ namespace, scope }),
    recall: {
      search: (query) =>
        recall.search({ namespace, scope }, { ...query, except: { conversation, life, turn }, payer: { key, agent: identity.agent } }),
      open: (address, around) => recall.open({ namespace, scope }, address, around),
      files: (address) => recall.files({ namespace, scope }, address),
    },
    episodes: () => readEpisodes(store, key, input.session),
  };
}

const SUMMARY_TOKENS = 1_024;

export interface ToolMemory {
  readonly memory: AgentMemory;
  /** What summaries have taken, and of which model; undefined when none was made. */
  readonly spent: () => { readonly model: string; readonly usage: Usage } | undefined;
}

/**
 * The memory channel of the call's conversation and session. `model`: `provider/model` that called the tool; it summarizes where the agent
 * names no other.
 */
export function toolMemory(
  dependencies: ConversationDependencies,
  input: RunToolInput,
  { config, model, activity }: { readonly config: AgentConfig; readonly model: string; readonly activity: Context },
): ToolMemory {
  const { store, key, models, now = Date.now } = dependencies;
  const maxTokens = Math.min(SUMMARY_TOKENS, config.maxTokens);
  const contextWindow = windowFinder(models, config, model);
  const summarizer = summarizers(dependencies, config, { model, fallback: input.fallback });
  const { ask, spent, model: answeredBy } = createAsker({ models, ...summarizer, activity, maxTokens, contextWindow });
  // 0 is the tool's result.
  let stored = 0;
  const memory = openMemory({
    store,
    place: { ...key, session: input.session },
    slot: input.slot,
    nextId: () => itemId(key, input.callId, (stored += 1)),
    now: () => new Date(now()),
    ask,
  });
  const whole = withParents(dependencies, input, memory);
  const { secrets } = dependencies;
  const clean: AgentMemory = secrets ? { ...whole, store: (item) => whole.store(secrets.redactIn(item)) } : whole;
  return { memory: clean, spent: () => (spent() === NO_USAGE ? undefined : { model: answeredBy(), usage: spent() }) };
}

/** Of a sub-agent: it also sees what its parents have stored, as far as their settings allow. */
function withParents(
  { store, key, now = Date.now }: ConversationDependencies,
  { parent, callId, slot }: RunToolInput,
  memory: AgentMemory,
): AgentMemory {
  const place = parent && sharedPlace(key, parent);
  if (!place || !parent?.memory) return memory;
  const { until, before, at, calls, besides = [] } = parent.memory;
  let stored = 0;
  // Not the ids of its conversation: an item that it stores there is not a result of its tools.
  const shared = { store, nextId: () => itemId(key, callId, (stored += 1)), now: () => new Date(now()) };
  const snapshots = besides.map(({ of, session, ...moment }) =>
    openMemory({ ...shared, place: { ...key, ...of, session }, asOf: toMoment(moment) }),
  );
  if (until !== null) {
    return withOthers(memory, { snapshots: [openMemory({ ...shared, place, asOf: toMoment({ until, before, calls }) }), ...snapshots] });
  }
  return withOthers(memory, {
    shared: openMemory({ ...shared, place, slot: at, calls: callsDownTo(key, parent.memory, slot) }),
    snapshots,
  });
}

function toMoment({ until, before, calls }: Pick<MemoryThen, 'until' | 'before' | 'calls'>): NonNullable<OpenMemory['asOf']> {
  return { at: until, ...(before !== undefined && { slot: before }), ...(calls && { calls }) };
}

/** The calls of a tree down to the one with its result in `slot`. */
export function callsDownTo({ life }: ConversationKey, { calls = [] }: Pick<SharedMemory, 'calls'>, slot: number): readonly CallInTree[] {
  return [...calls, { life, slot }];
}

/** Where the items are that a sub-agent sees besides its conversation's; undefined where it sees those alone. */
export function sharedPlace(key: ConversationKey, { conversation, life, memory }: ParentLink): ItemPlace | undefined {
  if (!memory) return undefined;
  return { ...key, ...(memory.of ?? { conversation, life }), session: memory.session };
}
