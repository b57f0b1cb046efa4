/**
 * `consolidate`: a model reads the messages and the memory, and proposes the new memory (seed 001,
 * ConsolidationService). An effect of the conversation that needs it: an answer that was paid for is not requested again. Writes nothing that
 * a prompt or a person sees; that is `remember`.
 */
import { Context, log } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { ConsolidateInput, Consolidated, AskMemoryInput } from '../../conversation/context/compaction-effects.js';
import { type Entry, addUsage } from '../../records/message.js';
import { countSlots, listSlots } from '../../records/slots.js';
import { LIMITS } from '../../conversation/protocol/contract.js';
import { withBodies } from '../../memory/bodies.js';
import { isForgotten, redactor, redactTask, withoutForgotten } from '../../memory/documents/forgetting.js';
import { consolidate as ask } from '../../memory/consolidation/consolidate.js';
import { consolidationId } from '../../memory/documents/search-history.js';
import { toConversationEntries, rawFallback, withSources, withTask } from '../../memory/consolidation/message-lines.js';
import { consolidationJsonSchema, handingOverJsonSchema } from '../../memory/consolidation/prompt.js';
import { withProvenance } from '../../memory/consolidation/provenance.js';
import type { ConversationKey } from '../../stores/store.js';
import { askWithLess, createAsker, isTooMuch } from '../ask-model.js';
import { besideBudget, findContextWindow, memoryAnswerTokens, windowFinder, configOrDefaults } from '../model-step/prompt-budget.js';
import { readHealed } from '../context/context.js';
import { performEffect, toSpending, type Done } from '../effect.js';
import { claimTurns } from './claims.js';
import { healMemory, isMemoryLost } from './decide-memory.js';
import type { ActivityDependencies, ConversationDependencies } from '../dependencies.js';
import { hashRequest, scopeKey } from '../key.js';

type Persisted = Consolidated & { readonly persisted: boolean };

export async function consolidate(
  dependencies: ActivityDependencies,
  { scope, request, written }: ConsolidateInput,
): Promise<Consolidated> {
  const activity = Context.current();
  const key: ConversationKey = { ...scopeKey(scope), conversation: request.conversation, life: request.life };
  const { persisted: _, ...result } = await performEffect<Persisted>(
    { ...dependencies, key },
    {
      claim: { id: `consolidate/${request.requestId}`, hash: hashRequest([request.session, request.slots]) },
      work: () => askForMemory(dependencies, key, { request, written }, activity),
      // A consolidation is never fenced.
      fenced: () => ({ kind: 'nothing-to-do', persisted: true }),
    },
  );
  return result as Consolidated;
}

async function askForMemory(
  dependencies: ActivityDependencies,
  key: ConversationKey,
  { request, written }: Omit<ConsolidateInput, 'scope'>,
  activity: Context,
): Promise<Done<Persisted>> {
  const { store, models, defaultModel, circuits } = dependencies;
  const count = countSlots(request.slots);
  // The workflow refuses it; a history of an older version may have it.
  if (!(count <= LIMITS.slots)) throw ApplicationFailure.nonRetryable(`${count} entries are more than ${LIMITS.slots}`, 'invalid-request');
  const read = await readHealed({ ...dependencies, key }, listSlots(request.slots));
  const free = await claimTurns(
    store,
    key,
    request.id,
    read.flatMap((entry) => entry ?? []),
  );
  const whole = await Promise.all(free.map(async (entry): Promise<Entry> => ({ ...entry, message: await withBodies(store, key, entry) })));
  const messages = toConversationEntries(whole);
  if (messages.length === 0) return { result: { kind: 'nothing-to-do', persisted: true } };
  if (await isMemoryLost(store, key, written)) await healMemory(store, dependencies.rememberedBy, key);
  const [memory, tombstones, config] = await Promise.all([
    store.documents.memory(key),
    store.documents.forgotten(key),
    configOrDefaults(dependencies, { agent: request.agent, scope: key.scope }),
  ]);
  const redact = redactor(tombstones, key.scope);
  const model = config.memory.consolidationModel ?? (request.model === '' ? (config.model ?? defaultModel) : request.model);
  const handsOver = request.why === 'window';
  const answerSchema = { name: 'memory', schema: handsOver ? handingOverJsonSchema : consolidationJsonSchema };
  const limits = models.limits(model);
  const window = await findContextWindow(models, config, { model, agentModel: request.model });
  const maxTokens = memoryAnswerTokens(config, limits, window);
  const { fallback } = request;
  const fallingOver = fallback ? { others: [request.model, ...fallback], circuits } : {};
  const asking = { models, name: model, activity, maxTokens, contextWindow: windowFinder(models, config, request.model), ...fallingOver };
  const [run, notes] = [createAsker({ ...asking, answerSchema }), createAsker(asking)];
  const entries = messages.map((message) => ({ ...message, content: redact(message.content) }));
  const task = request.task && redactTask(request.task, redact);
  const about = { entries, handsOver, task, currentMemory: memory.text, maxMemorySize: config.memory.maxMemorySize };
  const tokens = besideBudget(config, { model, agentModel: request.model, maxTokens, limits, window });
  const answered = await askWithLess({ tokens, texts: [memory.text, ...entries.map(({ content }) => content)] }, (maxCharacters) =>
    ask(run.ask, { ...about, maxCharacters }, notes.ask),
  ).catch((error: unknown) => {
    if (!isTooMuch(error)) throw error;
    return { kind: 'unusable', reason: (error as Error).message } as const;
  });
  // A session that goes on has its task in its prompt.
  const ended = handsOver ? undefined : request.task;
  const usage = addUsage(run.spent(), notes.spent());
  const done = (result: Consolidated): Done<Persisted> => ({
    result: { ...result, persisted: true },
    ...toSpending({ key, identity: request }, { kind: 'consolidation', model: run.model(), usage }),
  });
  if (answered.kind === 'unusable') {
    log.warn('the model’s consolidation was of no use', { conversation: key.conversation, reason: answered.reason });
    return done({
      kind: 'unusable',
      reason: answered.reason,
      fallback: withSources(redact(withTask(rawFallback(entries), ended)), whole, new Set(config.memory.trustedTools)),
      usage,
    });
  }
  const { historyEntry, memoryUpdate } = answered;
  const handover = handsOver && answered.handover ? await store.bodies.put(key, JSON.stringify(answered.handover)) : undefined;
  const handedOver = handover && { handover: handover.ref };
  const trustedTools = new Set(config.memory.trustedTools);
  const history = historyEntry === undefined ? null : withSources(redact(withTask(historyEntry, ended)), whole, trustedTools);
  if (memoryUpdate === undefined) return done({ kind: 'done', history, update: null, proposed: [], ...handedOver, usage });
  const sources = withProvenance({
    conversation: key.conversation,
    currentMemory: memory.text,
    memoryUpdate: withoutForgotten(memoryUpdate, tombstones, key.scope),
    entries: whole,
    trustedTools,
    reviewWhenToolsSpoke: config.memory.reviewWhenToolsSpoke,
  });
  log.info('consolidated', { conversation: key.conversation, messages: messages.length, method: answered.method, ...usage });
  return done({
    kind: 'done',
    history,
    update:
      sources.text === memory.text
        ? null
        : { from: memory.version, text: sources.text, added: sources.added, limit: config.memory.maxMemorySize },
    proposed: sources.proposed.filter(({ line }) => !isForgotten(line, tombstones, key.scope)),
    ...handedOver,
    usage,
  });
}

export async function askMemory({ askMemory: ask, key }: ConversationDependencies, { request }: AskMemoryInput): Promise<void> {
  if (!ask) throw ApplicationFailure.nonRetryable('this worker was made without a way to the memory workflow', 'internal');
  const { conversation, life, scope } = key;
  const id = consolidationId({ conversation, life }, request.requestId);
  await ask(scope, { ...request, id, conversation, life, taskQueue: Context.current().info.taskQueue });
}
