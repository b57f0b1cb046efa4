/** How much a compaction takes, and in which order: older turns, then long messages that can be read again, then what is newer. */
import { CITED_FROM, citedMessageTokens } from '../../conversation/context/citing.js';
import { isFromPerson, type Entry } from '../../records/message.js';
import { compactionWindow, type CompactionWindow, type WindowOptions } from './window.js';

export interface PlanOptions extends WindowOptions {
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
    countEntry: (entry) => (chosen.has(entry) ? citedMessageTokens() : countEntry(entry)),
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
    saved += countEntry(entry) - citedMessageTokens();
  }
  return { cites: entries.filter((entry) => chosen.has(entry)), saved };
}

interface CiteOptions extends Pick<PlanOptions, 'countEntry' | 'currentTurn'> {
  readonly cited: ReadonlySet<number>;
}
