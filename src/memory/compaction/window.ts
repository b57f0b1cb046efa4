/**
 * What a compaction takes (seed 000, sections 10.1A and 19), and how deep it goes where that is too little.
 *
 * The last round of the current turn stays, since the model may not have read it yet, and so do all words of a person in that turn.
 *
 * @rule compaction/older-turns-first: A compaction first takes whole turns that have ended: the newest `tailTurns` of them stay, and so
 *   does the current turn, which does not count among them. Messages that truncation left out of the prompt go too, from whichever turn.
 *   (test: test/memory/window.test.ts)
 * @rule compaction/deeper-if-too-little: If the older turns do not free enough, the turns of the tail go too, oldest first; after them the
 *   oldest tool rounds of the current turn. (test: test/memory/window-depth.slow.test.ts)
 * @rule compaction/pairs-stay-together: A call and its results go together, in whichever turns they stand: if one stays, so does the other.
 *   (test: test/memory/window.test.ts)
 * @rule compaction/waiting-messages-stay: Messages after the current turn stay, and so do the application's chunks that are not
 *   WORKING_FLOW. (test: test/memory/window.test.ts)
 */
import { isNotice, isPinned, type Entry, isFromPerson } from '../../records/message.js';
import { withSlot, type SlotRange } from '../../records/slots.js';
import { turnNumber } from '../../records/identity.js';
import { RAW_TAIL_TURNS } from '../../records/memory/items.js';
import { CITED_FROM, citedTokens } from '../../conversation/context/citing.js';

export interface CompactionWindow {
  /** `turn_0001`, …, in the order of the conversation; empty when there is nothing to compact. */
  readonly turnIds: readonly string[];
  /** Of these, the ones of which something stays. */
  readonly inPart: readonly string[];
  /** Of the window's entries, in their order. */
  readonly slots: readonly SlotRange[];
  readonly entries: readonly Entry[];
  /** The entries that stay, in their order: the tail, and what is left of the current turn. */
  readonly kept: readonly Entry[];
  /** Tokens that leave the prompt with the window. */
  readonly freed: number;
}

export interface WindowOptions {
  /** Id of the running turn; undefined when none runs. */
  readonly currentTurn?: string | undefined;
  readonly tailTurns?: number;
  /** Slots that are out of the prompt already. */
  readonly leftOut?: ReadonlySet<number>;
  /** Slots: of the messages that may go these go, however deep, and nothing else but what was left out. Absent: oldest first. */
  readonly chosen?: ReadonlySet<number>;
  /** Tokens: if the older turns free as many, the rest stays; without it only they go (compaction/deeper-if-too-little). */
  readonly enough?: number;
  /** Tokens that are to be freed where it does not: once the tail is touched, it is for a while. */
  readonly free?: number;
  /** Of an entry, as the prompt shows it. */
  readonly countEntry?: (entry: Entry) => number;
}

/** What is taken or stays as one. The lower its depth, the earlier it is taken; at depth 0 whatever is wanted. Infinity: never. */
interface Part {
  depth: number;
  readonly entries: Entry[];
}

/** `entries`: what the context holds, in the order of the conversation, with what was left out of it before. */
export function compactionWindow(
  entries: readonly Entry[],
  {
    currentTurn,
    tailTurns = RAW_TAIL_TURNS,
    leftOut = new Set(),
    chosen,
    enough = 0,
    free = enough,
    countEntry = () => 0,
  }: WindowOptions = {},
): CompactionWindow {
  const placeEntry = createPlacement(entries, { currentTurn, tailTurns, leftOut });
  const parts = groupParts(entries, chosen ? amongChosen(placeEntry, chosen, leftOut) : placeEntry);
  const isTaken = new Set<Entry>();
  let freed = 0;
  let wanted = enough;
  for (const { depth, entries: some } of [...parts].sort((a, b) => a.depth - b.depth)) {
    if (depth === Infinity || (depth > 0 && freed >= wanted)) break;
    if (depth > 0) wanted = Math.max(free, enough);
    for (const entry of some) {
      isTaken.add(entry);
      if (!leftOut.has(entry.slot)) freed += countEntry(entry);
    }
  }
  const taken = entries.filter((entry) => isTaken.has(entry));
  const kept = entries.filter((entry) => !isTaken.has(entry));
  const turnIds = [...new Set(taken.map(({ turn }) => turn))];
  const staying = new Set(kept.map(({ turn }) => turn));
  return {
    turnIds,
    inPart: turnIds.filter((turn) => staying.has(turn)),
    slots: taken.reduce<readonly SlotRange[]>((ranges, { slot }) => withSlot(ranges, slot), []),
    entries: taken,
    kept,
    freed,
  };
}

/** (compaction/older-turns-first, compaction/deeper-if-too-little, compaction/waiting-messages-stay) */
function createPlacement(
  entries: readonly Entry[],
  { currentTurn, tailTurns, leftOut }: Required<Pick<WindowOptions, 'tailTurns' | 'leftOut'>> & Pick<WindowOptions, 'currentTurn'>,
): (entry: Entry) => { readonly part: string; readonly depth: number } {
  const current = currentTurn === undefined ? Infinity : turnNumber(currentTurn);
  const ended = [...new Set(entries.map(({ turn }) => turn))].filter((turn) => turnNumber(turn) < current);
  const depthOfTurn = new Map(ended.map((turn, at) => [turn, Math.max(0, at + 1 - Math.max(0, ended.length - tailTurns))]));
  const rounds = roundsIn(entries.filter(({ turn, slot }) => turn === currentTurn && !leftOut.has(slot)));
  return (entry) => {
    if (isPinned(entry.message)) return { part: 'stays', depth: Infinity };
    if (leftOut.has(entry.slot)) return { part: `left-out-${entry.turn}`, depth: 0 };
    const depth = depthOfTurn.get(entry.turn);
    if (depth !== undefined) return { part: entry.turn, depth };
    const round = rounds.get(entry);
    return round === undefined ? { part: 'stays', depth: Infinity } : { part: `round-${round}`, depth: tailTurns + round };
  };
}

function amongChosen(
  placeEntry: ReturnType<typeof createPlacement>,
  chosen: ReadonlySet<number>,
  leftOut: ReadonlySet<number>,
): ReturnType<typeof createPlacement> {
  return (entry) => {
    const place = placeEntry(entry);
    if (place.depth === Infinity || leftOut.has(entry.slot)) return place;
    return chosen.has(entry.slot) ? { part: `chosen-${place.part}`, depth: 0 } : { part: 'stays', depth: Infinity };
  };
}

/** Numbers from 1 of the rounds that may be taken: not the last. A notice goes with the round before it. */
function roundsIn(current: readonly Entry[]): ReadonlyMap<Entry, number> {
  const last = current.findLastIndex(({ message }) => message.role === 'assistant');
  const rounds = new Map<Entry, number>();
  let round = 0;
  for (const entry of current.slice(0, Math.max(0, last))) {
    if (entry.message.role === 'assistant') round += 1;
    if (entry.message.role !== 'user' || isNotice(entry.message)) rounds.set(entry, Math.max(1, round));
  }
  return round === 0 ? new Map() : rounds;
}

/** Turns that a pair ties together are one part, and go with the last of it (compaction/pairs-stay-together). */
function groupParts(entries: readonly Entry[], placeEntry: ReturnType<typeof createPlacement>): ReadonlySet<Part> {
  const byName = new Map<string, Part>();
  const callers = new Map<string, string>();
  const results: (readonly [callId: string, part: string])[] = [];
  for (const entry of entries) {
    const { part: name, depth } = placeEntry(entry);
    const part = byName.get(name) ?? { depth, entries: [] };
    part.entries.push(entry);
    byName.set(name, part);
    const { message } = entry;
    if (message.role === 'tool') results.push([message.callId, name]);
    if (message.role !== 'assistant') continue;
    for (const block of message.blocks) if (block.kind === 'tool-call') callers.set(block.callId, name);
  }
  for (const [callId, name] of results) {
    const [into, from] = [byName.get(name), byName.get(callers.get(callId) ?? name)];
    if (!into || !from || into === from) continue;
    into.entries.push(...from.entries);
    into.depth = Math.max(into.depth, from.depth);
    for (const [key, part] of byName) if (part === from) byName.set(key, into);
  }
  return new Set(byName.values());
}

// How much a compaction takes, and in which order: older turns, then long messages that can be read again, then what is newer.

interface PlanOptions extends WindowOptions {
  readonly enough: number;
  readonly free: number;
  readonly countEntry: (entry: Entry) => number;
  /** Slots of messages that are cited already; null where the model has no tool that reads what is cited. */
  readonly cited: ReadonlySet<number> | null;
}

export interface CompactionPlan extends CompactionWindow {
  /** Of what stays, the messages that are cited from now on, in their order. */
  readonly cites: readonly Entry[];
}

/** The newest message of a person, and all of the running turn, stay whole. */
export function planCompaction(entries: readonly Entry[], { cited, ...options }: PlanOptions): CompactionPlan {
  const { enough, free, countEntry, currentTurn, leftOut } = options;
  const shallow = compactionWindow(entries, { ...options, enough: 0 });
  if (cited === null || shallow.freed >= enough) return { ...compactionWindow(entries, options), cites: [] };
  const staying = shallow.kept.filter(({ slot }) => leftOut?.has(slot) !== true);
  const { cites, saved } = selectCites(staying, free - shallow.freed, { cited, currentTurn, countEntry });
  const chosen = new Set(cites);
  // That is all: a summary of what little else there is would be paid for nothing.
  const isEnough = saved >= enough && shallow.entries.every(({ slot }) => leftOut?.has(slot) !== true);
  if (isEnough)
    return {
      turnIds: [],
      inPart: [],
      slots: [],
      entries: [],
      kept: entries,
      freed: saved,
      cites,
    };
  const window = compactionWindow(entries, {
    ...options,
    enough: enough - saved,
    free: free - saved,
    countEntry: (entry) => (chosen.has(entry) ? citedTokens(entry.message, countEntry(entry)) : countEntry(entry)),
  });
  return { ...window, freed: window.freed + saved, cites: window.kept.filter((entry) => chosen.has(entry)) };
}

/** The longest messages of persons that may be cited, as many as save `excess` tokens, in their order. */
export function selectCites(
  entries: readonly Entry[],
  excess: number,
  { cited, currentTurn, countEntry }: CiteOptions,
): { readonly cites: readonly Entry[]; readonly saved: number } {
  const question = entries.findLast(({ message }) => isFromPerson(message));
  const mayBe = (entry: Entry): boolean =>
    isFromPerson(entry.message) && entry !== question && entry.turn !== currentTurn && !cited.has(entry.slot);
  const chosen = new Set<Entry>();
  let saved = 0;
  for (const entry of entries.filter(mayBe).sort((a, b) => countEntry(b) - countEntry(a))) {
    if (saved >= excess || countEntry(entry) < CITED_FROM) break;
    chosen.add(entry);
    saved += countEntry(entry) - citedTokens(entry.message, countEntry(entry));
  }
  return { cites: entries.filter((entry) => chosen.has(entry)), saved };
}

interface CiteOptions extends Pick<PlanOptions, 'countEntry' | 'currentTurn'> {
  readonly cited: ReadonlySet<number>;
}
