/** The `run-tool` step: find, check, run within limits, commit. Whatever goes wrong inside a tool is a result that the model reads. */
import { Context, log } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { RunToolInput, ToolFinished } from '../conversation/effects.js';
import { toolEntry } from '../conversation/entries.js';
import { shownText, type Body, type Entry, type JsonObject, type JsonValue, type ToolOutcome } from '../conversation/message.js';
import { beginningOf } from '../conversation/text.js';
import type { ConversationKey } from '../stores/store.js';
import type { ToolContext } from '../tools/tool.js';
import { memoryIngest, runProcessors } from '../memory/processors.js';
import { inputOf, RESULT_INLINE, toBodyOrText } from '../memory/bodies.js';
import { countTool } from '../telemetry/metrics.js';
import { readAppContext, writeAppContext } from './app-context.js';
import { readHealed } from './context.js';
import { performEffect, type Done } from './effect.js';
import { createFeedWriter } from './feed-writer.js';
import { startHeartbeat, wasStopped } from './heartbeat.js';
import type { ActivityDependencies } from './index.js';
import { hashOf, keyOf } from './key.js';
import { SERVER_PATIENCE_MS, toolsOf } from './tools-of.js';

interface Ended extends Pick<ToolFinished, 'task' | 'files' | 'appContext'> {
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
    const argument = input.person?.input ?? (await argumentsOf(dependencies, input));
    feed.publish({ kind: 'tool-started', turn, callId, name, input: beginningOf(JSON.stringify(argument), 200) });
    const ended = await run(dependencies, { input, argument, activity, earlier });
    const tries = (input.plan.attempts ?? 1) - activity.info.attempt;
    if (ended.outcome === 'error' && tries > 0 && !wasStopped(activity)) throw ApplicationFailure.retryable(ended.text, 'tool-failed');
    countTool(dependencies.tools.find(name)?.name, ended.outcome);
    log.info('tool finished', { tool: name, outcome: ended.outcome });
    const { conversation, scope } = key;
    const context = { conversation, scope, session: input.session, turn, callId, tool: name, outcome: ended.outcome };
    let text: Body = '';
    const ingest = memoryIngest('MemoryIngestToolResultProcessor', async (processed: string) => {
      text = await toBodyOrText(store, key, processed.toWellFormed(), RESULT_INLINE);
    });
    await runProcessors([...(dependencies.processors?.toolResult ?? []), ingest], withPersonsWord(ended.text, input, argument), context);
    const { task, files, appContext } = ended;
    const beside = { ...(task && { task }), ...(files && { files }), ...(appContext && { appContext }) };
    const finished: ToolFinished = { ...finishedOf(input, ended.outcome, ''), ts: Date.now() / 1000, text, ...beside };
    return { result: finished, entry: toolEntry(finished, input.seq) };
  };

  try {
    const finished = await performEffect<ToolFinished>(store, {
      key,
      claim: {
        id: callId,
        hash: hashOf([turn, input.slot, input.askedIn, name, ...(input.person?.input === undefined ? [] : [input.person.input])]),
      },
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

interface Attempt {
  readonly input: RunToolInput;
  readonly argument: JsonValue;
  readonly activity: Context;
  /** How many attempts began before this one and did not end. */
  readonly earlier: number;
}

async function run(dependencies: ActivityDependencies, { input, argument, activity, earlier }: Attempt): Promise<Ended> {
  const { agents, store } = dependencies;
  const agent = await agents(input.identity.agent, input.identity.scope);
  // A local activity has a second for everything.
  const patienceMs = activity.info.isLocal ? 0 : SERVER_PATIENCE_MS;
  const { offered } = await toolsOf(dependencies, keyOf(input.identity), agent, { patienceMs });
  const tool = offered.find(({ name }) => name === input.name);
  const names = offered.map(({ name }) => name);
  if (!tool) return { outcome: 'rejected', text: `There is no tool "${input.name}". Tools here: ${names.join(', ') || 'none'}.` };

  const timeout = AbortSignal.timeout(input.plan.timeoutMs);
  const signal = AbortSignal.any([activity.cancellationSignal, timeout]);
  const key = keyOf(input.identity);
  const shared = await readAppContext(store, key, input.appContext);
  const context = toolContext(dependencies, { input, key, shared, signal });
  if (earlier > 0 && !input.plan.repeatable) {
    const verified = tool.verify ? await untilAborted(signal, tool.verify(argument, context)) : 'unknown';
    if (verified === 'unknown' || verified === undefined) return UNKNOWN;
    if (verified.done) return { outcome: 'ok', text: `${verified.content}\n[An earlier attempt had done this before it was broken off.]` };
  }
  const result = await untilAborted(signal, tool.run(argument, context));
  if (result?.ok === true) {
    const appContext = result.context && (await writeAppContext(store, key, { ...shared, ...result.context }));
    return { outcome: 'ok', text: result.content, task: result.task, files: result.files, ...(appContext && { appContext }) };
  }
  if (result) return { outcome: 'error', text: result.error };
  const harmless = input.plan.repeatable;
  if (timeout.aborted) {
    const text = `The tool did not finish within ${input.plan.timeoutMs} ms and was stopped.`;
    return harmless ? { outcome: 'error', text } : { outcome: 'unknown', text: `${text} Its outcome is unknown.` };
  }
  if (!wasStopped(activity)) throw ApplicationFailure.retryable('the worker is shutting down; another attempt goes on', 'worker-shutdown');
  return { outcome: harmless ? 'error' : 'unknown', text: 'Interrupted: the person stopped this turn while the tool ran.' };
}

interface Surroundings {
  readonly input: RunToolInput;
  readonly key: ConversationKey;
  readonly shared: JsonObject;
  readonly signal: AbortSignal;
}

function toolContext({ workspace, store }: ActivityDependencies, { input, key, shared, signal }: Surroundings): ToolContext {
  const { namespace, scope, conversation, life } = key;
  const { turn, callId } = input;
  return {
    workspace,
    signal,
    conversation,
    turn,
    callId,
    idempotencyKey: `${namespace}/${life}/${callId}`,
    now: () => new Date(),
    context: shared,
    history: () => store.documents.history({ namespace, scope }),
  };
}

/** The model reads what the person who allowed the call has said and changed. */
function withPersonsWord(text: string, { person }: RunToolInput, argument: JsonValue): string {
  const said = [
    ...(person?.input === undefined
      ? []
      : [`A person changed the arguments before it ran: ${beginningOf(JSON.stringify(argument), 1_000)}`]),
    ...(person?.note === undefined ? [] : [`The person who allowed it says: ${person.note}`]),
  ];
  return said.length === 0 ? text : `${text}\n[${said.join('\n')}]`;
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
