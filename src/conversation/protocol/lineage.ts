/** Where a conversation comes from, and what a rewind has cut. */
import * as v from 'valibot';
import { id, life, oneOf, strict, turn } from './schema.js';

export const originSchema = strict({
  kind: oneOf('fork', 'resume'),
  conversation: id,
  life,
  /** A run of that life, for healing; absent where Temporal has none any more. */
  run: v.optional(life),
  /** Default: the last one. */
  turn: v.optional(turn),
});

/** Where a conversation comes from. */
export interface Origin extends v.InferOutput<typeof originSchema> {}

/** Answer of the update `opened`, once a conversation with an origin has its beginning. */
export interface Opened {
  readonly conversation: string;
  /** The last one that is shared. */
  readonly turn: string;
  /** How many turns it begins with, and how many of them its model sees word for word. */
  readonly turns: number;
  readonly inContext: number;
  /** Estimate. */
  readonly tokens: number;
}

/** Answer of the update `rewind`. */
export interface RewindResult {
  /** The last turn that stays; `turn_0000`: none does. */
  readonly to: string;
  /** Turns that were cut, and the branch in which they are kept; null when nothing came after. */
  readonly cut: number;
  readonly branch: number | null;
  readonly session: number;
  readonly epoch: number;
  /** The one that its message becomes; absent where it came without. */
  readonly turnId?: string;
}
