/** The one place where a request is assembled (seed 000, section 18: `prepareRequest`). What it reads is stable within a turn. */
import { Context, log } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import pLimit from 'p-limit';
import type { AgentConfig } from '../../agents/agent-config.js';
import type { LoadedAgent } from '../../agents/load-agent.js';
import type { CallInput, MadeCitation, ModelStepInput, ModelStepResult } from '../../conversation/turn/model-step-effects.js';
import { shownText, type ClientTool, type ConversationMessage, type JsonObject, isFromPerson } from '../../records/message.js';
import { countMessageTokens, estimateStringTokens, type CountTokens } from '../../memory/tokens.js';
import { estimateMediaTokens, measureTokens, type EstimatedPrompt } from '../../records/token-estimate.js';
import { ModelFailure, type ModelRequest } from '../../models/model.js';
import { describeDocument } from '../../models/shown.js';
import { normalize } from '../../models/normalize.js';
import { splitModel } from '../../models/known-models.js';
import { tokenCounterFor, type TokenCounter } from '../../models/token-counter.js';
import { parseClientTools, toBeCalled, toTools } from '../../tools/client-tools.js';
import type { Tool } from '../../tools/tool.js';
import {
  leavesBase,
  listFiles,
  listUnproven,
  readRefused,
  withoutFiles,
  withoutMessages,
  type FileInPrompt,
  type Unproven,
} from './refused-input.js';
import { listSlots } from '../../records/slots.js';
import { findContextWindow, fixedTokens, limitedTo, windowFinder } from './prompt-budget.js';
import { fitting, loadBase, loadContext, loadMemory, type ContextMessage, type Citing } from '../context/context.js';
import type { CallSettings } from '../../conversation/state/settings.js';
import type { ConversationDependencies } from '../dependencies.js';
import { hashRequest } from '../key.js';
import { systemPrompt } from '../../agents/system-prompt.js';
import { SERVER_PATIENCE_MS, canOpenMemory, findTools, hasMemoryChannel } from '../tools/tools-of.js';
import { isKept, newFrom, type KeptResult } from '../../conversation/context/citing.js';
import { readText } from '../../memory/bodies.js';
import { MEMORY_TOOLS } from '../../records/memory/agent-memory.js';
import { citeOld, frameNew } from '../../memory/channel/citations.js';
import { CITATION_SCHEMA, compactByModel } from '../../memory/channel/compaction-plugin.js';
import { createAsker, summarizers, type Asker } from '../ask-model.js';
import { noteSpending, toSpending } from '../effect.js';
import { messageSchemaRefusal } from '../../platform/json-schema/check.js';
import { withTimeoutSignal } from '../../platform/promises.js';
import { errorMessage } from '../../platform/errors.js';
import { isoTime } from '../../records/text.js';

/** A call as it is to be made, with the settings that hold for it. */
export interface CallToMake extends CallInput, Pick<CallSettings, 'agentHash' | 'model' | 'memory' | 'contextBudget'> {
  readonly session: number;
  readonly turn: string;
  /** The agent's list of models after this one. */
  readonly fallback?: readonly string[] | undefined;
}

/** The call of a step, with the settings that hold for it and what the step has written and found. */
export function toCall(
  input: ModelStepInput,
  { agentHash, model, memory, contextBudget, fallback }: CallSettings,
  { written, base }: Pick<ModelStepResult, 'written' | 'base'>,
): CallToMake {
  const { call, session, turn, pinned } = input;
  return {
    ...{ ...call, ...messageRefs(input, written), base: base?.ref ?? call.base },
    ...{ session, turn, agentHash, model, fallback: fallback?.next, contextBudget },
    memory: { ...memory, version: pinned?.version ?? memory.version },
  };
}

/** References to the schema and tools of the turn's message, which this step may just have stored. */
function messageRefs({ call, turn, write }: ModelStepInput, { messages }: ModelStepResult['written']): Pick<CallInput, 'output' | 'tools'> {
  const first = write.messages.find((message) => message.turn === turn && message.seq === 1);
  const stored = messages.find(({ slot }) => slot === first?.slot);
  const output = call.output ?? stored?.output;
  const tools = call.tools ?? stored?.tools;
  return { ...(output !== undefined && { output }), ...(tools !== undefined && { tools }) };
}

export interface PreparedRequest {
  readonly request: ModelRequest;
  readonly config: AgentConfig;
  /** The tools that are offered, in the order of the request. */
  readonly offered: readonly Tool[];
  /** Hash of what every request of this epoch begins with: model, system prompt, tools, the epoch's base. */
  readonly prefix: string;
  /** What is sent, by estimate. Absent: a tokenizer counts it. */
  readonly estimated?: EstimatedPrompt;
  /** True: the provider's server may cut the prompt silently. */
  readonly mayBeCut?: true;
  /** What the turn's answer must fit. */
  readonly schema?: JsonObject;
  /** Newest first; messages that may be left out; and the request with words in the place of some of them. */
  readonly files: () => readonly FileInPrompt[];
  readonly unproven: () => readonly Unproven[];
  readonly without: (words: ReadonlyMap<string, string>) => ModelRequest;
}

/** `made` gets each citation that a model made for this request: healing needs it again. */
export async function prepareRequest(
  dependencies: ConversationDependencies,
  input: CallToMake,
  made: (citation: MadeCitation) => void,
): Promise<PreparedRequest> {
  const { store, key, identity, agents } = dependencies;
  const { base, agentHash } = input;
  const loadingAgent = agents(identity.agent, identity.scope, agentHash);
  const citing = loadingAgent.then(({ config }) => citingFor(dependencies, { input, config, made }));
  // Both may fail before they are awaited.
  citing.catch(() => undefined);
  const opens = loadingAgent.then(({ config }) => canOpenMemory(config, dependencies.tools));
  opens.catch(() => undefined);
  const loading = loadContext(dependencies, input, citing, opens);
  const [agent, messages, before, memory, output, broughtJson, counter, fixedCounter] = await Promise.all([
    loadingAgent,
    loading,
    loadBase(dependencies, { ref: base, forgotten: input.memory.forgotten }, loading),
    loadMemory(dependencies, input.memory.version),
    input.output === undefined ? undefined : store.bodies.get(key, input.output),
    // A store that has lost them is healed while the context is read.
    input.tools === undefined ? undefined : loading.then(() => store.bodies.get(key, input.tools ?? '')),
    tokenCounterFor(input.model, input.tokenRatio),
    tokenCounterFor(input.model, input.fixedRatio ?? input.tokenRatio),
  ]);
  const schema = output === undefined ? undefined : (JSON.parse(output) as JsonObject);
  const brought = parseClientTools(broughtJson);
  await refuseUnusable(schema, brought);
  const config = limitedTo(agent.config, input.model, dependencies.models.limits(input.model));
  const [{ offered: agentTools }, window] = await Promise.all([
    findTools(dependencies, agent, { patienceMs: SERVER_PATIENCE_MS, turn: input.turn }),
    findContextWindow(dependencies.models, config, { model: input.model }),
  ]);
  const all = [...agentTools, ...toTools(brought)];
  // A provider can force a call of any offered tool, not of certain ones, so only the wanted tools are offered.
  const isFirstSince = input.firstToolCall === (input.callsBefore ?? 0) + 1;
  const wanted = isFirstSince ? toBeCalled(brought) : new Set<string>();
  const forced = all.filter(({ name }) => wanted.has(name));
  const offered = forced.length > 0 ? forced : all;
  const read = dependencies.models.limits(input.model).documents ? messages : withoutDocuments(messages, input);
  const left = listSlots(input.refused ?? []);
  const refused = await readRefused(dependencies, read, left);
  const build = (words: ReadonlyMap<string, string>): Omit<PreparedRequest, 'files' | 'unproven' | 'without'> => {
    const agentNow = { config, system: systemPrompt(agent, memory, input.since), shared: agent.system.length };
    const all = new Map([...refused, ...words]);
    const shown = withoutMessages(withoutFiles(read, all), all);
    const whole = assemble(
      agentNow,
      offered,
      leavesBase(all) ? [] : before,
      shown,
      input,
      { ...counter, countFixed: fixedCounter.count },
      schema,
    );
    const request: ModelRequest = {
      ...whole.request,
      ...(forced.length > 0 && { mustCall: true }),
      ...(brought.some(({ single }) => single) && { oneCall: true }),
      ...(input.stop?.at && { stopAt: input.stop.at }),
      cacheKey: hashRequest([key.namespace, key.scope, key.conversation]).slice(0, 32),
      ...(input.isSlow && { cachesForHour: true }),
      ...(window && { contextWindow: window.tokens }),
    };
    if (counter.by !== 'estimate') return { ...whole, request };
    return { ...whole, request, estimated: estimatePrompt(request), ...(window && { mayBeCut: true }) };
  };
  const there = () => read.filter(({ slot }) => slot === undefined || !left.includes(slot));
  const files = () => listFiles(there()).filter(({ id }) => !refused.has(id));
  const hasBase = before.length > 0 && !leavesBase(refused);
  const unproven = () => listUnproven(there(), { turn: input.turn, hasBase });
  return { ...build(new Map()), files, unproven, without: (words) => build(words).request };
}

/** Without what a conversation has learnt: it learns from this. */
function estimatePrompt({ system, tools, messages }: ModelRequest): EstimatedPrompt {
  const media = messages.reduce((sum, message) => sum + (message.role === 'user' ? estimateMediaTokens(message) : 0), 0);
  return {
    fixed: fixedTokens(system, tools, estimateStringTokens) + media,
    messages: countMessageTokens(messages) - media,
    ...(media > 0 && { hasMedia: true }),
  };
}

/** Before anything is paid: entrances refuse such a message, but a signal of another program's client reaches no entrance. */
async function refuseUnusable(output: JsonObject | undefined, tools: readonly ClientTool[]): Promise<void> {
  const refusal = await messageSchemaRefusal({ ...(output && { output }), tools });
  if (refusal !== undefined) throw ApplicationFailure.nonRetryable(refusal, 'output-schema');
}

/**
 * For a model that reads no documents: refuses a person's of this turn and replaces others by a description, so that one document does not
 * end a conversation.
 */
function withoutDocuments(messages: readonly ContextMessage[], { turn, model }: CallToMake): readonly ContextMessage[] {
  return messages.map((one) => {
    const { message } = one;
    if (message.role === 'assistant' || message.documents === undefined) return one;
    if (message.role === 'user' && one.turn === turn) throw cannotRead(model);
    const { documents, ...rest } = message;
    return { ...one, message: { ...rest, text: [...documents.map(describeDocument), shownText(message.text)].join('\n') } };
  });
}

function cannotRead(model: string): ModelFailure {
  return new ModelFailure(
    'invalid-request',
    `cannot send a document (PDF) to ${model}: it is not known to read one. Choose another model (PERDURA_MODEL, or "model" in agent.json or at the ` +
      `start of the conversation), or say that it does: models: { ${JSON.stringify(model)}: { documents: true } } in perdura.config.`,
  );
}

function assemble(
  { config, system, shared }: Pick<LoadedAgent, 'config' | 'system'> & { readonly shared: number },
  offered: readonly Tool[],
  base: readonly ConversationMessage[],
  history: readonly ContextMessage[],
  input: CallToMake,
  { count, countFixed }: TokenCounter & { readonly countFixed: CountTokens },
  schema: JsonObject | undefined,
): Omit<PreparedRequest, 'files' | 'unproven' | 'without'> {
  const { provider, model } = splitModel(input.model);
  const described = offered.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  const budget = input.contextBudget - fixedTokens(system, offered, countFixed) - countMessageTokens(base, count);
  const context = config.context.clock ? history.map(withClock) : withDays(history, base.length > 0 ? undefined : input.since);
  const messages = normalize([...base, ...fitting(context, budget, count, base)], { provider });
  return {
    request: {
      model,
      maxTokens: Math.min(config.maxTokens, input.stop?.tokens ?? Infinity),
      system,
      ...(shared < system.length && { sharedSystem: shared }),
      tools: described,
      messages,
      ...(schema && { answerSchema: { name: 'answer', schema } }),
    },
    config,
    offered,
    ...(schema && { schema }),
    prefix: hashRequest([input.model, system, described, input.base]).slice(0, 16),
  };
}

/**
 * Puts the time of arrival into the message itself: a clock that changed with every request would break the prompt cache each time (design
 * section 4).
 */
function withClock({ message, ts }: ContextMessage): ConversationMessage {
  if (message.role !== 'user' || typeof message.text !== 'string' || ts === undefined) return message;
  const time = new Date(ts * 1000).toISOString().slice(0, 16).replace('T', ' ');
  return { ...message, text: `[${time} UTC] ${message.text}` };
}

const DAY_MS = 86_400_000;

/**
 * A line with the day before the first message of a person on another day than the entry before it, and after what stands for earlier
 * messages. `since`: epoch milliseconds of the session's beginning, whose day the system prompt has. It depends on what is before a message
 * alone.
 */
function withDays(history: readonly ContextMessage[], since: number | undefined): ConversationMessage[] {
  let day = since === undefined ? undefined : Math.floor(since / DAY_MS);
  return history.map(({ message, ts }) => {
    const now = ts === undefined ? day : Math.floor((ts * 1000) / DAY_MS);
    if (now === undefined || now === day || !isFromPerson(message) || typeof message.text !== 'string') return message;
    day = now;
    return { ...message, text: `[${isoTime(now * DAY_MS).slice(0, 10)}, UTC]\n${message.text}` };
  });
}

// How a model call shows long results. With `memory.compactWithModel`, a model cites each result that no plugin of the user's handles: once,
// in the first call after the one that showed it. The store keeps the citation, so its bytes never change; its cost is written at once and
// travels with it.

const CITATION_TOKENS = 512;
const AT_ONCE = 4;
/** Milliseconds for all citations of one call; after that the plugin's citations count. */
const PATIENCE_MS = 30_000;
const NONE: ReadonlyMap<string, string> = new Map();

interface CitationOptions {
  /** The call that it is for. */
  readonly input: Pick<CallToMake, 'id' | 'model' | 'contextBudget' | 'fallback' | 'tokenRatio'>;
  readonly config: AgentConfig;
  /** Gets each citation that a model made. */
  readonly made: (citation: MadeCitation) => void;
}

/** Undefined where the agent has no memory channel. */
function citingFor(dependencies: ConversationDependencies, { input, config, made }: CitationOptions): Citing | undefined {
  if (!hasMemoryChannel(config, dependencies.tools)) return undefined;
  const { contextBudget: budget } = input;
  return {
    citeOld: async (messages) =>
      citeOld(messages, budget, config.memory.compactWithModel ? await citeByModel(dependencies, { input, config, made, messages }) : NONE),
    frameNew: (messages) => frameNew(messages, budget, (text) => Math.ceil(measureTokens(text) * (input.tokenRatio ?? 1))),
  };
}

interface Making extends CitationOptions {
  readonly messages: readonly ConversationMessage[];
}

/** Citations by item id. */
async function citeByModel(
  dependencies: ConversationDependencies,
  { input, config, made, messages }: Making,
): Promise<ReadonlyMap<string, string>> {
  const { store, key } = dependencies;
  const old = messages
    .slice(0, newFrom(messages))
    .filter((message): message is KeptResult => isKept(message) && message.item.isPlain === true && !MEMORY_TOOLS.includes(message.name));
  if (old.length === 0) return NONE;
  const ids = old.map(({ item }) => item.id);
  const known = await store.items.citations(key, ids);
  const missing = old.filter((_, i) => known[i] === undefined);
  if (missing.length === 0) return toMap(ids, known);
  const limit = pLimit(AT_ONCE);
  await withTimeoutSignal(PATIENCE_MS, (patience) =>
    Promise.all(
      missing.map((message) =>
        limit(() => makeCitation(dependencies, { message, goal: findGoal(message, messages), config, input, patience, onMade: made })),
      ),
    ),
  );
  // The first that was stored counts, whichever attempt made it.
  return toMap(ids, await store.items.citations(key, ids));
}

async function makeCitation(
  dependencies: ConversationDependencies,
  {
    message,
    goal,
    config,
    input,
    patience,
    onMade,
  }: Pick<CitationOptions, 'config' | 'input'> & {
    readonly message: KeptResult;
    readonly goal: string;
    readonly patience: AbortSignal;
    readonly onMade: CitationOptions['made'];
  },
): Promise<void> {
  const { store, key } = dependencies;
  const { name, item } = message;
  const { ask, spent, model } = asker(dependencies, input, config, patience);
  const prompt = config.memory.compactionPrompt;
  const question = {
    goal,
    action: name,
    result: await readText(store, key, message.text),
    memoryId: item.id,
    ...(prompt !== undefined && { prompt }),
  };
  const made = await compactByModel(ask, question).catch((error: unknown) => {
    if (Context.current().cancellationSignal.aborted) throw error;
    log.warn('the model could not cite a result; the plugin’s citation is used', {
      tool: name,
      reason: errorMessage(error),
    });
    return undefined;
  });
  // Stores a failure too, as '': a later citation would change a prompt that was sent.
  await store.items.cite(key, item.id, made ?? '');
  const usage = spent();
  const { spent: paid } = toSpending(dependencies, { kind: 'citation', model: model(), usage });
  await noteSpending(dependencies, `${input.id}/${item.id}`, paid);
  onMade({ item: item.id, citation: made ?? '', ...(paid && { usage }) });
}

function asker(dependencies: ConversationDependencies, input: CitationOptions['input'], config: AgentConfig, patience: AbortSignal): Asker {
  const { models } = dependencies;
  return createAsker({
    models,
    ...summarizers(dependencies, config, input),
    activity: Context.current(),
    signal: patience,
    maxTokens: Math.min(CITATION_TOKENS, config.maxTokens),
    answerSchema: CITATION_SCHEMA,
    contextWindow: windowFinder(models, config, input.model),
  });
}

/** The person's question to which the result belongs. */
function findGoal(result: KeptResult, messages: readonly ConversationMessage[]): string {
  const question = messages.slice(0, messages.indexOf(result)).findLast(isFromPerson);
  return question ? shownText(question.text) : '';
}

function toMap(ids: readonly string[], citations: readonly (string | undefined)[]): ReadonlyMap<string, string> {
  return new Map(ids.flatMap((id, i) => (citations[i] ? [[id, citations[i]] as const] : [])));
}
