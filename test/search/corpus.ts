/** Random talk, and a ranking of it that is as plain as the definition. */
import fc from 'fast-check';
import { createAnalyzer } from '../../src/search/analysis.js';
import { planQuestion } from '../../src/search/question.js';
import type { Text } from '../../src/search/search-index.js';
import { WEIGHTS } from '../../src/search/weights.js';

const WORDS = [
  'boat',
  'boats',
  'garden',
  'doctor',
  'sailed',
  'sailing',
  'red',
  'blue',
  'kitten',
  'moved',
  'Berlin',
  'guitar',
  'the',
  'was',
];
export const NOON = Date.UTC(2024, 4, 8, 12) / 1000;

const text = fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 9 }).map((words) => `I have the ${words.join(' ')}`);
export const question = fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 5 }).map((words) => words.join(' '));

/** Three lines, their messages in any order. Times differ, so that no text is another's double. */
export const corpus = fc
  .array(fc.record({ line: fc.constantFrom('a', 'b', 'c'), text, session: fc.constantFrom(1, 2) }), { minLength: 1, maxLength: 60 })
  .map((all) =>
    all.map((one, i): Text => ({ ...one, at: i, ts: NOON + i * 60, kind: 'user', session: i < all.length / 2 ? 1 : one.session + 1 })),
  );

/** Score by place, straight from the definition. */
export function scoresOf(texts: readonly Text[], asked: string): Map<string, number> {
  const analyzer = createAnalyzer();
  const docs = texts.map((one) => ({ ...one, ...analyzer.text(one.text, { at: one.ts, otherwise: 'en' }) }));
  const { words } = planQuestion(asked, { now: NOON, languages: ['en'], analyzer });
  const mean = docs.reduce((sum, { length }) => sum + length, 0) / docs.length;
  const timesIn = (terms: ReadonlyMap<string, number>, variants: readonly string[]): number =>
    variants.reduce((sum, variant) => sum + (terms.get(variant) ?? 0), 0);
  const idfOf = (variants: readonly string[]): number => {
    const having = docs.filter(({ terms }) => timesIn(terms, variants) > 0).length;
    return Math.log(1 + (docs.length - having + 0.5) / (having + 0.5));
  };
  const k = WEIGHTS.saturation;
  const own = docs.map(({ terms, length }) =>
    words.reduce((sum, variants) => {
      const times = timesIn(terms, variants);
      return sum + (idfOf(variants) * times * (k + 1)) / (times + k * (1 - WEIGHTS.length + (WEIGHTS.length * length) / mean));
    }, 0),
  );
  const scores = new Map<string, number>();
  for (const [i, doc] of docs.entries()) {
    const line = docs.flatMap((other, j) => (other.line === doc.line ? [j] : [])).sort((a, b) => (docs[a]?.at ?? 0) - (docs[b]?.at ?? 0));
    const position = line.indexOf(i);
    const near = [-2, -1, 1, 2].reduce((sum, distance) => {
      const other = line[position + distance];
      if (other === undefined || docs[other]?.session !== doc.session) return sum;
      return sum + (Math.abs(distance) === 1 ? WEIGHTS.neighbour : WEIGHTS.secondNeighbour) * (own[other] ?? 0);
    }, 0);
    const whole = (own[i] ?? 0) + near;
    if (whole <= 0) continue;
    const inWindow = windowOf(docs, line, position);
    const window = words.reduce((sum, variants) => {
      const times = inWindow.reduce((all, j) => all + timesIn(docs[j]?.terms ?? new Map<string, number>(), variants), 0);
      return sum + (idfOf(variants) * times * (k + 1)) / (times + k);
    }, 0);
    scores.set(`${doc.line}/${doc.at}`, whole + WEIGHTS.session * window);
  }
  return scores;
}

/** Runs of one session, thirty at most: these conversations have no long silences. */
function windowOf(docs: readonly Text[], line: readonly number[], position: number): readonly number[] {
  const windows: number[][] = [];
  for (const [at, i] of line.entries()) {
    const before = line[at - 1];
    const last = windows.at(-1);
    const goesOn = last !== undefined && before !== undefined && docs[before]?.session === docs[i]?.session && last.length < 30;
    if (goesOn) last.push(i);
    else windows.push([i]);
  }
  return windows.find((window) => window.includes(line[position] ?? -1)) ?? [];
}
