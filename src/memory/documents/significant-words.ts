/**
 * The words that make a sentence this one and no other, folded so that a statement and its repetition have the same words. Lexical and
 * deterministic: without a model or a dictionary.
 *
 * - Case, width and accents do not count, nor do the commonest endings.
 * - Scripts without spaces between words, and Korean with its particles, are taken as pairs of characters.
 * - Phrases that memory uses of everyone ("the user prefers …") say nothing.
 *
 * @rule documents/hard-words-exact: A word with digits, `@`, a path's slashes or a name's dots is hard: a text has it exactly or not at
 *   all. So is a negation. (test: test/memory/consolidation-words.test.ts)
 */

export interface SignificantWords {
  readonly soft: ReadonlySet<string>;
  /** Addresses, paths, numbers, names with dots, and NEGATION (documents/hard-words-exact). */
  readonly hard: ReadonlySet<string>;
}

export const NEGATION = 'not';

const STOP_WORDS: ReadonlySet<string> = new Set(
  [
    'a an the this that these those there here it its is are was were be been being am do does did done doing have has had having',
    'i me my mine myself we us our ours you your yours he him his she her hers they them their theirs who whom whose which what',
    'and or but if then else so as at by for from in into of off on onto out over to up with about than too very just also only',
    'when where why how all any each few more most other some such own same can could will would shall should may might must',
    'please thanks thank ok okay yes hi hello like now etc via per',
    // Phrases that memory uses of everyone.
    'user users person assistant agent prefer prefers preferred want wants wanted like likes liked said says say tell told asked asks ask',
    'remember remembers remembered note noted fact facts memory preference preferences mention mentioned mentions states stated',
    'der die das den dem des ein eine einen einem einer eines und oder aber wenn dann als wie auch nur noch schon sehr mehr mal',
    'ich mich mir mein meine meinen meinem meiner du dich dir dein deine er sie es ihm ihr ihn wir uns unser unsere ihr euch sein seine',
    'ist sind war waren bin bist sei wird werden wurde hat habe haben hatte kann kann können will wollen soll sollen muss müssen',
    'zu zum zur von vom mit bei nach aus auf an am im in für über unter um durch bitte danke ja dass daß dies diese dieser dieses man',
    'nutzer nutzerin benutzer benutzerin anwender bevorzugt möchte möchten mag merke merk sagt sagte',
    'le la les un une des du de et ou est sont je tu il elle nous vous ils elles mon ma mes son sa ses que qui dans pour avec sur au aux',
    'el los las una unos unas y o es son yo mi mis su sus que en con por para del al lo se utilisateur usuario',
  ]
    .join(' ')
    .split(' ')
    .map(folded),
);

export const NEGATIONS: ReadonlySet<string> = new Set(
  'not no never none nothing without cannot nor nicht nie niemals kein keine keinen keinem keiner ohne nichts pas jamais sans nunca sin'.split(
    ' ',
  ),
);

/** "The user" where no space parts it from the rest. */
const MEANS_USER = /ユーザー|利用者|用户|用戶|사용자|ผู้ใช้/gu;
/** Scripts that put no space between words, and Hangul. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+/gu;
/** Grammar for the most part, beside other characters. */
const ONLY_HIRAGANA = /^\p{Script=Hiragana}+$/u;
/** Bounded, so that no text of one endless word takes long. */
const TOKEN = /[\p{L}\p{M}\p{N}@._:/\\~#&=?%+-]{1,256}/gu;

/** What a hard token is put together of, from the largest parts to the smallest. */
const PARTS: readonly RegExp[] = [/[:=&?#\\%+~]+/, /[:=&?#\\%+~/]+/, /[^\p{L}\p{M}\p{N}]+/u];

export function significantWords(text: string): SignificantWords {
  const soft = new Set<string>();
  const hard = new Set<string>();
  const rest = folded(text)
    .replace(/n['’]t\b/g, ` ${NEGATION}`)
    .replace(/(\d),(?=\d{3}(?!\d))/g, '$1')
    .replace(/(\d),(?=\d)/g, '$1.')
    .replace(MEANS_USER, ' ')
    .replace(UNSPACED, (run) => {
      for (const pair of splitPairs(run)) soft.add(pair);
      return ' ';
    });
  for (const [token] of rest.matchAll(TOKEN)) addToken(token, soft, hard);
  return { soft, hard };
}

/**
 * All that a text can be taken to say: its words, what they are put together of (`mailto:a@x.org?b`), and what comes after the
 * escapes of a JSON text. For evidence, never for a line that is to be proven.
 */
export function evidenceWords(text: string): Set<string> {
  const plain = text.includes('\\') ? `${text}\n${text.replace(/\\(?:[nrtbf"/]|u[0-9a-fA-F]{4})/g, ' ')}` : text;
  const { soft, hard } = significantWords(plain);
  const inner = [...hard]
    .filter((token) => /[^\p{L}\p{M}\p{N}]/u.test(token))
    .flatMap((token) => PARTS.flatMap((mark) => token.split(mark)));
  return new Set([...soft, ...hard, ...allWords(significantWords(inner.join(' ')))]);
}

/** Both kinds in one set. */
export function allWords({ soft, hard }: SignificantWords): Set<string> {
  return new Set([...soft, ...hard]);
}

/** How much of `words` is in `others`, 0 to 1; 0 when there are none. */
export function shareIn(words: ReadonlySet<string>, others: ReadonlySet<string>): number {
  if (words.size === 0) return 0;
  let shared = 0;
  for (const word of words) if (others.has(word)) shared++;
  return shared / words.size;
}

/** Finds the sets that share words with a text, in the time of what is shared, and not of all sets. */
export interface WordIndex {
  /** Calls `found` for each set that has any of the words, with its place and how many of them it has; in no order. */
  forEachSharing(words: Iterable<string>, found: (at: number, count: number) => void): void;
}

export function indexWords(sets: readonly ReadonlySet<string>[]): WordIndex {
  const places = new Map<string, number[]>();
  sets.forEach((words, at) => {
    for (const word of words) {
      const known = places.get(word);
      if (known) known.push(at);
      else places.set(word, [at]);
    }
  });
  const counts = new Uint32Array(sets.length);
  return {
    forEachSharing(words, found) {
      const touched: number[] = [];
      for (const word of words) {
        for (const at of places.get(word) ?? []) {
          const before = counts[at] ?? 0;
          if (before === 0) touched.push(at);
          counts[at] = before + 1;
        }
      }
      for (const at of touched) {
        const count = counts[at] ?? 0;
        counts[at] = 0;
        found(at, count);
      }
    },
  };
}

/** NFKD parts accents from letters; they go, as do invisible characters, and what else was parted (Hangul, kana) is put together again. */
export function folded(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]|\p{Cf}/gu, '')
    .normalize('NFC')
    .toLowerCase()
    .replaceAll('ß', 'ss');
}

function splitPairs(run: string): string[] {
  const characters = [...run];
  if (characters.length === 1) return characters;
  const pairs = characters.slice(1).map((character, at) => `${characters[at]}${character}`);
  const significant = pairs.filter((pair) => !ONLY_HIRAGANA.test(pair));
  return significant.length > 0 ? significant : pairs;
}

function addToken(raw: string, soft: Set<string>, hard: Set<string>): void {
  const token = trimmedToken(raw);
  if (token === '') return;
  const measured = /^(\d+(?:[.,:]\d+)*)(\p{L}{1,3})$/u.exec(token);
  if (measured) {
    // `5km`, `30s`, `120eur`: with a space or without, the same.
    hard.add(normalizeNumber(measured[1] ?? ''));
    addWord(measured[2] ?? '', soft, hard);
  } else if (isHard(token)) hard.add(/^[\d.]+$/.test(token) ? normalizeNumber(token) : token);
  else for (const word of token.split(/[^\p{L}\p{M}]+/u)) addWord(word, soft, hard);
}

/** `https://www.x.org/a/.` and `x.org/a` are one; so are `+49` and `49`. */
function trimmedToken(raw: string): string {
  return raw
    .replace(/^[._:#&=?%+-]+(?=[^/\\])|[._:#&=?%+\\-]+$/g, '')
    .replace(/^(?:mailto:|[a-z]{2,8}:\/\/)/, '')
    .replace(/^www\./, '')
    .replace(/^\.\//, '')
    .replace(/\/+$/, '');
}

function isHard(token: string): boolean {
  if (/\p{N}/u.test(token) || token.includes('@') || token.includes('\\')) return true;
  if (/^[~.]*\//.test(token) || /\/.*\//.test(token)) return true;
  // `node.js` and `example.com`, but not `e.g` or `z.b`.
  return /[\p{L}\p{M}]{2,}\.[\p{L}\p{M}]|[\p{L}\p{M}]\.[\p{L}\p{M}]{2,}/u.test(token);
}

/** `1.000` is `1000`, `007` is `7`; `1.5` stays. */
function normalizeNumber(token: string): string {
  const plain = /^\d{1,3}(?:\.\d{3})+$/.test(token) ? token.replaceAll('.', '') : token;
  return plain.replace(/^0+(?=\d)/, '');
}

function addWord(word: string, soft: Set<string>, hard: Set<string>): void {
  if (NEGATIONS.has(word)) hard.add(NEGATION);
  else if (word.length > 1 && !STOP_WORDS.has(word)) soft.add(stemWord(word));
}

/** The commonest English and German endings; the same word must give the same stem, which need not be one. */
export function stemWord(word: string): string {
  if (word.length < 4) return word;
  const stem = word
    .replace(/ies$/, 'y')
    .replace(/(?<=...)s$/, '')
    .replace(/(?<=...)(?:ing|ed|er|en|em)$/, '')
    .replace(/(?<=...)e$/, '');
  return stem.replace(/([^aeiou])\1$/, '$1');
}
