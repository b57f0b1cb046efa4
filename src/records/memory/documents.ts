/**
 * What a scope remembers in words (seed 001; scope: design section 4): MEMORY.md, which stands in every system prompt, and
 * HISTORY, which is searched on demand. Types alone: stores keep them, `memory/` makes them.
 */

/** MEMORY.md at one moment. `version` names its bytes; no file and an empty one are the same. */
export interface MemoryText {
  readonly version: string;
  readonly text: string;
}

/**
 * How far a line can be trusted: `user` typed it, `model` concluded it, `tool:<name>` brought it, `file` stands for what a user attached or
 * quoted, `application` for its data and events, `person` wrote it into the document or accepted it.
 */
export type Trust = 'user' | 'model' | 'person' | 'file' | 'application' | `tool:${string}`;

/** Where a line of memory comes from; without a conversation a person wrote it. */
export interface LineSource {
  readonly trust: Trust;
  readonly conversation?: string;
  /** Traces of which turns. */
  readonly turn_ids?: readonly string[];
  /** Of what the model says: the tools (or `file`, `application`) that it had read before, as far as their word is not enough. */
  readonly tools?: readonly string[];
}

/** `model after fetch_url`. */
export function describeTrust({ trust, tools = [] }: Pick<LineSource, 'trust' | 'tools'>): string {
  return tools.length === 0 ? trust : `${trust} after ${tools.join(', ')}`;
}

/** Data, and no instruction: neither a person's words nor the model's alone. */
export function isUntrusted({ trust, tools = [] }: Pick<LineSource, 'trust' | 'tools'>): boolean {
  return trust.startsWith('tool:') || trust === 'file' || trust === 'application' || (trust === 'model' && tools.length > 0);
}

/** A line of MEMORY.md, and where it came from. */
export interface SourcedLine {
  readonly line: string;
  readonly source: LineSource;
}

/** What has changed MEMORY.md. */
export type ChangeCause = 'consolidation' | 'hand' | 'accepted' | 'forgotten' | 'care';

/** A new MEMORY.md. Once per `id`. */
export interface MemoryWrite {
  readonly id: string;
  /** Epoch seconds. */
  readonly ts: number;
  readonly cause: ChangeCause;
  /** The version that it was made from: with another one in place nothing is written. */
  readonly from: string;
  readonly text: string;
  /** The lines that are new in it. */
  readonly lines: readonly SourcedLine[];
}

/** What a write, or a person with an editor, has made of it. */
export interface MemoryChange extends Omit<MemoryWrite, 'text'> {
  readonly version: string;
}

/** One entry of HISTORY. Of one `id` there is at most one of each kind. */
export interface HistoryEntry {
  readonly id: string;
  readonly kind: 'summary' | 'raw-fallback';
  /** Epoch seconds. */
  readonly ts: number;
  readonly text: string;
}

/** A line that rests on a tool or a file alone, or may, or that changes what may be done: it waits until a person accepts it. */
export interface Proposal extends SourcedLine {
  /** `prop_0001`. */
  readonly id: string;
  /** Epoch seconds. */
  readonly ts: number;
  readonly state: 'open' | 'accepted' | 'rejected';
}

/** That something is to stay forgotten, without saying what: its words as salted hashes. */
export interface Tombstone {
  readonly id: string;
  /** Epoch seconds. */
  readonly ts: number;
  readonly words: readonly string[];
}

// The lines of a MEMORY.md, and when two of them say the same.

/** Without its list mark and with single spaces: what is moved, indented or numbered anew stays the same line. */
export function foldedLine(line: string): string {
  return line
    .normalize('NFC')
    .replace(/^\s*(?:[-*+•]|\d{1,4}[.)])\s+/, '')
    .replace(/\s+/g, ' ')
    .trim();
}

export function splitLines(text: string): string[] {
  return text.replace(/\r\n?/g, '\n').split('\n');
}

/** The newline at the end of the last one begins no further line. */
export function toLines(text: string): string[] {
  return text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/);
}

/** Lines of `after` that `before` does not have anywhere; one that was only moved is not new. */
export function newLines(before: string, after: string): string[] {
  const known = new Set(toLines(before).map(foldedLine));
  return toLines(after).filter((line) => foldedLine(line) !== '' && !known.has(foldedLine(line)));
}

/** How often each folded line occurs in `lines`; blank ones do not count. */
export function lineCounts(lines: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const line of lines) {
    const folded = foldedLine(line);
    if (folded !== '') counts.set(folded, (counts.get(folded) ?? 0) + 1);
  }
  return counts;
}

/** Whether `counts` still has this line; takes it out if so. Blank lines are always there. */
export function takeLine(counts: Map<string, number>, line: string): boolean {
  const folded = foldedLine(line);
  if (folded === '') return true;
  const count = counts.get(folded) ?? 0;
  if (count > 0) counts.set(folded, count - 1);
  return count > 0;
}

/** The version of a MEMORY.md that is empty, or not there. */
export const NO_MEMORY_VERSION = 'empty';
