/**
 * The activity `model-step`: write, run the riding tools, decide, call. Each part first checks whether a person has stopped the turn.
 *
 * The result and the ledger have what the step found. Room in a shared budget is reserved before the call and settled after the commit, by
 * this attempt or by a later one.
 *
 * @rule model-step/parts-in-ledger: Each part is in the ledger under an id: another attempt repeats nothing that was committed, and pays no
 *   call twice. (test: test/workflows/model-step.test.ts)
 * @rule model-step/failure-is-data: A store that is away at the beginning fails the step; later no expected failure is thrown, or finished
 *   tools would never enter history. Temporal first retries a model's transient failure: the ledger has what was done by then. (test:
 *   test/workflows/model-step.test.ts)
 * @rule model-step/results-stored-first: A model reads results from the store: until the store has all of them the step calls no model, and
 *   the next step writes them. (test: test/workflows/model-step.test.ts)
 */
import { randomUUID } from 'node:crypto';
import { Context, log } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { obstacleTo, type CallNumbers } from '../../conversation/context/call-gate.js';
import { withResultCounted } from '../../conversation/context/citing.js';
import type { TurnError } from '../../conversation/protocol/contract.js';
import type {
  DeferReason,
  MadeCitation,
  ModelStepInput,
  ModelStepResult,
  RidingTool,
  ModelAnswer,
  ShownWords,
  RunToolInput,
  ToolFinished,
} from '../../conversation/turn/model-step-effects.js';
import type { StepFailure } from '../../conversation/outbox/writes.js';
import { toolEntry, addUsage, isFromPerson } from '../../records/message.js';
import { answeredWords, askedWords, MAX_ANSWER_WORDS, spokenIn } from '../../conversation/turn/title.js';
import { isModelAway, isTransient, LONG_WAIT_MS } from '../../records/turn-end.js';
import { countFallback } from '../../telemetry/metrics.js';
import { ModelFailure } from '../../models/model.js';
import { memoryBundle } from '../../memory/compaction/snapshot.js';
import { retrieve } from '../../memory/facts.js';
import { ATTEMPTS, callModel, type CommittedCall } from './call-model.js';
import { configure, memoryNews } from './configure.js';
import { toCall } from './prepare-request.js';
import { readText, TEXT_INLINE, toBodyOrText } from '../../memory/bodies.js';
import { lifeMark } from '../../memory/recall/indexed-texts.js';
import { recalledNotice } from '../../memory/recall/question.js';
import type { Recalled } from '../../memory/recall/recalled.js';
import { listSlots } from '../../records/slots.js';
import { errorMessage } from '../../platform/errors.js';
import { sharedBudgets, type TakenRoom } from './shared-budgets.js';
import { StoreUnavailable } from '../../stores/store.js';
import { toTitle } from '../make-title.js';
import { describeCaller, type LimitedCall, type LimitRoom, type Place } from '../rate-limiter.js';
import { wasStopped, hashRequest } from '../key.js';
import { toApplicationFailure, type FailureDetails } from '../failures.js';
import type { ConversationDependencies } from '../dependencies.js';
import { toFinished, performTool } from '../tools/run-tool.js';
import { knownAttributes, writePending } from '../store-step.js';
import { withLearnedBudget, type CallSettings, type Configured } from '../../conversation/state/settings.js';
import { usableConfig } from './prompt-budget.js';
import { orUndefinedOnAbort, withTimeoutSignal } from '../../platform/promises.js';

/** Milliseconds of a wait that no one needs to be told of. */
const SHORT_WAIT_MS = 1_500;
/** Milliseconds that all tools of one step have together. */
const TOOLS_MS = 5_000;

const NOT_TAKEN: StepFailure = {
  type: 'StoreUnavailable',
  message: 'the store did not take a tool result that the model needs',
  transient: true,
};

const NO_ROOM_KNOWN: StepFailure = {
  type: 'StoreUnavailable',
  message: 'the store did not report what is left of the shared budget',
  transient: true,
};

export async function modelStep(dependencies: ConversationDependencies, input: ModelStepInput): Promise<ModelStepResult> {
  const activity = Context.current();
  const { processors } = dependencies;
  const { session, turn, call } = input;
  const attempt = randomUUID();
  // Without the context: a compaction between two attempts must not invalidate the paid answer.
  const claim = { id: call.id, hash: hashRequest([session, turn, call.slot]) };
  const isStopped = (): boolean => activity.cancellationSignal.aborted;
  if (isStopped()) throwOnShutdown(activity);

  // Write.
  const [{ written, applied, tokensMore, texts }, configured, base, attributes] = await Promise.all([
    writePending(dependencies, input.write, { processors: processors?.input, reserve: { claim, attempt } }),
    input.configure ? configure(dependencies, input.configure) : ({ kind: 'unchanged' } as const),
    input.opensSession ? openingBase(dependencies, input) : undefined,
    input.asksAttributes ? knownAttributes(dependencies) : undefined,
  ]);
  const found = { ...(configured.kind !== 'unchanged' && { configured }), ...(base && { base }) };
  const title = input.wantsTitle && dependencies.showsWords !== false ? toTitle(texts[0] ?? '', dependencies.secrets) : undefined;
  const words = questionToShow(dependencies, input, texts[0]);
  const result = {
    written: { ...written, ...(attributes && { attributes }) },
    ...(title !== undefined && { title }),
    ...(words && { words }),
  };
  const answered = ({ answer, persisted: _, ...foundThen }: CommittedCall, tools: readonly ToolFinished[]): ModelStepResult => ({
    ...result,
    ...withAnswer(dependencies, words, answer),
    ...found,
    ...foundThen,
    ...embeddedBy(dependencies),
    tools,
    kind: 'answered',
    answer,
  });
  const { reservation } = applied;
  if (reservation?.status === 'committed') {
    // The tools that rode had committed before it (model-step/parts-in-ledger).
    const tools = await runTools(dependencies, input, activity);
    const committed = reservation.result as unknown as CommittedCall;
    await sharedBudgets(dependencies, input.shares, call.id).settle(committed.answer.usage);
    return answered(committed, tools);
  }
  const deferred = (reason: DeferReason, tools: readonly ToolFinished[] = [], usedUp?: TurnError): ModelStepResult => {
    if (reason === 'stopped') throwOnShutdown(activity);
    return { ...result, ...found, tools, kind: 'deferred', reason, ...(usedUp && { usedUp }) };
  };
  if (written.messages.some(({ duplicate }) => duplicate !== undefined)) return deferred('duplicate');
  if (configured.kind === 'unusable') return deferred('unusable');
  const settings = currentSettings(input, configured);
  if (input.wantsMode && configured.kind === 'settings' && configured.mode === 'stepping') return deferred('stepping');

  // Memory.
  const { pinned } = input;
  const isTold = !pinned || !input.configure || input.deferred?.includes('memory');
  const promptRoom = settings.contextBudget - countFixedTokens(input, configured);
  const news = isTold ? undefined : await memoryNews(dependencies, pinned, settings.memory, { ...call, room: promptRoom });
  if (news) return { ...result, ...found, tools: [], kind: 'deferred', reason: 'memory', news };

  // Tools.
  if (isStopped()) return deferred('stopped');
  const tools = await runTools(dependencies, input, activity);
  if (isStopped()) return deferred('stopped', tools);
  // (model-step/results-stored-first)
  if (tools.some(({ persisted }) => !persisted)) return { ...result, ...found, tools, kind: 'failed', failure: NOT_TAKEN };

  // Recall.
  const recalled = await recallForTurn(dependencies, input, { agentHash: settings.agentHash, stop: activity.cancellationSignal });
  if (isStopped()) return deferred('stopped', tools);
  if (recalled !== undefined) return { ...result, ...found, tools, kind: 'deferred', reason: 'recall', recalled };

  // Decide.
  const numbers = numbersNow(input, settings, tokensMore, tools);
  const obstacle = obstacleTo(numbers, settings);
  if (obstacle && !input.deferred?.includes(obstacle)) return deferred(obstacle, tools);

  const { model, fallback } = settings;
  const next = fallback?.next[0];
  const cited: MadeCitation[] = [];
  const heard: string[] = [];
  const failed = (failure: StepFailure): ModelStepResult => {
    if (next !== undefined && isModelAway(failure.type)) countFallback({ from: model, to: next, reason: failure.type });
    // Citations also without an answer: they were paid for, and are in the store.
    return { ...result, ...found, ...(cited.length > 0 && { citations: cited }), tools, kind: 'failed', failure };
  };
  const known = next === undefined ? undefined : dependencies.circuits?.refusal(model);
  if (known) return failed(known);

  // Take a place in line.
  const usedUp = await dependencies.tenantBudgets?.usedUp(dependencies.key);
  if (usedUp) return deferred('budget', tools, usedUp);
  const promptTokens = numbers.contextTokens + countFixedTokens(input, configured);
  const line = await takeRoom(dependencies, { model, id: `${dependencies.key.life}/${call.id}`, input: promptTokens });
  if ('place' in line) {
    const { ms, words } = line.place;
    const failure = { type: 'rate-limit', message: words, transient: true, retryAfterMs: ms };
    // The next model of a list may have room.
    if (next !== undefined && ms > LONG_WAIT_MS) return failed({ ...failure, message: `not called: ${words}` });
    // Temporal's retry holds no slot either, and costs no history.
    if (ms <= SHORT_WAIT_MS && activity.info.attempt < ATTEMPTS)
      throw toApplicationFailure(new ModelFailure('rate-limit', words, { retryAfterMs: ms }));
    return { ...result, ...found, tools, kind: 'failed', failure: { ...failure, isInLine: true } };
  }

  // Take room.
  const shared = sharedBudgets(dependencies, input.shares, call.id);
  const room = await shared.reserve({ model, promptTokens }, activity.cancellationSignal).catch((error: unknown): TakenRoom => {
    if (error instanceof StoreUnavailable)
      return { kind: 'failed', failure: { ...NO_ROOM_KNOWN, message: `${NO_ROOM_KNOWN.message}: ${error.message}` } };
    throw error;
  });
  if (room.kind !== 'taken') line.room?.done({ error: room });
  if (room.kind === 'failed') return { ...result, ...found, tools, ...room };
  if (room.kind === 'used-up') return deferred('budget', tools, room.why);
  if (room.kind === 'stopped') return deferred('stopped', tools);

  // Call.
  try {
    const done = await callModel(dependencies, {
      input: toCall(input, settings, { written, base }),
      found,
      reserved: { claim, attempt, reservation },
      onFailed: (id, usage) => shared.settleFailed(id, usage),
      cited,
      heard,
      room: line.room,
    });
    // An earlier attempt may have had the answer.
    line.room?.done(done.answer);
    await shared.settle(done.answer.usage);
    return answered(done, tools);
  } catch (error) {
    line.room?.done({ error });
    await shared.release();
    const failure = toStepFailure(error, activity, next === undefined ? ATTEMPTS : fallback?.tries);
    const words = heard.join('').trimEnd();
    return failed(
      words === '' ? failure : { ...failure, words: await toBodyOrText(dependencies.store, dependencies.key, words, TEXT_INLINE) },
    );
  }
}

/** Without a limiter there is always room. */
async function takeRoom(
  { limiter, key }: ConversationDependencies,
  call: Pick<LimitedCall, 'model' | 'id' | 'input'>,
): Promise<{ readonly room?: LimitRoom } | { readonly place: Place }> {
  return (await limiter?.take({ ...call, ...describeCaller(key.scope) })) ?? {};
}

/** The cost of embeddings since the last step. Those of this step's texts start here, in the background. */
function embeddedBy({ embedding, key, identity }: ConversationDependencies): Pick<ModelStepResult, 'embedded'> {
  const usage = embedding?.takeOwed(key);
  embedding?.note({ key, agent: identity.agent });
  return usage ? { embedded: usage } : {};
}

/** Undefined if the workflow derives the same words, as it does unless an input processor may have changed the message (`showsWords`). */
function wordsIfDifferent(
  { processors }: ConversationDependencies,
  shown: string | undefined,
  derived: string | undefined,
): { readonly words: string | null } | undefined {
  const known = processors?.input?.length ? undefined : derived;
  return shown === known ? undefined : { words: shown ?? null };
}

function questionToShow(dependencies: ConversationDependencies, { turn, write }: ModelStepInput, text = ''): ShownWords | undefined {
  if (!dependencies.showsWords || text === '') return undefined;
  const derived = askedWords(write.messages.find((message) => message.turn === turn)?.text);
  const words = wordsIfDifferent(dependencies, toTitle(text, dependencies.secrets), derived);
  return words && { asked: words.words };
}

function withAnswer(
  dependencies: ConversationDependencies,
  words: ShownWords | undefined,
  { blocks }: ModelAnswer,
): { readonly words?: ShownWords } {
  if (!dependencies.showsWords) return {};
  const answered = wordsIfDifferent(dependencies, toTitle(spokenIn(blocks), dependencies.secrets, MAX_ANSWER_WORDS), answeredWords(blocks));
  return answered ? { words: { ...words, answered: answered.words } } : {};
}

/** A worker's shutdown is no person's stop: another worker tries again. */
function throwOnShutdown(activity: Context): void {
  if (activity.cancellationSignal.aborted && !wasStopped(activity))
    throw ApplicationFailure.retryable('the worker is shutting down; another attempt goes on', 'worker-shutdown');
}

/** Throws while Temporal still retries, which costs no history; then returns the failure as data (model-step/failure-is-data). */
function toStepFailure(error: unknown, activity: Context, tries = ATTEMPTS): StepFailure {
  const failure = toApplicationFailure(error);
  if (!(failure instanceof ApplicationFailure)) throw failure;
  const { type = 'internal', message, nonRetryable, details } = failure;
  const attempts = isModelAway(type ?? '') ? Math.min(tries, ATTEMPTS) : ATTEMPTS;
  if (!nonRetryable && activity.info.attempt < attempts) throw failure;
  log.warn('model failed', { type, message });
  const [{ retryAfterMs, status } = {}] = (details ?? []) as readonly FailureDetails[];
  return {
    type: type ?? 'internal',
    message,
    transient: isTransient(type ?? ''),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(status !== undefined && { status }),
  };
}

/** Fixed tokens of every prompt; if unknown, 0, and the estimate is too low. */
function countFixedTokens({ shares }: ModelStepInput, configured: Configured): number {
  return configured.kind === 'settings' ? configured.settings.fixedTokens : (shares?.fixedTokens ?? 0);
}

function currentSettings({ settings, learned }: ModelStepInput, configured: Exclude<Configured, { kind: 'unusable' }>): CallSettings {
  const now = configured.kind === 'settings' ? withLearnedBudget(configured.settings, learned) : settings;
  if (!now) throw ApplicationFailure.nonRetryable('the first step of a conversation must read its settings', 'internal');
  return now;
}

/** Design section 4: the first epoch of a session begins with the scope's facts. */
async function openingBase(dependencies: ConversationDependencies, input: ModelStepInput): Promise<ModelStepResult['base']> {
  const { store, key, recorded } = dependencies;
  const known = recorded?.base(input);
  if (known !== undefined) return known ?? undefined;
  const [{ facts }, config] = await Promise.all([store.facts.list(key), usableConfig(dependencies, dependencies.identity)]);
  const text = memoryBundle(retrieve([], facts, config?.context));
  if (text === '') return undefined;
  const { ref } = await store.bodies.put(key, text);
  return { ref, text };
}

/** Runs the tools in parallel, with a time limit for each and one for all. */
async function runTools(dependencies: ConversationDependencies, input: ModelStepInput, activity: Context): Promise<ToolFinished[]> {
  if (input.tools.length === 0) return [];
  const ended = await withTimeoutSignal(TOOLS_MS, (timeout) => {
    const signal = AbortSignal.any([activity.cancellationSignal, timeout]);
    return Promise.allSettled(
      input.tools.map((tool) => {
        const given = toolInput(input, tool);
        return performTool(dependencies, given, { activity, signal, isRiding: true }).catch((error: unknown) =>
          answerFor(dependencies, given, error),
        );
      }),
    );
  });
  const lost = ended.find((one): one is PromiseRejectedResult => one.status === 'rejected');
  // The others are in the ledger: another attempt has them at once.
  if (lost) throw lost.reason;
  return ended.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
}

/** A permanent failure becomes the tool's result, as it does for a tool in a separate activity. */
async function answerFor({ store, key }: ConversationDependencies, input: RunToolInput, error: unknown): Promise<ToolFinished> {
  const failure = toApplicationFailure(error);
  if (!(failure instanceof ApplicationFailure) || !failure.nonRetryable) throw error;
  const finished = toFinished({ key }, input, 'error', `The tool did not finish: ${failure.message}`);
  await store.entries.append(key, [toolEntry(finished, input.seq)]);
  return finished;
}

function toolInput({ identity, session, turn, appContext, parent, settings }: ModelStepInput, tool: RidingTool): RunToolInput {
  const fallback = settings?.fallback?.next;
  return {
    ...{ identity, session, turn, ...tool },
    ...(appContext && { appContext }),
    ...(fallback?.length && { fallback }),
    ...(parent && { parent }),
  };
}

/** As the workflow will count them once it has this result. */
function numbersNow(
  { numbers }: ModelStepInput,
  { contextBudget }: CallSettings,
  tokensMore: number,
  tools: readonly ToolFinished[],
): CallNumbers {
  const more = Math.ceil(tokensMore * (numbers.tokenRatio ?? 1));
  const written = { ...numbers, contextTokens: Math.max(0, numbers.contextTokens + more) };
  return tools.reduce<CallNumbers>((now, tool) => {
    const counted = withResultCounted(now, tool, contextBudget);
    return tool.usage ? { ...counted, usage: addUsage(counted.usage, tool.usage) } : counted;
  }, written);
}

// Messages of earlier conversations that may help with a turn (`memory.recall` of agent.json): chosen once, before its first model call, by
// the words of its message. Tool results, and messages that are in the context, are never recalled.

/** Hits per search; those with enough confidence are candidates. */
const HITS = 20;
/** From 0 to 1. */
const MIN_CONFIDENCE = 0.5;
/** Milliseconds: a new worker may have to build the index first, and a turn does not wait for that. */
const PATIENCE_MS = 2_000;
/** Of these, for the embedding of the question. */
const EMBED_MS = 1_000;
/** Slots at the end of the context that are searched for the turn's messages. */
const LOOKED_AT = 16;
/** No tool results and no memory items. MEMORY.md and the first facts are in the prompt anyway. */
const KINDS = ['user', 'assistant', 'history', 'episode'] as const;

/** The text of the notice; undefined if nothing fits, the time is up, or the store fails. */
async function recallForTurn(
  dependencies: ConversationDependencies,
  input: ModelStepInput,
  { agentHash, stop }: { readonly agentHash: string; readonly stop: AbortSignal },
): Promise<string | undefined> {
  const { call, tools, deferred = [] } = input;
  const isFirstCall = call.soFar === undefined && tools.length === 0;
  if (!isFirstCall || deferred.includes('recall')) return undefined;
  const known = dependencies.recorded?.recalled(input);
  if (known !== undefined) return known ?? undefined;
  try {
    const { agent, scope } = dependencies.identity;
    const { config } = await dependencies.agents(agent, scope, agentHash);
    const turns = config.memory.recall?.turns ?? 0;
    if (turns === 0) return undefined;
    return await withTimeoutSignal(PATIENCE_MS, (timeout) =>
      orUndefinedOnAbort(AbortSignal.any([stop, timeout]), noticeFor(dependencies, input, turns)),
    );
  } catch (error) {
    log.warn('nothing was recalled for this turn', { reason: errorMessage(error) });
    return undefined;
  }
}

async function noticeFor(
  dependencies: ConversationDependencies,
  { turn, call }: ModelStepInput,
  turns: number,
): Promise<string | undefined> {
  const { store, key, recall, now = Date.now } = dependencies;
  const shown = listSlots(call.context);
  const entries = await store.entries.read(key, shown.slice(-LOOKED_AT));
  const texts = entries.flatMap((entry) => (entry?.turn === turn && isFromPerson(entry.message) ? [entry.message.text] : []));
  const question = (await Promise.all(texts.map((text) => readText(store, key, text)))).join('\n');
  if (!recall || question.trim() === '') return undefined;
  const except = { conversation: key.conversation, life: key.life, turn };
  const payer = { key, agent: dependencies.identity.agent };
  const found = await recall.search(key, { question, limit: HITS, kinds: KINDS, except, payer, embedMs: EMBED_MS, now: new Date(now()) });
  const here = new Set(shown.map((slot) => `${lifeMark(key)}/${slot}`));
  // The prompt already has the summaries of this conversation's older turns.
  const isKnown = ({ address, kind }: Recalled): boolean =>
    here.has(address) || (kind === 'episode' && address.startsWith(`${lifeMark(key)}/`));
  const chosen = found.filter((hit) => hit.confidence >= MIN_CONFIDENCE && !isKnown(hit)).slice(0, turns);
  return chosen.length === 0 ? undefined : recalledNotice(chosen);
}
