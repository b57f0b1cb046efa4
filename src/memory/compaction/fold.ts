/**
 * Episodes that are no longer shown one by one, as one text that grows slowly: each compaction folds in the one that leaves (seed 000, by
 * whom `[MEMORY:EPISODIC]` has three). The newest episode carries it, so that with a compaction its fold is undone too. Pure.
 */
import type { EpisodeFold, EpisodeLinks } from '../../records/episodes.js';
import { isoTime } from '../../records/memory/history-text.js';
import { episodicId, itemNumber, type EpisodicItem } from '../../records/memory/items.js';
import { turnNumber } from '../../records/identity.js';
import { truncate, oneLine, thatFit } from '../../records/text.js';
import { SUMMARY_LIMITS } from './summary-answer.js';

export type FoldedEpisode = EpisodicItem & EpisodeLinks;

export interface Folding {
  /** What stands for earlier ones already; '' when nothing does. */
  readonly text: string;
  readonly through: string;
  /** To be folded in, oldest first. */
  readonly leaving: readonly EpisodicItem[];
}

/** `episodes`: those that count, newest first, of which the first `shown` are shown as they are. */
export function toFolding(episodes: readonly FoldedEpisode[], shown: number): Folding {
  const { text, through } = episodes.find(({ fold }) => fold !== undefined)?.fold ?? { text: '', through: episodicId(0) };
  const leaving = episodes.slice(shown).filter(({ id }) => itemNumber(id) > itemNumber(through));
  return { text, through, leaving: leaving.reverse() };
}

/** `byModel`: what a model has made of it; without it the newest of the summaries do. Undefined while nothing is folded. */
export function folded({ text, through, leaving }: Folding, byModel?: string): EpisodeFold | undefined {
  const last = leaving.at(-1);
  if (last) return { text: byModel ?? foldByRules(text, leaving), through: last.id };
  return text === '' ? undefined : { text, through };
}

/** What episodes beyond the first `shown` are in a prompt; undefined when there are none. */
export function foldEarlier(episodes: readonly FoldedEpisode[], shown: number): Earlier | undefined {
  const earlier = episodes.slice(shown);
  if (earlier.length === 0) return undefined;
  const { text, leaving } = toFolding(episodes, shown);
  return { text: foldByRules(text, leaving), episodes: earlier };
}

/** What stands for episodes that are too old to be shown one by one. */
export interface Earlier {
  readonly text: string;
  /** Newest first. */
  readonly episodes: readonly EpisodicItem[];
}

/** The same for episodes that have other ids now, such as those of a fork: what is folded is the newest of them up to it. */
export function refolded({ text, through }: EpisodeFold, newIds: ReadonlyMap<string, string>): EpisodeFold {
  const numbers = [...newIds.keys()].map(itemNumber).filter((number) => number <= itemNumber(through));
  const newest = numbers.length === 0 ? undefined : newIds.get(episodicId(Math.max(...numbers)));
  return { text, through: newest ?? episodicId(0) };
}

/** `turns 3–8, 2026-11-20`, in UTC. */
export function describeEpisodes(episodes: readonly Pick<EpisodicItem, 'turn_ids' | 'ts'>[]): string {
  const turns = episodes.flatMap(({ turn_ids }) => turn_ids.map(turnNumber)).sort((a, b) => a - b);
  const days = episodes.map(({ ts }) => isoTime(ts).slice(0, 10)).sort();
  const span = (values: readonly (number | string)[]): string => [...new Set([values[0], values.at(-1)])].join('–');
  return [...(turns.length === 0 ? [] : [`${turns.length === 1 ? 'turn' : 'turns'} ${span(turns)}`]), span(days)].join(', ');
}

/** The newest that have room, whole: what says how a thing was must not outlive what says how it is now. */
function foldByRules(text: string, leaving: readonly EpisodicItem[]): string {
  const lines = leaving.map((episode) => `${episode.id} (${describeEpisodes([episode])}): ${oneLine(episode.summary)}`);
  const newestFirst = [...(text === '' ? [] : text.split('\n')), ...lines].reverse();
  const shown = thatFit(newestFirst, SUMMARY_LIMITS.fold);
  return shown.length > 0 ? shown.toReversed().join('\n') : truncate(newestFirst[0] ?? '', SUMMARY_LIMITS.fold);
}
