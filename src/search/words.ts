/** From a text to its words: in lower case, without marks that people leave out, whatever the script. */
import { BOUNDS } from './weights.js';

/** Runs of letters, marks and digits; an apostrophe inside belongs to the word. */
const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*(?:['’][\p{L}\p{M}]+)*/gu;
/** Scripts that put no blanks between words. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const HAN = /\p{Script=Han}/u;
const HAN_LETTERS = /\p{Script=Han}/gu;
const UNSPACED_RUNS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{M}]+|[^\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+/gu;
/** Accents of Latin and Greek, points of Hebrew and Arabic. A vowel sign of Devanagari is no accent: the word is another without it. */
const LEFT_OUT = /[\u0300-\u036f\u0591-\u05c7\u064b-\u0652\u0670\u0640]/g;
const SEGMENTER = new Intl.Segmenter('und', { granularity: 'word' });
const PLAIN = /^[\x00-\x7f]*$/;

export interface Word {
  /** In lower case, its accents kept: as stemmers want it. */
  readonly text: string;
  /** Where it stands in the text, in UTF-16 units. */
  readonly start: number;
  readonly end: number;
}

/** In their order, at most `most` of them. */
export function splitWords(text: string, most: number = BOUNDS.passageWords): Word[] {
  const words: Word[] = [];
  WORD.lastIndex = 0;
  for (let match = WORD.exec(text); match !== null && words.length < most; match = WORD.exec(text)) {
    const [run] = match;
    if (!PLAIN.test(run) && UNSPACED.test(run)) pushUnspaced(words, run, match.index);
    else words.push({ text: lowered(run), start: match.index, end: match.index + run.length });
  }
  return words.slice(0, most);
}

/** As it is compared: without accents. `word` is in lower case. */
export function folded(word: string): string {
  if (PLAIN.test(word)) return word;
  return word.normalize('NFKD').replace(LEFT_OUT, '').replaceAll('ß', 'ss').replaceAll('ς', 'σ').normalize('NFC');
}

export function lowered(word: string): string {
  const whole = word.length > BOUNDS.wordLength ? word.slice(0, BOUNDS.wordLength).toWellFormed() : word;
  // NFKC: full-width letters and ligatures are the plain ones.
  return PLAIN.test(whole) ? whole.toLowerCase() : whole.normalize('NFKC').toLowerCase().replaceAll('’', "'");
}

function pushUnspaced(words: Word[], run: string, offset: number): void {
  for (const { 0: part, index } of run.matchAll(UNSPACED_RUNS)) {
    const start = offset + index;
    if (!UNSPACED.test(part)) {
      words.push({ text: lowered(part), start, end: start + part.length });
      continue;
    }
    for (const { segment, index: at, isWordLike } of SEGMENTER.segment(part)) {
      if (isWordLike !== true) continue;
      words.push({ text: lowered(segment), start: start + at, end: start + at + segment.length });
      // Where a word of Chinese ends is a guess: 书 is also found in 一本书.
      if (segment.length > 1 && HAN.test(segment))
        words.push(
          ...Array.from(segment.matchAll(HAN_LETTERS), ({ 0: text, index: i }) => ({
            text,
            start: start + at + i,
            end: start + at + i + text.length,
          })),
        );
    }
  }
}
