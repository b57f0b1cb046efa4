/**
 * The `compact` step: older turns become an episode and facts, and a new epoch begins on them (seed 000, section 10.1). Every
 * write has a unique id, so a second attempt changes nothing; what the conversation sees changes only with the result.
 */
import { ApplicationFailure } from '@temporalio/common';
import { Context, log } from '@temporalio/activity';
import type { AgentConfig } from '../../agents/agent-config.js';
import type { CompactInput, Compacted, UncompactInput } from '../../conversation/context/compaction-effects.js';
import { isFromPerson, isNotice, shownText, type Entry } from '../../records/message.js';
import { listSlots, withSlot, toRanges, type SlotRange } from '../../records/slots.js';
import { citedTokens } from '../../conversation/context/citing.js';
import { cut, oneLine } from '../../records/text.js';
import { withBodies } from '../../memory/bodies.js';
import { compactWith, createCompactorRegistry, WORKING_FLOW_COMPACTOR, type Compactor } from '../../memory/compaction/compactor.js';
import { boundedBundle, filesIn, folded, timeSpan, toFolding, beginningIn } from '../../memory/compaction/snapshot.js';
import { summaryJsonSchema } from '../../memory/compaction/summary-answer.js';
import { withWholeCalls } from '../../memory/compaction/truncation.js';
import { planCompaction, type CompactionPlan, type CompactionWindow } from '../../memory/compaction/window.js';
import { toolsThatSpoke, withProvenance } from '../../memory/consolidation/provenance.js';
import { isForgotten, redactor, redactTask } from '../../memory/documents/forgetting.js';
import { episodesInSight } from '../../memory/prefix.js';
import { byAge, episodicId, foldedFact, withoutSuperseded, type ShownMemory } from '../../records/memory/items.js';
import { selectProvisional, summarizeByRules } from '../../memory/compaction/summary.js';
import type { Ask } from '../../memory/long-record.js';
import { retrieve, learnFacts, factsBatch, mostRelevant, listReplacements } from '../../memory/facts.js';
import { entryTokens } from '../../memory/tokens.js';
import { tokenCounterFor } from '../../models/token-counter.js';
import type { ConversationKey, Store, EpisodeRecord } from '../../stores/store.js';
import { askWithLess, createAsker, isTooMuch, summarizers, createPriorAttempts, type PriorAttempts } from '../ask-model.js';
import { besideBudget, findContextWindow, windowFinder } from '../model-step/prompt-budget.js';
import { readHealed } from './context.js';
import { noteFailedSpending, performEffect, toSpending, type Done, type Effect } from '../effect.js';
import { withHeartbeat, hashRequest } from '../key.js';
import { isTransient, toApplicationFailure } from '../failures.js';
import { ModelFailure } from '../../models/model.js';
import type { ConversationDependencies } from '../dependencies.js';
import { hasMemoryChannel, howToRead } from '../tools/tools-of.js';
import { summarizedTask, type CompactionRecord } from '../../records/episodes.js';

const SUMMARY_TOKENS = 4_096;
/** How many of the scope's facts the summarizer is shown, at least. */
const KNOWN_FACTS = 40;
/** The longest wait that a provider may ask for before rules summarize: the turn waits for it. */
const COMPACTION_WAIT_MS = 30_000;
/** Of a question that stays, for the summary of what was done about it. */
const QUESTION_CHARACTERS = 2_000;
const ABOUT_CHARACTERS = 100;
/** What a new summary takes of what a compaction frees: tokens, and at most this share of the line. */
const [SUMMARY_ROOM, SUMMARY_SHARE] = [1_500, 0.05];

type Persisted = Compacted & { readonly persisted: boolean };

export async function compact(dependencies: ConversationDependencies, input: CompactInput): Promise<Compacted> {
  const activity = Context.current();
  const paid = createPriorAttempts(activity);
  const effect: Effect<Persisted> = {
    claim: { id: `compact_${String(input.attempt).padStart(4, '0')}`, hash: inputsHash(input) },
    work: () => makeMemory(dependencies, input, { activity, paid }),
    // A compaction is never fenced: one that comes too late is not looked at.
    fenced: () => ({ kind: 'nothing-to-compact', epoch: input.epoch, persisted: true }),
  };
  try {
    const { persisted: _, ...result } = await withHeartbeat(activity, () => performEffect(dependencies, effect), paid.details);
    return result as Compacted;
  } catch (error) {
    const failure = toApplicationFailure(error, COMPACTION_WAIT_MS);
    // What no later attempt takes along.
    if (isLastAttempt(activity.info) || (failure instanceof ApplicationFailure && failure.nonRetryable)) {
      const { spent } = toSpending(dependencies, { kind: 'compaction', model: input.model, usage: paid.spent() });
      await noteFailedSpending(dependencies, effect.claim.id, spent);
    }
    throw failure;
  }
}

function inputsHash({ session, leftOut, context, currentTurn, enough, free, chosen }: CompactInput): string {
  return hashRequest([session, leftOut, context, currentTurn, enough, free, ...(chosen ? [chosen.slots] : [])]);
}

interface Attempt {
  readonly activity: Context;
  readonly paid: PriorAttempts;
}

/** The `uncompact` step: the next request is what it would have been. A few writes, each harmless when repeated. */
export async function uncompact(
  { store, key }: ConversationDependencies,
  { move, epoch, episode, archived }: UncompactInput,
): Promise<void> {
  // By their batch: a store that was healed meanwhile may have given its facts other numbers.
  const batch = factsBatch(key, epoch);
  await Promise.all([store.episodes.remove(key, episode), store.facts.undo(key, batch), store.entries.restore(key, archived, move)]);
}

async function makeMemory(
  dependencies: ConversationDependencies,
  input: CompactInput,
  { activity, paid }: Attempt,
): Promise<Done<Persisted>> {
  const { store, key } = dependencies;
  const { epoch, number, session } = input;
  const entries = await readEntries(dependencies, [...input.leftOut, ...input.context]);
  const [{ count }, { config, model, ask, askForSummary, budget }] = await Promise.all([
    tokenCounterFor(input.model, input.tokenRatio),
    createSummarizer(dependencies, input, { activity, paid }),
  ]);
  const countEntry = entryTokens(entries, { count, cited: new Set(listSlots(input.cited)) });
  const window = planWindow(entries, input, {
    countEntry,
    tailTurns: config.context.keepTurns,
    isReadable: hasMemoryChannel(config, dependencies.tools),
  });
  if (!window) return { result: { kind: 'nothing-to-compact', epoch, persisted: true } };
  const cited = toRanges(window.cites.map(({ slot }) => slot));
  const tokensShown = (entry: Entry): number =>
    window.cites.includes(entry) ? citedTokens(entry.message, countEntry(entry)) : countEntry(entry);
  const keptTokens = window.kept.reduce((sum, entry) => sum + tokensShown(entry), 0);
  const tokensBefore = window.freed + keptTokens;
  if (window.turnIds.length === 0) {
    log.info('long messages are cited', { messages: window.cites.length, tokens: window.freed });
    return { result: { kind: 'cited', epoch, cited, tokensBefore, tokensAfter: keptTokens, persisted: true } };
  }

  const beginning = beginningIn((await beginningOfSession(store, key, session, entries)).map(({ message }) => message));
  const before = summarizedTask(input.task, {}, beginning);
  const shown: ShownMemory = config.context;
  const known = mostRelevant((await store.facts.list(key)).facts, Math.max(KNOWN_FACTS, shown.maxSemantic));
  const earlier = await countedEpisodes(store, key, session, episodicId(number));
  const provisional = selectProvisional(earlier);
  const previous = earlier.find((episode) => !provisional.includes(episode));
  const folding = toFolding(
    earlier.filter((episode) => !provisional.includes(episode)),
    shown.maxEpisodic - 1,
  );
  const again = await readEntries(
    dependencies,
    provisional.flatMap(({ slots }) => slots),
  );
  const withTexts = (some: readonly Entry[]): Promise<Entry[]> =>
    Promise.all(some.map(async (entry) => ({ ...entry, message: await withBodies(store, key, entry) })));
  const [old, recent] = await Promise.all([withTexts(again), withTexts(withQuestions(entries, window))]);
  const given = {
    ...before,
    progress: previous?.summary ?? '',
    knownFacts: known.map(({ id, fact }) => ({ id, fact })),
    ...(folding.leaving.length > 0 && { folding }),
  };
  const shared = { ...given, entries: [...old, ...recent], signal: activity.cancellationSignal, ask, askForSummary };
  const texts = shared.entries.map(({ message }) =>
    message.role === 'assistant' ? JSON.stringify(message.blocks) : shownText(message.text),
  );
  const answer = await askWithLess({ tokens: budget, texts, tokenRatio: input.tokenRatio }, (maxCharacters, isLast) => {
    const throws = (error: unknown): boolean => (!isLast && isTooMuch(error)) || isWorthARetry(error, activity.info);
    return compactWith(findCompactor(dependencies, config), { ...shared, maxCharacters, throws });
  });
  // Rules have nothing better to say of what they have summarized before.
  const isByRules = answer.method === 'rules';
  const summary = isByRules && old.length > 0 ? { ...answer, ...summarizeByRules(recent, { failure: answer.failure }) } : answer;
  const whole = isByRules ? recent : [...old, ...recent];
  const { method, compactor, failure } = summary;
  if (failure !== undefined) log.warn('the summarizer was not of use', { method, compactor, reason: failure });

  const ts = Date.now() / 1000;
  const tombstones = await store.documents.forgotten(key);
  const redact = redactor(tombstones, key.scope);
  const redacted = { ...summary.episodic, summary: redact(summary.episodic.summary) };
  const fold = isByRules ? folded(toFolding(earlier, shown.maxEpisodic - 1)) : folded(folding, summary.fold);
  const supersedes = isByRules ? [] : provisional.map(({ id }) => id);
  const turn_ids = [...new Set(whole.map(({ turn }) => turn))];
  const slots = whole.reduce<readonly SlotRange[]>((ranges, { slot }) => withSlot(ranges, slot), []);
  const task = redactTask(summarizedTask(input.task, summary, beginning), redact);
  const episode = {
    id: episodicId(number),
    ts,
    turn_ids,
    ...redacted,
    task,
    about: timeSpan(whole),
    ...filesIn(whole),
    ...(supersedes.length > 0 && { supersedes }),
    ...(fold && { fold: { ...fold, text: redact(fold.text) } }),
  };
  const batch = factsBatch(key, epoch);
  const trustedTools = new Set(config.memory.trustedTools);
  const spoke = toolsThatSpoke(whole, trustedTools);
  const source = { conversation: key.conversation, turn_ids, ...(spoke.length > 0 && { tools: spoke }) };
  // A fact that rests on a tool's result alone, or changes what may be done, waits for a person.
  const judged = withProvenance({
    currentMemory: '',
    memoryUpdate: summary.semantic.map(({ fact }) => fact).join('\n'),
    entries: whole,
    conversation: key.conversation,
    trustedTools,
  });
  // What is known already was let in once.
  const knownFacts = new Set(known.map(({ fact }) => foldedFact(fact)));
  const proposed = judged.proposed.filter(({ line }) => !knownFacts.has(foldedFact(line)));
  const waiting = new Set(proposed.map(({ line }) => line));
  const facts = summary.semantic.filter(({ fact }) => !waiting.has(fact)).map(({ supersedes: _, ...fact }) => ({ ts, ...fact }));
  // Nor takes a tool's word away what the scope knows.
  const isToolFree = spoke.length === 0;
  const replaced = listReplacements({ ...summary, ...(!isToolFree && { retired: [] }) }, known, ts).filter(
    ({ by }) => by === null || !waiting.has(by),
  );
  const added = await learnFacts(store, key, batch, facts, source, replaced);
  const open = proposed.filter(({ line }) => !isForgotten(line, tombstones, key.scope)).map((line) => ({ ...line, ts }));
  if (open.length > 0) await store.documents.propose(key, batch, open);
  const [episodes, scope] = await Promise.all([countedEpisodes(store, key, session), store.facts.list(key)]);
  // Ours stands there already where an attempt before this one has come so far.
  const isThere = episodes.some(({ id }) => id === episode.id);
  const all = isThere ? episodes : withoutSuperseded([{ ...episode, session, epoch, slots }, ...episodes]);
  const tools = howToRead(key, config, dependencies.tools);
  const bundle = boundedBundle({ ...retrieve(all, scope.facts, shown), ...task, ...tools }, input.line, count);
  const text = [bundle, ...inPart(window, await summarizedBefore(store, key, window, all))].join('\n\n');
  const made: CompactionRecord = {
    inputsHash: hashRequest([whole, given]),
    compactor,
    method,
    model: model(),
    ...(failure === undefined ? {} : { failure }),
    ...(spoke.length > 0 && { tools: spoke }),
    tokensBefore,
    tokensAfter: count(text) + keptTokens,
  };
  await store.episodes.add(key, { ...episode, session, epoch, slots, made });
  const { ref } = await store.bodies.put(key, text);
  await store.entries.archive(key, window.slots, input.move);

  const usage = paid.spent();
  const result: Persisted = {
    kind: 'compacted',
    life: key.life,
    epoch,
    kept: window.kept.reduce<readonly (readonly [number, number])[]>((ranges, { slot }) => withSlot(ranges, slot), []),
    archived: window.slots,
    ...(cited.length > 0 && { cited }),
    turns: window.turnIds,
    task,
    base: { ref, text },
    episode,
    ...(supersedes.length > 0 && { covers: slots }),
    facts: added.filter((fact) => fact.batch === batch).map(({ batch: _batch, source: _source, ...fact }) => fact),
    ...(replaced.length > 0 && { replaced }),
    method,
    record: made,
    tokensBefore: made.tokensBefore,
    tokensAfter: made.tokensAfter,
    usage,
    persisted: true,
  };
  log.info('older turns became memory', { turns: window.turnIds.length, method, compactor, ...usage });
  return { result, ...toSpending(dependencies, { kind: 'compaction', model: model(), usage }) };
}

/** Undefined where there is nothing to take, or too little to be worth it. */
function planWindow(
  entries: readonly Entry[],
  { currentTurn, leftOut, cited, line, enough, free, atLeast, chosen }: CompactInput,
  {
    countEntry,
    tailTurns,
    isReadable,
  }: { readonly countEntry: (entry: Entry) => number; readonly tailTurns: number; readonly isReadable: boolean },
): CompactionPlan | undefined {
  const summary = Math.min(SUMMARY_ROOM, Math.ceil(line * SUMMARY_SHARE));
  const plan = planCompaction(entries, {
    ...(currentTurn !== null && { currentTurn }),
    leftOut: new Set(listSlots(leftOut)),
    tailTurns,
    ...(chosen && { chosen: withWholeCalls(entries, new Set(listSlots(chosen.slots))) }),
    cited: isReadable ? new Set(listSlots(cited)) : null,
    enough: enough === 0 ? 0 : enough + summary,
    free: free + summary,
    countEntry,
  });
  // Notices of Perdura alone are no messages of a conversation.
  const takesSomething = plan.cites.length > 0 || plan.entries.some(({ message }) => !isNotice(message));
  return takesSomething && plan.freed >= atLeast ? plan : undefined;
}

/** Part of a turn's work means nothing without its question: the question is read with it, though it stays. */
function withQuestions(entries: readonly Entry[], { inPart, entries: taken }: CompactionWindow): readonly Entry[] {
  const [parts, window] = [new Set(inPart), new Set(taken)];
  return entries.flatMap((entry) => {
    if (window.has(entry)) return [entry];
    const { message, turn } = entry;
    if (!parts.has(turn) || !isFromPerson(message)) return [];
    return [{ ...entry, message: { role: 'user', text: cut(shownText(message.text), QUESTION_CHARACTERS) } as const }];
  });
}

/** Answers of the window's turns that earlier summaries stand for. */
async function summarizedBefore(
  store: Store,
  key: ConversationKey,
  { inPart: turns, entries }: CompactionWindow,
  episodes: readonly EpisodeRecord[],
): Promise<readonly Entry[]> {
  const now = new Set(entries.map(({ slot }) => slot));
  const slots = episodes
    .filter(({ turn_ids }) => turn_ids.some((turn) => turns.includes(turn)))
    .flatMap((episode) => listSlots(episode.slots))
    .filter((slot) => !now.has(slot));
  return (await store.entries.read(key, [...new Set(slots)])).flatMap((entry) => (entry?.message.role === 'assistant' ? entry : []));
}

/** The model reads where the messages below go on. */
function inPart({ inPart: turns, entries, kept }: CompactionWindow, before: readonly Entry[]): string[] {
  const lines = turns.flatMap((turn) => {
    const question = kept.find((entry) => entry.turn === turn && isFromPerson(entry.message))?.message;
    if (question?.role !== 'user') return [];
    const answers = [...before, ...entries].filter((entry) => entry.turn === turn && entry.message.role === 'assistant').length;
    const where = before.some((entry) => entry.turn === turn) ? 'in the summaries above' : 'in the newest summary above';
    const about = cut(oneLine(shownText(question.text)), ABOUT_CHARACTERS);
    return [
      `- After the message ${JSON.stringify(about)}: the first ${answers === 1 ? 'step' : `${answers} steps`} of the work on it ${answers === 1 ? 'is' : 'are'} ${where}.`,
    ];
  });
  return lines.length === 0 ? [] : [['[SUMMARIZED IN PART]', ...lines].join('\n')];
}

/** In the order of the context; what the store has lost for good is left out of what is summarized. */
async function readEntries(dependencies: ConversationDependencies, ranges: readonly SlotRange[]): Promise<Entry[]> {
  const entries = await readHealed(dependencies, listSlots(ranges));
  return entries.filter((entry) => entry !== undefined);
}

/** What may pass is tried again, as with any model call; the last attempt, and who is to wait for long, makes do with rules. */
function isWorthARetry(error: unknown, info: Context['info']): boolean {
  if (!(error instanceof ModelFailure) || !isTransient(error.kind)) return false;
  return !isLastAttempt(info) && (error.options.retryAfterMs ?? 0) <= COMPACTION_WAIT_MS;
}

function isLastAttempt({ attempt, retryPolicy }: Context['info']): boolean {
  return attempt >= (retryPolicy?.maximumAttempts || Infinity);
}

/** The model that summarizes. One that cannot be had is no reason to fail: rules summarize then. */
async function createSummarizer(
  dependencies: ConversationDependencies,
  input: CompactInput,
  { activity, paid }: Attempt,
): Promise<{
  readonly config: AgentConfig;
  readonly model: () => string;
  readonly ask: Ask;
  readonly askForSummary: Ask;
  readonly budget: number;
}> {
  const { models, agents, identity } = dependencies;
  const { model, agentHash } = input;
  const { config } = await agents(identity.agent, identity.scope, agentHash);
  const summarizer = summarizers(dependencies, config, input);
  const { name } = summarizer;
  const maxTokens = Math.min(SUMMARY_TOKENS, config.maxTokens);
  const answerSchema = { name: 'summary', schema: summaryJsonSchema() };
  const window = await findContextWindow(models, config, { model: name, agentModel: model });
  const asking = { models, ...summarizer, activity, maxTokens, contextWindow: windowFinder(models, config, model) };
  const [plain, bySchema] = [createAsker(asking), createAsker({ ...asking, answerSchema })];
  const budget = besideBudget(config, { model: name, agentModel: model, maxTokens, limits: models.limits(name), window });
  // Notes on pieces are kept; a summary that was of no use is requested again.
  const [ask, askForSummary] = [paid.counted(plain, { keeps: true }), paid.counted(bySchema)];
  return { config, model: bySchema.model, ask, askForSummary, budget };
}

/** An agent that names one which is not here had no turn; its file may have changed since. */
function findCompactor(
  { compactors = createCompactorRegistry() }: ConversationDependencies,
  { context }: AgentConfig,
): Compactor | undefined {
  const name = context.compactor ?? WORKING_FLOW_COMPACTOR;
  const found = compactors.find(name);
  if (!found && name !== WORKING_FLOW_COMPACTOR) log.warn('there is no such compactor; the default makes memory', { compactor: name });
  return found;
}

/** The entries that a session began with: summarized long ago, or still here. */
export async function beginningOfSession(
  store: Store,
  key: ConversationKey,
  session: number,
  entries: readonly Entry[],
): Promise<readonly Entry[]> {
  const episodes = await countedEpisodes(store, key, session);
  const first = episodes.at(-1)?.slots[0]?.[0];
  if (first === undefined) return entries;
  return (await store.entries.read(key, [first])).flatMap((entry) => entry ?? []);
}

/** Those that count, newest first; as if `except` were not there, which an attempt before this one may have written. */
export async function countedEpisodes(
  store: Store,
  key: ConversationKey,
  session: number,
  except?: string,
): Promise<readonly EpisodeRecord[]> {
  const episodes = (await store.episodes.list(key, { session })).episodes.filter(({ id }) => id !== except);
  return episodes.length === 0 ? episodes : episodesInSight(episodes, await store.lives.cuts(key)).sort(byAge);
}
