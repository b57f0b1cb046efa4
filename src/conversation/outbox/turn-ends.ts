/** How turns ended that have no whole answer, as they go to the store: their announcements carry it. */
import { truncate } from '../../records/text.js';
import { MAX_ERROR, UNFINISHED, type TurnEnd } from '../../records/turn-end.js';
import type { Writes } from './writes.js';

export function turnEndsIn(feed: Writes['feed']): TurnEnd[] {
  return feed.flatMap(({ event }): TurnEnd[] => {
    if (event.kind !== 'turn-finished') return [];
    const { error } = event.result;
    const stopReason = UNFINISHED.find((reason) => reason === event.result.stopReason);
    if (stopReason === undefined) return [];
    const reported = error && { error: { type: truncate(error.type, 200), message: truncate(error.message, MAX_ERROR) } };
    return [{ v: 1, turn: event.turn, stopReason, ...reported }];
  });
}
