/** How a turn ended that has no whole answer: what a person reads where the answer would be. */

export const UNFINISHED = ['end', 'interrupted', 'tool-limit', 'budget', 'refused', 'failed'] as const;

/** How a turn ended that has no whole answer. */
export interface TurnEnd {
  readonly v: 1;
  readonly turn: string;
  /** `end` has an `error` too: an answer that was cut. */
  readonly stopReason: (typeof UNFINISHED)[number];
  readonly error?: { readonly type: string; readonly message: string };
}

/** UTF-16 units of a message: it says what to do in its first sentences. */
export const MAX_ERROR = 2_000;

/** `turn_9999` is before `turn_10000`. */
export function byTurn(a: Pick<TurnEnd, 'turn'>, b: Pick<TurnEnd, 'turn'>): number {
  return a.turn.length - b.turn.length || (a.turn < b.turn ? -1 : a.turn > b.turn ? 1 : 0);
}
