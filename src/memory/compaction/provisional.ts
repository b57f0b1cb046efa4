/**
 * Summaries that rules have made for want of a model, and shortened lines that a trim has left: as `[raw-fallback]` entries of HISTORY they
 * stand until a model has read their turns.
 */
import { countSlots } from '../../records/slots.js';
import type { EpisodeRecord } from '../../stores/store.js';

/** How many entries are read again at once: what a long absence of the model has left is caught up with bit by bit. */
const MAX_ENTRIES = 2_000;

/** Of a session's episodes that count, newest first, those that the next compaction reads again: the newest that fit, oldest first. */
export function selectProvisional(episodes: readonly EpisodeRecord[]): EpisodeRecord[] {
  let room = MAX_ENTRIES;
  const made = episodes.filter((episode) => (episode.made?.method === 'rules' || hasShortenedLines(episode)) && episode.slots.length > 0);
  return made.filter(({ slots }) => (room -= countSlots(slots)) >= 0).reverse();
}

/** Of an episode that a trim has made: some of its messages no model had summarized. */
export const SHORTENED = 'by-rule';

/** A compaction says itself how it was made, whatever tags its model has thought of. */
export function hasShortenedLines({ made, tags }: EpisodeRecord): boolean {
  return made === undefined && tags.includes('trimmed') && tags.includes(SHORTENED);
}
