/**
 * What an import has read, made fit for a conversation that goes on from it. Pure.
 *
 * I1  Turns are numbered in the order in which they began: the next one gets a number that none of them has.
 * I2  Thinking and blocks that only their maker can read stay in the record and go to no model: a signature of another account, or one
 *     that somebody has changed, would be refused with every later request.
 * I3  A summary that does not say which entries it stands for stands for the archived ones of its turns. One that stands for none is
 *     left out and named, as is one with a number that leaves no room for others.
 */
import type { Entry } from '../records/message.js';
import { turnId, turnNumber } from '../records/identity.js';
import { itemNumber } from '../records/memory/items.js';
import { slotsOf } from '../records/slots.js';
import type { EpisodeRecord } from '../stores/store.js';
import type { PastLife } from './past-life.js';
import { sortedRanges, turnsOf } from './prefix.js';

const SUFFIX = '-imported';
/** What a life shares is a list of ranges, and a part of one step's result. */
const MAX_RANGES = 10_000;
const HIGHEST_EPISODE = 1_000_000;

/** `unique` is anything that no other import has. */
export function importedLifeName(unique: string): string {
  return `${unique}${SUFFIX}`;
}

export function isImportedLife(life: string): boolean {
  return life.endsWith(SUFFIX);
}

export type Imported =
  | { readonly kind: 'life'; readonly life: PastLife; readonly problems: readonly string[] }
  | { readonly kind: 'refused'; readonly reason: string };

export function toImported(life: PastLife): Imported {
  const ranges = sortedRanges(life.entries.map(({ slot }) => slot)).length;
  if (ranges > MAX_RANGES) return { kind: 'refused', reason: `its slots have ${ranges} gaps, and at most ${MAX_RANGES} can be kept` };
  const { entries, episodes } = inOrder(life);
  const kept = episodes.map((episode) => placed(episode, entries, life.archived));
  const problems = kept.flatMap((episode, at) => (episode ? [] : [`${episodes[at]?.id}: no archived entry of its turns is there`]));
  return {
    kind: 'life',
    life: { ...life, entries: entries.map(withSealedBlocks), episodes: kept.flatMap((episode) => episode ?? []) },
    problems,
  };
}

/** I1. */
function inOrder({ entries, episodes }: PastLife): Pick<PastLife, 'entries' | 'episodes'> {
  const numbers = turnsOf(entries).map(({ number }) => number);
  if (numbers.every((number, at) => at === 0 || number > (numbers[at - 1] ?? 0))) return { entries, episodes };
  const names = new Map(numbers.map((number, at) => [number, turnId(at + 1)]));
  const named = (turn: string): string => names.get(turnNumber(turn)) ?? turn;
  return {
    entries: entries.map((entry) => ({ ...entry, turn: named(entry.turn) })),
    episodes: episodes.map((episode) => ({ ...episode, turn_ids: episode.turn_ids.map(named) })),
  };
}

/** I3. */
function placed(episode: EpisodeRecord, entries: readonly Entry[], archived: PastLife['archived']): EpisodeRecord | undefined {
  if (itemNumber(episode.id) > HIGHEST_EPISODE) return undefined;
  const there = new Set(entries.map(({ slot }) => slot));
  if (episode.slots.length > 0) return slotsOf(episode.slots).some((slot) => there.has(slot)) ? episode : undefined;
  const turns = new Set(episode.turn_ids);
  const old = new Set(slotsOf(archived));
  const own = entries.filter(({ slot, turn }) => turns.has(turn) && old.has(slot));
  return own.length === 0 ? undefined : { ...episode, slots: sortedRanges(own.map(({ slot }) => slot)) };
}

/** I2. */
function withSealedBlocks(entry: Entry): Entry {
  const { message } = entry;
  if (message.role !== 'assistant') return entry;
  const blocks = message.blocks.map((block) =>
    (block.kind === 'thinking' || block.kind === 'opaque') && !block.provider.startsWith(SEALED)
      ? { ...block, provider: `${SEALED}${block.provider}` }
      : block,
  );
  return { ...entry, message: { ...message, blocks } };
}

/** No provider has such a name. */
const SEALED = 'imported/';
