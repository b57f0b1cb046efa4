/**
 * From a text to its words: in lower case, without marks that people leave out, whatever the script; then to their language and their
 * stems.
 */
import { newStemmer, type Stemmer } from 'snowball-stemmers';
import { deu, eng, fra, ita, nld, por, rus, spa, swe } from 'stopword';
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
  /** In lower case, with its accents: as stemmers want it. */
  readonly text: string;
  /** Its place in the text, in UTF-16 units. */
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

// Which language a text is in, and what its words are reduced to. A message is short and may be in any language, so it is one guess per
// message, by its most usual words, that falls back on the language of the message before.

export const LANGUAGES = ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl', 'sv', 'ru'] as const;
export type Language = (typeof LANGUAGES)[number];

const ALGORITHMS: Readonly<Record<Language, string>> = {
  en: 'english',
  de: 'german',
  fr: 'french',
  es: 'spanish',
  it: 'italian',
  pt: 'portuguese',
  nl: 'dutch',
  sv: 'swedish',
  ru: 'russian',
};

/** The package's English list lacks some words that every question has. */
const MORE_ENGLISH = `a i me we us you your yours he him his she her hers it its they them their theirs this that these those who whom whose
when where why how what which while with without there here then than so too very just not no nor or if of off on in into out over under
up down to was were will would shall should may might must can cannot could do does did doing done have has had having is isn't aren't
wasn't weren't don't doesn't didn't won't wouldn't can't couldn't i'm i've i'd i'll you're you've it's that's what's let's he's she's
they're we're myself yourself himself herself itself ourselves themselves own same such both only again once ever s t ll ve re d m`;

const LISTS: Readonly<Record<Language, readonly string[]>> = {
  en: [...eng, ...MORE_ENGLISH.split(/\s+/)],
  // These lists count and name months: what a question asks for must not be lost.
  de: deu.filter(
    (word) =>
      !/^(?:.*zehn.*|achte.*|dritte.*|erste.*|fünf.*|neun.*|sechs.*|sieb.*|vier.*|zwei.*|zehn.*|tag|tage|tagen|jahr|jahre|jahren|uhr|mensch|menschen|leben|teil|ag)$/.test(
        word,
      ),
  ),
  fr: [
    ...fra,
    'est',
    'que',
    'qui',
    'quoi',
    'quel',
    'quelle',
    'quels',
    'quelles',
    'quand',
    'où',
    'comment',
    'pourquoi',
    'il',
    'ils',
    'elles',
    'les',
    'la',
    'le',
    'un',
    'une',
    'des',
    'du',
    'et',
    'à',
    'a',
    'ai',
    'ont',
    'se',
  ],
  es: [...spa, 'qué', 'quién', 'cuándo', 'cuál', 'dónde', 'cómo', 'es', 'son', 'fue', 'ha', 'he', 'un', 'una', 'la', 'el', 'los', 'las'],
  it: [...ita, 'è', 'che', 'chi', 'cosa', 'quando', 'dove', 'perché', 'quale'],
  pt: [...por, 'que', 'quem', 'quando', 'onde', 'como', 'qual', 'foi', 'é', 'o', 'um', 'uma', 'não'],
  nl: [...nld, 'wie', 'wat', 'wanneer', 'waar', 'welke', 'hoe', 'het', 'een', 'ik', 'je', 'is', 'was', 'en', 'van'],
  sv: swe.filter((word) => !/^(?:.*ton|.*tio|dag|dagar|dagen|år|åtta|fem|fyra|sju|sex|nio|tre|två)$/.test(word)),
  ru: [...rus, 'когда', 'кто', 'что', 'где', 'как', 'какой', 'какая', 'какие', 'почему'],
};

/** Folded, as they are compared. */
const STOP_WORDS: ReadonlyMap<Language, ReadonlySet<string>> = new Map(
  LANGUAGES.map((language) => [language, new Set(LISTS[language].map((word) => folded(word.toLowerCase())))]),
);

/** How much a word says for a language: all for a word that only one has. */
const SIGNS: ReadonlyMap<string, readonly (readonly [index: number, weight: number])[]> = new Map(
  [...new Set([...STOP_WORDS.values()].flatMap((words) => [...words]))].map((word) => {
    const having = LANGUAGES.flatMap((language, i) => (STOP_WORDS.get(language)?.has(word) === true ? [i] : []));
    return [word, having.map((i) => [i, 1 / having.length] as const)];
  }),
);

const CYRILLIC = /\p{Script=Cyrillic}/u;
/** More tell no more. */
const LOOKED_AT = 60;

/** Undefined where nothing tells: a name, a number, one word. */
export function detectLanguage(words: readonly Word[]): Language | undefined {
  const scores = new Float64Array(LANGUAGES.length);
  for (const { text } of words.slice(0, LOOKED_AT)) {
    if (CYRILLIC.test(text)) return 'ru';
    for (const [i, weight] of SIGNS.get(folded(text)) ?? []) scores[i] = (scores[i] ?? 0) + weight;
  }
  const best = scores.indexOf(Math.max(...scores));
  const score = scores[best] ?? 0;
  const next = Math.max(...scores.filter((_, i) => i !== best));
  return score >= 0.5 && score > next ? LANGUAGES[best] : undefined;
}

export function isStopWord(word: string, language: Language): boolean {
  return STOP_WORDS.get(language)?.has(folded(word)) === true;
}

/** Reduces words of any of the languages to their stems, without accents. It remembers them: stemming costs more than all the rest. */
export interface Stems {
  of(word: string, language: Language): string;
}

const REMEMBERED = 50_000;

export function createStems(): Stems {
  const stemmers = new Map<Language, Stemmer>();
  const known = new Map<Language, Map<string, string>>();
  const findStemmer = (language: Language): Stemmer => {
    const stemmer = stemmers.get(language) ?? newStemmer(ALGORITHMS[language]);
    stemmers.set(language, stemmer);
    return stemmer;
  };
  return {
    of(word, language) {
      const words = known.get(language) ?? new Map<string, string>();
      known.set(language, words);
      const before = words.get(word);
      if (before !== undefined) return before;
      const base = language === 'en' ? (BASE_FORMS.get(word) ?? word).replace(/'s$/, '') : word;
      const stem = /\p{N}/u.test(base) ? folded(base) : folded(findStemmer(language).stem(base));
      if (words.size >= REMEMBERED) words.clear();
      words.set(word, stem);
      return stem;
    },
  };
}

/** English forms that no stemmer brings together: `went` is looked for as `go`. */
const FORMS = `
be was were been am is are|become became|begin began begun|bite bit bitten|blow blew blown|break broke broken|bring brought|build built
buy bought|catch caught|choose chose chosen|come came|cut|deal dealt|do did done does|draw drew drawn|drink drank drunk|drive drove driven
eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found|fly flew flown|forbid forbade forbidden|forget forgot forgotten
forgive forgave forgiven|freeze froze frozen|get got gotten|give gave given|go went gone|grow grew grown|hang hung|have had has
hear heard|hide hid hidden|hold held|keep kept|know knew known|lay laid|lead led|leave left|lend lent|lie lay lain|light lit|lose lost
make made|mean meant|meet met|pay paid|ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought
sell sold|send sent|shake shook shaken|shine shone|shoot shot|show shown|sing sang sung|sink sank sunk|sit sat|sleep slept|speak spoke spoken
spend spent|stand stood|steal stole stolen|stick stuck|strike struck|swear swore sworn|sweep swept|swim swam swum|take took taken
teach taught|tear tore torn|tell told|think thought|throw threw thrown|understand understood|wake woke woken|wear wore worn|weep wept
win won|write wrote written|child children|person people|man men|woman women|foot feet|tooth teeth|mouse mice|goose geese
life lives|wife wives|knife knives|leaf leaves|wolf wolves|shelf shelves|half halves|good better best|bad worse worst`;

const BASE_FORMS: ReadonlyMap<string, string> = new Map(
  FORMS.trim()
    .split(/[|\n]/)
    .flatMap((line) => {
      const [base = '', ...forms] = line.trim().split(' ');
      return forms.map((form) => [form, base] as const);
    })
    // Each of these is a word in itself more often than a form.
    .filter(([form]) => !['lay', 'left', 'found', 'lives', 'leaves', 'saw', 'felt', 'lit'].includes(form)),
);
