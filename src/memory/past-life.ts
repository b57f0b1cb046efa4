/** All messages of one life of a conversation, with long texts at hand: to be exported, and to be imported. */
import type { Entry } from '../records/message.js';
import type { SlotRange } from '../records/slots.js';
import { turnNumber } from '../records/identity.js';
import { type ConversationKey, type EpisodeRecord, type Store, LifeDeleted } from '../stores/store.js';
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

export async function readEntries(
  store: Store,
  key: ConversationKey,
  { after = 0, until }: { readonly after?: number; readonly until?: number } = {},
): Promise<{ readonly entries: Entry[]; readonly skipped: number }> {
  const { entries, skipped } = await readPages(store, key, after, until);
  const whole = await Promise.all(entries.map(async (entry) => ({ ...entry, message: await withBodies(store, key, entry) })));
  return { entries: whole.sort((a, b) => turnNumber(a.turn) - turnNumber(b.turn) || a.seq - b.seq), skipped };
}

/** As they lie there, by slot: those after `first`, up to `until`. */
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
