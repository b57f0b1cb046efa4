/** How often what answers a question is among what a search finds, and what each ingredient of the ranking adds. */
import { search, type Query } from '../../src/search/scan.js';
import { SearchIndex } from '../../src/search/search-index.js';
import { WEIGHTS, type Weights } from '../../src/search/weights.js';
import type { DoubleQuestion, Question, Said, Talk } from './talk.js';

export interface Step {
  readonly name: string;
  readonly weights: Weights;
}

/** Each with what those before it have. */
export const STEPS: readonly Step[] = [
  {
    name: 'words alone',
    weights: { ...WEIGHTS, neighbour: 0, secondNeighbour: 0, session: 0, speaker: 1, question: 1, dated: 1, time: 0 },
  },
  { name: '+ neighbours', weights: { ...WEIGHTS, session: 0, speaker: 1, question: 1, dated: 1, time: 0 } },
  { name: '+ window of the session', weights: { ...WEIGHTS, speaker: 1, question: 1, dated: 1, time: 0 } },
  { name: '+ named speaker', weights: { ...WEIGHTS, question: 1, dated: 1, time: 0 } },
  { name: '+ questions, dates: all', weights: WEIGHTS },
];

export function indexOf(said: readonly Said[]): SearchIndex {
  const index = new SearchIndex();
  for (const [at, { conversation, session, ts, text }] of said.entries()) {
    index.add({ line: `c${conversation}`, at, session, ts, kind: 'user', text });
  }
  return index;
}

export interface Recall {
  readonly at5: number;
  readonly at10: number;
  readonly at20: number;
}

export function recallOf(index: SearchIndex, questions: readonly Question[], weights?: Weights): Recall {
  const ranks = questions.map((question) => rankOf(index, question, weights));
  const share = (most: number): number => ranks.filter((rank) => rank <= most).length / Math.max(1, ranks.length);
  return { at5: share(5), at10: share(10), at20: share(20) };
}

/** Of the things that questions for two at once ask for, the share that is among the first ten. */
export function partsFound(index: SearchIndex, questions: readonly DoubleQuestion[]): number {
  const shares = questions.map(({ text, answers, now }) => {
    const found = new Set(search(index, { question: text, now, limit: 10 }).map(({ at }) => at));
    return answers.filter((any) => any.some((at) => found.has(at))).length / answers.length;
  });
  return shares.reduce((sum, share) => sum + share, 0) / Math.max(1, shares.length);
}

/** 1 for the first; Infinity where none of the first twenty answers it. */
export function rankOf(index: SearchIndex, { text, answers, now }: Question, weights?: Weights): number {
  const query: Query = { question: text, now, limit: 20, ...(weights && { weights }) };
  const found = search(index, query).findIndex(({ at }) => answers.includes(at));
  return found < 0 ? Infinity : found + 1;
}

/** Milliseconds of each question, sorted. */
export function timesOf(index: SearchIndex, { questions }: Talk): number[] {
  const times = questions.map(({ text, now }) => {
    const begin = performance.now();
    search(index, { question: text, now });
    return performance.now() - begin;
  });
  return times.sort((a, b) => a - b);
}
