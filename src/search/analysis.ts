/** What a text is found by: the stems of its words, who wrote it, the days that it mentions. Pure but for what stems it remembers. */
import { daysIn, mentionTerms } from './dates.js';
import { createStems, isStopWord, detectLanguage, type Language, type Stems, folded, splitWords } from './words.js';

export interface Analysis {
  /** How often the text has each word. */
  readonly terms: ReadonlyMap<string, number>;
  /** All words, those that are not looked for too. */
  readonly length: number;
  readonly language: Language | undefined;
  readonly speaker: string | undefined;
  readonly asks: boolean;
  readonly hasDate: boolean;
}

export interface Analyzer {
  /** `otherwise`: the language of the message before; `at`: epoch seconds. */
  text(
    text: string,
    of: { readonly at: number; readonly otherwise?: Language | undefined; readonly speaker?: string | undefined },
  ): Analysis;
  /** Under which words a word of a question is found, in each language of the messages. */
  variants(word: string, languages: readonly Language[]): string[];
}

const NAMED =
  /^\s*(?:[[(][^\])\n]{1,60}[\])]\s*)?\*{0,2}(\p{Lu}[\p{L}\p{M}'’.-]{1,30}(?: \p{Lu}[\p{L}\p{M}'’.-]{0,30}){0,2})\*{0,2}:\*{0,2}\s/u;
const ASKS = /[?？؟]["'”’)\]\s]*$/u;

export function createAnalyzer(stems: Stems = createStems()): Analyzer {
  return {
    text(text, { at, otherwise, speaker = speakerIn(text) }) {
      const words = splitWords(text);
      const language = detectLanguage(words) ?? otherwise;
      const terms = new Map<string, number>();
      const count = (term: string): void => void terms.set(term, (terms.get(term) ?? 0) + 1);
      for (const word of words) {
        if (!isStopWord(word.text, language ?? 'en')) count(stemWord(stems, word.text, language ?? 'en'));
      }
      // Names are words too, also those that a language has as a stop word: Will, May.
      for (const word of speaker === undefined ? [] : splitWords(speaker)) {
        if (!terms.has(stemWord(stems, word.text, language ?? 'en'))) count(folded(word.text));
      }
      const days = daysIn(text, words, at);
      for (const term of new Set(days.flatMap(mentionTerms))) terms.set(term, 1);
      return { terms, length: words.length, language, speaker, asks: ASKS.test(text.slice(-200)), hasDate: days.length > 0 };
    },
    variants(word, languages) {
      const all = languages.flatMap((language) => [stemWord(stems, word, language), stemWord(stems, folded(word), language)]);
      return [...new Set([...all, folded(word)])];
    },
  };
}

/** Who a text says that it is of: `Anna: good morning`. */
export function speakerIn(text: string): string | undefined {
  return NAMED.exec(text.slice(0, 160))?.[1];
}

/** Stems are of Latin and Cyrillic words: the nine languages'. */
function stemWord(stems: Stems, word: string, language: Language): string {
  return (word.codePointAt(0) ?? 0) < 0x530 ? stems.of(word, language) : folded(word);
}
