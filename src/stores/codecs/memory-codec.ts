/** Episodes and facts as text, the seed's fields first. An unreadable one is undefined, never an exception (stores/foreign-is-skipped). */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { SlotRange } from '../../records/slots.js';
import {
  compactionRecordSchema,
  episodeLinksSchema,
  foldedFact,
  readEpisodicItem,
  readSemanticItem,
  type SemanticItem,
} from '../../records/memory/items.js';
import { decodeJson } from './entry-codec.js';
import type { EpisodeRecord, FactSource } from '../store.js';

/** A fact as it is kept: with all batches that brought it, oldest first. */
export interface KeptFact extends SemanticItem {
  /** null: of whichever namespace reads it. */
  readonly namespace: string | null;
  readonly batches: readonly string[];
  readonly source: FactSource | null;
  /** Absent: it counts. Else by which fact, in which batch, and when it was replaced. */
  readonly replaced?: z.output<typeof replacedSchema>;
}

const replacedSchema = z.object({ by: z.string().nullable(), batch: z.string(), ts: z.number().nonnegative() });

export function encodeEpisode({ id, ts, turn_ids, summary, tags, salience, session, epoch, slots, made, ...links }: EpisodeRecord): string {
  const beside = { session, epoch, slots, ...(made && { made }), ...episodeLinksSchema.parse(links) };
  return JSON.stringify({ id, ts, turn_ids, summary, tags, salience, ...beside, v: 1 });
}

export function decodeEpisode(text: string | null | undefined): EpisodeRecord | undefined {
  const value = decodeJson(text);
  const item = readEpisodicItem(value);
  if (!item) return undefined;
  const { session, epoch, slots, made, v } = value as { readonly [field in keyof EpisodeRecord | 'v']?: unknown };
  if (v !== 1 || !isNumber(session) || !isNumber(epoch) || !Array.isArray(slots) || !slots.every(isRange)) return undefined;
  // One that cannot be read takes nothing of the episode with it.
  const how = compactionRecordSchema.safeParse(made).data;
  return { ...item, session, epoch, slots, ...(how && { made: how }), ...episodeLinksSchema.safeParse(value).data };
}

export function encodeFact({ id, ts, fact, tags, confidence, salience, namespace, batches, source, replaced }: KeptFact): string {
  return JSON.stringify({ id, ts, fact, tags, confidence, salience, namespace, batches, source, ...(replaced && { replaced }), v: 1 });
}

export function decodeFact(text: string | null | undefined): KeptFact | undefined {
  return toFact(decodeJson(text));
}

/** A record with the seed's fields alone is a fact too: a person may have written it, or brought it from elsewhere. */
export function toFact(value: unknown): KeptFact | undefined {
  const item = readSemanticItem(value);
  if (!item) return undefined;
  const record = value as { readonly [field in keyof KeptFact | 'v']?: unknown };
  const { namespace = null, batches = [], source = null, v = 1 } = record;
  if (v !== 1 || !isTexts(batches) || !(namespace === null || typeof namespace === 'string') || !isSource(source)) return undefined;
  const replaced = replacedSchema.safeParse(record.replaced).data;
  return { ...item, namespace, batches, source, ...(replaced && { replaced }) };
}

/** The same for two facts with the same words. */
export function factHash(fact: string): string {
  return createHash('sha256').update(foldedFact(fact)).digest('hex');
}

function isSource(value: unknown): value is FactSource | null {
  if (value === null) return true;
  const { conversation, turn_ids } = (typeof value === 'object' ? value : {}) as { readonly [field in keyof FactSource]?: unknown };
  return typeof conversation === 'string' && isTexts(turn_ids);
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((text) => typeof text === 'string');
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value);
}

function isRange(value: unknown): value is SlotRange {
  return Array.isArray(value) && value.length === 2 && value.every(isNumber);
}
