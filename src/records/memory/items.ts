/**
 * What is remembered beyond the raw traces, in the seed's format (seed 000, sections 6 and 21): summaries of blocks of turns, and
 * facts. The schemas read back what a store holds; what does not meet them is foreign or damaged, and its reader counts it.
 */
import { z } from 'zod';
import type { Episode, EpisodeLinks, Fact } from '../episodes.js';

/** A summary of a block of turns: `ep_0001`, salience 0 to 1. */
export type EpisodicItem = Episode;

/** A stable fact, preference, constraint or decision: `sem_0001`, confidence and salience 0 to 1. */
export type SemanticItem = Fact;

const share = z.number().min(0).max(1);
const seconds = z.number().nonnegative();
const texts = z.array(z.string());

export const episodicItemSchema = z.object({
  id: z.string().regex(/^ep_\d{4,}$/),
  ts: seconds,
  turn_ids: texts,
  summary: z.string(),
  tags: texts,
  salience: share,
});

export const semanticItemSchema = z.object({
  id: z.string().regex(/^sem_\d{4,}$/),
  ts: seconds,
  fact: z.string(),
  tags: texts,
  confidence: share,
  salience: share,
});

/** What stands beside the seed's fields. */
export const episodeLinksSchema = z.object({
  supersedes: z.array(z.string().max(40)).max(1_000).optional(),
  fold: z.object({ text: z.string(), through: z.string().max(40) }).optional(),
  task: z
    .object({
      goal: z.string().max(4_000),
      openTasks: z.array(z.string().max(4_000)).max(100),
      goalFrom: z.enum(['beginning', 'summary']).optional(),
      tasksFrom: z.literal('summary').optional(),
    })
    .optional(),
  about: z.tuple([seconds, seconds]).optional(),
  files: z
    .array(z.object({ slot: z.int().positive(), turn: z.string().max(40), count: z.int().positive() }))
    .max(100)
    .optional(),
});

/** How an episode was made. */
export const compactionRecordSchema = z.object({
  inputsHash: z.string().max(128),
  compactor: z.string().max(100),
  method: z.enum(['model', 'repaired', 'rules', 'compactor']),
  model: z.string().max(200),
  failure: z.string().max(2_000).optional(),
  tools: texts.optional(),
  tokensBefore: z.number().nonnegative(),
  tokensAfter: z.number().nonnegative(),
});

/** Undefined for what is none; fields that the seed does not name are left out. */
export function readEpisodicItem(value: unknown): EpisodicItem | undefined {
  return episodicItemSchema.safeParse(value).data;
}

/** Undefined for what is none; fields that the seed does not name are left out. */
export function readSemanticItem(value: unknown): SemanticItem | undefined {
  return semanticItemSchema.safeParse(value).data;
}

/** `ep_0001` for 1. */
export function episodicId(number: number): string {
  return `ep_${String(number).padStart(4, '0')}`;
}

/** `sem_0001` for 1. */
export function semanticId(number: number): string {
  return `sem_${String(number).padStart(4, '0')}`;
}

/** Those that count: without the ones that another of them stands for. */
export function withoutSuperseded<Item extends Pick<Episode, 'id'> & EpisodeLinks>(episodes: readonly Item[]): Item[] {
  const gone = new Set(episodes.flatMap(({ supersedes = [] }) => supersedes));
  return episodes.filter(({ id }) => !gone.has(id));
}

/** The number in an id of either kind; 0 for anything else. */
export function itemNumber(id: string): number {
  return Number(/^(?:ep|sem)_(\d{4,})$/.exec(id)?.[1] ?? 0);
}

/** Two facts with the same words are the same fact: spaces at the ends do not count, and several count as one. */
export function foldedFact(fact: string): string {
  return fact.trim().replace(/\s+/g, ' ');
}

/** Newest first; of the same time the higher number first. */
export function byAge(a: { readonly ts: number; readonly id: string }, b: { readonly ts: number; readonly id: string }): number {
  return b.ts - a.ts || itemNumber(b.id) - itemNumber(a.id);
}

/** Most salient first, then newest (design section 4). */
export function bySalience(a: SemanticItem, b: SemanticItem): number {
  return b.salience - a.salience || byAge(a, b);
}

/** How much of a conversation a prompt shows after a compaction (seed 000, section 19), where an agent does not set it. */
export const RAW_TAIL_TURNS = 4;
export const MAX_EPISODIC_ITEMS = 3;
export const MAX_SEMANTIC_ITEMS = 20;

/** How much of the memory stands before the messages. */
export interface ShownMemory {
  readonly maxEpisodic: number;
  readonly maxSemantic: number;
}
