/** Records beside MEMORY.md and HISTORY, as text. An unreadable one is undefined, never an exception (stores/foreign-is-skipped). */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { HistoryEntry, MemoryChange, Proposal, Tombstone } from '../../records/memory/documents.js';
import { NO_MEMORY_VERSION } from '../../records/memory/memory-lines.js';
import { decodeJson } from './entry-codec.js';
import { DocumentRefused, MAX_MEMORY } from '../store.js';

const sourceSchema = z.object({
  trust: z.union([z.enum(['user', 'model', 'person']), z.templateLiteral(['tool:', z.string()])]),
  conversation: z.string().optional(),
  turn_ids: z.array(z.string()).optional(),
  tools: z.array(z.string()).optional(),
});

const lineSchema = z.object({ line: z.string(), source: sourceSchema });

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

export const proposalSchema = lineSchema.extend({
  id: z.string().regex(/^prop_\d{4,}$/),
  ts: z.number(),
  state: z.enum(['open', 'accepted', 'rejected']),
}) satisfies z.ZodType<Proposal>;

const tombstoneSchema = z.object({ id: z.string(), ts: z.number(), words: z.array(z.string()) }) satisfies z.ZodType<Tombstone>;

const versionOne = z.object({ v: z.literal(1) });

export function encodeRecord(record: object): string {
  return JSON.stringify({ ...record, v: 1 });
}

/** Undefined also for what a newer program wrote. */
export function decodeRecord<T>(schema: z.ZodType<T>, text: string | null | undefined): T | undefined {
  return toRecord(schema, decodeJson(text));
}

export function toRecord<T>(schema: z.ZodType<T>, value: unknown): T | undefined {
  return versionOne.safeParse(value).success ? schema.safeParse(value).data : undefined;
}

export const toChange = (text: string | null | undefined): MemoryChange | undefined => decodeRecord(changeSchema, text);
export const toEntry = (text: string | null | undefined): HistoryEntry | undefined => decodeRecord(entrySchema, text);
export const toTombstone = (text: string | null | undefined): Tombstone | undefined => decodeRecord(tombstoneSchema, text);

/** `prop_0001` for 1. */
export function proposalId(number: number): string {
  return `prop_${String(number).padStart(4, '0')}`;
}

export function proposalNumber({ id }: Pick<Proposal, 'id'>): number {
  return Number(id.slice('prop_'.length));
}

export function byTime(a: Tombstone, b: Tombstone): number {
  return a.ts - b.ts || (a.id < b.id ? -1 : 1);
}

export function refuseLongMemory(scope: string, text: string): void {
  const bytes = Buffer.byteLength(text);
  if (bytes <= MAX_MEMORY) return;
  throw new DocumentRefused(
    `cannot write the MEMORY.md of ${scope}: it would have ${bytes} bytes, at most ${MAX_MEMORY} are kept; shorten it`,
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

export function redactChange<Change extends MemoryChange>(change: Change, redact: (line: string) => string): Change {
  return { ...change, lines: change.lines.map((each) => ({ ...each, line: redact(each.line) })) };
}

/** Names the bytes of a MEMORY.md. */
export function memoryVersion(text: string): string {
  return text === '' ? NO_MEMORY_VERSION : createHash('sha256').update(text).digest('hex').slice(0, 16);
}
