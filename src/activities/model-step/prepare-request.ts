/** The one place where a request is assembled (seed 000, section 18: `prepareRequest`). What it reads is stable within a turn. */
import type { AgentConfig } from '../../agents/agent-config.js';
import type { LoadedAgent } from '../../agents/load-agent.js';
import type { CallInput } from '../../conversation/activity-io/effects.js';
import { shownText, type ConversationMessage, type JsonObject } from '../../records/message.js';
import { tokensOf } from '../../memory/tokens.js';
import { ModelFailure, type ModelRequest } from '../../models/model.js';
import { documentInWords } from '../../models/shown.js';
import { normalize } from '../../models/normalize.js';
import { splitModel } from '../../models/known-models.js';
import { tokenCounterFor, type TokenCounter } from '../../models/token-counter.js';
import { clientTools, toBeCalled } from '../../tools/client-tools.js';
import type { Tool } from '../../tools/tool.js';
import { contextWindowOf, fixedTokens, limitedTo } from './prompt-budget.js';
import { citingFor } from './citing-for.js';
import type { MadeCitation } from '../../conversation/activity-io/effects.js';
import { fitting, loadBase, loadContext, loadMemory, type ContextMessage } from '../context/context.js';
import type { MemorySettings } from '../../conversation/activity-io/settings.js';
import type { SlotRange } from '../../records/slots.js';
import type { ConversationDependencies } from '../dependencies.js';
import { hashOf } from '../key.js';
import { systemPrompt } from '../../agents/system-prompt.js';
import { SERVER_PATIENCE_MS, toolsOf } from '../tools/tools-of.js';

/** A call as it is to be made, with the settings that hold for it. */
export interface CallToMake {
  readonly session: number;
  readonly turn: string;
  readonly call: string;
  readonly slot: number;
  readonly seq: number;
  readonly context: readonly SlotRange[];
  readonly cited?: readonly SlotRange[] | undefined;
  readonly base: string | null;
  /** Epoch milliseconds of the session's beginning. */
  readonly since?: number | undefined;
  readonly memory: Pick<MemorySettings, 'version' | 'forgotten'>;
  readonly agentHash: string;
  readonly model: string;
  /** The models of the agent's list after it. */
  readonly fallback?: readonly string[] | undefined;
  /** Tokens that the prompt may have. */
  readonly contextBudget: number;
  readonly firstToolCall: number;
  readonly output?: string;
  /** Where the client's tools are. */
  readonly tools?: string;
  readonly soFar: CallInput['soFar'] | undefined;
}

export interface PreparedRequest {
  readonly request: ModelRequest;
  readonly config: AgentConfig;
  /** The tools that are offered, in the order of the request. */
  readonly offered: readonly Tool[];
  /** Hash of what every request of this epoch begins with: model, system prompt, tools, the epoch's base. */
  readonly prefix: string;
  /** Tokens of the prompt, by estimate; where the provider's server may cut it silently. */
  readonly sent?: number;
  /** What the turn's answer must fit. */
  readonly schema?: JsonObject;
}

/** `made`: given what stands for long results from now on, as a model has made it for this request: healing must have it again. */
export async function prepareRequest(
  dependencies: ConversationDependencies,
  input: CallToMake,
  made: (citation: MadeCitation) => void,
): Promise<PreparedRequest> {
  const { store, key, identity, agents } = dependencies;
  const { base, agentHash } = input;
  const loadingAgent = agents(identity.agent, identity.scope, agentHash);
  const citing = loadingAgent.then(({ config }) => citingFor(dependencies, { input, config, made }));
  // Both may fail before anybody waits for them.
  citing.catch(() => undefined);
  const loading = loadContext(dependencies, input, citing);
  const [agent, messages, before, memory, output, brought, counter] = await Promise.all([
    loadingAgent,
    loading,
    loadBase(dependencies, { ref: base, forgotten: input.memory.forgotten }, loading),
    loadMemory(dependencies, input.memory.version),
    input.output === undefined ? undefined : store.bodies.get(key, input.output),
    // A store that has lost them is healed while the context is read.
    input.tools === undefined ? undefined : loading.then(() => store.bodies.get(key, input.tools ?? '')),
    tokenCounterFor(input.model),
  ]);
  const config = limitedTo(agent.config, input.model, dependencies.models.limits(input.model));
  const [{ offered: own }, window] = await Promise.all([
    toolsOf(dependencies, agent, { patienceMs: SERVER_PATIENCE_MS, turn: input.turn }),
    contextWindowOf(dependencies.models, config, { model: input.model }),
  ]);
  const all = [...own, ...clientTools(brought)];
  // Providers hold a model to any of the tools that it is given, so it is given these alone.
  const wanted = input.firstToolCall === 1 ? toBeCalled(brought) : new Set<string>();
  const forced = all.filter(({ name }) => wanted.has(name));
  const offered = forced.length > 0 ? forced : all;
  const read = dependencies.models.limits(input.model).documents ? messages : withoutDocuments(messages, input);
  const whole = assemble(
    { config, system: systemPrompt(agent, memory, input.since) },
    offered,
    before,
    read,
    input,
    counter,
    output === undefined ? undefined : (JSON.parse(output) as JsonObject),
  );
  const assembled: PreparedRequest = forced.length > 0 ? { ...whole, request: { ...whole.request, mustCall: true } } : whole;
  if (!window) return assembled;
  const { request } = assembled;
  const sent = fixedTokens(request.system, offered, counter.count) + tokensOf(request.messages, counter.count);
  return { ...assembled, request: { ...request, contextWindow: window.tokens }, sent };
}

/**
 * For a model that may read none. What the turn itself is about is refused, and later turns have a word that it was there: one document
 * must not end a conversation.
 */
function withoutDocuments(messages: readonly ContextMessage[], { turn, model }: CallToMake): readonly ContextMessage[] {
  return messages.map((one) => {
    const { message } = one;
    if (message.role !== 'user' || message.documents === undefined) return one;
    if (one.turn === turn) throw cannotRead(model);
    const { documents, ...rest } = message;
    return { ...one, message: { ...rest, text: [...documents.map(documentInWords), shownText(message.text)].join('\n') } };
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
  { config, system }: Pick<LoadedAgent, 'config' | 'system'>,
  offered: readonly Tool[],
  base: readonly ConversationMessage[],
  said: readonly ContextMessage[],
  input: CallToMake,
  { count }: TokenCounter,
  schema: JsonObject | undefined,
): PreparedRequest {
  const { provider, model } = splitModel(input.model);
  const described = offered.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  const budget = input.contextBudget - fixedTokens(system, offered, count) - tokensOf(base, count);
  const context = said.map((one) => (config.context.clock ? withClock(one) : one.message));
  const messages = normalize([...base, ...fitting(context, budget, count, base)], { provider });
  return {
    request: {
      model,
      maxTokens: config.maxTokens,
      system,
      tools: described,
      messages,
      ...(schema && { answerSchema: { name: 'answer', schema } }),
    },
    config,
    offered,
    ...(schema && { schema }),
    prefix: hashOf([input.model, system, described, input.base]).slice(0, 16),
  };
}

/**
 * The time stands where it was true, in the message that came then, and stays as it is: a clock that moved with every request
 * would cost the prompt's cache each time (design section 4).
 */
function withClock({ message, ts }: ContextMessage): ConversationMessage {
  if (message.role !== 'user' || typeof message.text !== 'string' || ts === null) return message;
  const time = new Date(ts * 1000).toISOString().slice(0, 16).replace('T', ' ');
  return { ...message, text: `[${time} UTC] ${message.text}` };
}
