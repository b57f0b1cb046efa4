/**
 * Which passages answer a question best: BM25 over passages, then their neighbours, the time and the speaker that it names.
 * One pass over each word's passages and one over all: no shape of a question makes it longer.
 *
 * @rule search/indexes-rank-as-one: Several indexes that have no passage in common rank as one that has all, except for neighbours at their
 *   borders: each counts first (scan.ts), and then ranks by the counts of all. (test: test/search/rank.test.ts)
 */
import { planQuestion, type Plan } from './question.js';
import { addCounts, compareHits, countIn, rankIn, withoutDoubles, type Hit, type Query } from './scan.js';
import { spokenLanguages, sumFacts, type Facts, type SearchIndex } from './search-index.js';
import type { Analyzer } from './analysis.js';
import { BOUNDS } from './weights.js';

export type { Hit, Query } from './scan.js';

/** Best first; of equal ones the newer. The same text of the same time is one hit. */
export function search(indexes: SearchIndex | readonly SearchIndex[], query: Query): Hit[] {
  const all = [indexes].flat();
  const facts = sumFacts(all.map((index) => index.facts()));
  const plan = planFor(facts, query, all[0]?.analyzer);
  if (!plan) return [];
  const counted = all.map((index) => countIn(index, plan, facts));
  const scan = { query, plan, all: { ...facts, ...counted.map(({ counts }) => counts).reduce(addCounts) } };
  return selectBest(
    all.map((index, i) => rankIn(index, scan, counted[i]?.occurrences)),
    query,
  );
}

/** Undefined where nothing can be found. `all`: of all indexes that are searched together. */
export function planFor(all: Facts, { question, now, limit = 1 }: Query, analyzer: Analyzer | undefined): Plan | undefined {
  if (all.passages === 0 || limit < 1 || !analyzer) return undefined;
  return planQuestion(question, { now, languages: spokenLanguages(all), analyzer });
}

/** Of what each index has found. */
export function selectBest(found: readonly (readonly Hit[])[], { limit = 10 }: Query): Hit[] {
  return withoutDoubles(found.flat().sort(compareHits)).slice(0, Math.min(limit, BOUNDS.hits));
}
