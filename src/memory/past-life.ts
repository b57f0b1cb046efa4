/** All messages of one life of a conversation, with long texts at hand: to be exported, and to be imported; and its branches. */
import type { Entry } from '../records/message.js';
import { type SlotRange, listSlots } from '../records/slots.js';
import { turnNumber, turnId } from '../records/identity.js';
import { type ConversationKey, type Store, LifeDeleted, type EpisodeRecord } from '../stores/store.js';
import { mediaToRefs, TEXT_INLINE, RESULT_INLINE, toBody, withBodies, withLongBlocksStored } from './bodies.js';
import { byTurn, MAX_ERROR, UNFINISHED, type TurnEnd } from '../records/turn-end.js';
import type { FeedEvent } from '../records/feed-event.js';
import { truncate } from '../records/text.js';
import { currentLine, episodesInSight, slotsIn, groupTurns } from './prefix.js';
import { messagesByTurn } from './compaction/recent-turns.js';
import { outlineTurns } from './compaction/summary.js';
import { redactor } from './documents/forgetting.js';
import { longRecord } from './long-record.js';
import { byAge } from '../records/memory/items.js';

export interface PastLife {
  /** By turn, then as in it. */
  readonly entries: readonly Entry[];
  /** Which of their slots compactions have archived. */
  readonly archived: readonly SlotRange[];
  /** Newest first. */
  readonly episodes: readonly EpisodeRecord[];
  /** Records in the store that cannot be read. */
  readonly skipped: number;
}

const PAGE = 500;

export async function readEntries(
  store: Store,
  key: ConversationKey,
  { after = 0, until }: { readonly after?: number; readonly until?: number } = {},
): Promise<{ readonly entries: Entry[]; readonly skipped: number }> {
  const { entries, skipped } = await readPages(store, key, after, until);
  const whole = await Promise.all(entries.map(async (entry) => ({ ...entry, message: await withBodies(store, key, entry) })));
  return { entries: whole.sort((a, b) => turnNumber(a.turn) - turnNumber(b.turn) || a.seq - b.seq), skipped };
}

/** As they are stored, by slot: those after `first`, up to `until`. */
export async function readPages(
  store: Pick<Store, 'entries'>,
  key: ConversationKey,
  first = 0,
  until = Infinity,
): Promise<{ readonly entries: Entry[]; readonly skipped: number }> {
  const entries: Entry[] = [];
  let skipped = 0;
  for (let after = first, last = until; after < last; after += PAGE) {
    const page = await store.entries.page(key, after, Math.min(PAGE, last - after));
    entries.push(...page.entries);
    skipped += page.skipped;
    last = Math.min(page.last, until);
  }
  return { entries, skipped };
}

/** Idempotent, as each write of a store is. */
export async function writeLife(store: Store, key: ConversationKey, { entries, archived, episodes }: PastLife): Promise<void> {
  const bySlot = [...entries].sort((a, b) => a.slot - b.slot);
  for (let at = 0; at < bySlot.length; at += PAGE) {
    await store.entries.append(key, await Promise.all(bySlot.slice(at, at + PAGE).map((entry) => withTextsStored(store, key, entry))));
  }
  if (archived.length > 0) await store.entries.archive(key, archived, 0);
  // What was summarized where it comes from, long-term memory is not given again.
  if (archived.length > 0) await store.lives.claim(key, { v: 1, id: 'imported', slots: archived });
  for (const episode of [...episodes].reverse()) await store.episodes.add(key, episode);
}

async function withTextsStored(store: Store, key: ConversationKey, entry: Entry): Promise<Entry> {
  const { message } = entry;
  switch (message.role) {
    case 'user': {
      const text = typeof message.text === 'string' ? await toBody(store, key, message.text, TEXT_INLINE) : message.text;
      return { ...entry, message: { ...message, text, ...(await mediaToRefs(store, key, message)) } };
    }
    case 'tool': {
      const text = typeof message.text === 'string' ? await toBody(store, key, message.text, RESULT_INLINE) : message.text;
      return { ...entry, message: { ...message, text } };
    }
    case 'assistant':
      return { ...entry, message: { ...message, blocks: await withLongBlocksStored(store, key, message.blocks) } };
  }
}

/** Throws LifeDeleted; `attempt` ends the sentence "cannot …". */
export async function refuseDeleted({ lives }: Pick<Store, 'lives'>, key: ConversationKey, attempt: string): Promise<void> {
  const tombstone = (await lives.deleted(key)).find(({ life }) => life === key.life);
  if (tombstone) throw new LifeDeleted(attempt, { conversation: key.conversation, at: tombstone.at });
}

export function describeDeleted(attempt: string, of: { readonly conversation: string; readonly at: number }): string {
  return new LifeDeleted(attempt, of).message;
}

// A conversation's present turns, and those that rewinds have cut out.

/** Turns that a rewind has cut; any of them can be forked from. */
export interface Branch {
  readonly branch: number;
  /** The last turn that stayed. */
  readonly after: string;
  readonly turns: readonly string[];
  readonly at: Date;
}

export async function readCurrent(store: Store, key: ConversationKey, after = 0): Promise<Entry[]> {
  const [{ entries }, cuts] = await Promise.all([readEntries(store, key, { after }), store.lives.cuts(key)]);
  if (cuts.length === 0) return entries;
  // Which turn follows which is seen from the whole alone.
  const whole = after === 0 ? entries : (await readEntries(store, key)).entries;
  const now = new Set(slotsIn(currentLine(whole, cuts)));
  return entries.filter(({ slot }) => now.has(slot));
}

/** The last ones before a slot; `previous` is the slot before which the next ones are, null where there are none. */
export async function readLatest(
  store: Store,
  key: ConversationKey,
  { last, before = Infinity }: { readonly last: number; readonly before?: number },
): Promise<{ readonly entries: Entry[]; readonly previous: number | null }> {
  if ((await store.lives.cuts(key)).length > 0) {
    const all = (await readCurrent(store, key)).filter(({ slot }) => slot < before);
    const entries = all.slice(-last);
    return { entries, previous: all.length > entries.length ? (entries[0]?.slot ?? null) : null };
  }
  const { last: highest } = await store.entries.page(key, 0, 1);
  const until = Math.min(highest, before - 1);
  const after = Math.max(0, until - last);
  const { entries } = await readEntries(store, key, { after, until });
  return { entries, previous: after > 0 ? after + 1 : null };
}

/** Undefined when there is no such branch. */
export async function readBranch(store: Store, key: ConversationKey, branch: number): Promise<Entry[] | undefined> {
  const cut = (await store.lives.cuts(key)).find((one) => one.branch === branch);
  if (!cut) return undefined;
  const slots = new Set(listSlots(cut.slots));
  return (await readEntries(store, key)).entries.filter(({ slot }) => slots.has(slot));
}

export async function readBranches(store: Store, key: ConversationKey): Promise<Branch[]> {
  const cuts = await store.lives.cuts(key);
  const branches = await Promise.all(
    cuts.map(async ({ branch, to, slots, at }) => {
      const entries = (await store.entries.read(key, listSlots(slots))).flatMap((entry) => entry ?? []);
      const turns = groupTurns(entries)
        .map(({ number }) => turnId(number))
        .sort((a, b) => turnNumber(a) - turnNumber(b));
      return { branch, after: turnId(to), turns, at: new Date(at * 1000) };
    }),
  ); // A rewind back into a branch may have cut nothing.
  return branches.filter(({ turns }) => turns.length > 0);
}

/** A turn of another life is numbered below all turns of this one: it is shared up to where this one began. */
export async function readTurnEnds(store: Store, key: ConversationKey): Promise<TurnEnd[]> {
  const [turnEnds, beginning] = await Promise.all([store.turnEnds.list(key), store.lives.beginning(key)]);
  if (!beginning) return turnEnds;
  const shared = await Promise.all(
    beginning.shared.map(({ conversation, life, scope }) => store.turnEnds.list({ ...key, conversation, life, scope })),
  );
  const turns = new Set(turnEnds.map(({ turn }) => turn));
  return [...shared.flat().filter(({ turn }) => turnNumber(turn) <= beginning.turn && !turns.has(turn)), ...turnEnds].sort(byTurn);
}

// A session's episodes for the tool that reads them: their summaries, and the messages of their turns.

/** Of one answer, with room for the words around it. */
const RECORD_CHARACTERS = 12_000;
const OUTLINE_CHARACTERS = 6_000;
/** Of one episode. */
const MAX_ENTRIES = 2_000;

export interface ReadableEpisode extends EpisodeRecord {
  /** The messages of that turn, long texts by their ends; of all its turns a line for each. */
  readonly read: (turn?: number) => Promise<string>;
}

/** Those that count, newest first; without what was forgotten since. */
export async function readEpisodes(store: Store, key: ConversationKey, session: number): Promise<ReadableEpisode[]> {
  const [{ episodes }, cuts, tombstones] = await Promise.all([
    store.episodes.list(key, { session }),
    store.lives.cuts(key),
    store.documents.forgotten(key),
  ]);
  const redact = redactor(tombstones, key.scope);
  const readMessages = async (slots: EpisodeRecord['slots'], turn?: number): Promise<string> => {
    const found = (await store.entries.read(key, listSlots(slots).slice(0, MAX_ENTRIES))).filter((entry) => entry !== undefined);
    if (turn === undefined) return outlineTurns(found, OUTLINE_CHARACTERS);
    const entries = found.filter((entry) => entry.turn === turnId(turn));
    const whole = await Promise.all(entries.map(async (entry) => ({ ...entry, message: await withBodies(store, key, entry) })));
    return longRecord(messagesByTurn(whole), RECORD_CHARACTERS).text;
  };
  return episodesInSight(episodes, cuts)
    .sort(byAge)
    .map((episode) => ({
      ...episode,
      summary: redact(episode.summary),
      read: async (turn) => redact(await readMessages(episode.slots, turn)),
    }));
}

/** How turns without a complete answer ended, for the store; read from their feed events. */
export function turnEndsIn(feed: readonly { readonly event: FeedEvent }[]): TurnEnd[] {
  return feed.flatMap(({ event }): TurnEnd[] => {
    if (event.kind !== 'turn-finished') return [];
    const { error } = event.result;
    const stopReason = UNFINISHED.find((reason) => reason === event.result.stopReason);
    if (stopReason === undefined) return [];
    const reported = error && { error: { type: truncate(error.type, 200), message: truncate(error.message, MAX_ERROR) } };
    return [{ v: 1, turn: event.turn, stopReason, ...reported }];
  });
}
