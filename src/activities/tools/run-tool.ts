/**
 * A tool call, in a separate activity or inside a model step: find, check, run within limits, commit. Whatever goes wrong inside a tool is
 * a result that the model reads.
 */
import { Context, log } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { LoadedAgent } from '../../agents/load-agent.js';
import type { FeedEvent } from '../../conversation/protocol/contract.js';
import type { RunToolInput, ToolFinished } from '../../conversation/turn/model-step-effects.js';
import { pickMedia, toolEntry, shownText, type JsonValue, type ToolOutcome, type Body, type ItemRef } from '../../records/message.js';
import { withoutMedia } from '../../records/message-media.js';
import { callIdentity } from '../../tools/call-identity.js';
import { truncate } from '../../records/text.js';
import type { LiveEvent, Store } from '../../stores/store.js';
import { approvalFor } from '../../tools/approval-rules.js';
import type { Tool, ToolResult } from '../../tools/tool.js';
import { memoryIngest, runProcessors } from '../../memory/processors.js';
import { callFingerprint, mediaToRefs, readInput, RESULT_INLINE, toBodyOrText } from '../../memory/bodies.js';
import { type AgentMemory, MEMORY_TOOLS, type ItemPlace, type ItemRecord } from '../../records/memory/agent-memory.js';
import { countTool } from '../../telemetry/metrics.js';
import { readHealed } from '../context/context.js';
import { performEffect, toSpending, type Done } from '../effect.js';
import { createFeedWriter } from '../feed-writer.js';
import { wasStopped, hashRequest } from '../key.js';
import type { ConversationDependencies, ToolEnd } from '../dependencies.js';
import { SERVER_PATIENCE_MS, findTools, hasMemoryChannel } from './tools-of.js';
import { readAppContext, writeAppContext } from '../app-context.js';
import { callsDownTo, placeOfCalls, toolContext, toolMemory, sharedPlace } from './tool-context.js';
import { orUndefinedOnAbort, withTimeoutSignal } from '../../platform/promises.js';
import { BUILTIN_PLUGINS, headAndTail, rowsPlugin } from '../../memory/channel/builtin-plugins.js';
import { CITATION_BYTES, createCompactors, type CompactedResult, type CompactionPlugins } from '../../memory/channel/compaction-plugin.js';
import { resultRecord, itemId } from '../../memory/channel/items-of-entries.js';
import { countCharacters } from '../../memory/channel/open-memory.js';
import { whyUnread } from '../../models/wire.js';
import { isRecord } from '../../platform/json.js';
import { createKnownSecrets } from '../../platform/known-secrets.js';

/** What takes no longer is announced with its result, in one write. */
const SHORT_TOOL_MS = 10;

const OTHER_ARGUMENTS: ToolEnd = {
  outcome: 'rejected',
  text: 'Not run: the arguments in the store are not those of the call. They were changed; call again if it is still needed.',
};
const UNKNOWN: ToolEnd = {
  outcome: 'unknown',
  text: 'An earlier attempt was interrupted and its outcome is unknown. It was not repeated, because running it twice could do harm.',
};

export function runTool(dependencies: ConversationDependencies, input: RunToolInput): Promise<ToolFinished> {
  const activity = Context.current();
  return performTool(dependencies, input, { activity, signal: activity.cancellationSignal, isRiding: false });
}

export interface Surrounding {
  readonly activity: Context;
  /** Its activity's, or what all tools of a step have together. */
  readonly signal: AbortSignal;
  /** On a model step: there is no time to wait for a person. */
  readonly isRiding: boolean;
}

/** Under the ledger: what has committed is answered and not run again. */
export async function performTool(dependencies: ConversationDependencies, input: RunToolInput, around: Surrounding): Promise<ToolFinished> {
  const { activity, isRiding } = around;
  const { key, identity, now = Date.now } = dependencies;
  const feed = createFeedWriter(dependencies, SHORT_TOOL_MS);
  const { turn, callId, name } = input;

  // While the ledger is read.
  const loading = Promise.all([readCall(dependencies, input), dependencies.agents(identity.agent, identity.scope)]);
  loading.catch(() => undefined);

  const work = async (earlier: number): Promise<Done<ToolFinished>> => {
    const [recorded, agent] = await loading;
    const argument = input.person?.input ?? recorded.argument;
    dependencies.toolCalled?.(callId, argument);
    const { fingerprint } = input.plan;
    const isOther = fingerprint !== undefined && fingerprint !== callFingerprint(name, recorded.argument);
    feed.publish({ kind: 'tool-started', turn, callId, name, input: truncate(JSON.stringify(argument), 200) }, `${callId}/start`);
    const { config } = agent;
    const { memory, spent } = toolMemory(dependencies, input, { config, model: recorded.model, activity });
    const began = performance.now();
    const known = isOther ? OTHER_ARGUMENTS : await dependencies.recorded?.tool(input, argument);
    const ended = known ?? (await run(dependencies, { input, agent, memory, argument, around, earlier }));
    const ms = Math.round(performance.now() - began);
    const tries = isRiding ? 0 : (input.plan.attempts ?? 1) - activity.info.attempt;
    if (ended.outcome === 'error' && tries > 0 && !wasStopped(activity)) throw ApplicationFailure.retryable(ended.text, 'tool-failed');
    countTool(dependencies.tools.find(name)?.name, ended.outcome);
    log.info('tool finished', { tool: name, outcome: ended.outcome });
    const { conversation, scope } = key;
    const context = { conversation, scope, session: input.session, turn, callId, tool: name, outcome: ended.outcome };
    const ts = now() / 1000;
    // History gets where they lie, never themselves.
    const media = await mediaToRefs(dependencies.store, key, pickMedia(ended), 0).catch(() => undefined);
    const shown = media ? ended.text : `${ended.text}\n[Its files are lost: the store did not take them.]`;
    let kept: KeptText = { text: '' };
    const ingest = memoryIngest('MemoryIngestToolResultProcessor', async (processed: string) => {
      const answered = { text: processed.toWellFormed(), outcome: ended.outcome, argument, ts, calls: recorded.calls };
      const inlineLimit = hasMemoryChannel(config, dependencies.tools) ? config.memory.inlineLimit : undefined;
      kept = await keepResult(dependencies, input, answered, inlineLimit);
    });
    await runProcessors([...(dependencies.processors?.toolResult ?? []), ingest], withPersonsWord(shown, input, argument), context);
    const { task, files, appContext, contextChange } = ended;
    const { text, item, record } = kept;
    const asking = spent();
    const reported = { ...(task && { task }), ...(files && { files }), ...(appContext && { appContext, contextChange }) };
    const beside = { ...reported, ...media, ...(item && { item }), ...(asking && { usage: asking.usage }) };
    const finished: ToolFinished = { ...toFinished(dependencies, input, ended.outcome, ''), ts, ms, text, ...beside };
    const publish = [...(await feed.rest(callId)), endEvent(finished)];
    const paid = asking && toSpending(dependencies, { kind: 'tool', ...asking });
    return { result: finished, entry: toolEntry(finished, input.seq), ...(record && { items: [record] }), ...paid, publish };
  };

  return performEffect<ToolFinished>(dependencies, {
    claim: {
      id: callId,
      hash: hashRequest([turn, input.slot, input.askedIn, name, ...(input.person?.input === undefined ? [] : [input.person.input])]),
    },
    work: ({ earlier }) => work(earlier),
    fenced: (done) => ({ ...(done?.result ?? toFinished(dependencies, input, 'unknown', '')), fenced: true }),
  });
}

function endEvent({ turn, callId, name, outcome, ms, text }: ToolFinished): LiveEvent {
  const event: FeedEvent = { kind: 'tool-finished', turn, callId, name, outcome, ms, preview: truncate(shownText(text), 200) };
  return { id: `${callId}/end`, event: event as unknown as JsonValue };
}

interface Attempt {
  readonly input: RunToolInput;
  readonly agent: LoadedAgent;
  readonly memory: AgentMemory;
  readonly argument: JsonValue;
  readonly around: Surrounding;
  /** How many attempts began before this one and did not end. */
  readonly earlier: number;
}

/** What a tool says may be anything that it has seen: its secrets are taken out before a word of it is kept. */
async function run(dependencies: ConversationDependencies, attempt: Attempt): Promise<ToolEnd> {
  const { secrets = createKnownSecrets() } = dependencies;
  const { input, agent, argument, around } = attempt;
  const patienceMs = around.isRiding ? 0 : SERVER_PATIENCE_MS;
  const { offered, waiting } = await findTools(dependencies, agent, { patienceMs });
  const tool = offered.find(({ name }) => name === input.name);
  const names = offered.map(({ name }) => name);
  const unknown = `There is no tool "${input.name}". Tools here: ${names.join(', ') || 'none'}.`;
  if (!tool) return { outcome: 'rejected', text: waiting.get(input.name) ?? unknown };

  const unread = whyUnread(argument);
  if (unread !== undefined) {
    const text = `${input.name} did not run: its arguments cannot be read (${unread}). Send them again, as one JSON object.`;
    return { outcome: 'rejected', text };
  }

  const check = input.person?.input === undefined ? whyNotUnasked : whyNotEdited;
  const refusal = await check(dependencies, input, agent, tool, argument);
  if (refusal !== undefined) return { outcome: 'rejected', text: secrets.redact(refusal) };
  return withTimeoutSignal(input.plan.timeoutMs, (timeout) => runWithin(dependencies, attempt, tool, timeout));
}

async function runWithin(
  dependencies: ConversationDependencies,
  { input, agent, memory, argument, around, earlier }: Attempt,
  tool: Tool,
  timeout: AbortSignal,
): Promise<ToolEnd> {
  const { secrets = createKnownSecrets() } = dependencies;
  const { activity, isRiding } = around;
  const signal = AbortSignal.any([around.signal, timeout]);
  const shared = await readAppContext(dependencies, input.appContext);
  const findRefusal = (other: JsonValue): string | undefined => stricterThan(input, agent, tool, other);
  const context = { ...toolContext(dependencies, { input, config: agent.config, memory, shared, signal }), refusalOf: findRefusal };
  if (earlier > 0 && !input.plan.repeatable) {
    const verified = tool.verify ? secrets.redactIn(await orUndefinedOnAbort(signal, tool.verify(argument, context))) : 'unknown';
    if (verified === 'unknown' || verified === undefined) return UNKNOWN;
    if (verified.done) return { outcome: 'ok', text: `${verified.content}\n[An earlier attempt had done this before it was broken off.]` };
  }
  const confirming = dependencies.confirmLease?.();
  if (confirming) await confirming;
  const running = tool.run(argument, context);
  const answered =
    (await orUndefinedOnAbort(signal, running)) ??
    (isRiding ? undefined : await answerAfterStop(dependencies, { activity, timeout, running }));
  const media = answered ? pickMedia(answered) : {};
  // A picture is no text: secrets in it are not found, and its bytes are not changed.
  const result = secrets.redactIn(answered && withoutMedia(answered));
  if (result?.ok === true) {
    const changed = result.context && (await writeAppContext(dependencies, { shared, on: input.appContext, change: result.context }));
    return { outcome: 'ok', text: result.content, task: result.task, files: result.files, ...media, ...changed };
  }
  if (result) return { outcome: 'error', text: result.error, ...media };
  const harmless = input.plan.repeatable;
  if (timeout.aborted || !activity.cancellationSignal.aborted) {
    const text = `The tool did not finish within ${isRiding && !timeout.aborted ? 'the time of its step' : `${input.plan.timeoutMs} ms`} and was stopped.`;
    return harmless ? { outcome: 'error', text } : { outcome: 'unknown', text: `${text} Its outcome is unknown.` };
  }
  if (!wasStopped(activity)) throw ApplicationFailure.retryable('the worker is shutting down; another attempt goes on', 'worker-shutdown');
  return { outcome: harmless ? 'error' : 'unknown', text: 'Interrupted: the person stopped this turn while the tool ran.' };
}

/** A tool that was told to stop may have broken off. */
const STOPPED = '[The person stopped this turn while the tool ran: this may not be all of it.]';

/** Milliseconds between looks at whether the worker ends. */
const LOOKS_EVERY_MS = 500;

/**
 * A person's stop does not end a tool that hears none: the turn is over by then, and what the tool has done all the same is told later
 * (outbox/late-result-told). Waited for as long as it may run, and as the worker does.
 */
async function answerAfterStop(
  { isEnding }: Pick<ConversationDependencies, 'isEnding'>,
  { activity, timeout, running }: { readonly activity: Context; readonly timeout: AbortSignal; readonly running: Promise<ToolResult> },
): Promise<ToolResult | undefined> {
  if (timeout.aborted || !wasStopped(activity)) return undefined;
  const over = new AbortController();
  const look = setInterval(() => {
    if (!wasStopped(activity) || isEnding?.() === true) over.abort();
  }, LOOKS_EVERY_MS).unref();
  try {
    const answered = await orUndefinedOnAbort(AbortSignal.any([timeout, over.signal]), running);
    return answered?.ok === true ? { ...answered, content: `${answered.content}\n${STOPPED}` } : undefined;
  } catch {
    return undefined;
  } finally {
    clearInterval(look);
  }
}

const AGAIN = 'Call it again, and a person has to approve it.';

/** Planned when no person had to approve; what a path leads to may be another place since. */
async function whyNotUnasked(
  dependencies: Pick<ConversationDependencies, 'workspace' | 'identity'>,
  { plan, person }: RunToolInput,
  { id, config }: LoadedAgent,
  tool: Tool,
  argument: JsonValue,
): Promise<string | undefined> {
  const { approval } = plan;
  if (approval?.policy === 'ask' && person?.standing === true) {
    const { real, asks } = (await tool.examine?.(argument, placeOfCalls(dependencies, config))) ?? {};
    const isSame = asks?.overRules !== true && callIdentity(tool.name, argument, real) === approval.same;
    return isSame ? undefined : `${tool.name} did not run: its arguments mean something else now than what a person allowed. ${AGAIN}`;
  }
  if (approval?.policy === 'ask' || !tool.examine) return undefined;
  const examined = await tool.examine(argument, placeOfCalls(dependencies, config));
  const { policy, why = 'its arguments mean something else now' } = approvalFor(config.approvals, tool, argument, id, examined);
  switch (policy) {
    case 'allow':
      return undefined;
    case 'ask':
      return `${tool.name} did not run, because no person has approved it: ${why}. ${AGAIN}`;
    case 'deny':
      return `${tool.name} did not run: ${why}`;
  }
}

/**
 * Arguments that a person has written in place of the model's pass what the model's would have: the schema, the rules of the agent, and what
 * no rule may allow. What only needs a person's approval has it.
 *
 * @rule tools/edited-is-checked: Edited arguments run only where the model's could have run with an approval. (test:
 *   test/workflows/human-input.test.ts)
 */
async function whyNotEdited(
  dependencies: Pick<ConversationDependencies, 'workspace' | 'identity'>,
  _input: RunToolInput,
  { id, config }: LoadedAgent,
  tool: Tool,
  argument: JsonValue,
): Promise<string | undefined> {
  const refused = (why: string): string => `${tool.name} did not run with the arguments that a person wrote: ${why}`;
  const violation = await tool.schemaViolation?.(argument);
  if (violation !== undefined) return refused(violation);
  const examined = await tool.examine?.(argument, placeOfCalls(dependencies, config));
  const { policy, why = 'the rules do not allow them' } = approvalFor(config.approvals, tool, argument, id, examined);
  return policy === 'deny' || examined?.asks?.overRules === true ? refused(why) : undefined;
}

/** A call goes nowhere in its course where it could not have gone by itself. */
function stricterThan({ plan }: RunToolInput, { id, config }: LoadedAgent, tool: Tool, other: JsonValue): string | undefined {
  const { policy, why } = approvalFor(config.approvals, tool, other, id);
  if (policy === 'deny') return why ?? `the rules of agent "${id}" do not allow it`;
  return policy === 'ask' && plan.approval?.policy !== 'ask' ? 'a person has to approve that address' : undefined;
}

/** The model reads the note and the changes of the person who allowed the call. */
function withPersonsWord(text: string, { person }: RunToolInput, argument: JsonValue): string {
  const notes = [
    ...(person?.input === undefined ? [] : [`A person changed the arguments before it ran: ${truncate(JSON.stringify(argument), 1_000)}`]),
    ...(person?.note === undefined ? [] : [`The person who allowed it says: ${person.note}`]),
  ];
  return notes.length === 0 ? text : `${text}\n[${notes.join('\n')}]`;
}

interface RecordedCall {
  readonly argument: JsonValue;
  /** How many calls the answer makes in all. */
  readonly calls: number;
  /** `provider/model` that called. */
  readonly model: string;
}

/** Read where it was recorded, so that arguments travel through history once. */
async function readCall(dependencies: ConversationDependencies, input: RunToolInput): Promise<RecordedCall> {
  const [entry] = await readHealed(dependencies, [input.askedIn]);
  if (entry?.message.role !== 'assistant') throw tracesLost(input);
  const { blocks, model } = entry.message;
  const made = blocks.filter((block) => block.kind === 'tool-call');
  const block = made.find(({ callId }) => callId === input.callId);
  if (!block) throw tracesLost(input);
  return { argument: await readInput(dependencies.store, dependencies.key, block), calls: made.length, model };
}

function tracesLost({ callId, askedIn }: RunToolInput): ApplicationFailure {
  return ApplicationFailure.nonRetryable(`the arguments of ${callId} (slot ${askedIn}) are not in the store`, 'traces-lost');
}

export function toFinished(
  { key, now = Date.now }: Pick<ConversationDependencies, 'key' | 'now'>,
  input: RunToolInput,
  outcome: ToolOutcome,
  text: string,
): ToolFinished {
  const { session, turn, callId, name, slot } = input;
  return { life: key.life, session, turn, callId, name, slot, ts: now() / 1000, ms: 0, outcome, text, persisted: true };
}

// What becomes of a tool's text when it comes: long ones go to the store, and, with a memory channel, become items that are cited. The
// results of one answer together stay below BATCH_INLINE in history: the more there are, the less of each.

/** UTF-8 bytes of texts, and of what stands for them, in the history of one round (design section 2). */
const BATCH_INLINE = 256 * 1024;
/** A reference with its preview, about. */
const REFERENCE_BYTES = 800;

interface Answered {
  readonly text: string;
  readonly outcome: ToolOutcome;
  readonly argument: JsonValue;
  /** Epoch seconds. */
  readonly ts: number;
  /** How many calls the answer made that this one is of. */
  readonly calls: number;
}

interface KeptText {
  readonly text: Body;
  readonly item?: ItemRef;
  /** To be written with the result. */
  readonly record?: ItemRecord;
}

/** `inlineLimit`: UTF-8 bytes; undefined where there is no memory channel. */
export async function keepResult(
  { store, key, compactionPlugins = {} }: ConversationDependencies,
  { session, slot, name, callId, parent }: RunToolInput,
  answered: Answered,
  inlineLimit: number | undefined,
): Promise<KeptText> {
  const share = Math.floor(BATCH_INLINE / Math.max(1, answered.calls));
  const text = await toBodyOrText(store, key, answered.text, Math.min(RESULT_INLINE, share));
  if (inlineLimit === undefined || Buffer.byteLength(answered.text) <= inlineLimit) return { text };
  const room = Math.max(0, Math.min(CITATION_BYTES, share - REFERENCE_BYTES));
  if (MEMORY_TOOLS.includes(name)) return { text, ...citedAgain(name, answered, room) };
  const id = itemId(key, callId);
  const { compacted, isPlain } = compact(compactionPlugins, name, answered, id);
  const citation = toCitation(compacted, { name, length: answered.text.length, id, room });
  const item = { id, citation, ...(isPlain && { isPlain }) } as const;
  const content = typeof text === 'string' ? await store.bodies.put(key, text).catch(() => undefined) : text;
  // The store did not take it: nothing may be cited that might not be there.
  if (!content) return { text };
  const { ref, bytes } = content;
  const size = countCharacters(answered.text);
  const record = resultRecord({ id, session, slot, name, ts: answered.ts, size, content: { ref, bytes, json: false } });
  const memory = parent?.memory?.until === null ? parent.memory : undefined;
  const shared = parent && memory && sharedPlace(key, parent);
  if (
    shared &&
    !(await putShared(store, shared, { ...record, slot: memory.at, calls: [...callsDownTo(key, memory, slot)] }, answered.text))
  )
    return { text };
  return { text, item, record };
}

/** Where a tree of conversations has one memory, the others find the result there. By its id, so that another attempt changes nothing. */
async function putShared(
  store: Store,
  { session, ...key }: ItemPlace,
  { slot, ...record }: Omit<ItemRecord, 'slot'> & { readonly slot: number | undefined },
  text: string,
): Promise<boolean> {
  try {
    await store.bodies.put(key, text);
    await store.items.put(key, [{ ...record, ...(slot !== undefined && { slot }), session }]);
    return true;
  } catch {
    return false;
  }
}

/** What was read from memory lies there already. */
function citedAgain(name: string, { argument, text, outcome }: Answered, room: number): { readonly item?: ItemRef } {
  if (name !== 'retrieve_from_memory' || outcome !== 'ok' || !isRecord(argument) || typeof argument['id'] !== 'string') return {};
  const { id, ...range } = argument as { readonly id: string };
  const shown = Object.fromEntries(
    Object.entries(range).map(([field, value]) => [field, typeof value === 'string' ? truncate(value, 80) : value]),
  ) as CompactedResult;
  const compacted = { actionName: name, ...shown, head: truncate(text, 200), contentLength: text.length };
  return { item: { id, citation: toCitation(compacted, { name, length: text.length, id, room }) } };
}

function compact(
  plugins: CompactionPlugins,
  name: string,
  { text, outcome, argument }: Answered,
  memoryId: string,
): { readonly compacted: CompactedResult; readonly isPlain: boolean } {
  // A model cites what no plugin of the user's does; built-in ones answer where it may not, or fails (seed 003, open question 2).
  let isPlain = !Object.hasOwn(plugins, name);
  const otherwise: typeof headAndTail = {
    compact(...given) {
      isPlain = true;
      return headAndTail.compact(...given);
    },
  };
  const compactors = createCompactors({ byTool: { ...BUILTIN_PLUGINS, ...plugins }, byShape: [rowsPlugin], otherwise }, (tool, reason) =>
    log.warn('a compaction plugin failed: the result is cited by its beginning and end', { tool, reason }),
  );
  const compacted = compactors.compact({ message: text, outcome }, { name, input: argument }, { memoryId });
  return { compacted, isPlain };
}

/** As the seed writes it; where that is too much, the least that says what it was. */
function toCitation(
  compacted: CompactedResult,
  { name, length, id, room }: { readonly name: string; readonly length: number; readonly id: string; readonly room: number },
): string {
  const citation = JSON.stringify(compacted, null, 2);
  return Buffer.byteLength(citation) <= room
    ? citation
    : JSON.stringify({ actionName: name, contentLength: length, memoryId: id }, null, 2);
}
