/** A model step's call: load the context, call, stream to the feed, commit answer and cost. */
import { Context, log } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { FeedEvent, TurnResult } from '../../conversation/protocol/contract.js';
import type { MadeCitation, ModelAnswer, ModelStepResult } from '../../conversation/turn/model-step-effects.js';
import { citationsUsage } from '../../conversation/state/budget.js';
import { dataIn } from '../../conversation/views/view.js';
import {
  assistantEntry,
  type AssistantBlock,
  type AssistantMessage,
  type JsonValue,
  type ModelStop,
  type Usage,
  type JsonObject,
  answerIn,
  type Answer,
  addUsage,
  NO_USAGE,
} from '../../records/message.js';
import {
  ModelFailure,
  ModelInterrupted,
  type ModelDelta,
  type ModelRequest,
  type ModelResponse,
  type ModelUsage,
  type Model,
  type StreamOptions,
  promptCut,
  runHooks,
  type HookedCall,
} from '../../models/model.js';
import { type ModelLimits, withCost } from '../../models/known-models.js';
import type { EstimatedPrompt } from '../../records/token-estimate.js';
import { tokenCounterFor } from '../../models/token-counter.js';
import { countMessageTokens } from '../../memory/tokens.js';
import { withLongBlocksStored } from '../../memory/bodies.js';
import { countModelFailure, countRetry, usageTracking } from '../../telemetry/metrics.js';
import { noteFailedSpending, performEffect, toSpending, type Done, type Reserved } from '../effect.js';
import { createFeedWriter, type FeedWriter } from '../feed-writer.js';
import { wasStopped } from '../key.js';
import type { LimitRoom } from '../rate-limiter.js';
import { placeOfCalls } from '../tools/tool-context.js';
import type { ConversationDependencies } from '../dependencies.js';
import { planCalls } from './plan-calls.js';
import { streamHeld } from './stream-held.js';
import { fixedTokens } from './prompt-budget.js';
import { prepareRequest, type CallToMake, type PreparedRequest } from './prepare-request.js';
import { askWithoutRefused, type Answered } from './refused-input.js';
import { toRanges } from '../../records/slots.js';
import { truncate } from '../../records/text.js';
import type { AgentConfig } from '../../agents/agent-config.js';
import { withTextTools } from '../../models/text-tools/model.js';
import { errorMessage } from '../../platform/errors.js';
import { schemaCheck } from '../../platform/json-schema/check.js';

/** A call in the ledger: its answer, and what its step had found. */
export interface CommittedCall extends Pick<ModelStepResult, 'configured' | 'base' | 'citations'> {
  readonly answer: ModelAnswer;
  readonly persisted: boolean;
}

export async function callModel(
  dependencies: ConversationDependencies,
  {
    input,
    found,
    reserved,
    onFailed,
    cited,
    heard,
    room,
  }: {
    readonly input: CallToMake;
    readonly found: Pick<CommittedCall, 'configured' | 'base'>;
    readonly reserved: Reserved;
    /** Gets the cost of a request that came to nothing. */
    readonly onFailed: (id: string, usage: Usage) => Promise<void>;
    /** Collects the citations that a model makes for the call. */
    readonly cited: MadeCitation[];
    /** Collects what the model says. */
    readonly heard: string[];
    /** In the provider's limits; absent: they are not kept. */
    readonly room?: LimitRoom | undefined;
  },
): Promise<CommittedCall> {
  const activity = Context.current();
  const feed = createFeedWriter(dependencies);
  const done = await performEffect<CommittedCall>(dependencies, {
    claim: reserved.claim,
    reserved,
    work: async ({ id, earlier }) => {
      if (earlier > 0) feed.publish({ kind: 'reset', turn: input.turn, call: input.id, attempt: id });
      const prepared = await prepareRequest(dependencies, input, (one) => cited.push(one));
      const [{ result: made, ...rest }, head] = await Promise.all([
        ask(dependencies, { input, activity, feed, attempt: id, onFailed, heard, room }, prepared),
        prepared.prefix === input.prefix ? undefined : storeHead(dependencies, prepared.request),
      ]);
      const answer = { ...made, ...(head && { head }) };
      // The remaining deltas come before the event that ends the call.
      const deltas = await feed.rest(`${input.id}/${id}`);
      const ending = { hasSchema: prepared.schema !== undefined, citing: citationsUsage(cited) };
      const end = endsTurn(answer, activity) ? [{ id: `${input.id}/end`, event: turnEndEvent(input, answer, ending) }] : [];
      return {
        ...rest,
        result: { ...found, ...(cited.length > 0 && { citations: cited }), answer, persisted: true },
        publish: [...deltas, ...end],
      };
    },
    fenced: (finished) => ({
      ...found,
      persisted: true,
      answer: { ...(finished?.result.answer ?? toAnswer(dependencies, input, [], 'interrupted', NO_USAGE, 0)), fenced: true },
    }),
  });
  return { ...done, answer: { ...done.answer, persisted: done.persisted } };
}

/** Absent where the store does not take it: the call matters more. */
async function storeHead(
  { store, key }: ConversationDependencies,
  { system, tools }: ModelRequest,
): Promise<ModelAnswer['head'] | undefined> {
  try {
    const [{ ref: text }, { ref: listed }] = await Promise.all([
      store.bodies.put(key, system),
      store.bodies.put(key, JSON.stringify(tools)),
    ]);
    return { system: text, tools: listed };
  } catch (error) {
    log.warn('what the prompt begins with could not be stored', { reason: errorMessage(error) });
    return undefined;
  }
}

/** As in the table of effects: a step with the last of these returns its failure. */
export const ATTEMPTS = 4;

interface Attempt {
  readonly input: CallToMake;
  readonly activity: Context;
  readonly feed: FeedWriter;
  /** Unique per attempt: readers recognise a retried stream by it. */
  readonly attempt: string;
  readonly onFailed: (id: string, usage: Usage) => Promise<void>;
  readonly heard: string[];
  readonly room: LimitRoom | undefined;
}

async function ask(
  dependencies: ConversationDependencies,
  { input, activity, feed, attempt, onFailed, heard, room }: Attempt,
  { request, config, offered, prefix, schema, estimated, mayBeCut, files, unproven, without }: PreparedRequest,
): Promise<Done<ModelAnswer>> {
  const { store, key, identity, models, modelTimeouts, circuits, hooks = [], now = Date.now, secrets } = dependencies;
  const { turn, id: call, model } = input;
  const hooked: HookedCall = { conversation: key.conversation, turn, call, model };
  const all = [usageTracking(models.limits), ...hooks];

  const priced = (cost: ModelUsage): Usage => withCost(models.limits(model), cost);
  let failures = 0;
  const noteFailed = async (cost: ModelUsage): Promise<void> => {
    const usage = priced(cost);
    const { spent } = toSpending({ key, identity }, { kind: 'answer', model, usage });
    const id = failures++ === 0 ? attempt : `${attempt}/${failures}`;
    await Promise.all([noteFailedSpending({ store, key }, `${call}/${id}`, spent), onFailed(id, usage)]);
  };

  countRetry(activity.info);
  await runHooks(all, (hook) => hook.beforeInvoke?.(request.messages, request, hooked), warnOfHook);
  const caller = withToolFormat(models(model), models.limits(model), config);
  if (request.mustCall && !caller.takesMustCall) throw cannotHold(model, config);
  const options: StreamOptions = {
    signal: activity.cancellationSignal,
    onDelta: (delta) => {
      if (delta.kind === 'text') heard.push(delta.text);
      publishDelta(feed, delta, { turn, call, attempt });
    },
    ...(room && { onLimits: room.onLimits }),
    ...modelTimeouts,
    ...(config.limits.modelTimeoutMs === undefined ? {} : { totalMs: config.limits.modelTimeoutMs }),
  };
  const { doubtsReason = false } = input;
  const { answer: reported, leftOut }: Answered<ModelResponse> = await askWithoutRefused({
    ...{
      request,
      turn,
      files,
      unproven,
      without,
      doubtsSize: input.doubtsSize === true,
      isLastAttempt: activity.info.attempt >= ATTEMPTS,
      doubtsReason,
    },
    ask: async (one) => {
      heard.length = 0;
      return toRefused(await streamHeld(caller, one, options), doubtsReason);
    },
    onFailed: noteFailed,
    async onRefused(words) {
      log.warn('the provider refuses input, which is left out from now on', {
        model,
        what: [...words.keys()],
        why: [...words.values()][0],
      });
      for (const [id, text] of words) await store.items.cite(key, id, text);
    },
  }).catch(async (error: unknown) => {
    room?.done({ error });
    circuits?.note(model, error);
    countModelFailure(error, activity.info);
    const cost = error instanceof ModelFailure ? error.options.usage : undefined;
    if (cost) await noteFailed(cost);
    return { answer: await keepPartialAnswer(error, { activity, noteFailed, heard }) };
  });
  room?.done(reported);
  if (reported.stop !== 'interrupted') circuits?.note(model);
  const response = await withCountedInput(reported, request, model);

  await runHooks(all, (hook) => hook.afterInvoke?.(request.messages, response, hooked), warnOfHook);
  const usage = priced(response.usage);
  log.info('model answered', { model, stop: response.stop, ...usage });
  const named = numberCalls(response.blocks, input);
  const blocks = await withLongBlocksStored(store, key, named);
  const planned = await planCalls(named, {
    ...{ offered, config, agent: identity.agent },
    place: { ...placeOfCalls(dependencies, config), conversation: key.conversation },
  });
  const plans = secrets?.redactIn(planned) ?? planned;
  const { stoppedAt } = response;
  const result: ModelAnswer & Pick<AssistantMessage, 'stoppedAt'> = {
    ...toAnswer({ key }, input, blocks, response.stop, usage, now()),
    ...(stoppedAt !== undefined && { stoppedAt }),
    prefix,
    ...(plans.length > 0 && { plans }),
  };
  const read = reported.usage.inputTokens;
  const cut = mayBeCut && estimated ? promptCut(estimated.fixed + estimated.messages, read, request.contextWindow) : undefined;
  if (cut) log.warn('the server of the model has cut the prompt', { model, ...cut, window: request.contextWindow });
  const schemaViolation = schema && response.stop === 'end' ? await findSchemaViolation(joinText(response.blocks), schema) : undefined;
  const checked: typeof result = {
    ...result,
    ...(schemaViolation === undefined ? {} : { schemaViolation }),
    ...(cut && { promptCut: cut }),
    ...(estimated && teaches(estimated, { read, stop: response.stop, mayBeCut: mayBeCut === true }) && { estimated }),
    ...(leftOut && { refused: toRanges(leftOut.slots), ...(leftOut.isAll && { isGuess: true }) }),
  };
  const entry = assistantEntry(checked, input.seq);
  return { result: checked, ...(entry ? { entry } : {}), ...toSpending({ key, identity }, { kind: 'answer', model, usage }) };
}

/** Whether the provider's count says how it counts: a stopped answer's may be missing, and a cut that was not noticed can only lower it. */
function teaches(
  { fixed, messages }: EstimatedPrompt,
  { read, stop, mayBeCut }: { readonly read: number; readonly stop: ModelStop; readonly mayBeCut: boolean },
): boolean {
  return stop !== 'interrupted' && read > 0 && (!mayBeCut || read >= (fixed + messages) * 0.8);
}

/** An answer that says nothing but that the prompt is too long, where a shorter one has not helped: it may be about what is in it. */
function toRefused(response: ModelResponse, doubtsReason: boolean): ModelResponse {
  if (!doubtsReason || response.stop !== 'context-full') return response;
  throw new ModelFailure('context-full', 'the model ended its answer, since the prompt is too long for it', { usage: response.usage });
}

/**
 * Counts the input tokens if the provider does not report them (seed 000, Phase D). `model`: `provider/model`. A stopped answer stays as it
 * is: its report may not have arrived yet.
 */
export async function withCountedInput(response: ModelResponse, request: ModelRequest, model: string): Promise<ModelResponse> {
  const { usage, stop } = response;
  if (usage.inputTokens > 0 || stop === 'interrupted') return response;
  const { count } = await tokenCounterFor(model);
  const inputTokens = fixedTokens(request.system, request.tools, count) + countMessageTokens(request.messages, count);
  return { ...response, usage: { ...usage, inputTokens } };
}

function cannotHold(model: string, { textTools = 'off' }: Pick<AgentConfig, 'textTools'>): ModelFailure {
  const why = textTools === 'off' ? 'its provider takes no such wish' : 'its calls stand in its text (textTools of agent.json)';
  return new ModelFailure(
    'invalid-request',
    `cannot hold ${model} to a call of a tool: ${why}. Send the message without tool_choice (mustCall of its tools), or choose another model.`,
  );
}

function warnOfHook(hook: string, error: unknown): void {
  log.warn('a hook failed, and the call goes on without it', { hook, error: errorMessage(error) });
}

/** After a person's stop what people have read of it is the answer; after a worker's shutdown another worker tries again. */
async function keepPartialAnswer(
  error: unknown,
  { activity, noteFailed, heard }: Pick<Attempt, 'activity' | 'heard'> & { readonly noteFailed: (cost: ModelUsage) => Promise<void> },
): Promise<ModelResponse> {
  if (!(error instanceof ModelInterrupted)) throw error;
  if (!wasStopped(activity)) await noteFailed(error.usage);
  else return { blocks: withWordsBegun(error.blocks, heard.join('')), stop: 'interrupted', usage: error.usage };
  throw ApplicationFailure.retryable('the worker is shutting down; another attempt goes on', 'worker-shutdown');
}

/** Adds the text of the block that had not ended. */
function withWordsBegun(blocks: readonly AssistantBlock[], heard: string): readonly AssistantBlock[] {
  const whole = blocks.flatMap((block) => (block.kind === 'text' && typeof block.text === 'string' ? [block.text] : [])).join('');
  const begun = heard.startsWith(whole) ? heard.slice(whole.length).trimEnd() : '';
  return begun.trim() === '' ? blocks : [...blocks, { kind: 'text', text: begun }];
}

function joinText(blocks: readonly AssistantBlock[]): string {
  return blocks.flatMap((block) => (block.kind === 'text' && typeof block.text === 'string' ? [block.text] : [])).join('\n\n');
}

/** Replaces the provider's call ids by ids that are numbered through the turn. */
function numberCalls(blocks: readonly AssistantBlock[], { turn, firstToolCall }: CallToMake): AssistantBlock[] {
  let number = firstToolCall;
  return blocks.map((block) => (block.kind === 'tool-call' ? { ...block, callId: `${turn}/c${number++}` } : block));
}

function toAnswer(
  { key }: Pick<ConversationDependencies, 'key'>,
  input: CallToMake,
  blocks: readonly AssistantBlock[],
  stop: ModelStop,
  usage: Usage,
  at: number,
): ModelAnswer {
  const { session, turn, id: call, slot, model } = input;
  return { life: key.life, session, turn, call, slot, ts: at / 1000, model, blocks, stop, usage, persisted: true };
}

function publishDelta(feed: FeedWriter, delta: ModelDelta, ids: { turn: string; call: string; attempt: string }): void {
  if (delta.kind !== 'tool-call') feed.publish({ kind: delta.kind, ...ids, text: delta.text });
}

/** True if the workflow ends the turn on this answer without a further step, so that the commit must publish the end. */
function endsTurn({ stop, schemaViolation, promptCut: cut }: ModelAnswer, activity: Context): boolean {
  return stop === 'end' && schemaViolation === undefined && cut === undefined && !activity.cancellationSignal.aborted;
}

function turnEndEvent(
  { turn, soFar = { usage: NO_USAGE, toolCalls: 0 } }: CallToMake,
  answer: ModelAnswer,
  { hasSchema, citing = NO_USAGE }: { readonly hasSchema: boolean; readonly citing: Usage | undefined },
): JsonValue {
  const { text, textRef }: Answer = answerIn(answer.blocks) ?? { text: '' };
  const payload = hasSchema && textRef === undefined ? dataIn(text) : undefined;
  const result: TurnResult = {
    turnId: turn,
    text,
    ...(textRef && { textRef }),
    stopReason: 'end',
    usage: addUsage(addUsage(soFar.usage, citing), answer.usage),
    ...(payload !== undefined && { payload }),
    toolCalls: soFar.toolCalls,
    ...(soFar.fallback && { fallback: soFar.fallback }),
  };
  const event: FeedEvent = { kind: 'turn-finished', turn, result };
  return event as unknown as JsonValue;
}

const MAX_CHARACTERS = 500;

/** Why an answer does not fit the message's schema (seed 003, Payload), for the model to correct; undefined if it fits. */
async function findSchemaViolation(text: string, schema: JsonObject): Promise<string | undefined> {
  let data: JsonValue;
  try {
    data = JSON.parse(text) as JsonValue;
  } catch (error) {
    return `it is not JSON (${error instanceof Error ? truncate(error.message, 200) : 'it cannot be read'})`;
  }
  const verdict = await schemaCheck.judge({ schema, data });
  if (verdict.kind === 'fits') return undefined;
  // The person who sent the schema reads it as the turn's error.
  if (verdict.kind === 'unusable') return `the schema itself cannot be used (${truncate(verdict.why, 200)})`;
  return truncate(verdict.problems, MAX_CHARACTERS);
}

/** Lets a model call tools natively or in its text. agent.json decides first, then the provider, then the registry of known models. */
export function withToolFormat(native: Model, known: ModelLimits, { textTools }: Pick<AgentConfig, 'textTools'>): Model {
  const format = textTools ?? native.textTools ?? known.textTools;
  if (format !== undefined) return format === 'off' ? native : withTextTools(native, format);
  const stream: Model['stream'] = (request, options) => streamWithOrWithoutTools(native, request, options);
  return { provider: native.provider, ...(native.takesMustCall && { takesMustCall: true }), stream };
}

/** Models that have refused tools as such, as this worker has seen it: their calls are written in their text from then on. */
const WITHOUT_TOOLS = new Set<string>();
const MAX_REMEMBERED = 1_000;
/** Ollama, OpenRouter, Groq and others, vLLM without a parser, llama.cpp without templates. */
const NO_TOOLS =
  /(not|n't) support (tools|tool (use|calls?|calling|choice)|function calling)|support tool use|tools?[`'"]? (is|are) not supported|unsupported param: tools|enable-auto-tool-choice|requires? --jinja/i;

async function streamWithOrWithoutTools(native: Model, request: ModelRequest, options: StreamOptions): Promise<ModelResponse> {
  const name = `${native.provider}/${request.model}`;
  const inText = withTextTools(native, 'xml');
  if (WITHOUT_TOOLS.has(name) && !request.mustCall) return inText.stream(request, options);
  return native.stream(request, options).catch((error: unknown) => {
    const isRefused = error instanceof ModelFailure && error.options.usage === undefined && NO_TOOLS.test(error.message);
    if (request.tools.length === 0 || request.mustCall || !isRefused) throw error;
    if (WITHOUT_TOOLS.size < MAX_REMEMBERED) WITHOUT_TOOLS.add(name);
    return inText.stream(request, options);
  });
}
