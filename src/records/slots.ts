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
