/**
 * How long a conversation rests between its turns, by its gaps: the prompt of a slow one is kept for an hour where the provider has such
 * a cache, since it would be billed anew after five minutes.
 */
import type { ConversationState } from '../state.js';

const REMEMBERED = 4;
/** One pause may be a coincidence. */
const FEWEST = 2;
const [FIVE_MINUTES, HOUR] = [300_000, 3_600_000];

export function noteAnswered(state: ConversationState): ConversationState {
  return { ...state, pace: { gaps: state.pace?.gaps ?? [], answered: state.now } };
}

/** As a turn begins. */
export function noteGap(state: ConversationState): ConversationState {
  const { pace, now } = state;
  return pace ? { ...state, pace: { ...pace, gaps: [...pace.gaps, now - pace.answered].slice(-REMEMBERED) } } : state;
}

/** Half of the gaps are longer than a cache keeps a prompt, and shorter than it could. */
export function isSlow({ pace }: ConversationState): boolean {
  const gaps = pace?.gaps ?? [];
  return gaps.length >= FEWEST && gaps.filter((gap) => gap > FIVE_MINUTES && gap < HOUR).length * 2 >= gaps.length;
}
