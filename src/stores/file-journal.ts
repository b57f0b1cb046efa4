/**
 * The truth of one conversation: what was written, one line each, folded into an index.
 *
 * J1  One line is one atomic write: a commit's result and entries stand in the same one.
 * J2  The first line in the file wins; a later one that contradicts it (a second commit, a commit after a fence, a taken slot)
 *     changes nothing, but for a message that no task counted (store.ts, Entries). So the fold gives every process the same answer.
 * J3  A line that cannot be read is counted and skipped.
 */
import type { Entry, JsonValue } from '../conversation/message.js';
import { slotsOf, type SlotRange } from '../conversation/slots.js';
import { itemRecordSchema, type ItemRecord } from '../memory/channel/agent-memory.js';
import { decodeJson, isEntry } from './entry-codec.js';
import type { Recording } from './store.js';

export type JournalLine =
  | { readonly v: 1; readonly kind: 'recorded'; readonly entry: Entry; readonly movedFrom?: number }
  | { readonly v: 1; readonly kind: 'appended'; readonly entries: readonly Entry[] }
  | {
      readonly v: 1;
      readonly kind: 'committed';
      readonly id: string;
      readonly hash: string;
      readonly result: JsonValue;
      readonly entries: readonly Entry[];
      readonly usage?: JsonValue;
      readonly items?: readonly ItemRecord[];
    }
  | { readonly v: 1; readonly kind: 'items'; readonly items: readonly ItemRecord[] }
  /** They do not come back. */
  | { readonly v: 1; readonly kind: 'items-removed'; readonly ids: readonly string[] }
  | { readonly v: 1; readonly kind: 'cited'; readonly id: string; readonly citation: string }
  | { readonly v: 1; readonly kind: 'fenced'; readonly ids: readonly string[] }
  /** A fenced effect's usage. */
  | { readonly v: 1; readonly kind: 'paid'; readonly id: string; readonly usage: JsonValue }
  /** Of these two the last one counts, slot by slot. */
  | { readonly v: 1; readonly kind: 'archived'; readonly slots: readonly SlotRange[] }
  | { readonly v: 1; readonly kind: 'restored'; readonly slots: readonly SlotRange[] };

type Recorded = Extract<JournalLine, { kind: 'recorded' }>;
type Moving = Extract<JournalLine, { readonly slots: unknown }>;

export interface JournalIndex {
  /** In the order in which they were written, not of slots. */
  readonly entries: Map<number, Entry>;
  readonly messages: Map<string, { readonly turn: string; readonly slot: number }>;
  readonly committed: Map<string, { readonly hash: string; readonly result: JsonValue }>;
  readonly fenced: Set<string>;
  readonly paid: Set<string>;
  /** By id; undefined for one that was removed. */
  readonly items: Map<string, ItemRecord | undefined>;
  /** By call. */
  readonly cited: Map<string, string>;
  /** Slots, in the order of their archiving; also of entries that are not there yet. */
  readonly archived: Set<number>;
  last: number;
  skipped: number;
}

/** Entries that a line brought or drove away, and those that it took from the active ones or gave back to them. */
export interface Folded {
  readonly added: readonly Entry[];
  readonly removed: readonly Entry[];
  readonly archived: readonly Entry[];
  readonly restored: readonly Entry[];
}

const MOST_SLOTS = 1_000_000;
const NOTHING: Folded = { added: [], removed: [], archived: [], restored: [] };
const NO_ENTRIES: Pick<Folded, 'added' | 'removed'> = NOTHING;

export function emptyIndex(): JournalIndex {
  return {
    entries: new Map(),
    messages: new Map(),
    committed: new Map(),
    fenced: new Set(),
    paid: new Set(),
    items: new Map(),
    cited: new Map(),
    archived: new Set(),
    last: 0,
    skipped: 0,
  };
}

/** Adds a line of the file to the index. */
export function foldLine(index: JournalIndex, text: string): Folded {
  const line = decodeLine(text);
  if (line === undefined) {
    index.skipped += 1;
    return NOTHING;
  }
  switch (line.kind) {
    case 'archived':
      return { ...NOTHING, archived: move(index, line.slots, true) };
    case 'restored':
      return { ...NOTHING, restored: move(index, line.slots, false) };
    default:
      return { ...NOTHING, ...foldEntries(index, line) };
  }
}

/** Answers with the entries that are there and were on the other side before. */
function move(index: JournalIndex, slots: readonly SlotRange[], toArchive: boolean): Entry[] {
  const moved = slotsOf(slots).filter((slot) => index.archived.has(slot) !== toArchive);
  for (const slot of moved) {
    if (toArchive) index.archived.add(slot);
    else index.archived.delete(slot);
  }
  return moved.flatMap((slot) => index.entries.get(slot) ?? []);
}

function foldEntries(index: JournalIndex, line: Exclude<JournalLine, Moving>): Pick<Folded, 'added' | 'removed'> {
  switch (line.kind) {
    case 'recorded':
      return foldRecorded(index, line);
    case 'appended':
      return put(index, line.entries);
    case 'committed':
      if (line.usage !== undefined) index.paid.add(line.id);
      if (index.fenced.has(line.id) || index.committed.has(line.id)) return NO_ENTRIES;
      index.committed.set(line.id, { hash: line.hash, result: line.result });
      putItems(index, line.items ?? []);
      return put(index, line.entries);
    case 'fenced':
      for (const id of line.ids) if (!index.committed.has(id)) index.fenced.add(id);
      return NO_ENTRIES;
    case 'paid':
      index.paid.add(line.id);
      return NO_ENTRIES;
    case 'items':
      putItems(index, line.items);
      return NO_ENTRIES;
    case 'items-removed':
      for (const id of line.ids) index.items.set(id, undefined);
      return NO_ENTRIES;
    case 'cited':
      if (!index.cited.has(line.id)) index.cited.set(line.id, line.citation);
      return NO_ENTRIES;
    default:
      return line satisfies never;
  }
}

function putItems(index: JournalIndex, items: readonly ItemRecord[]): void {
  for (const item of items) if (!index.items.has(item.id)) index.items.set(item.id, item);
}

/** The first message with this entry's id, if it lies in another slot or turn. */
export function duplicateOf(index: JournalIndex, entry: Entry): { readonly turn: string; readonly slot: number } | undefined {
  const first = entry.messageId === undefined ? undefined : index.messages.get(entry.messageId);
  return first === undefined || (first.slot === entry.slot && first.turn === entry.turn) ? undefined : first;
}

/** How recording it would go. */
export function recordingOf(index: JournalIndex, entry: Entry, movedFrom: number | undefined): Recording {
  const duplicate = duplicateOf(index, entry);
  if (duplicate && duplicate.slot !== movedFrom) return { duplicate };
  const lying = index.entries.get(entry.slot);
  return lying && lying.messageId !== entry.messageId ? { taken: true } : {};
}

/** In an empty slot, or in one where a message lies that no task counted. */
export function hasPlace(index: JournalIndex, { slot, messageId }: Entry): boolean {
  const lying = index.entries.get(slot);
  return lying === undefined || (messageId === undefined && lying.messageId !== undefined);
}

function foldRecorded(index: JournalIndex, { entry, movedFrom }: Recorded): Pick<Folded, 'added' | 'removed'> {
  const { duplicate, taken } = recordingOf(index, entry, movedFrom);
  if (duplicate || taken) return NO_ENTRIES;
  const removed = takeFromItsPlace(index, entry);
  return { added: put(index, [entry]).added, removed };
}

/** Where it lay under other numbers; what took its place there stays. */
function takeFromItsPlace(index: JournalIndex, entry: Entry): readonly Entry[] {
  const first = duplicateOf(index, entry);
  if (!first || entry.messageId === undefined) return [];
  index.messages.delete(entry.messageId);
  const lying = index.entries.get(first.slot);
  if (lying?.messageId !== entry.messageId) return [];
  index.entries.delete(first.slot);
  return [lying];
}

function put(index: JournalIndex, entries: readonly Entry[]): Pick<Folded, 'added' | 'removed'> {
  const removed: Entry[] = [];
  const added = entries.filter((entry) => {
    if (!hasPlace(index, entry)) return false;
    const lying = index.entries.get(entry.slot);
    if (lying) removed.push(lying);
    index.entries.set(entry.slot, entry);
    return true;
  });
  for (const { slot, turn, messageId } of added) {
    if (messageId !== undefined && !index.messages.has(messageId)) index.messages.set(messageId, { turn, slot });
    index.last = Math.max(index.last, slot);
  }
  return { added, removed };
}

/** Ends where slots still can be counted: a damaged range must not be walked for ever. */
function isRange(value: unknown): value is SlotRange {
  const [first, last] = Array.isArray(value) ? (value as unknown[]) : [];
  return Number.isSafeInteger(first) && Number.isSafeInteger(last) && (last as number) - (first as number) < MOST_SLOTS;
}

function decodeLine(text: string): JournalLine | undefined {
  const value = decodeJson(text);
  if (typeof value !== 'object' || value === null) return undefined;
  const line = value as { readonly [field: string]: unknown };
  if (line.v !== 1) return undefined;
  const entries = line.kind === 'recorded' ? [line.entry] : (line.entries ?? []);
  const items = line.items ?? [];
  const hasItsFields =
    Array.isArray(entries) &&
    entries.every(isEntry) &&
    Array.isArray(items) &&
    items.every((item) => itemRecordSchema.safeParse(item).success) &&
    ((line.kind === 'recorded' && (line.movedFrom === undefined || Number.isSafeInteger(line.movedFrom))) ||
      (line.kind === 'appended' && Array.isArray(line.entries)) ||
      (line.kind === 'committed' && typeof line.id === 'string' && typeof line.hash === 'string' && line.result !== undefined) ||
      (line.kind === 'fenced' && Array.isArray(line.ids)) ||
      (line.kind === 'items' && Array.isArray(line.items)) ||
      (line.kind === 'items-removed' && isTexts(line.ids)) ||
      (line.kind === 'cited' && typeof line.id === 'string' && typeof line.citation === 'string') ||
      (line.kind === 'paid' && typeof line.id === 'string') ||
      ((line.kind === 'archived' || line.kind === 'restored') && Array.isArray(line.slots) && line.slots.every(isRange)));
  // The check above is the one place where a line becomes ours.
  return hasItsFields ? (value as JournalLine) : undefined;
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((text) => typeof text === 'string');
}
