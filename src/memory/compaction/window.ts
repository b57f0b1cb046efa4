/**
 * What a compaction takes (seed 000, sections 10.1A and 19).
 *
 * C1  Whole turns only. The newest `tailTurns` that have ended stay, and so does the current one, which does not count among them.
 * C2  A call and its result go together. Where they stand in different turns, one of which stays, the other stays too.
 * C3  What comes after the current turn (messages that wait) is nobody's window.
 */
import { withSlot, type SlotRange } from '../../records/slots.js';
import type { Entry } from '../../records/message.js';
import { turnNumber } from '../../records/identity.js';

/** Seed 000, section 19: `raw_tail_turns`. */
export const RAW_TAIL_TURNS = 4;

export interface CompactionWindow {
  /** `turn_0001`, …, in the order of the conversation; empty when there is nothing to compact. */
  readonly turnIds: readonly string[];
  /** Of the window's entries, in their order. */
  readonly slots: readonly SlotRange[];
  readonly entries: readonly Entry[];
  /** The entries that stay, in their order: the tail, and the current turn. */
  readonly kept: readonly Entry[];
}

export interface WindowOptions {
  /** Id of the running turn; undefined when none runs. */
  readonly currentTurn?: string;
  readonly tailTurns?: number;
}

/** `entries`: what the context holds, in the order of the conversation. */
export function compactionWindow(
  entries: readonly Entry[],
  { currentTurn, tailTurns = RAW_TAIL_TURNS }: WindowOptions = {},
): CompactionWindow {
  const current = currentTurn === undefined ? Infinity : turnNumber(currentTurn);
  const ended = [...new Set(entries.map(({ turn }) => turn))].filter((turn) => turnNumber(turn) < current);
  const window = new Set(ended.slice(0, Math.max(0, ended.length - tailTurns)));
  keepTogether(entries, window);
  const taken = entries.filter(({ turn }) => window.has(turn));
  return {
    turnIds: [...window],
    slots: taken.reduce<readonly SlotRange[]>((ranges, { slot }) => withSlot(ranges, slot), []),
    entries: taken,
    kept: entries.filter(({ turn }) => !window.has(turn)),
  };
}

/** C2: a turn that leaves the window may take another with it, so until nothing changes. */
function keepTogether(entries: readonly Entry[], window: Set<string>): void {
  const pairs = pairsAcrossTurns(entries);
  for (let changed = true; changed;) {
    changed = false;
    for (const [a, b] of pairs) {
      if (window.has(a) === window.has(b)) continue;
      window.delete(a);
      window.delete(b);
      changed = true;
    }
  }
}

function pairsAcrossTurns(entries: readonly Entry[]): (readonly [call: string, result: string])[] {
  const callers = new Map<string, string>();
  for (const { turn, message } of entries) {
    if (message.role !== 'assistant') continue;
    for (const block of message.blocks) if (block.kind === 'tool-call') callers.set(block.callId, turn);
  }
  return entries.flatMap(({ turn, message }) => {
    const caller = message.role === 'tool' ? callers.get(message.callId) : undefined;
    return caller === undefined || caller === turn ? [] : [[caller, turn] as const];
  });
}
