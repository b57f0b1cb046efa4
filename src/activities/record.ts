/** The `record` step: messages, settlements and facts to the store, and the agent's settings back. All of it may be done again. */
import { createHash } from 'node:crypto';
import { compactionRatio, inputBudget, thresholdsOf } from './budget.js';
import type { AgentConfig } from '../agents/agent-config.js';
import { AgentConfigError } from '../agents/load-agent.js';
import type {
  AgentSettings,
  Configured,
  ConfigureRequest,
  MessageToRecord,
  QueuedAgain,
  Recorded,
  RecordInput,
} from '../conversation/effects.js';
import type { FeedEvent } from '../conversation/contract.js';
import { userEntry } from '../conversation/entries.js';
import type { Entry, JsonValue } from '../conversation/message.js';
import { mediaBytes } from '../conversation/media.js';
import { beginningOf } from '../conversation/text.js';
import { ModelFailure } from '../models/model.js';
import { splitModel } from '../models/registry.js';
import { tokenCounterFor } from '../models/token-counter.js';
import { DocumentRefused, type ConversationKey, type Recording, type Store } from '../stores/store.js';
import { UnknownTools } from '../tools/registry.js';
import { checkCompactor, createCompactorRegistry, UnknownCompactor } from '../memory/compaction/compactor.js';
import { memoryBundle } from '../memory/compaction/snapshot.js';
import { processInput } from '../memory/process-input.js';
import { memoryIngest, type InputProcessor } from '../memory/processors.js';
import type { MemoryText } from '../memory/documents/documents.js';
import { NO_MEMORY_VERSION } from '../memory/documents/memory-version.js';
import { retrieve } from '../memory/retrieval.js';
import { mediaToRefs, RESULT_INLINE, TEXT_INLINE, toBody } from '../memory/bodies.js';
import type { ActivityDependencies } from './index.js';
import { fixedTokens } from './fixed-tokens.js';
import { systemPrompt } from './system-prompt.js';
import { keyOf } from './key.js';
import { toolsOf } from './tools-of.js';

const HAND_OVER = { events: 3_000, bytes: 2 * 1024 * 1024, updates: 1_500 };

export async function record(dependencies: ActivityDependencies, input: RecordInput): Promise<Recorded> {
  const { store } = dependencies;
  const key = keyOf(input.identity);
  const [messages, configured, back, base, startContext] = await Promise.all([
    Promise.all(input.messages.map((message) => recordMessage(store, key, message, dependencies.processors?.input))),
    input.configure ? configure(dependencies, key, input.configure) : null,
    readBack(store, key, input.readBack),
    input.opensSession ? openingBase(store, key) : undefined,
    putJson(store, key, input.startContext),
    settle(store, key, input),
    announce(store, key, input),
  ]);
  return {
    messages,
    configured,
    ...(back.length > 0 ? { readBack: back } : {}),
    ...(base ? { base } : {}),
    ...(startContext === undefined ? {} : { startContext }),
    ...(input.asksAttributes ? { attributes: (await dependencies.hasSearchAttributes?.()) ? 'registered' : 'missing' } : {}),
  };
}

/** Design section 4: the first epoch of a session carries already what the scope knows. */
async function openingBase(store: Store, key: ConversationKey): Promise<Recorded['base']> {
  const { facts } = await store.facts.list(key);
  const text = memoryBundle(retrieve([], facts));
  if (text === '') return undefined;
  const { ref } = await store.bodies.put(key, text);
  return { ref, text };
}

/** Queued messages that only the store has any more. */
async function readBack(store: Store, key: ConversationKey, slots: readonly number[]): Promise<QueuedAgain[]> {
  if (slots.length === 0) return [];
  const entries = await store.entries.read(key, slots);
  return entries.map((entry, i) => {
    const slot = slots[i] ?? 0;
    if (entry?.message.role !== 'user' || entry.messageId === undefined) {
      return { slot, messageId: '', turn: '', session: 0, at: 0, bytes: 0, lost: true };
    }
    const { messageId, turn, session, ts, message } = entry;
    const bytes = typeof message.text === 'string' ? Buffer.byteLength(message.text) : message.text.bytes;
    return { slot, messageId, turn, session, at: Math.round(ts * 1000), bytes };
  });
}

async function recordMessage(
  store: Store,
  key: ConversationKey,
  message: MessageToRecord,
  processors: readonly InputProcessor[] = [],
): Promise<Recorded['messages'][number]> {
  const { messageId, slot, turn, session, ts, movedFrom } = message;
  let recording: Recording = {};
  const ingest = memoryIngest('MemoryIngestInputProcessor', async (text: string) => {
    const body = await toBody(store, key, text.toWellFormed(), TEXT_INLINE);
    recording = await store.entries.record(key, userEntry(message, body, await mediaToRefs(store, key, message)), movedFrom);
  });
  const text = await processInput([...processors, ingest], key, message);
  const bytes = Buffer.byteLength(text) + mediaBytes(message);
  const [output, context] = await Promise.all([putJson(store, key, message.output), putJson(store, key, message.context)]);
  const refs = { ...(output === undefined ? {} : { output }), ...(context === undefined ? {} : { context }) };
  const { duplicate, taken } = recording;
  const same = duplicate && { duplicate: duplicate.turn, first: duplicate.slot };
  return { messageId, slot, turn, session, ts, bytes, ...refs, ...same, ...(taken && { taken }) };
}

/** Where it lies as JSON text; state and history carry the reference. */
async function putJson(store: Store, key: ConversationKey, value: JsonValue | undefined): Promise<string | undefined> {
  return value === undefined ? undefined : (await store.bodies.put(key, JSON.stringify(value))).ref;
}

/** Fence first, then answer in the effect's place: an effect that has committed keeps its own entry. */
async function settle(store: Store, key: ConversationKey, { settle: settlements }: RecordInput): Promise<void> {
  if (settlements.length === 0) return;
  await store.effects.fence(
    key,
    settlements.map(({ effect }) => effect),
  );
  const entries = await Promise.all(settlements.flatMap(({ entry }) => (entry ? [withTextStored(store, key, entry)] : [])));
  if (entries.length > 0) await store.entries.append(key, entries);
}

/** A sub-agent's report, or a person's answer, may be long. */
async function withTextStored(store: Store, key: ConversationKey, entry: Entry): Promise<Entry> {
  const { message } = entry;
  if (message.role !== 'tool' || typeof message.text !== 'string') return entry;
  return { ...entry, message: { ...message, text: await toBody(store, key, message.text, RESULT_INLINE) } };
}

async function announce(store: Store, key: ConversationKey, { messages, facts }: RecordInput): Promise<void> {
  const arrived = messages.map(({ turn, messageId, text, ts }): FeedEvent => ({
    kind: 'message',
    turn,
    messageId,
    preview: beginningOf(text, 200),
    ts,
  }));
  const events = [...arrived, ...facts];
  if (events.length > 0) await store.feed.publish(key, events as unknown as JsonValue[]).catch(() => undefined);
}

async function configure(dependencies: ActivityDependencies, key: ConversationKey, request: ConfigureRequest): Promise<Configured> {
  try {
    const settings = await settingsOf(dependencies, key, request);
    return settings.hash === request.knownHash ? { kind: 'unchanged' } : { kind: 'settings', settings };
  } catch (error) {
    if (error instanceof AgentConfigError) return { kind: 'unusable', type: error.kind, message: error.message };
    if (error instanceof UnknownTools || error instanceof UnknownCompactor)
      return { kind: 'unusable', type: 'bad-config', message: `agent "${request.agent}": ${error.message}` };
    if (error instanceof DocumentRefused) return { kind: 'unusable', type: 'bad-memory', message: error.message };
    if (error instanceof ModelFailure) return { kind: 'unusable', type: error.kind, message: error.message };
    throw error;
  }
}

/** Where the version that was known is gone, the store has lost it: it stays, and the model call, which has time, brings it back. */
async function currentMemory(
  { store, lostMemories }: Pick<ActivityDependencies, 'store' | 'lostMemories'>,
  key: ConversationKey,
  known: string | undefined,
): Promise<MemoryText> {
  const memory = await store.documents.memory(key);
  if (known === undefined || known === NO_MEMORY_VERSION || known === memory.version || lostMemories?.has(known)) return memory;
  return (await store.documents.memoryText(key, known)) === undefined ? { version: known, text: '' } : memory;
}

async function settingsOf(dependencies: ActivityDependencies, key: ConversationKey, request: ConfigureRequest): Promise<AgentSettings> {
  const { agents, defaultModel, store, lostMemories, notify, compactors = createCompactorRegistry() } = dependencies;
  const [agent, { version, text }, forgotten] = await Promise.all([
    agents(request.agent, request.scope),
    currentMemory({ store, lostMemories }, key, request.knownMemory),
    store.documents.forgotten(key),
  ]);
  const { config, hash } = agent;
  const model = request.model ?? config.model ?? defaultModel;
  splitModel(model);
  checkCompactor(compactors, config.context.compactor);
  // Nobody waits for a server here; the model call does, once.
  const [{ offered }, { by, count }] = await Promise.all([toolsOf(dependencies, key, agent, { patienceMs: 0 }), tokenCounterFor(model)]);
  const { handOver } = config.limits;
  const notifies = notify !== undefined;
  const settings = {
    agentHash: hash.slice(0, 16),
    model,
    maxTokens: config.maxTokens,
    maxToolRounds: config.limits.maxToolRounds,
    contextBudget: inputBudget(config, model),
    compactionRatio: compactionRatio(config, model),
    fixedTokens: fixedTokens(systemPrompt(agent, text), offered, count),
    ...(by !== 'estimate' && { tokenizer: by }),
    handOver: { ...HAND_OVER, ...handOver },
    thresholds: thresholdsOf(config, model, offered),
    ...budgetOf(config),
    ...(notifies && { notifies }),
    memory: {
      window: config.memory.memoryWindow,
      keep: config.memory.keepCount,
      timeoutMs: config.memory.consolidationTimeout,
      version,
      forgotten: forgotten.length,
    },
  };
  // What a server's tools are, no file says.
  const changing =
    agent.servers.length === 0 ? '' : JSON.stringify(offered.map(({ name, description, inputSchema }) => [name, description, inputSchema]));
  const ofAll = createHash('sha256').update(hash).update(JSON.stringify(settings)).update(changing).digest('hex').slice(0, 16);
  return { hash: ofAll, ...settings };
}

function budgetOf({ limits: { maxCostUsd, maxTokens } }: AgentConfig): Pick<AgentSettings, 'budget'> {
  if (maxCostUsd === undefined && maxTokens === undefined) return {};
  return { budget: { ...(maxCostUsd === undefined ? {} : { maxCostUsd }), ...(maxTokens === undefined ? {} : { maxTokens }) } };
}
