/**
 * Records and long texts, the same in every store. An unreadable one is undefined, never an exception (stores/foreign-is-skipped). An
 * unreadable entry counts as an empty slot: writing it again heals it.
 */
import { hash } from 'node:crypto';
import { z } from 'zod';
import { type HistoryEntry, type MemoryChange, type MemoryText, newLines, NO_MEMORY_VERSION } from '../records/memory/documents.js';
import type { BodyRef, Entry } from '../records/message.js';
import { DocumentRefused, MAX_MEMORY } from './store.js';

const ROLES: readonly unknown[] = ['user', 'assistant', 'tool'];

export function encodeEntry(entry: Entry): string {
  return JSON.stringify(entry);
}

export function decodeEntry(text: string | null | undefined): Entry | undefined {
  const value = decodeJson(text);
  return isEntry(value) ? value : undefined;
}

/** Looks as deep as stores and traces rely on; the inside of a message is its writer's. */
export function isEntry(value: unknown): value is Entry {
  if (typeof value !== 'object' || value === null) return false;
  const entry = value as { readonly [field in keyof Entry]?: unknown };
  const message = entry.message as { readonly role?: unknown } | null | undefined;
  return (
    entry.v === 1 &&
    Number.isSafeInteger(entry.slot) &&
    typeof entry.turn === 'string' &&
    typeof entry.seq === 'number' &&
    typeof message === 'object' &&
    message !== null &&
    ROLES.includes(message.role)
  );
}

/** JSON or undefined; JSON itself cannot express undefined, so the two never mix. */
export function decodeJson(text: string | null | undefined): unknown {
  if (text === null || text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const sourceSchema = z.object({
  trust: z.union([z.enum(['user', 'model', 'person', 'file', 'application']), z.templateLiteral(['tool:', z.string()])]),
  conversation: z.string().optional(),
  turn_ids: z.array(z.string()).optional(),
  tools: z.array(z.string()).optional(),
});

export const lineSchema = z.object({ line: z.string(), source: sourceSchema });

export const changeSchema = z.object({
  id: z.string(),
  ts: z.number(),
  cause: z.enum(['consolidation', 'hand', 'accepted', 'forgotten', 'care']),
  from: z.string(),
  version: z.string(),
  lines: z.array(lineSchema),
}) satisfies z.ZodType<MemoryChange>;

export const entrySchema = z.object({
  id: z.string(),
  kind: z.enum(['summary', 'raw-fallback']),
  ts: z.number(),
  text: z.string(),
}) satisfies z.ZodType<HistoryEntry>;

const versionOne = z.object({ v: z.literal(1) });

export function encodeRecord(record: object): string {
  return JSON.stringify({ ...record, v: 1 });
}

/** Undefined also for what a newer program wrote. */
export function decodeRecord<T>(schema: z.ZodType<T>, text: string | null | undefined): T | undefined {
  const value = decodeJson(text);
  return versionOne.safeParse(value).success ? schema.safeParse(value).data : undefined;
}

export const toChange = (text: string | null | undefined): MemoryChange | undefined => decodeRecord(changeSchema, text);
export const toEntry = (text: string | null | undefined): HistoryEntry | undefined => decodeRecord(entrySchema, text);

/** A person's edit from `before` to `after`, at `ts`, as the change after `count` others, of which `last` is the newest. */
export function toHandChange(
  before: MemoryText,
  after: MemoryText,
  { ts, count, last }: { readonly ts: number; readonly count: number; readonly last: MemoryChange | undefined },
): MemoryChange {
  return {
    // With its number: the same text may come back later.
    id: `hand/${after.version}/${count + 1}`,
    // A file may be older than the last change, put back from a copy.
    ts: Math.max(ts, last?.ts ?? 0),
    cause: 'hand',
    from: before.version,
    version: after.version,
    lines: newLines(before.text, after.text).map((line) => ({ line, source: { trust: 'person' } })),
  };
}

export function refuseLongMemory(scope: string, text: string): void {
  const bytes = Buffer.byteLength(text);
  if (bytes <= MAX_MEMORY) return;
  throw new DocumentRefused(
    `cannot write the MEMORY.md of ${scope}: it would have ${bytes} bytes, at most ${MAX_MEMORY} are written; shorten it`,
  );
}

/** Byte for byte: replacement characters written back would destroy what stood there. `where` is for people. */
export function toMemoryText(where: string, bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new DocumentRefused(`cannot read ${where}: it is not UTF-8; save it as UTF-8 with an editor, or move it away`, { cause });
  }
}

/** Line by line; line ends stay. */
export function redactText(text: string, redact: (line: string) => string): string {
  return text.replace(/[^\r\n]+/g, (line) => redact(line));
}

/** A record without some words: as it was where none of them are in it. What cannot be read has words too. */
export function redactRecord<T extends object>(
  schema: z.ZodType<T>,
  text: string,
  redact: (line: string) => string,
  change: (record: T) => T,
): string {
  const record = decodeRecord(schema, text);
  if (!record) return redact(text);
  const after = encodeRecord(change(record));
  return after === encodeRecord(record) ? text : after;
}

export function redactChange<Change extends MemoryChange>(change: Change, redact: (line: string) => string): Change {
  return { ...change, lines: change.lines.map((each) => ({ ...each, line: redact(each.line) })) };
}

const PREVIEW_CHARACTERS = 400;

/** Refers to a long text by its content, so the same text put twice is one body. */
export function toBodyRef(text: string): BodyRef {
  const sha256 = hash('sha256', text);
  return { ref: `sha256:${sha256}`, sha256, bytes: Buffer.byteLength(text), preview: beginning(text) };
}

/** The hash inside a ref; undefined for anything else, so that no ref becomes a path. */
export function hashInRef(ref: string): string | undefined {
  return /^sha256:([0-9a-f]{64})$/.exec(ref)?.[1];
}

/** The text, if it is the one that `sha256` names: a damaged body is no body. */
export function verified(text: string | null | undefined, sha256: string): string | undefined {
  return typeof text === 'string' && hash('sha256', text) === sha256 ? text : undefined;
}

/** Never ends in half of a surrogate pair. */
function beginning(text: string): string {
  const cut = text.slice(0, PREVIEW_CHARACTERS);
  return cut.length < text.length && /[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut;
}

/** Names the bytes of a MEMORY.md. */
export function memoryVersion(text: string): string {
  return text === '' ? NO_MEMORY_VERSION : hash('sha256', text).slice(0, 16);
}
