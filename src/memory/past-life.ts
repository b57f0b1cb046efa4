/** Everything that one life of a conversation has told, with long texts at hand: to be taken elsewhere, and to be put there. */
import type { Entry } from '../records/message.js';
import { slotsOf, withSlot, type SlotRange } from '../records/slots.js';
import { turnId, turnNumber } from '../records/identity.js';
import type { ConversationKey, EpisodeRecord, Store } from '../stores/store.js';
import { episodicId, itemNumber } from '../records/memory/items.js';
import { mediaToRefs, TEXT_INLINE, RESULT_INLINE, toBody, withBodies, withLongBlocksStored } from './bodies.js';

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

/**
 * Where a conversation keeps what was imported into it. A life of its own: slots, turns and episodes of the conversation begin at 1,
 * given by a workflow that knows nothing of what was imported, and would meet the imported ones.
 */
export function importedLife(key: ConversationKey): ConversationKey {
  return { ...key, life: `${key.life}-imported` };
}

export async function readLife(store: Store, key: ConversationKey): Promise<PastLife> {
  const [{ entries, skipped }, archived, told] = await Promise.all([
    readEntries(store, key),
    store.entries.archived(key),
    store.episodes.list(key),
  ]);
  return { entries, archived, episodes: told.episodes, skipped: skipped + told.skipped };
}

export async function readEntries(
  store: Store,
  key: ConversationKey,
  first = 0,
): Promise<{ readonly entries: Entry[]; readonly skipped: number }> {
  const { entries, skipped } = await readPages(store, key, first);
  const whole = await Promise.all(entries.map(async (entry) => ({ ...entry, message: await withBodies(store, key, entry) })));
  return { entries: whole.sort((a, b) => turnNumber(a.turn) - turnNumber(b.turn) || a.seq - b.seq), skipped };
}

/** As they lie there, by slot. */
export async function readPages(
  store: Pick<Store, 'entries'>,
  key: ConversationKey,
  first = 0,
): Promise<{ readonly entries: Entry[]; readonly skipped: number }> {
  const entries: Entry[] = [];
  let skipped = 0;
  for (let after = first, last = Infinity; after < last; after += PAGE) {
    const page = await store.entries.page(key, after, PAGE);
    entries.push(...page.entries);
    skipped += page.skipped;
    last = page.last;
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
  for (const episode of [...episodes].reverse()) await store.episodes.add(key, episode);
}

/** Two lives as one, the second after the first: its slots, turns and episodes go on from there. */
export function joinLives(first: PastLife, second: PastLife): PastLife {
  const slots = highest(first.entries.map(({ slot }) => slot));
  const turns = highest([...first.entries.map(({ turn }) => turn), ...first.episodes.flatMap(({ turn_ids }) => turn_ids)].map(turnNumber));
  const numbers = highest(first.episodes.map(({ id }) => itemNumber(id)));
  const moved = (ranges: readonly SlotRange[]): SlotRange[] => ranges.map(([from, to]) => [from + slots, to + slots]);
  const movedTurn = (turn: string): string => turnId(turnNumber(turn) + turns);
  const movedId = (id: string): string => episodicId(itemNumber(id) + numbers);
  return {
    entries: [...first.entries, ...second.entries.map((entry) => ({ ...entry, slot: entry.slot + slots, turn: movedTurn(entry.turn) }))],
    archived: slotsOf([...first.archived, ...moved(second.archived)]).reduce<readonly SlotRange[]>(withSlot, []),
    episodes: [
      ...second.episodes.map((episode) => ({
        ...episode,
        id: movedId(episode.id),
        ...(episode.supersedes && { supersedes: episode.supersedes.map(movedId) }),
        ...(episode.fold && { fold: { ...episode.fold, through: movedId(episode.fold.through) } }),
        turn_ids: episode.turn_ids.map(movedTurn),
        slots: moved(episode.slots),
      })),
      ...first.episodes,
    ],
    skipped: first.skipped + second.skipped,
  };
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

function highest(numbers: readonly number[]): number {
  return numbers.reduce((most, number) => Math.max(most, number), 0);
}
