/**
 * What an import has read, made fit for a conversation that goes on from it. Pure.
 *
 * - Turns are numbered in the order in which they began: the next one gets a number that none of them has.
 * - Thinking and blocks that only their maker can read stay in the record and go to no model: providers would refuse a signature of another
 *   account, or a changed one, with every later request.
 * - A summary without a list of its entries stands for the archived ones of its turns. A summary that stands for none is left out and
 *   named, and so is one with a number that leaves no room for others.
 */
import type { Entry } from '../records/message.js';
import { turnId, turnNumber } from '../records/identity.js';
import { itemNumber } from '../records/memory/items.js';
import { listSlots, type SlotRange } from '../records/slots.js';
import type { EpisodeRecord } from '../stores/store.js';
import type { PastLife } from './past-life.js';
import { sortedRanges, groupTurns } from './prefix.js';

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
  const places = mapPlaces(entries, life.archived);
  const kept = episodes.map((episode) => placed(episode, places));
  const problems = kept.flatMap((episode, at) => (episode ? [] : [`${episodes[at]?.id}: no archived entry of its turns is there`]));
  return {
    kind: 'life',
    life: { ...life, entries: entries.map(withSealedBlocks), episodes: kept.flatMap((episode) => episode ?? []) },
    problems,
  };
}

function inOrder({ entries, episodes }: PastLife): Pick<PastLife, 'entries' | 'episodes'> {
  const numbers = groupTurns(entries).map(({ number }) => number);
  if (numbers.every((number, at) => at === 0 || number > (numbers[at - 1] ?? 0))) return { entries, episodes };
  const names = new Map(numbers.map((number, at) => [number, turnId(at + 1)]));
  const named = (turn: string): string => names.get(turnNumber(turn)) ?? turn;
  return {
    entries: entries.map((entry) => ({ ...entry, turn: named(entry.turn) })),
    episodes: episodes.map((episode) => ({ ...episode, turn_ids: episode.turn_ids.map(named) })),
  };
}

interface Places {
  /** In order. */
  readonly slots: readonly number[];
  /** By turn. */
  readonly archived: ReadonlyMap<string, readonly number[]>;
}

/** Made once: a file may have as many summaries as entries. */
function mapPlaces(entries: readonly Entry[], ranges: PastLife['archived']): Places {
  const old = new Set(listSlots(ranges));
  const archived = new Map<string, number[]>();
  for (const { slot, turn } of entries) {
    if (!old.has(slot)) continue;
    const slots = archived.get(turn) ?? [];
    slots.push(slot);
    archived.set(turn, slots);
  }
  return { slots: entries.map(({ slot }) => slot).sort((a, b) => a - b), archived };
}

function placed(episode: EpisodeRecord, { slots, archived }: Places): EpisodeRecord | undefined {
  if (itemNumber(episode.id) > HIGHEST_EPISODE) return undefined;
  if (episode.slots.length > 0) return episode.slots.some((range) => hasOneIn(slots, range)) ? episode : undefined;
  const ofTurns = [...new Set(episode.turn_ids)].flatMap((turn) => archived.get(turn) ?? []);
  return ofTurns.length === 0 ? undefined : { ...episode, slots: sortedRanges(ofTurns) };
}

/** `slots` in order. */
function hasOneIn(slots: readonly number[], [from, to]: SlotRange): boolean {
  let [low, high] = [0, slots.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((slots[middle] ?? Infinity) < from) low = middle + 1;
    else high = middle;
  }
  return (slots[low] ?? Infinity) <= to;
}

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
