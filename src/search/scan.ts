/**
 * What one index has for a question: first how often it has the words, then which of its passages are best by the counts of all the
 * indexes that are searched together (search/indexes-rank-as-one).
 *
 * @rule search/indexes-rank-as-one: Several indexes that have no passage in common rank as one that has all, except for neighbours at their
 *   borders: each counts first, and then ranks by the counts of all. (test: test/search/rank.test.ts)
 */
import { ASKS, DATED, KINDS, type Kind, type Line } from './passage-table.js';
import { planQuestion, rangesIn, type Plan } from './question.js';
import { spokenLanguages, sumFacts, type Facts, type SearchIndex } from './search-index.js';
import type { Analyzer } from './analysis.js';
import type { Similarity } from './vector-index.js';
import { BOUNDS, SURE, WEIGHTS, type Weights } from './weights.js';
import { folded, splitWords } from './words.js';

export interface Query {
  readonly question: string;
  /** The asker's clock, in epoch seconds. */
  readonly now: number;
  /** 10 without it; at most BOUNDS.hits. */
  readonly limit?: number;
  /** Epoch seconds: messages of that time or later. */
  readonly after?: number;
  /** Epoch seconds: messages before it. */
  readonly before?: number;
  readonly kinds?: readonly Kind[];
  readonly lines?: (name: string) => boolean;
  readonly weights?: Weights;
  /** How like the question texts are. */
  readonly similarity?: Similarity;
}

export interface Hit {
  readonly line: string;
  readonly at: number;
  readonly part: number;
  readonly start: number;
  readonly end: number;
  readonly ts: number;
  readonly session: number;
  readonly kind: Kind;
  readonly speaker: string | undefined;
  readonly hash: number;
  readonly score: number;
  /** The part of the score that the hit's words give: 0 where all is its neighbours'. */
  readonly words: number;
  /** From 0 to 1: how much of the question its words are, by how rare they are; little in a hit whose words are all usual. */
  readonly confidence: number;
}

export interface Counts {
  /** Passages that have each of the plan's words, in whatever form. */
  readonly found: readonly number[];
  /** Passages that have each of the words for the days that the question names. */
  readonly mentions: readonly number[];
  /** Passages of that time. */
  readonly then: number;
}

/** Each `passage << 8 | times`, of each word of a plan. */
export type Occurrences = readonly Uint32Array[];

/** `all`: of all indexes that are searched together. */
export function countIn(
  index: SearchIndex,
  plan: Plan,
  all: Facts,
): { readonly counts: Counts; readonly occurrences: Occurrences; readonly isEmpty: boolean } {
  const { postings } = index;
  const occurrences = plan.words.map((variants) => findOccurrences(index, variants));
  const counts: Counts = {
    found: occurrences.map(({ length }) => length),
    mentions: plan.mentions.map((mention) => {
      const term = postings.findTerm(mention);
      return term === undefined ? 0 : postings.countPassages(term);
    }),
    then: isThenIn(index, plan, all)?.reduce((sum, flag) => sum + flag, 0) ?? 0,
  };
  return { counts, occurrences, isEmpty: ![...counts.found, ...counts.mentions, counts.then].some((count) => count > 0) };
}

export function addCounts(a: Counts, b: Counts): Counts {
  return { found: added(a.found, b.found), mentions: added(a.mentions, b.mentions), then: a.then + b.then };
}

function added(a: readonly number[], b: readonly number[]): number[] {
  return a.map((count, i) => count + (b[i] ?? 0));
}

/** The query for each index, and what all together know of it. */
export interface ScanQuery {
  readonly query: Query;
  readonly plan: Plan;
  readonly all: Facts & Counts;
}

interface Scores {
  /** About what a passage with all the words would have, those that no passage has too. */
  readonly possible: number;
  readonly words: Float32Array;
  readonly windows: Float32Array;
}

/** The best of this index, best first, in order of `compareHits` and each text once. `occurrences`: where `countIn` has read them already. */
export function rankIn(
  index: SearchIndex,
  { query, plan, all }: ScanQuery,
  occurrences: Occurrences = plan.words.map((variants) => findOccurrences(index, variants)),
): Hit[] {
  index.table.settle();
  const weights = query.weights ?? WEIGHTS;
  const scores = scoreWords(index, occurrences, all, weights);
  const times = scoreTimes(index, plan, all, weights);
  const scoreMeaning = query.similarity && scoreBySimilarity(query.similarity, scores.possible, weights);
  const speakers = namedSpeakers(index, plan);
  const best = createTopK(index, Math.min(query.limit ?? 10, BOUNDS.hits));
  const { kind, ts, session, flags, speaker, window, hash } = index.table.columns;
  const kinds = query.kinds && new Set(query.kinds.map((one) => KINDS.indexOf(one)));
  const { after = -Infinity, before = Infinity } = query;
  const finds = Boolean(weights.neighbour || weights.secondNeighbour);
  for (const line of index.table.lines) {
    if (query.lines && !query.lines(line.name)) continue;
    for (let position = 0; position < line.count; position += 1) {
      const passage = line.passages[position] ?? 0;
      const near = finds ? ofNeighbours(line, position, { words: scores.words, session, weights }) : 0;
      const time = times?.[passage] ?? 0;
      let score = (scores.words[passage] ?? 0) + near + time + (scoreMeaning?.(hash[passage] ?? 0) ?? 0);
      if (score <= 0) continue;
      if (kinds && !kinds.has(kind[passage] ?? 0)) continue;
      const at = ts[passage] ?? 0;
      if (at < after || at >= before) continue;
      score += weights.session * (scores.windows[window[passage] ?? 0] ?? 0);
      const flag = flags[passage] ?? 0;
      if ((flag & ASKS) !== 0) score *= weights.question;
      if (plan.asksWhen && (flag & DATED) !== 0) score *= weights.dated;
      if (speakers.has(speaker[passage] ?? 0)) score *= weights.speaker;
      best.offer(passage, score, line);
    }
  }
  return best.all().map(({ passage, score, line }) => {
    const words = scores.words[passage] ?? 0;
    const confidence = scores.possible === 0 ? 0 : Math.min(1, words / scores.possible) * Math.min(1, words / SURE);
    return toHit(index, { passage, score, line, words: words + (times?.[passage] ?? 0), confidence });
  });
}

/** Best first; of equal ones the newer. */
export function compareHits(a: Hit, b: Hit): number {
  return b.score - a.score || b.ts - a.ts || (passageKey(a) < passageKey(b) ? -1 : 1);
}

/** The same text of the same time is one hit. */
export function withoutDoubles<T extends Pick<Hit, 'hash' | 'ts'>>(hits: readonly T[]): T[] {
  const seen = new Set<string>();
  return hits.filter(({ hash, ts }) => {
    const text = `${hash} ${ts}`;
    return !seen.has(text) && seen.add(text);
  });
}

function passageKey({ line, at, part }: Hit): string {
  return `${line}\0${at}\0${part}`;
}

function rarity(of: number, found: number): number {
  return Math.log(1 + (of - found + 0.5) / (found + 0.5));
}

/** BM25 of each word, for passages and for windows. */
function scoreWords({ table, size }: SearchIndex, occurrences: Occurrences, all: Facts & Counts, weights: Weights): Scores {
  const words = new Float32Array(size);
  const windows = new Float32Array(table.windows);
  const { words: lengths, window } = table.columns;
  const { saturation, length } = weights;
  const mean = Math.max(1, all.words / all.passages);
  const inWindow = new Float32Array(weights.session > 0 ? table.windows : 0);
  const fixed = saturation * (1 - length);
  const byLength = (saturation * length) / mean;
  let possible = 0;
  for (const [word, values] of occurrences.entries()) {
    const idf = rarity(all.passages, all.found[word] ?? 0);
    possible += idf;
    for (let i = 0; i < values.length; i += 1) {
      const value = values[i] ?? 0;
      const passage = value >>> 8;
      const times = value & 255;
      words[passage] = (words[passage] ?? 0) + (idf * times * (saturation + 1)) / (times + fixed + byLength * (lengths[passage] ?? 0));
      if (inWindow.length > 0) {
        const at = window[passage] ?? 0;
        inWindow[at] = (inWindow[at] ?? 0) + times;
      }
    }
    if (inWindow.length === 0) continue;
    for (let i = 0; i < values.length; i += 1) {
      const at = window[(values[i] ?? 0) >>> 8] ?? 0;
      const times = inWindow[at] ?? 0;
      if (times === 0) continue;
      windows[at] = (windows[at] ?? 0) + (idf * times * (saturation + 1)) / (times + saturation);
      inWindow[at] = 0;
    }
  }
  return { words, windows, possible };
}

function findOccurrences({ postings, size }: SearchIndex, variants: readonly string[]): Uint32Array {
  const terms = new Set(variants.flatMap((variant) => postings.findTerm(variant) ?? []));
  const [first] = terms;
  if (first === undefined) return new Uint32Array(0);
  if (terms.size === 1) return postings.read(first);
  // A passage that has a word in two forms has it twice.
  const times = new Uint8Array(size);
  let different = 0;
  const lists = [...terms].map((term) => postings.read(term));
  for (const list of lists) {
    for (const value of list) {
      const passage = value >>> 8;
      if (times[passage] === 0) different += 1;
      times[passage] = Math.min(255, (times[passage] ?? 0) + (value & 255));
    }
  }
  const merged = new Uint32Array(different);
  let count = 0;
  for (const list of lists) {
    for (const value of list) {
      const passage = value >>> 8;
      if (times[passage] === 0) continue;
      merged[count++] = ((passage << 8) | (times[passage] ?? 0)) >>> 0;
      times[passage] = 0;
    }
  }
  return merged;
}

/** 1 for each passage of a time that the question names. Undefined where it names none. */
function isThenIn({ table, size }: SearchIndex, plan: Plan, { first, last }: Facts): Uint8Array | undefined {
  if (plan.days.length === 0) return undefined;
  const { ts } = table.columns;
  const isThen = new Uint8Array(size);
  for (const { from, to } of rangesIn(plan, first, last)) {
    for (let passage = 0; passage < size; passage += 1) {
      const at = ts[passage] ?? 0;
      if (at >= from && at < to) isThen[passage] = 1;
    }
  }
  return isThen;
}

/** Of the times that a question names: messages of that time, and those that mention it. Undefined where it names none. */
function scoreTimes(index: SearchIndex, plan: Plan, all: Facts & Counts, weights: Weights): Float32Array | undefined {
  const isThen = weights.time === 0 ? undefined : isThenIn(index, plan, all);
  if (!isThen) return undefined;
  const { size, postings } = index;
  const scores = new Float32Array(size);
  const mentionWeight = weights.time * rarity(all.passages, all.then);
  for (let passage = 0; passage < size; passage += 1) if (isThen[passage] === 1) scores[passage] = mentionWeight;
  for (const [i, mention] of plan.mentions.entries()) {
    const term = postings.findTerm(mention);
    if (term === undefined) continue;
    const mentioned = weights.time * rarity(all.passages, all.mentions[i] ?? 0);
    for (const value of postings.read(term)) scores[value >>> 8] = Math.max(scores[value >>> 8] ?? 0, mentioned);
  }
  return scores;
}

/** By how much more a text is like the question than all are. Undefined where too few are known to tell, or all are alike. */
function scoreBySimilarity(
  { count, mean, deviation, of }: Similarity,
  possible: number,
  weights: Weights,
): ((text: number) => number) | undefined {
  if (!(deviation > MIN_DEVIATION)) return undefined;
  const { likeFrom, likeFully } = weights;
  // Few cannot be far from their mean.
  const reach = Math.min(likeFully, Math.sqrt(count - 1)) / likeFully;
  const most = weights.meaning * Math.max(1, possible);
  return (text) => {
    const far = ((of(text) - mean) / deviation - likeFrom * reach) / ((likeFully - likeFrom) * reach);
    return far > 0 ? most * Math.min(1, far) : 0;
  };
}

/** Of similarities that are all one. */
const MIN_DEVIATION = 1e-4;

function namedSpeakers({ speakers }: SearchIndex, { spoken }: Plan): ReadonlySet<number> {
  const named = speakers.flatMap((name, i) => (splitWords(name).some(({ text }) => spoken.has(folded(text))) ? [i + 1] : []));
  return new Set(named);
}

function ofNeighbours(
  { passages, count }: Line,
  position: number,
  { words, session, weights }: { readonly words: Float32Array; readonly session: Uint32Array; readonly weights: Weights },
): number {
  const of = session[passages[position] ?? 0];
  let score = 0;
  for (let distance = 1; distance <= 2; distance += 1) {
    const weight = distance === 1 ? weights.neighbour : weights.secondNeighbour;
    if (position >= distance) {
      const before = passages[position - distance] ?? 0;
      if (session[before] === of) score += weight * (words[before] ?? 0);
    }
    if (position + distance < count) {
      const after = passages[position + distance] ?? 0;
      if (session[after] === of) score += weight * (words[after] ?? 0);
    }
  }
  return score;
}

interface Found {
  readonly passage: number;
  readonly score: number;
  readonly line: Line;
}

/** The best ones, the worst of them first at hand: a heap. */
function createTopK({ table }: SearchIndex, limit: number): { offer(passage: number, score: number, line: Line): void; all(): Found[] } {
  const { ts, hash, at, part } = table.columns;
  const place = ({ passage, line }: Found): string => `${line.name}\0${at[passage]}\0${part[passage]}`;
  const compare = (a: Found, b: Found): number =>
    b.score - a.score || (ts[b.passage] ?? 0) - (ts[a.passage] ?? 0) || (place(a) < place(b) ? -1 : 1);
  // More than the limit: some may be one text.
  let kept: Found[] = [];
  const most = 4 * limit + 32;
  let least = 0;
  return {
    offer(passage, score, line) {
      if (score < least) return;
      kept.push({ passage, score, line });
      if (kept.length < 2 * most) return;
      kept = kept.sort(compare).slice(0, most);
      least = kept[most - 1]?.score ?? 0;
    },
    all() {
      const sorted = kept.sort(compare).map((one) => ({ ...one, hash: hash[one.passage] ?? 0, ts: ts[one.passage] ?? 0 }));
      return withoutDoubles(sorted).slice(0, limit);
    },
  };
}

function toHit(
  { table, speakers }: SearchIndex,
  { passage, score, words, confidence, line }: Found & Pick<Hit, 'words' | 'confidence'>,
): Hit {
  const { at, part, start, end, ts, session, kind, speaker, hash } = table.columns;
  return {
    line: line.name,
    at: at[passage] ?? 0,
    part: part[passage] ?? 0,
    start: start[passage] ?? 0,
    end: end[passage] ?? 0,
    ts: ts[passage] ?? 0,
    session: session[passage] ?? 0,
    kind: KINDS[kind[passage] ?? 0] ?? 'user',
    speaker: speakers[(speaker[passage] ?? 0) - 1],
    hash: hash[passage] ?? 0,
    score,
    words,
    confidence,
  };
}

// The whole search.

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
