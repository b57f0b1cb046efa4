/**
 * What leaves the prompt when there is too much of it (seed 004, Truncation Strategy): the oldest, until the excess is covered. Whole
 * calls with all of their results, never the message that the current turn began with, nor its last answer (design section 4), nor a
 * chunk of the application that is not WORKING_FLOW.
 */
import { isFromPerson, isPinned, type Entry } from '../../records/message.js';
import { oldestThatCover, type MemoryChunk } from '../../records/token-usage.js';
import { entryTokens } from '../tokens.js';

export interface Truncation {
  readonly dropped: readonly Entry[];
  readonly tokens: number;
}

/** `entries`: the context, in its order. `excess`: tokens that are too many. */
export function selectTruncation(
  entries: readonly Entry[],
  excess: number,
  currentTurn: string | null,
  countEntry: (entry: Entry) => number = entryTokens(entries),
): Truncation {
  const groups = groupCalls(entries);
  const tokensIn = (group: readonly Entry[]): number => group.reduce((all, entry) => all + countEntry(entry), 0);
  const stays = staying(entries, currentTurn);
  const chunks = groups.map((group, at): MemoryChunk => {
    const type = group.some((entry) => stays.has(entry)) ? 'TASK' : 'WORKING_FLOW';
    return { id: String(at), type, tokens: tokensIn(group), createdAt: (group[0]?.ts ?? 0) * 1000 };
  });
  const ids = new Set(oldestThatCover(chunks, excess));
  const dropped = groups.filter((_, at) => ids.has(String(at)));
  return { dropped: dropped.flat(), tokens: dropped.reduce((all, group) => all + tokensIn(group), 0) };
}

/** Of these slots, what may leave. */
export function chosenTruncation(
  entries: readonly Entry[],
  chosen: ReadonlySet<number>,
  currentTurn: string | null,
  countEntry: (entry: Entry) => number,
): Truncation {
  const stays = staying(entries, currentTurn);
  const dropped = groupCalls(entries)
    .filter((group) => group.some(({ slot }) => chosen.has(slot)) && !group.some((entry) => stays.has(entry)))
    .flat();
  return { dropped, tokens: dropped.reduce((all, entry) => all + countEntry(entry), 0) };
}

/** These slots, and those of the calls and results that go with them. */
export function withWholeCalls(entries: readonly Entry[], chosen: ReadonlySet<number>): ReadonlySet<number> {
  const groups = groupCalls(entries).filter((group) => group.some(({ slot }) => chosen.has(slot)));
  return new Set(groups.flat().map(({ slot }) => slot));
}

/** An answer with calls and all of their results are one. */
function groupCalls(entries: readonly Entry[]): Entry[][] {
  const groups: Entry[][] = [];
  const groupOfCall = new Map<string, Entry[]>();
  for (const entry of entries) {
    const { message } = entry;
    const groupOfResult = message.role === 'tool' ? groupOfCall.get(message.callId) : undefined;
    const group = groupOfResult ?? [];
    group.push(entry);
    if (!groupOfResult) groups.push(group);
    if (message.role !== 'assistant') continue;
    for (const block of message.blocks) if (block.kind === 'tool-call') groupOfCall.set(block.callId, group);
  }
  return groups;
}

function staying(entries: readonly Entry[], currentTurn: string | null): ReadonlySet<Entry> {
  const pinned = entries.filter(({ message }) => isPinned(message));
  if (currentTurn === null) return new Set(pinned);
  const current = entries.filter(({ turn }) => turn === currentTurn);
  const people = current.filter(({ message }) => isFromPerson(message));
  const last = current.findLast(({ message }) => message.role === 'assistant');
  return new Set([...pinned, ...people, ...(last ? [last] : [])]);
}
