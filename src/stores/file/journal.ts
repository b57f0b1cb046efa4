/**
 * The truth of one conversation: what was written, one line each, folded into an index.
 *
 * One line is one atomic write: a commit's result and entries are in the same one, and so does a whole batch. An unreadable line is
 * counted and skipped.
 *
 * @rule file/first-line-wins: The first line in the file wins; a later one that contradicts it (a second commit, a commit after a fence or
 *   for another request, a filled slot, a late move) changes nothing. So the fold gives every process the same answer. (test:
 *   test/stores/file/file.test.ts)
 */
import type { Entry, JsonValue } from '../../records/message.js';
import { listSlots, type SlotRange } from '../../records/slots.js';
import { isSpending, type Spending, type Spent } from '../../records/spending.js';
import { itemRecordSchema, type ItemRecord } from '../../records/memory/agent-memory.js';
import { decodeJson, isEntry } from '../codecs.js';
import type { Applied, Commitment, EffectClaim, Reservation, WriteBatch } from '../store.js';

/** A batch of writes (store.ts, WriteBatch) without what was there already, folded in the order of these fields. */
interface Written {
  readonly v: 1;
  readonly kind: 'written';
  readonly recorded?: readonly Entry[];
  readonly fenced?: readonly string[];
  readonly appended?: readonly Entry[];
  readonly reserved?: EffectClaim & { readonly attempt: string };
}

interface Moved {
  readonly v: 1;
  readonly kind: 'archived' | 'restored';
  readonly slots: readonly SlotRange[];
  /** A line with a lower one than a line before it is late. */
  readonly move: number;
}

/** Changes of a collection together with calls of models: all of them count, or none if a record was different by then. */
export interface RecordsLine {
  readonly v: 1;
  readonly kind: 'records';
  readonly collection: string;
  readonly changes: readonly (readonly [id: string, before: string, after: string])[];
}

/** Stands for entries that an archive has: their ids are still known, and where the entries ended. */
export interface Away {
  readonly v: 1;
  readonly kind: 'away';
  readonly messages: readonly (readonly [id: string, turn: string, slot: number])[];
  readonly last: number;
}

export type JournalLine =
  | Written
  | Moved
  | Away
  | {
      readonly v: 1;
      readonly kind: 'committed';
      readonly id: string;
      readonly hash: string;
      readonly result: JsonValue;
      readonly entries: readonly Entry[];
      readonly spent?: Spending;
      readonly items?: readonly ItemRecord[];
    }
  | RecordsLine
  /** The cost of a fenced effect, or of work without a result. */
  | { readonly v: 1; readonly kind: 'paid'; readonly id: string; readonly fenced?: true; readonly spent: Spending };

export interface JournalIndex {
  /** In the order in which they were written, not of slots. */
  readonly entries: Map<number, Entry>;
  readonly messages: Map<string, { readonly turn: string; readonly slot: number }>;
  readonly committed: Map<string, { readonly hash: string; readonly result: JsonValue }>;
  readonly fenced: Set<string>;
  /** Attempts at effects that are neither committed nor fenced, in their order; `hash` is of the first one's request. */
  readonly reserved: Map<string, { readonly hash: string; readonly attempts: string[] }>;
  readonly paid: Set<string>;
  /** By name of a collection, and id. */
  readonly records: Map<string, Map<string, string>>;
  /** Slots, in the order of their archiving; also of entries that are not there yet. */
  readonly archived: Set<number>;
  /** The highest one of `archived` and `restored` lines; -1 before the first. */
  move: number;
  last: number;
  skipped: number;
}

/** Entries that a line brought, and those that it took from the active ones or gave back to them. */
export interface Folded {
  readonly added: readonly Entry[];
  readonly archived: readonly Entry[];
  readonly restored: readonly Entry[];
}

const MAX_SLOTS = 1_000_000;
const NO_ENTRIES: readonly Entry[] = [];
const NOTHING: Folded = { added: NO_ENTRIES, archived: NO_ENTRIES, restored: NO_ENTRIES };

export function emptyIndex(): JournalIndex {
  return {
    entries: new Map(),
    messages: new Map(),
    committed: new Map(),
    fenced: new Set(),
    reserved: new Map(),
    paid: new Set(),
    records: new Map(),
    archived: new Set(),
    move: -1,
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
      return { ...NOTHING, archived: move(index, line) };
    case 'restored':
      return { ...NOTHING, restored: move(index, line) };
    case 'away':
      for (const [id, turn, slot] of line.messages) if (!index.messages.has(id)) index.messages.set(id, { turn, slot });
      index.last = Math.max(index.last, line.last);
      return NOTHING;
    default:
      return { ...NOTHING, added: foldEntries(index, line) };
  }
}

/** Answers with the entries that are there and were on the other side before. */
function move(index: JournalIndex, line: Moved): Entry[] {
  if (line.move < index.move) return [];
  index.move = line.move;
  const toArchive = line.kind === 'archived';
  const moved = listSlots(line.slots).filter((slot) => index.archived.has(slot) !== toArchive);
  for (const slot of moved) {
    if (toArchive) index.archived.add(slot);
    else index.archived.delete(slot);
  }
  return moved.flatMap((slot) => index.entries.get(slot) ?? []);
}

/** Answers with the entries that it brought. */
function foldEntries(index: JournalIndex, line: Exclude<JournalLine, Moved | Away>): readonly Entry[] {
  switch (line.kind) {
    case 'written':
      return foldWritten(index, line);
    case 'committed': {
      if (line.spent !== undefined) index.paid.add(line.id);
      const reserved = index.reserved.get(line.id);
      if (index.fenced.has(line.id) || index.committed.has(line.id) || (reserved && reserved.hash !== line.hash)) return NO_ENTRIES;
      index.committed.set(line.id, { hash: line.hash, result: line.result });
      index.reserved.delete(line.id);
      putItems(index, line.items ?? []);
      return put(index, line.entries);
    }
    case 'paid':
      index.paid.add(line.id);
      return NO_ENTRIES;
    case 'records':
      foldRecords(index, line);
      return NO_ENTRIES;
    default:
      return line satisfies never;
  }
}

function foldWritten(index: JournalIndex, { recorded = [], fenced = [], appended = [], reserved }: Written): readonly Entry[] {
  const messages = recorded.flatMap((entry) => (findDuplicate(index, entry) ? [] : put(index, [entry])));
  for (const id of fenced) {
    if (index.committed.has(id)) continue;
    index.fenced.add(id);
    index.reserved.delete(id);
  }
  const added = put(index, appended);
  if (reserved) reserve(index, reserved);
  return messages.length === 0 ? added : [...messages, ...added];
}

function reserve(index: JournalIndex, { id, hash, attempt }: EffectClaim & { readonly attempt: string }): void {
  if (index.fenced.has(id) || index.committed.has(id)) return;
  const known = index.reserved.get(id);
  if (!known) index.reserved.set(id, { hash, attempts: [attempt] });
  else if (known.hash === hash && !known.attempts.includes(attempt)) known.attempts.push(attempt);
}

/** The cost that a line of a journal records; undefined where it records none. */
export function spentIn(text: string): Spent | undefined {
  if (!text.includes('"spent"')) return undefined;
  const line = decodeLine(text);
  if ((line?.kind !== 'committed' && line?.kind !== 'paid') || !isSpending(line.spent)) return undefined;
  return { ...line.spent, id: line.id, fenced: line.kind === 'paid' && line.fenced === true };
}

/** The line that a batch comes to; undefined when all of it is there. */
export function toLine(index: JournalIndex, { record = [], fence = [], append = [], reserve: wanted }: WriteBatch): Written | undefined {
  const recorded = record.filter((entry) => !index.entries.has(entry.slot) && !findDuplicate(index, entry));
  const fenced = fence.filter((id) => !index.committed.has(id) && !index.fenced.has(id));
  const appended = append.filter(({ slot }) => !index.entries.has(slot));
  const attempted = wanted && findReservation(index, wanted.claim, wanted.attempt) === undefined;
  if (recorded.length + fenced.length + appended.length === 0 && !attempted) return undefined;
  return {
    v: 1,
    kind: 'written',
    ...(recorded.length > 0 && { recorded }),
    ...(fenced.length > 0 && { fenced }),
    ...(appended.length > 0 && { appended }),
    ...(attempted && { reserved: { ...wanted.claim, attempt: wanted.attempt } }),
  };
}

/** The outcome of a batch, by the index that has its line. */
export function toOutcome(index: JournalIndex, { record = [], fence = [], reserve: wanted }: WriteBatch): Applied {
  return {
    recorded: record.map((entry) => {
      const duplicate = findDuplicate(index, entry);
      return duplicate ? { duplicate } : {};
    }),
    fenced: fence.map((id) => {
      const committed = index.committed.get(id);
      return committed ? { id, status: 'committed', result: committed.result } : { id, status: 'fenced' };
    }),
    ...(wanted && { reservation: findReservation(index, wanted.claim, wanted.attempt) ?? { status: 'conflict' } }),
  };
}

/** Undefined while this attempt has reserved nothing and could. */
function findReservation(index: JournalIndex, claim: EffectClaim, attempt: string): Reservation | undefined {
  const settled = findSettlement(index, claim);
  const reserved = index.reserved.get(claim.id);
  if (settled || !reserved) return settled;
  if (reserved.hash !== claim.hash) return { status: 'conflict' };
  const earlier = reserved.attempts.indexOf(attempt);
  return earlier < 0 ? undefined : { status: 'reserved', earlier };
}

/** How an effect ended; undefined while nothing is settled. */
export function findSettlement(index: JournalIndex, { id, hash }: EffectClaim): Commitment | undefined {
  if (index.fenced.has(id)) return { status: 'fenced' };
  const committed = index.committed.get(id);
  if (!committed) return undefined;
  return committed.hash === hash ? { status: 'committed', result: committed.result } : { status: 'conflict' };
}

function putItems(index: JournalIndex, items: readonly ItemRecord[]): void {
  const records = recordsIn(index, 'items');
  for (const item of items) if (!records.has(item.id)) records.set(item.id, JSON.stringify(item));
}

function foldRecords(index: JournalIndex, line: RecordsLine): void {
  const records = recordsIn(index, line.collection);
  if (line.changes.some(([id, before, after]) => ![before, after].includes(records.get(id) ?? ''))) return;
  for (const [id, , after] of line.changes) {
    if (after === '') records.delete(id);
    else records.set(id, after);
  }
}

export function recordsIn({ records }: JournalIndex, collection: string): Map<string, string> {
  const found = records.get(collection) ?? new Map<string, string>();
  records.set(collection, found);
  return found;
}

/** The first message with this entry's id, if it is in another slot or turn. */
function findDuplicate(index: JournalIndex, entry: Entry): { readonly turn: string; readonly slot: number } | undefined {
  const first = entry.messageId === undefined ? undefined : index.messages.get(entry.messageId);
  return first === undefined || (first.slot === entry.slot && first.turn === entry.turn) ? undefined : first;
}

/** Answers with those whose slot was empty. */
function put(index: JournalIndex, entries: readonly Entry[]): readonly Entry[] {
  return entries.filter((entry) => {
    const { slot, turn, messageId } = entry;
    if (index.entries.has(slot)) return false;
    index.entries.set(slot, entry);
    if (messageId !== undefined && !index.messages.has(messageId)) index.messages.set(messageId, { turn, slot });
    index.last = Math.max(index.last, slot);
    return true;
  });
}

/** Ends where slots still can be counted: a damaged range must not be walked for ever. */
function isRange(value: unknown): value is SlotRange {
  const [first, last] = Array.isArray(value) ? (value as unknown[]) : [];
  return Number.isSafeInteger(first) && Number.isSafeInteger(last) && (last as number) - (first as number) < MAX_SLOTS;
}

function decodeLine(text: string): JournalLine | undefined {
  const value = decodeJson(text);
  if (typeof value !== 'object' || value === null) return undefined;
  const line = value as { readonly [field: string]: unknown };
  if (line.v !== 1) return undefined;
  return hasItsFields(line) ? (value as JournalLine) : undefined;
}

/** The one place where a line becomes ours. */
function hasItsFields(line: { readonly [field: string]: unknown }): boolean {
  switch (line.kind) {
    case 'written':
      return areEntries(line.recorded ?? []) && isTexts(line.fenced ?? []) && areEntries(line.appended ?? []) && isAttempt(line.reserved);
    case 'committed':
      return (
        typeof line.id === 'string' &&
        typeof line.hash === 'string' &&
        line.result !== undefined &&
        areEntries(line.entries) &&
        areItems(line.items ?? [])
      );
    case 'records':
      return (
        typeof line.collection === 'string' && Array.isArray(line.changes) && line.changes.every((one) => isTexts(one) && one.length === 3)
      );
    case 'paid':
      return typeof line.id === 'string';
    case 'away':
      return Number.isSafeInteger(line.last) && Array.isArray(line.messages) && line.messages.every(isAwayMessage);
    case 'archived':
    case 'restored':
      return Number.isSafeInteger(line.move) && Array.isArray(line.slots) && line.slots.every(isRange);
    default:
      return false;
  }
}

function isAwayMessage(value: unknown): boolean {
  return Array.isArray(value) && typeof value[0] === 'string' && typeof value[1] === 'string' && Number.isSafeInteger(value[2]);
}

function areEntries(value: unknown): boolean {
  return Array.isArray(value) && value.every(isEntry);
}

function areItems(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => itemRecordSchema.safeParse(item).success);
}

function isAttempt(value: unknown): boolean {
  if (value === undefined) return true;
  if (typeof value !== 'object' || value === null) return false;
  const { id, hash, attempt } = value as { readonly [field: string]: unknown };
  return typeof id === 'string' && typeof hash === 'string' && typeof attempt === 'string';
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((text) => typeof text === 'string');
}
