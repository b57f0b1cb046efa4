/** What a question asks for: its words, each under the stems of every language that was spoken, the times and the speakers that it names. */
import { toTimeRanges, daysIn, dayTerms, type Days } from './dates.js';
import type { Analyzer } from './analysis.js';
import { isStopWord, detectLanguage, type Language, folded, splitWords } from './words.js';
import { BOUNDS } from './weights.js';

export interface Plan {
  /** One per word: under which words it is looked for. */
  readonly words: readonly (readonly string[])[];
  /** Words that mean the days that the question names. */
  readonly mentions: readonly string[];
  readonly days: readonly Days[];
  readonly asksWhen: boolean;
  /** Folded, to be compared with the words of speakers' names. */
  readonly spoken: ReadonlySet<string>;
}

const WHEN =
  /(?<![\p{L}])(?:when|since when|how long ago|what (?:date|day|month|year|time)|which (?:date|day|month|year)|wann|seit wann|an welchem tag|quand|cu[aá]ndo|quando|wanneer|n[aä]r|когда)(?![\p{L}])/iu;

/** `now`: the asker's clock, in epoch seconds; `languages`: those of the messages, the most usual one first. */
export function planQuestion(
  question: string,
  { now, languages, analyzer }: { readonly now: number; readonly languages: readonly Language[]; readonly analyzer: Analyzer },
): Plan {
  const text = question.slice(0, BOUNDS.questionCharacters).toWellFormed();
  const all = splitWords(text);
  const language = detectLanguage(all) ?? languages[0] ?? 'en';
  const different = [...new Set(all.map((word) => word.text))];
  const telling = different.filter((word) => !isStopWord(word, language));
  const searched = [...new Set([language, ...languages])];
  const days = daysIn(text, all, now);
  return {
    words: telling.slice(0, BOUNDS.questionWords).map((word) => analyzer.variants(word, searched)),
    mentions: [...new Set(days.flatMap(dayTerms))],
    days,
    asksWhen: WHEN.test(text),
    spoken: new Set(different.map(folded).map((word) => word.replace(/'s$/, ''))),
  };
}

/** Epoch seconds of all messages. */
export function rangesIn({ days }: Plan, first: number, last: number): { readonly from: number; readonly to: number }[] {
  return days.flatMap((one) => toTimeRanges(one, first, last));
}

// Where a text has the words of a question, in any of their forms: to be marked for people, and to cut a long text to the part that has
// most of them.

/** In UTF-16 units of the text; `end` is not in it. */
export type Mark = readonly [start: number, end: number];

/** In their order, none in another. `now`: the asker's clock, in epoch seconds. */
export function marksIn(text: string, question: string, { now, analyzer }: { readonly now: number; readonly analyzer: Analyzer }): Mark[] {
  const words = splitWords(text);
  const textLanguage = detectLanguage(words);
  const languages: Language[] = textLanguage === undefined ? [] : [textLanguage];
  const plan = planQuestion(question, { now, languages, analyzer });
  const terms = new Set(plan.words.flat());
  if (terms.size === 0) return [];
  const languagesOfBoth = [
    ...new Set<Language>([detectLanguage(splitWords(question, QUESTION_WORDS)) ?? textLanguage ?? 'en', ...languages]),
  ];
  const marks: Mark[] = [];
  let last = 0;
  for (const { text: word, start, end } of words) {
    if (start < last || !analyzer.variants(word, languagesOfBoth).some((variant) => terms.has(variant))) continue;
    marks.push([start, end]);
    last = end;
  }
  return marks;
}

const QUESTION_WORDS = 60;

/** The part of at most `most` units with most of the marks, cut between words where there are any near. */
export function bestPart(text: string, marks: readonly Mark[], most: number): { readonly start: number; readonly end: number } {
  if (text.length <= most) return { start: 0, end: text.length };
  const lead = Math.floor(most / 5);
  const starts = [0, ...marks.map(([start]) => Math.max(0, Math.min(start - lead, text.length - most)))];
  const countFrom = (from: number): number => marks.filter(([start, end]) => start >= from && end <= from + most).length;
  const start = starts.reduce((best, from) => (countFrom(from) > countFrom(best) ? from : best), 0);
  return {
    start: start === 0 ? 0 : afterBlank(text, start),
    end: start + most >= text.length ? text.length : beforeBlank(text, start + most),
  };
}

const NEAR = 40;

function afterBlank(text: string, at: number): number {
  const blank = text.slice(at, at + NEAR).search(/\s/);
  if (blank >= 0) return at + blank + 1;
  return isInCharacter(text, at) ? at + 1 : at;
}

function beforeBlank(text: string, at: number): number {
  const tail = text.slice(at - NEAR, at);
  const blank = Math.max(tail.lastIndexOf(' '), tail.lastIndexOf('\n'));
  if (blank > 0) return at - NEAR + blank;
  return isInCharacter(text, at) ? at - 1 : at;
}

/** Never half of a character. */
function isInCharacter(text: string, at: number): boolean {
  return /[\uDC00-\uDFFF]/.test(text.charAt(at)) && /[\uD800-\uDBFF]/.test(text.charAt(at - 1));
}
