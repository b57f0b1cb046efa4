/**
 * The truth of one conversation: what was written, one line each, folded into an index.
 *
 * J1  One line is one atomic write: a commit's result and entries stand in the same one.
 * J2  The first line in the file wins; a later one that contradicts it (a second commit, a commit after a fence, a taken slot)
 *     changes nothing. So the fold gives every process the same answer.
 * J3  A line that cannot be read is counted and skipped.
 */
import type { Entry, JsonValue } from '../conversation/message.js';
import { slotsOf, type SlotRange } from '../conversation/slots.js';
import { itemRecordSchema, type ItemRecord } from '../memory/channel/agent-memory.js';
import { decodeJson, isEntry } from './entry-codec.js';

export type JournalLine =
  | { readonly v: 1; readonly kind: 'recorded'; readonly entry: Entry }
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

/** Entries that a line brought, and those that it took from the active ones or gave back to them. */
export interface Folded {
  readonly added: readonly Entry[];
  readonly archived: readonly Entry[];
  readonly restored: readonly Entry[];
}

const MOST_SLOTS = 1_000_000;
const NOTHING: Folded = { added: [], archived: [], restored: [] };

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
      return { ...NOTHING, added: foldEntries(index, line) };
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

function foldEntries(index: JournalIndex, line: Exclude<JournalLine, Moving>): readonly Entry[] {
  switch (line.kind) {
    case 'recorded':
      return duplicateOf(index, line.entry) === undefined ? put(index, [line.entry]) : [];
    case 'appended':
      return put(index, line.entries);
    case 'committed':
      if (line.usage !== undefined) index.paid.add(line.id);
      if (index.fenced.has(line.id) || index.committed.has(line.id)) return [];
      index.committed.set(line.id, { hash: line.hash, result: line.result });
      putItems(index, line.items ?? []);
      return put(index, line.entries);
    case 'fenced':
      for (const id of line.ids) if (!index.committed.has(id)) index.fenced.add(id);
      return [];
    case 'paid':
      index.paid.add(line.id);
      return [];
    case 'items':
      putItems(index, line.items);
      return [];
    case 'items-removed':
      for (const id of line.ids) index.items.set(id, undefined);
      return [];
    case 'cited':
      if (!index.cited.has(line.id)) index.cited.set(line.id, line.citation);
      return [];
    default:
      return line satisfies never;
  }
}

function putItems(index: JournalIndex, items: readonly ItemRecord[]): void {
  for (const item of items) if (!index.items.has(item.id)) index.items.set(item.id, item);
}

/** The first message with this entry's id, if it lies in another slot. */
export function duplicateOf(index: JournalIndex, entry: Entry): { readonly turn: string; readonly slot: number } | undefined {
  const first = entry.messageId === undefined ? undefined : index.messages.get(entry.messageId);
  return first === undefined || first.slot === entry.slot ? undefined : first;
}

function put(index: JournalIndex, entries: readonly Entry[]): readonly Entry[] {
  const added = entries.filter((entry) => {
    if (index.entries.has(entry.slot)) return false;
    index.entries.set(entry.slot, entry);
    return true;
  });
  for (const { slot, turn, messageId } of added) {
    if (messageId !== undefined && !index.messages.has(messageId)) index.messages.set(messageId, { turn, slot });
    index.last = Math.max(index.last, slot);
  }
  return added;
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
    (line.kind === 'recorded' ||
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
