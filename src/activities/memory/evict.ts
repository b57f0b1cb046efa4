/**
 * The `evict` step: what long-term memory has leaves the context, at a session's end or where it is trimmed; and what was not consolidated
 * in time goes to HISTORY as it is. Harmless when repeated. Traces are archived, never destroyed, so that what is pending can still be
 * consolidated from there.
 */
import { log } from '@temporalio/activity';
import type { Evicted, EvictInput, TrimInput, TrimmedTurns, Asked } from '../../conversation/context/compaction-effects.js';
import {
  toConversationEntries,
  countMessages,
  rawFallback,
  withSources,
  withTask,
  writeRecap,
  summariesInOrder,
  withoutSources,
} from '../../memory/consolidation/message-lines.js';
import { redactor, redactTask } from '../../memory/documents/forgetting.js';
import { readHandover, type Handover } from '../../memory/consolidation/parse-response.js';
import { workNotes } from '../../memory/compaction/recent-turns.js';
import { summarizedTask, type Task } from '../../records/episodes.js';
import { DocumentRefused, type ConversationKey, type Store, type EpisodeRecord, type Documents } from '../../stores/store.js';
import { consolidationId } from '../../memory/documents/search-history.js';
import type { ConversationDependencies } from '../dependencies.js';
import { howToRead, type HowToRead } from '../tools/tools-of.js';
import { usableConfig } from '../model-step/prompt-budget.js';
import type { Entry } from '../../records/message.js';
import { listSlots, toRanges, type SlotRange } from '../../records/slots.js';
import { boundedBundle, beginningIn, filesIn, timeSpan } from '../../memory/compaction/snapshot.js';
import { hasShortenedLines, SHORTENED } from '../../memory/compaction/summary.js';
import { retrieve } from '../../memory/facts.js';
import { countShown } from '../../memory/tokens.js';
import { measureTokens } from '../../records/token-estimate.js';
import { turnNumber } from '../../records/identity.js';
import { episodicId, withoutSuperseded, type ShownMemory } from '../../records/memory/items.js';
import { beginningOfSession, countedEpisodes } from '../context/compact.js';
import { withoutSuperseding } from '../../records/memory/history-text.js';

export async function evict(dependencies: ConversationDependencies, { session, move, what }: EvictInput): Promise<Evicted> {
  const { store, key, tools } = dependencies;
  const result = { life: key.life, session, finished: true };
  if (what.kind === 'trim') {
    const config = await usableConfig(dependencies, dependencies.identity);
    const shows = config && { limits: config.context, tools: howToRead(key, config, tools) };
    const trimmed = await trim(store, key, { ...what, session, move }, shows);
    if (trimmed) log.info('consolidated turns left the prompt', { messages: trimmed.messages, tokens: trimmed.tokens });
    return { ...result, ...(trimmed && { trimmed }) };
  }
  const written = await Promise.all(what.unfinished.map((one) => writeFallback(store, key, one, what)));
  const fallbacks = written.flatMap(({ fallback }) => fallback ?? []);
  if (what.kind === 'session-end') await store.entries.archive(key, what.archive, move);
  return { ...result, finished: written.every((one) => one.finished), ...(fallbacks.length > 0 && { fallbacks }) };
}

/** `finished` when the summary is there already: it came between the end of waiting and this. */
async function writeFallback(
  store: Store,
  key: ConversationKey,
  { requestId, slots }: Asked,
  what: Exclude<EvictInput['what'], { kind: 'trim' }>,
): Promise<{ readonly finished: boolean; readonly fallback?: NonNullable<Evicted['fallbacks']>[number] }> {
  const entries = await readThere(store, key, slots);
  const redact = redactor(await store.documents.forgotten(key), key.scope);
  const ts = Date.now() / 1000;
  const raw = rawFallback(toConversationEntries(entries));
  const text = withSources(redact(what.kind === 'session-end' ? withTask(raw, what.task) : raw), entries, new Set());
  try {
    const entry = { id: consolidationId(key, requestId), kind: 'raw-fallback', ts, text } as const;
    const how = await store.documents.appendHistory(key, entry);
    return how === 'superseded' ? { finished: true } : { finished: false, fallback: { requestId, ts, text } };
  } catch (error) {
    if (!(error instanceof DocumentRefused)) throw error;
    // A person must see to the file; the conversation does not wait for that. What is pending is in the memory workflow, and in the archive.
    log.warn('the raw fallback could not be written', { reason: error.message });
    return { finished: false };
  }
}

/** How an agent has its memory shown. */
interface Shows {
  readonly limits?: Partial<ShownMemory>;
  readonly tools?: HowToRead;
}

/** Undefined, and nothing is written, where the prompt would have as much as before or more. */
export async function trim(
  store: Store,
  key: ConversationKey,
  {
    covered,
    leftOut,
    before,
    number,
    since,
    task,
    baseTokens,
    tokenRatio = 1,
    line,
    session,
    epoch,
    move,
  }: TrimInput & Pick<EvictInput, 'session' | 'move'>,
  { limits = {}, tools }: Shows = {},
): Promise<TrimmedTurns | undefined> {
  const [older, parts, summaries, episodes, { facts }, tombstones] = await Promise.all([
    readThere(store, key, before),
    Promise.all(covered.map(async ({ requestId, slots }) => ({ requestId, entries: await readThere(store, key, slots) }))),
    summariesByRequest(store.documents, key, { requestIds: covered.map(({ requestId }) => requestId), since }),
    countedEpisodes(store, key, session),
    store.facts.list(key),
    store.documents.forgotten(key),
  ]);
  const redact = redactor(tombstones, key.scope);
  const entries = parts.flatMap((part) => part.entries);
  const handovers = new Map(
    await Promise.all(covered.map(async ({ requestId, handover }) => [requestId, await readHandedOver(store, key, handover)] as const)),
  );
  const summaryFor = (requestId: string): string | undefined => handovers.get(requestId)?.summary ?? summaries.get(requestId);
  const unsummarized = parts.flatMap((part) => (summaryFor(part.requestId) === undefined ? toConversationEntries(part.entries) : []));
  const beginning = await findBeginning(store, key, session, [...older, ...entries]);
  const told = [...handovers.values()].reduce<Task | null>(
    (before, summary) => (summary ? summarizedTask(before, summary, beginning) : before),
    task,
  );
  const pinned = redactTask(summarizedTask(told, {}, beginning), redact);
  const id = episodicId(number);
  // Ours stands there already where an attempt before this one has come so far.
  const known = episodes.find((episode) => episode.id === id);
  const archived = toRanges(covered.flatMap(({ slots }) => listSlots(slots)));
  const others = episodes.filter((episode) => episode !== known);
  const late = known ? [] : await summarizedSince(store, key, { episodes: others, since });
  const whole = [
    ...(await readThere(
      store,
      key,
      late.flatMap(({ slots }) => slots),
    )),
    ...entries,
  ];
  const recap = writeRecap(unsummarized, { createdAt: new Date(since).toISOString() });
  const texts = [...late.flatMap((one) => one.texts), ...parts.flatMap(({ requestId }) => summaryFor(requestId) ?? [])];
  const episode = known ?? {
    id,
    ts: Date.now() / 1000,
    turn_ids: [...new Set([...late.flatMap(({ turn_ids }) => turn_ids), ...entries.map(({ turn }) => turn)])],
    summary: redact([summariesInOrder(texts), recap, workNotes(whole)].filter(Boolean).join('\n')),
    task: pinned,
    about: timeSpan(whole),
    ...filesIn(whole),
    tags: ['trimmed', ...(unsummarized.length > 0 ? [SHORTENED] : [])],
    salience: 0.5,
    ...(late.length > 0 && { supersedes: late.map((one) => one.id) }),
    ...{ session, epoch, slots: toRanges([...late.flatMap(({ slots }) => listSlots(slots)), ...listSlots(archived)]) },
  };
  const count = (shown: string): number => Math.ceil(measureTokens(shown) * tokenRatio);
  const bundle = retrieve(withoutSuperseded([episode, ...others]), facts, limits);
  const text = boundedBundle({ ...bundle, ...pinned, ...tools }, line ?? Infinity, count);
  const out = new Set(listSlots(leftOut));
  const leaving = entries.filter(({ slot }) => !out.has(slot)).map(({ message }) => message);
  const tokens = countShown(leaving, count);
  if (!known && count(text) - baseTokens >= tokens) return undefined;
  const base = { ref: (await store.bodies.put(key, text)).ref, text };
  await store.entries.archive(key, archived, move);
  await store.episodes.add(key, episode);
  const { session: _session, epoch: _epoch, slots, made: _made, ...shown } = episode;
  return {
    ...{ archived, messages: countMessages(entries), unsummarized: unsummarized.length, tokens, task: pinned, base, episode: shown },
    ...(shown.supersedes && { covers: slots }),
  };
}

/** Earlier trims whose shortened lines need not stand any longer: what they are about, a model has summarized since, all of it. */
async function summarizedSince(
  { documents }: Store,
  key: ConversationKey,
  { episodes, since }: { readonly episodes: readonly EpisodeRecord[]; readonly since: number },
): Promise<readonly (EpisodeRecord & { readonly texts: readonly string[] })[]> {
  const shortened = episodes.filter(hasShortenedLines).reverse();
  if (shortened.length === 0) return [];
  const found = await summariesOfSlots(documents, key, { slots: shortened.flatMap(({ slots }) => listSlots(slots)), since });
  return shortened.flatMap((episode) => {
    const slots = listSlots(episode.slots);
    const covering = found.filter(({ first, last }) => slots.some((slot) => slot >= first && slot <= last));
    const isWhole = slots.every((slot) => covering.some(({ first, last }) => slot >= first && slot <= last));
    return isWhole ? [{ ...episode, texts: covering.map(({ text }) => text) }] : [];
  });
}

/** An episode may begin later than what is still there, and earlier. */
async function findBeginning(store: Store, key: ConversationKey, session: number, entries: readonly Entry[]): Promise<string> {
  const known = await beginningOfSession(store, key, session, entries);
  const inOrder = [...known, ...entries].sort((a, b) => turnNumber(a.turn) - turnNumber(b.turn) || a.seq - b.seq);
  return beginningIn(inOrder.map(({ message }) => message));
}

/** Undefined where there is none, also where the store has lost it: what HISTORY has stands for the messages then. */
async function readHandedOver(store: Store, key: ConversationKey, ref: string | undefined): Promise<Handover | undefined> {
  const text = ref === undefined ? undefined : await store.bodies.get(key, ref);
  try {
    return text === undefined ? undefined : readHandover(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** What the store has of them. */
export async function readThere(store: Store, key: ConversationKey, slots: readonly SlotRange[]): Promise<Entry[]> {
  const entries = await store.entries.read(key, listSlots(slots));
  return entries.flatMap((entry) => entry ?? []);
}

// What consolidations have put into HISTORY: of which life, and which of its slots it was about, is in their ids.

/** Seconds by which clocks may differ: HISTORY has the worker's time, a session begins by the server's. */
const CLOCKS_APART = 3_600;

/**
 * By request. What a model wrote alone: of a raw fallback there is none. `since`: epoch milliseconds, before which none of them was made;
 * HISTORY is not read any further back.
 */
export async function summariesByRequest(
  documents: Documents,
  key: ConversationKey,
  { requestIds, since }: { readonly requestIds: readonly string[]; readonly since: number },
): Promise<ReadonlyMap<string, string>> {
  const wanted = new Map(requestIds.map((requestId) => [consolidationId(key, requestId), requestId]));
  const found = new Map<string, string>();
  for await (const { id, kind, ts, text } of documents.history(key)) {
    if (found.size === wanted.size || ts < since / 1000 - CLOCKS_APART) break;
    const requestId = kind === 'summary' ? wanted.get(id) : undefined;
    if (requestId !== undefined) found.set(requestId, withoutSources(withoutSuperseding(text)));
  }
  return found;
}

/** As `enqueueRequest` names them (conversation/context/consolidation.ts): conversation and life, session, first and last slot. */
const ID = /^(?<life>.+)\/s\d+\/(?<first>\d{1,9})-(?<last>\d{1,9})$/;

/**
 * What models have put into HISTORY about this life's slots, by their first, such as what came after its raw fallback. As
 * `summariesByRequest`.
 */
async function summariesOfSlots(
  documents: Documents,
  key: ConversationKey,
  { slots, since }: { readonly slots: readonly number[]; readonly since: number },
): Promise<readonly { readonly first: number; readonly last: number; readonly text: string }[]> {
  const found: { readonly first: number; readonly last: number; readonly text: string }[] = [];
  for await (const { id, kind, ts, text } of documents.history(key)) {
    if (ts < since / 1000 - CLOCKS_APART) break;
    const { life, first, last } = ID.exec(id)?.groups ?? {};
    if (kind !== 'summary' || life !== `${key.conversation}/${key.life}`) continue;
    const [from, to] = [Number(first), Number(last)];
    if (slots.some((slot) => slot >= from && slot <= to))
      found.push({ first: from, last: to, text: withoutSources(withoutSuperseding(text)) });
  }
  return found.sort((a, b) => a.first - b.first);
}
