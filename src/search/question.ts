/** What a question asks for: its words, each under the stems of every language that was spoken, the times and the speakers that it names. */
import { toTimeRanges, daysIn, dayTerms, type Days } from './dates.js';
import type { Analyzer } from './analysis.js';
import { isStopWord, detectLanguage, type Language } from './languages.js';
import { BOUNDS } from './weights.js';
import { folded, splitWords } from './words.js';

export interface Plan {
  /** One per word: under which words it is looked for. */
  readonly words: readonly (readonly string[])[];
  /** Words that stand for the days that the question names. */
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
