/**
 * The seed's flat layout (seed 000, section 7.1): a conversation and what its scope knows as five files.
 *
 * - The four `.jsonl` files have exactly the seed's fields, so that any program of the seed can read them and write them.
 * - `perdura.json` has the rest. It is of use only beside the traces that it was written with, which it knows by their SHA-256: if they
 *   changed since, or the file is missing, the traces alone count.
 * - A damaged or foreign line is skipped and named; the rest is read.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { isDeeperThan } from '../../conversation/protocol/schema.js';
import { countSlots, listSlots, toRanges, type SlotRange } from '../../records/slots.js';
import type { EpisodeRecord, FactRecord } from '../../stores/store.js';
import {
  compactionRecordSchema,
  episodeLinksSchema,
  itemNumber,
  readEpisodicItem,
  type EpisodicItem,
  readSemanticItem,
  semanticItemSchema,
  type SemanticItem,
} from '../../records/memory/items.js';
import type { PastLife } from '../past-life.js';
import { HIGHEST_SLOT, readEntry, withoutRefs, seedLine, seedTraceSchema, toEntries, toSeedLines, type SeedTrace } from './seed-trace.js';

export const LAYOUT_FILES = ['raw_traces.jsonl', 'raw_traces_archive.jsonl', 'episodic.jsonl', 'semantic.jsonl', 'perdura.json'] as const;
export type LayoutFile = (typeof LAYOUT_FILES)[number];

/** What a layout is of. */
export interface LayoutOrigin {
  readonly conversation: string;
  readonly scope: string;
  readonly agent: string | null;
  readonly title: string | null;
}

export type ImportedFact = SemanticItem & Pick<FactRecord, 'source' | 'replaced'>;

export interface ReadLayout {
  readonly origin: LayoutOrigin | undefined;
  readonly life: PastLife;
  readonly facts: readonly ImportedFact[];
  /** What was not read, and its place. */
  readonly problems: readonly string[];
}

export function toLayout(origin: LayoutOrigin, life: PastLife, facts: readonly FactRecord[]): Record<LayoutFile, string> {
  const archived = new Set(listSlots(life.archived));
  const entries = life.entries.map(withoutRefs);
  const active = lines(entries.filter(({ slot }) => !archived.has(slot)).flatMap(toSeedLines));
  const archive = lines(entries.filter(({ slot }) => archived.has(slot)).flatMap(toSeedLines));
  const episodes = [...life.episodes].sort(byNumber);
  const known = facts.filter(({ replaced }) => !replaced).sort(byNumber);
  const old = facts.filter(({ replaced }) => replaced).sort(byNumber);
  const head = {
    v: 1,
    ...origin,
    sha256: { 'raw_traces.jsonl': hashText(active), 'raw_traces_archive.jsonl': hashText(archive) },
    archived: life.archived,
    episodes: episodes.map(({ ts: _ts, turn_ids: _turns, summary: _summary, tags: _tags, salience: _salience, ...beside }) => beside),
    facts: known.map(({ id, source }) => ({ id, source })),
    // No other program would know that they count no longer.
    replaced: old.map(({ batch: _, ...fact }) => fact),
  };
  return {
    'raw_traces.jsonl': active,
    'raw_traces_archive.jsonl': archive,
    'episodic.jsonl': lines(
      episodes.map(({ id, ts, turn_ids, summary, tags, salience }) => seedLine({ id, ts, ...{ turn_ids, summary, tags, salience } })),
    ),
    'semantic.jsonl': lines(
      known.map(({ id, ts, fact, tags, confidence, salience }) => seedLine({ id, ts, ...{ fact, tags, confidence, salience } })),
    ),
    // One entry a line, for people who compare two of them.
    'perdura.json': `${JSON.stringify(head).slice(0, -1)},"entries":[\n${entries.map((entry) => JSON.stringify(entry)).join(',\n')}\n]}\n`,
  };
}

/** Of each file its text, where it is there. */
export function readLayout(files: Readonly<Partial<Record<LayoutFile, string>>>): ReadLayout {
  const problems: string[] = [];
  const side = readSide(files, problems);
  const items = readLines(files, 'episodic.jsonl', readEpisodicItem, problems);
  const turns = new Map<string, string>();
  const life = (side && readLife(side, problems)) ?? lifeOfTraces(files, { items, turns }, problems);
  const about = new Map(side?.episodes.map((episode) => [episode.id, episode]));
  const sources = new Map(side?.facts.map(({ id, source }) => [id, source]));
  const episodes = items.map((item, at): EpisodeRecord => {
    const turn_ids = item.turn_ids.map((id) => turns.get(id) ?? id);
    return { session: 1, epoch: at + 1, slots: [], ...about.get(item.id), ...item, turn_ids };
  });
  const facts = readLines(files, 'semantic.jsonl', readSemanticItem, problems);
  return {
    origin: side,
    life: { ...life, episodes: episodes.sort(byNumber).reverse(), skipped: 0 },
    facts: [...facts.map((fact) => ({ ...fact, source: sources.get(fact.id) ?? null })), ...(side?.replaced ?? [])].sort(byNumber),
    problems,
  };
}

const slot = z.number().int().min(1).max(HIGHEST_SLOT);
const ranges = z
  .array(z.tuple([slot, slot]).refine(([from, to]) => from <= to))
  .max(10_000)
  // Each slot once at most: a few bytes could name billions otherwise.
  .refine((all) => countSlots(all) <= HIGHEST_SLOT);
const source = z
  .object({ conversation: z.string().max(200), turn_ids: z.array(z.string()), tools: z.array(z.string().max(200)).max(1_000).optional() })
  .nullable();
const sideSchema = z.object({
  v: z.literal(1),
  conversation: z.string().max(200),
  scope: z.string().max(200),
  agent: z.string().max(200).nullable(),
  title: z.string().max(2000).nullable(),
  sha256: z.object({ 'raw_traces.jsonl': z.string(), 'raw_traces_archive.jsonl': z.string() }),
  archived: ranges,
  episodes: z.array(
    episodeLinksSchema.extend({
      id: z.string(),
      session: z.number().int(),
      epoch: z.number().int(),
      slots: ranges,
      made: compactionRecordSchema.optional(),
    }),
  ),
  facts: z.array(z.object({ id: z.string(), source })),
  replaced: z
    .array(semanticItemSchema.extend({ source, replaced: z.object({ by: z.string().max(40).nullable(), ts: z.number().nonnegative() }) }))
    .default([]),
  entries: z.array(z.unknown()),
});
type Side = z.output<typeof sideSchema>;

function readSide(files: Readonly<Partial<Record<LayoutFile, string>>>, problems: string[]): Side | undefined {
  const text = files['perdura.json'];
  if (text === undefined) return undefined;
  const { data } = sideSchema.safeParse(parsed(text));
  if (!data) problems.push('perdura.json is damaged or of another version: only what the other files say is read');
  if (!data) return undefined;
  for (const name of ['raw_traces.jsonl', 'raw_traces_archive.jsonl'] as const) {
    if (hashText(files[name] ?? '') === data.sha256[name]) continue;
    problems.push(`${name} is not as it was exported: messages are read from the traces alone, without what only perdura.json knows`);
    return undefined;
  }
  return data;
}

function readLife({ entries: given, archived }: Side, problems: string[]): Pick<PastLife, 'entries' | 'archived'> {
  const entries = new Map<number, PastLife['entries'][number]>();
  for (const [at, value] of given.entries()) {
    const entry = isDeeperThan(value, DEPTH) ? undefined : readEntry(value);
    if (entry !== undefined && !entries.has(entry.slot)) entries.set(entry.slot, entry);
    else problems.push(`perdura.json entry ${at + 1}: ${entry === undefined ? 'not an entry' : `slot ${entry.slot} is there already`}`);
  }
  return { entries: [...entries.values()], archived: archived as SlotRange[] };
}

/** Stand-ins for turns that only summaries tell of: more of them are no conversation. */
const MAX_SUMMARIZED = 10_000;

/** `turns`: gets the numbers of the turns. */
function lifeOfTraces(
  files: Readonly<Partial<Record<LayoutFile, string>>>,
  { items, turns }: { readonly items: readonly EpisodicItem[]; readonly turns: Map<string, string> },
  problems: string[],
): Pick<PastLife, 'entries' | 'archived'> {
  const read = (name: LayoutFile): SeedTrace[] => readLines(files, name, (value) => seedTraceSchema.safeParse(value).data, problems);
  const old = read('raw_traces_archive.jsonl');
  // Together, so that a turn that is in both is one turn; the archived ones are the first of them.
  const active = read('raw_traces.jsonl');
  // The archive is optional (seed 000): its summaries are not.
  const there = new Set([...old, ...active].map(({ turn_id }) => turn_id));
  const told = [...items].sort(byNumber).flatMap(({ turn_ids }) => turn_ids);
  const ids = [...new Set(told)].filter((id) => !there.has(id)).slice(0, MAX_SUMMARIZED);
  const [first] = [...old, ...active, ...items];
  const summarized = first && ids.length > 0 ? { ids, ts: first.ts } : undefined;
  const entries = toEntries([...old, ...active], { summarized, turns });
  return {
    entries,
    archived: toRanges(toEntries(old, { summarized }).map(({ slot: at }) => at)),
  };
}

/** Levels of nesting in what comes in. */
const DEPTH = 64;
export const MAX_LINE = 16 * 1024 * 1024;

function readLines<T>(
  files: Readonly<Partial<Record<LayoutFile, string>>>,
  name: LayoutFile,
  read: (value: unknown) => T | undefined,
  problems: string[],
): T[] {
  const items: T[] = [];
  for (const [at, line] of (files[name] ?? '').split('\n').entries()) {
    if (line.trim() === '') continue;
    const value = line.length > MAX_LINE ? undefined : parsed(line);
    const item = value === undefined || isDeeperThan(value, DEPTH) ? undefined : read(value);
    if (item !== undefined) items.push(item);
    else problems.push(`${name} line ${at + 1}: ${line.length > MAX_LINE ? 'too long' : whatIsWrong(value)}`);
  }
  return items;
}

function whatIsWrong(value: unknown): string {
  return value === undefined ? 'not JSON' : "without the seed's fields";
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function byNumber(a: { readonly id: string }, b: { readonly id: string }): number {
  return itemNumber(a.id) - itemNumber(b.id);
}

function lines(texts: readonly string[]): string {
  return texts.map((text) => `${text}\n`).join('');
}

function hashText(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
