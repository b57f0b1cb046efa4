/** The `run-tool` step: find, check, run within limits, commit. Whatever goes wrong inside a tool is a result that the model reads. */
import { Context, log } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { RunToolInput, ToolFinished } from '../conversation/effects.js';
import { toolEntry } from '../conversation/entries.js';
import { shownText, type Body, type Entry, type JsonValue, type ToolOutcome } from '../conversation/message.js';
import { beginningOf } from '../conversation/text.js';
import type { ConversationKey } from '../stores/store.js';
import type { Tool, ToolResult } from '../tools/tool.js';
import { memoryIngest, runProcessors } from '../memory/processors.js';
import { inputOf, RESULT_INLINE, toBodyOrText } from '../memory/bodies.js';
import { countTool } from '../telemetry/metrics.js';
import { readHealed } from './context.js';
import { performEffect, type Done } from './effect.js';
import { createFeedWriter } from './feed-writer.js';
import { startHeartbeat, wasStopped } from './heartbeat.js';
import type { ActivityDependencies } from './index.js';
import { hashOf, keyOf } from './key.js';
import { SERVER_PATIENCE_MS, toolsOf } from './tools-of.js';

interface Ended extends Pick<ToolFinished, 'task' | 'files'> {
  readonly outcome: ToolOutcome;
  readonly text: string;
}

const UNKNOWN: Ended = {
  outcome: 'unknown',
  text: 'An earlier attempt was interrupted and its outcome is unknown. It was not repeated, because running it twice could do harm.',
};

export async function runTool(dependencies: ActivityDependencies, input: RunToolInput): Promise<ToolFinished> {
  const activity = Context.current();
  const stopHeartbeat = startHeartbeat(activity);
  const { store } = dependencies;
  const key = keyOf(input.identity);
  const feed = createFeedWriter(store.feed, key);
  const { turn, callId, name } = input;

  const work = async (earlier: number): Promise<Done<ToolFinished>> => {
    const argument = await argumentsOf(dependencies, input);
    feed.publish({ kind: 'tool-started', turn, callId, name, input: beginningOf(JSON.stringify(argument), 200) });
    const ended = earlier > 0 && !input.plan.repeatable ? UNKNOWN : await run(dependencies, input, argument, activity);
    countTool(dependencies.tools.find(name)?.name, ended.outcome);
    log.info('tool finished', { tool: name, outcome: ended.outcome });
    const { conversation, scope } = key;
    const context = { conversation, scope, session: input.session, turn, callId, tool: name, outcome: ended.outcome };
    let text: Body = '';
    const ingest = memoryIngest('MemoryIngestToolResultProcessor', async (processed: string) => {
      text = await toBodyOrText(store, key, processed.toWellFormed(), RESULT_INLINE);
    });
    await runProcessors([...(dependencies.processors?.toolResult ?? []), ingest], ended.text, context);
    const { task, files } = ended;
    const beside = { ...(task && { task }), ...(files && { files }) };
    const finished: ToolFinished = { ...finishedOf(input, ended.outcome, ''), ts: Date.now() / 1000, text, ...beside };
    return { result: finished, entry: toolEntry(finished, input.seq) };
  };

  try {
    const finished = await performEffect<ToolFinished>(store, {
      key,
      claim: { id: callId, hash: hashOf([turn, input.slot, input.askedIn, name]) },
      work: ({ earlier }) => work(earlier),
      fenced: (done) => ({ ...(done?.result ?? finishedOf(input, 'unknown', '')), fenced: true }),
    });
    const preview = beginningOf(shownText(finished.text), 200);
    // A settled call has had its end announced; this one came too late to count.
    if (!finished.fenced) feed.publish({ kind: 'tool-finished', turn, callId, name, outcome: finished.outcome, preview });
    await feed.drain();
    return finished;
  } finally {
    stopHeartbeat();
  }
}

async function run(dependencies: ActivityDependencies, input: RunToolInput, argument: JsonValue, activity: Context): Promise<Ended> {
  const { agents, workspace, store } = dependencies;
  const agent = await agents(input.identity.agent, input.identity.scope);
  // A local activity has a second for everything.
  const patienceMs = activity.info.isLocal ? 0 : SERVER_PATIENCE_MS;
  const { offered } = await toolsOf(dependencies, keyOf(input.identity), agent, { patienceMs });
  const tool = offered.find(({ name }) => name === input.name);
  const names = offered.map(({ name }) => name);
  if (!tool) return { outcome: 'rejected', text: `There is no tool "${input.name}". Tools here: ${names.join(', ') || 'none'}.` };

  const timeout = AbortSignal.timeout(input.plan.timeoutMs);
  const signal = AbortSignal.any([activity.cancellationSignal, timeout]);
  const result = await untilAborted(signal, runWith(tool, input, argument, { workspace, store, signal }));
  if (result?.ok === true) return { outcome: 'ok', text: result.content, task: result.task, files: result.files };
  if (result) return { outcome: 'error', text: result.error };
  const harmless = input.plan.repeatable;
  if (timeout.aborted) {
    const text = `The tool did not finish within ${input.plan.timeoutMs} ms and was stopped.`;
    return harmless ? { outcome: 'error', text } : { outcome: 'unknown', text: `${text} Its outcome is unknown.` };
  }
  if (!wasStopped(activity)) throw ApplicationFailure.retryable('the worker is shutting down; another attempt goes on', 'worker-shutdown');
  return { outcome: harmless ? 'error' : 'unknown', text: 'Interrupted: the person stopped this turn while the tool ran.' };
}

function runWith(
  tool: Tool,
  input: RunToolInput,
  argument: JsonValue,
  { workspace, store, signal }: Pick<ActivityDependencies, 'workspace' | 'store'> & { readonly signal: AbortSignal },
): Promise<ToolResult> {
  const { namespace, scope, conversation, life } = keyOf(input.identity);
  const { turn, callId } = input;
  return tool.run(argument, {
    workspace,
    signal,
    conversation,
    turn,
    callId,
    idempotencyKey: `${namespace}/${life}/${callId}`,
    now: () => new Date(),
    history: () => store.documents.history({ namespace, scope }),
  });
}

/** A tool that does not listen to its signal is not waited for. */
function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const give = (): void => resolve(undefined);
    if (signal.aborted) return give();
    signal.addEventListener('abort', give, { once: true });
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', give));
  });
}

/** Read where they were recorded, so that they travel through history once. */
async function argumentsOf(dependencies: ActivityDependencies, input: RunToolInput): Promise<JsonValue> {
  const key = keyOf(input.identity);
  const [entry] = await readEntry(dependencies, key, input.askedIn);
  const blocks = entry?.message.role === 'assistant' ? entry.message.blocks : [];
  const block = blocks.find((candidate) => candidate.kind === 'tool-call' && candidate.callId === input.callId);
  if (block?.kind !== 'tool-call') throw tracesLost(input);
  return inputOf(dependencies.store, key, block);
}

/** Healing takes longer than a local activity may: there the failure sends the workflow the ordinary way. */
function readEntry(dependencies: ActivityDependencies, key: ConversationKey, slot: number): Promise<(Entry | undefined)[]> {
  return Context.current().info.isLocal ? dependencies.store.entries.read(key, [slot]) : readHealed(dependencies, key, [slot]);
}

function tracesLost({ callId, askedIn }: RunToolInput): ApplicationFailure {
  return ApplicationFailure.nonRetryable(`the arguments of ${callId} (slot ${askedIn}) are not in the store`, 'traces-lost');
}

function finishedOf(input: RunToolInput, outcome: ToolOutcome, text: string): ToolFinished {
  const { identity, session, turn, callId, name, slot } = input;
  return { life: identity.life, session, turn, callId, name, slot, ts: Date.now() / 1000, outcome, text, persisted: true };
}
