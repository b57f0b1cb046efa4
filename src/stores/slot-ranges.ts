/** Slots as a set: ascending, those beside each other in one range. */
import { withSlot, type SlotRange } from '../records/slots.js';

export function toRanges(slots: Iterable<number>): SlotRange[] {
  return [...[...slots].sort((a, b) => a - b).reduce<readonly SlotRange[]>(withSlot, [])];
}
