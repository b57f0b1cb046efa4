/**
 * What a tool finds around it: its conversation's memory channel and episodes, the scope's HISTORY, and what its application shares with
 * its tools.
 */
import type { Context } from '@temporalio/activity';
import { windowFinder } from '../model-step/prompt-budget.js';
import type { AgentConfig } from '../../agents/agent-config.js';
import type { RunToolInput, AppContextRef, ToolFinished, ValuesRef } from '../../conversation/turn/model-step-effects.js';
import { NO_USAGE, type Usage, type JsonObject } from '../../records/message.js';
import type { CallInTree, MemoryThen, ParentLink, SharedMemory } from '../../records/identity.js';
import type { AgentMemory, ItemPlace } from '../../records/memory/agent-memory.js';
import { itemId } from '../../memory/channel/items-of-entries.js';
import { openMemory, withOthers, type OpenMemory } from '../../memory/channel/open-memory.js';
import { createAsker, summarizers } from '../ask-model.js';
import type { ConversationDependencies, TraceStore } from '../dependencies.js';
import { createRecall } from '../../memory/recall/recall.js';
import { readEpisodes } from '../../memory/past-life.js';
import type { ConversationKey } from '../../stores/store.js';
import type { ToolContext } from '../../tools/tool.js';

interface Surroundings {
  readonly input: RunToolInput;
  readonly memory: AgentMemory;
  readonly shared: JsonObject;
  readonly signal: AbortSignal;
}

export function toolContext(
  { workspace, store, key, identity, recall = createRecall({ store }), now = Date.now }: ConversationDependencies,
  { input, memory, shared, signal }: Surroundings,
): ToolContext {
  const { namespace, scope, conversation, life } = key;
  const { turn, callId } = input;
  return {
    workspace,
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
    openMemory({ ...shared, place: { ...key, ...of, session }, asOf: momentOf(moment) }),
  );
  if (until !== null) {
    return withOthers(memory, { snapshots: [openMemory({ ...shared, place, asOf: momentOf({ until, before, calls }) }), ...snapshots] });
  }
  return withOthers(memory, { shared: openMemory({ ...shared, place, slot: at, calls: callsOf(key, parent.memory, slot) }), snapshots });
}

function momentOf({ until, before, calls }: Pick<MemoryThen, 'until' | 'before' | 'calls'>): NonNullable<OpenMemory['asOf']> {
  return { at: until, ...(before !== undefined && { slot: before }), ...(calls && { calls }) };
}

/** The calls of a tree down to the one with its result in `slot`. */
export function callsOf({ life }: ConversationKey, { calls = [] }: Pick<SharedMemory, 'calls'>, slot: number): readonly CallInTree[] {
  return [...calls, { life, slot }];
}

/** Where the items are that a sub-agent sees besides its conversation's; undefined where it sees those alone. */
export function sharedPlace(key: ConversationKey, { conversation, life, memory }: ParentLink): ItemPlace | undefined {
  if (!memory) return undefined;
  return { ...key, ...(memory.of ?? { conversation, life }), session: memory.session };
}

/** UTF-8 bytes of a change that travels in the tool's result too, so that healing has it. */
const HEALED_BYTES = 4 * 1024;

/**
 * What an application shares with its tools (seed 003, Context): one body of JSON, which a sub-agent reads where its parent has it. Empty
 * where there is none. What the store has lost is an error: a tool that goes on without it could do harm.
 */
export async function readAppContext(dependencies: TraceStore, at: AppContextRef | undefined): Promise<JsonObject> {
  if (!at) return {};
  const all = await Promise.all([at, ...(at.changes ?? [])].map((one) => readValues(dependencies, one)));
  return withoutNulls(all.reduce((values, change) => ({ ...values, ...change }), {}));
}

/** The whole as `change` leaves it, and the change alone: others may have changed it meanwhile. A key that is null goes. */
export async function writeAppContext(
  { store, key }: TraceStore,
  { shared, on, change }: { readonly shared: JsonObject; readonly on: AppContextRef | undefined; readonly change: JsonObject },
): Promise<Required<Pick<ToolFinished, 'appContext' | 'contextChange'>>> {
  const put = (values: JsonObject): Promise<{ readonly ref: string }> => store.bodies.put(key, JSON.stringify(values));
  const [whole, part] = await Promise.all([put(withoutNulls({ ...shared, ...change })), put(change)]);
  const isShort = Buffer.byteLength(JSON.stringify(change)) <= HEALED_BYTES;
  return { appContext: { ref: whole.ref }, contextChange: { ref: part.ref, on: on ?? null, ...(isShort && { values: change }) } };
}

async function readValues({ store, key }: TraceStore, { ref, origin }: ValuesRef): Promise<JsonObject> {
  const text = await store.bodies.get({ ...key, ...origin }, ref);
  if (text === undefined)
    throw new Error(`cannot read the context that tools share (${ref}): the store has lost it; send it again with a message`);
  return JSON.parse(text) as JsonObject;
}

function withoutNulls(values: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
}
