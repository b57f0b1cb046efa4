/**
 * What `open-origin` and `rewind` share: a life's past, healed where it is not whole, and what goes on from one of its turns.
 *
 * Lost entries are healed first: nothing begins with half of a past. Forgotten text is in no text that is made here.
 */
import { log } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { AgentConfig } from '../../agents/agent-config.js';
import { turnId, turnNumber } from '../../records/identity.js';
import type { Resumption, CarriedEpisode, RewindInput, Rewound } from '../../conversation/lineage/lineage-effects.js';
import { isFromPerson, type Entry } from '../../records/message.js';
import { boundTexts } from '../../conversation/context/chunks.js';
import { chunkId, type AppChunk } from '../../conversation/context/reducers.js';
import { compactsAt } from '../../conversation/context/compaction.js';
import { summarizedTask } from '../../records/episodes.js';
import { boundedBundle, beginningIn, taskIn, refolded } from '../../memory/compaction/snapshot.js';
import { redactor, redactTask } from '../../memory/documents/forgetting.js';
import { itemNumber, type ShownMemory, episodicId } from '../../records/memory/items.js';
import { refuseDeleted, readPages } from '../../memory/past-life.js';
import {
  currentLine,
  inJoined,
  prefixBefore,
  findPrefix,
  firstVersions,
  toSlotRanges,
  slotsIn,
  groupTurns,
  type Beforehand,
  type Past,
  type PastTurn,
  type Prefix,
  sortedRanges,
} from '../../memory/prefix.js';
import { readText } from '../../memory/bodies.js';
import { retrieve } from '../../memory/facts.js';
import { estimateStringTokens, countShown } from '../../memory/tokens.js';
import type { ConversationKey, Store } from '../../stores/store.js';
import { countHeal } from '../../telemetry/metrics.js';
import type { ConversationDependencies } from '../dependencies.js';
import { compactionRatio, findContextWindow, inputBudget, limitedTo, scaleThresholds } from '../model-step/prompt-budget.js';
import { listUnclaimed } from '../memory/claims.js';
import { howToRead, type HowToRead } from '../tools/tools-of.js';
import { type Cut, listSlots } from '../../records/slots.js';

/** Episodes that a fork or a new session begins with; what stands for older ones goes on in the newest. */
export const MAX_CARRIED = 20;

export async function readPast(store: Store, key: ConversationKey): Promise<Past> {
  const [{ entries }, beginning, cuts, { episodes }, archived] = await Promise.all([
    readPages(store, key),
    store.lives.beginning(key),
    store.lives.cuts(key),
    store.episodes.list(key),
    store.entries.archived(key),
  ]);
  return { entries: inJoined(entries, beginning?.joined), cuts, episodes, archived };
}

export interface Wanted {
  readonly life: ConversationKey;
  /** From which its history is found; 'latest' for the life that runs. Undefined: there is none any more. */
  readonly run: string | undefined;
  /** Undefined: the last one that no rewind has cut. */
  readonly turn: string | undefined;
}

/** How the agent has its memory shown. */
interface Shows extends ShownMemory {
  readonly tools: HowToRead;
  /** Tokens at which a compaction is due: what stands before the messages is kept small beside it. */
  readonly line: number;
}

export interface Read<P> {
  readonly past: Past;
  readonly prefix: P;
  readonly shows: Shows;
}

/** Refuses a turn that there is not, in words that say which there are. */
export function readPrefix(dependencies: ConversationDependencies, wanted: Wanted): Promise<Read<Prefix>> {
  const { turn } = wanted;
  const find = (past: Past): Prefix | undefined =>
    findPrefix(past, turn === undefined ? lastTurn(past) : turnNumber(turn), { atEnd: turn === undefined });
  return readHealed(dependencies, wanted, find);
}

/** The same without that turn itself. */
export function readBefore(dependencies: ConversationDependencies, wanted: Wanted): Promise<Read<Beforehand>> {
  return readHealed(dependencies, wanted, (past) => prefixBefore(past, turnNumber(wanted.turn ?? '')));
}

async function readHealed<P extends Beforehand>(
  dependencies: ConversationDependencies,
  { life: key, run, turn }: Wanted,
  find: (past: Past) => P | undefined,
): Promise<Read<P>> {
  const { store, identity } = dependencies;
  await refuseDeleted(store, key, `go on from ${key.conversation}`);
  const { config } = await dependencies.agents(identity.agent, identity.scope);
  let past = await readPast(store, key);
  let prefix = find(past);
  if ((!prefix || !looksWhole(prefix, past)) && run !== undefined && dependencies.heal) {
    log.warn('the store has lost turns: healing from history', { conversation: key.conversation });
    await dependencies.heal(key, run === 'latest' ? undefined : run).then(countHeal, (error: unknown) => {
      log.warn('the history cannot be read', { conversation: key.conversation, reason: String(error) });
    });
    past = await readPast(store, key);
    prefix = find(past);
  }
  if (prefix) {
    const tools = howToRead(dependencies.key, config, dependencies.tools);
    return { past, prefix, shows: { ...config.context, tools, line: await compactionThreshold(dependencies, config) } };
  }
  const attempted = turn === undefined ? `cannot go on from ${key.conversation}` : `${key.conversation} has no ${turn}`;
  throw ApplicationFailure.nonRetryable(`${attempted}: ${whatThereIs(key.conversation, past, turn)}`, 'unknown-turn');
}

function whatThereIs(conversation: string, { entries }: Past, turn: string | undefined): string {
  const numbers = groupTurns(entries).map(({ number }) => number);
  if (numbers.length === 0) return 'the store has no turn of it';
  const range = `${turnId(Math.min(...numbers))} to ${turnId(Math.max(...numbers))}`;
  if (turn === undefined)
    return `a rewind has cut all of its turns, ${range}; \`perdura fork ${conversation} --at TURN\` goes on from one of them`;
  return `its turns are ${range}; \`perdura show ${conversation}\` shows them`;
}

/** The tokens at which a context of the agent's model is compacted. A model that cannot be had is for the first turn to report. */
async function compactionThreshold({ models, defaultModel }: ConversationDependencies, agentConfig: AgentConfig): Promise<number> {
  const model = agentConfig.model ?? defaultModel;
  const limits = models.limits(model);
  const config = limitedTo(agentConfig, model, limits);
  const window = await findContextWindow(models, config, { model }).catch(() => undefined);
  const contextBudget = inputBudget(config, limits, window);
  return compactsAt({
    contextBudget,
    compactionRatio: compactionRatio(config, limits),
    thresholds: scaleThresholds(config, contextBudget, []),
  });
}

/** What stands before the context and what else goes on; the texts lie in the store when it is done. */
export async function resume({ store, key }: ConversationDependencies, prefix: Beforehand, shows: Shows): Promise<Resumption> {
  const { context, session, episodes } = prefix;
  const [{ facts }, tombstones] = await Promise.all([store.facts.list(key), store.documents.forgotten(key)]);
  const redact = redactor(tombstones, key.scope);
  const spoken = entriesInTurns(session).map(({ message }) => message);
  const task = taskIn(spoken);
  const summarized = episodes.find(({ task: told }) => told?.goalFrom === 'summary' || told?.tasksFrom)?.task ?? {};
  const redacted = episodes.map(({ fold, ...episode }) => ({
    ...episode,
    summary: redact(episode.summary),
    ...(fold && { fold: { ...fold, text: redact(fold.text) } }),
  }));
  // Where all of the session is still there, it says itself what it is for.
  const pinned =
    slotsIn(context).length === slotsIn(session).length ? null : redactTask(summarizedTask(task, summarized, beginningIn(spoken)), redact);
  const text = boundedBundle({ ...retrieve(redacted, facts, shows), ...pinned, ...shows.tools }, shows.line, estimateStringTokens);
  const messages = entriesInTurns(context).map(({ message }) => message);
  const [first] = entriesInTurns(session);
  return {
    ...(first && { since: Math.floor(first.ts * 1000) }),
    context: toSlotRanges(context),
    ...(text === '' ? {} : { base: { ref: (await store.bodies.put(key, text)).ref, text } }),
    task: pinned ?? task,
    episodes: [],
    chunks: await listChunks({ store, key }, prefix, redact),
    compactions: episodes.reduce((most, { id }) => Math.max(most, itemNumber(id)), 0),
    tokens: countShown(messages) + estimateStringTokens(text),
  };
}

/** Of the application, as reducers are shown them. */
async function listChunks(
  { store, key }: Pick<ConversationDependencies, 'store' | 'key'>,
  { context, line }: Beforehand,
  redact: (text: string) => string,
): Promise<AppChunk[]> {
  const first = firstVersions(entriesInTurns(line));
  const found = entriesInTurns(context).flatMap(({ slot, ts, message }) =>
    message.role === 'user' && message.from === 'app' ? [{ slot, ts: first.get(slot)?.ts ?? ts, message }] : [],
  );
  const chunks = await Promise.all(
    found.map(async ({ slot, ts, message }): Promise<AppChunk> => {
      const { chunk: type = 'WORKING_FLOW' } = message;
      const whole = redact(await readText(store, key, message.text));
      const text = type === 'WORKING_FLOW' ? whole : whole.slice(`[${type}] `.length);
      return { id: chunkId(slot), type, slot, tokens: countShown([message]), createdAt: Math.round(ts * 1000), text };
    }),
  );
  return boundTexts(chunks);
}

export function entriesInTurns(turns: readonly PastTurn[]): Entry[] {
  return turns.flatMap(({ entries }) => entries);
}

/** Heals for nothing at worst: a message that was sent twice leaves a gap in the numbers too. */
function looksWhole({ line }: Beforehand, { cuts }: Past): boolean {
  // Where turns were cut, the numbers go on after them.
  // What the application added before the first turn is in none.
  const turns = line.filter(({ number }) => number > 0);
  const isDense = cuts.length > 0 || turns.every(({ number }, i) => number === i + 1);
  return isDense && turns.slice(0, -1).every(isWhole);
}

/** A turn begins with a message, and each call has its result. */
function isWhole({ entries }: PastTurn): boolean {
  if (!entries.some(({ message }) => isFromPerson(message))) return false;
  const results = new Set(entries.flatMap(({ message }) => (message.role === 'tool' ? [message.callId] : [])));
  return entries.every(
    ({ message }) =>
      message.role !== 'assistant' || message.blocks.every((block) => block.kind !== 'tool-call' || results.has(block.callId)),
  );
}

function lastTurn({ entries, cuts }: Past): number {
  return currentLine(entries, cuts).at(-1)?.number ?? 0;
}

// The `rewind` step: which turns go, what the context becomes, and a branch that keeps what was cut. Every write counts once. What the
// conversation sees changes only with the result.

export async function rewind(dependencies: ConversationDependencies, input: RewindInput): Promise<Rewound> {
  const { store, key } = dependencies;
  const { requestId, move, to, slot, at } = input;
  const read = input.before ? readBefore : readPrefix;
  const { past, prefix, shows } = await read(dependencies, { life: key, run: 'latest', turn: to });

  const resumed = await resume(dependencies, prefix, { ...shows, ...(input.line !== undefined && { line: input.line }) });
  const kept = new Set(slotsIn(prefix.line));
  const waiting = new Set(listSlots(input.waiting));
  // As it was before this rewind: an attempt before this one may have written its cut.
  const others = past.cuts.filter(({ id }) => id !== requestId);
  const now = currentLine(past.entries, others);
  const gone = now.filter(({ entries }) => !entries.every((entry) => kept.has(entry.slot) || waiting.has(entry.slot)));
  const slots = slotsIn(gone).filter((each) => !waiting.has(each) && !kept.has(each));
  const { turn } = prefix;
  const named = groupTurns(past.entries).find(({ number }) => number === turnNumber(to));
  const isSessionKept = prefix.session.length > 0;
  const goesOn = isSessionKept ? turn?.session : named?.session;
  // A session that has ended is not gone on with under its number.
  const session = (goesOn ?? 0) < input.session ? input.session + 1 : input.session;
  // Back into a branch nothing may be cut, and it is another line all the same.
  const leaves = slots.length > 0 || session !== input.session || !now.some(({ number }) => number === turn?.number);
  const cut: Cut | null = leaves
    ? {
        v: 1,
        id: requestId,
        branch: input.branch,
        to: turn?.number ?? 0,
        begun: turn?.begun ?? 0,
        since: turn?.ended ?? 0,
        slot,
        at,
        // None: what comes after is of a session that begins anew.
        session: isSessionKept ? session : 0,
        slots: sortedRanges(slots),
      }
    : null;
  if (cut) {
    await store.lives.cut(key, cut);
    await store.entries.archive(key, cut.slots, move);
  }
  await store.entries.restore(key, resumed.context, move);
  const episodes = session === input.session ? [] : toCarried(prefix, input.compactions, session);
  for (const { episode, ...place } of episodes) await store.episodes.add(key, { ...episode, ...place, epoch: 0 });
  log.info('rewound', { to, ...(input.before && { before: true }), turns: gone.length });
  return {
    ...resumed,
    life: key.life,
    cut,
    turns: gone.filter(({ number }) => !prefix.line.some((turn) => turn.number === number)).length,
    session,
    episodes,
    compactions: input.compactions + episodes.length,
    window: await listUnclaimed(store, key, prefix.session),
  };
}

/** For the session that begins, under new numbers. */
function toCarried({ episodes }: Beforehand, compactions: number, session: number): CarriedEpisode[] {
  const shown = episodes.slice(0, MAX_CARRIED).reverse();
  const newIds = new Map(shown.map(({ id }, i) => [id, episodicId(compactions + 1 + i)]));
  return shown.map(({ session: _session, epoch: _epoch, supersedes: _supersedes, slots, ...episode }, i) => ({
    episode: { ...episode, id: episodicId(compactions + 1 + i), ...(episode.fold && { fold: refolded(episode.fold, newIds) }) },
    session,
    slots,
  }));
}
