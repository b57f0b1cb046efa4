/**
 * Which entries a model call sees, as ranges of slots: `[1, 40]` is forty entries in two numbers, so that the input of a
 * model call does not grow with the conversation. Order is the order of the conversation, which is not always that of
 * the slots: a message queued during a turn has a slot among that turn's.
 */
export type SlotRange = readonly [first: number, last: number];

export function withSlot(ranges: readonly SlotRange[], slot: number): readonly SlotRange[] {
  const last = ranges[ranges.length - 1];
  if (last && last[1] + 1 === slot) return [...ranges.slice(0, -1), [last[0], slot]];
  return [...ranges, [slot, slot]];
}

export function toRanges(slots: readonly number[]): readonly SlotRange[] {
  // Not by `withSlot`, which copies the ranges for each slot: an import may have a million of them.
  const ranges: [number, number][] = [];
  for (const slot of slots) {
    const last = ranges.at(-1);
    if (last !== undefined && last[1] + 1 === slot) last[1] = slot;
    else ranges.push([slot, slot]);
  }
  return ranges;
}

export function listSlots(ranges: readonly SlotRange[]): number[] {
  const slots: number[] = [];
  for (const [first, last] of ranges) for (let slot = first; slot <= last; slot++) slots.push(slot);
  return slots;
}

export function countSlots(ranges: readonly SlotRange[]): number {
  return ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
}

// How lives of conversations stand on each other: plain JSON, as stores keep it.
//
// A fork or a resumed conversation is a life whose first entries are those of another life. Nothing is copied: they are read where they
// lie. A rewind cuts turns out of a life: what was cut stays in the store, as a branch.

export interface LifeName {
  readonly conversation: string;
  readonly life: string;
}

/** Entries of another life that a life shares. */
export interface SharedSlots extends LifeName {
  readonly scope: string;
  /** A run of that life, from which its history is found; absent where Temporal had none any more. */
  readonly run?: string;
  readonly slots: readonly SlotRange[];
}

/** Where a life comes from. */
export interface Beginning {
  readonly v: 1;
  readonly kind: 'fork' | 'resume';
  readonly of: LifeName;
  /** Number of the last turn that it shares. */
  readonly turn: number;
  /** The lives in which entries lie, each named itself: what is shared with a fork of a fork is looked for one step away. */
  readonly shared: readonly SharedSlots[];
  /** Of the shared ones those that are not in the context that it begins with. */
  readonly archived: readonly SlotRange[];
  /** Absent where each shared entry is of the session that it names. The cuts that joined them are another life's. */
  readonly joined?: readonly JoinedSessions[];
}

/** A session that rewinds have gone on with under other numbers: the last one stands for all. Numbers never fall along a line of turns. */
export interface JoinedSessions {
  readonly session: number;
  readonly of: readonly number[];
}

/** Entries of a life that one request to long-term memory is about, from this life or from another one that shares them. */
export interface Claim {
  readonly v: 1;
  readonly id: string;
  readonly slots: readonly SlotRange[];
}

/** What a rewind has cut out of a life. */
export interface Cut {
  readonly v: 1;
  readonly id: string;
  /** 1 for the first of a life. */
  readonly branch: number;
  /** Number of the last turn that stayed, where it begins (the slot of its first answer), and when it ended (epoch seconds). */
  readonly to: number;
  readonly begun: number;
  readonly since: number;
  /** The highest slot given out by then, and when that was (epoch seconds). */
  readonly slot: number;
  readonly at: number;
  /** That goes on after it; 0 where what comes after begins one. */
  readonly session: number;
  /** Entries that were cut. */
  readonly slots: readonly SlotRange[];
}
