/** The `call-model` step: load the context, call, stream to the feed, commit answer and cost. */
import { Context, log } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { answerIn } from '../conversation/answer.js';
import type { TurnResult } from '../conversation/contract.js';
import type { CallModelInput, ModelAnswer } from '../conversation/effects.js';
import { assistantEntry } from '../conversation/entries.js';
import type { AssistantBlock, JsonValue, ModelStop, Usage } from '../conversation/message.js';
import { addUsage } from '../conversation/usage.js';
import type { ConversationKey } from '../stores/store.js';
import { ModelInterrupted, type ModelDelta, type ModelResponse } from '../models/model.js';
import { costUsd } from '../models/registry.js';
import { runHooks, type HookedCall } from '../models/hooks.js';
import { withLongBlocksStored } from '../memory/bodies.js';
import { countModelFailure, countRetry } from '../telemetry/metrics.js';
import { usageTracking } from '../telemetry/usage-tracking.js';
import { performEffect, type Done } from './effect.js';
import { createFeedWriter, type FeedWriter } from './feed-writer.js';
import { startHeartbeat, wasStopped } from './heartbeat.js';
import type { ActivityDependencies } from './index.js';
import { hashOf, keyOf } from './key.js';
import { misfitOf } from './misfit.js';
import { planCalls } from './plan-calls.js';
import { prepareRequest, type PreparedRequest } from './prepare-request.js';
import { withToolsOf } from './tool-format.js';

export async function callModel(dependencies: ActivityDependencies, input: CallModelInput): Promise<ModelAnswer> {
  const activity = Context.current();
  const stopHeartbeat = startHeartbeat(activity);
  const key = keyOf(input.identity);
  const feed = createFeedWriter(dependencies.store.feed, key);
  // Read while the effect is reserved. What fails here fails the work, and must not be an unhandled rejection before that.
  const preparing = prepareRequest(dependencies, key, input);
  preparing.catch(() => undefined);
  try {
    const answer = await performEffect<ModelAnswer>(dependencies.store, {
      key,
      claim: { id: input.call, hash: hashOf([input.turn, input.slot, input.context, input.model]) },
      work: ({ id, earlier }) => {
        if (earlier > 0) feed.publish({ kind: 'reset', turn: input.turn, call: input.call, attempt: id });
        return preparing.then((prepared) => ask(dependencies, { input, key, activity, feed, attempt: id }, prepared));
      },
      fenced: (done) => ({ ...(done?.result ?? answerOf(input, [], 'interrupted', NOTHING, 0)), fenced: true }),
    });
    if (answer.stop === 'end' && answer.misfit === undefined && !answer.fenced && !activity.cancellationSignal.aborted)
      announceEnd(feed, input, answer);
    await feed.drain();
    return answer;
  } finally {
    stopHeartbeat();
  }
}

interface Attempt {
  readonly input: CallModelInput;
  readonly key: ConversationKey;
  readonly activity: Context;
  readonly feed: FeedWriter;
  /** An id that no other attempt has: readers tell a retried stream by it. */
  readonly attempt: string;
}

async function ask(
  { store, models, modelTimeouts, hooks = [] }: ActivityDependencies,
  { input, key, activity, feed, attempt }: Attempt,
  { request, config, offered, prefix, schema }: PreparedRequest,
): Promise<Done<ModelAnswer>> {
  const { turn, call, model } = input;
  const hooked: HookedCall = { conversation: key.conversation, turn, call, model };
  const all = [usageTracking, ...hooks];

  countRetry(activity.info);
  await runHooks(all, (hook) => hook.beforeInvoke?.(request.messages, request, hooked), tellOfHook);
  const response = await withToolsOf(models(model), model, config)
    .stream(request, {
      signal: activity.cancellationSignal,
      onDelta: (delta) => publishDelta(feed, delta, { turn, call, attempt }),
      ...modelTimeouts,
      ...(config.limits.modelTimeoutMs === undefined ? {} : { totalMs: config.limits.modelTimeoutMs }),
    })
    .catch((error: unknown) => {
      countModelFailure(error, activity.info);
      return keptOf(error, activity);
    });

  await runHooks(all, (hook) => hook.afterInvoke?.(request.messages, response, hooked), tellOfHook);
  const usage: Usage = { ...response.usage, costUsd: costUsd(model, response.usage) };
  log.info('model answered', { model, stop: response.stop, ...usage });
  const named = withOurCallIds(response.blocks, input);
  const blocks = await withLongBlocksStored(store, key, named);
  const result: ModelAnswer = {
    ...answerOf(input, blocks, response.stop, usage, Date.now()),
    prefix,
    plans: planCalls(named, offered, config, input.identity.agent),
  };
  const misfit = schema && response.stop === 'end' ? misfitOf(textOf(response.blocks), schema) : undefined;
  const checked: ModelAnswer = { ...result, ...(misfit === undefined ? {} : { misfit }) };
  const entry = assistantEntry(checked, input.seq);
  return { result: checked, ...(entry ? { entry } : {}), usage: usage as unknown as JsonValue };
}

function tellOfHook(hook: string, error: unknown): void {
  log.warn('a hook failed, and the call goes on without it', { hook, error: error instanceof Error ? error.message : String(error) });
}

/** A person's stop keeps what was complete; the worker's own end is somebody else's chance. */
function keptOf(error: unknown, activity: Context): ModelResponse {
  if (!(error instanceof ModelInterrupted)) throw error;
  if (wasStopped(activity)) return { blocks: error.blocks, stop: 'interrupted', usage: error.usage };
  throw ApplicationFailure.retryable('the worker is shutting down; another attempt goes on', 'worker-shutdown');
}

function textOf(blocks: readonly AssistantBlock[]): string {
  return blocks.flatMap((block) => (block.kind === 'text' && typeof block.text === 'string' ? [block.text] : [])).join('\n\n');
}

/** Ids are ours; the provider's are its own business. Numbered through the turn. */
function withOurCallIds(blocks: readonly AssistantBlock[], { turn, firstToolCall }: CallModelInput): AssistantBlock[] {
  let number = firstToolCall;
  return blocks.map((block) => (block.kind === 'tool-call' ? { ...block, callId: `${turn}/c${number++}` } : block));
}

function answerOf(input: CallModelInput, blocks: readonly AssistantBlock[], stop: ModelStop, usage: Usage, at: number): ModelAnswer {
  const { session, turn, call, slot, model, identity } = input;
  return { life: identity.life, session, turn, call, slot, ts: at / 1000, model, blocks, stop, usage, plans: [], persisted: true };
}

function publishDelta(feed: FeedWriter, delta: ModelDelta, ids: { turn: string; call: string; attempt: string }): void {
  if (delta.kind !== 'tool-call') feed.publish({ kind: delta.kind, ...ids, text: delta.text });
}

/** The workflow ends the turn on this answer and needs no step for it, so the news is given here. */
function announceEnd(feed: FeedWriter, { turn, soFar }: CallModelInput, answer: ModelAnswer): void {
  const result: TurnResult = {
    turnId: turn,
    ...(answerIn(answer.blocks) ?? { text: '' }),
    stopReason: 'end',
    usage: addUsage(soFar.usage, answer.usage),
    toolCalls: soFar.toolCalls,
  };
  feed.publish({ kind: 'turn-finished', turn, result });
}

const NOTHING: Usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, costUsd: 0 };
