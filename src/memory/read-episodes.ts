/** A session's episodes for the tool that reads them: their summaries, and the messages of their turns. */
import { turnId } from '../records/identity.js';
import { byAge } from '../records/memory/items.js';
import { listSlots } from '../records/slots.js';
import type { ConversationKey, Store, EpisodeRecord } from '../stores/store.js';
import { withBodies } from './bodies.js';
import { messagesByTurn } from './compaction/recent-turns.js';
import { outlineTurns } from './compaction/summary.js';
import { redactor } from './documents/forgetting.js';
import { longRecord } from './long-record.js';
import { episodesInSight } from './prefix.js';

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
