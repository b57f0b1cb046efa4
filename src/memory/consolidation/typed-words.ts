/**
 * Whether a person typed what a line says. Their words count sentence by sentence: recombined, negated, or made a statement of a question
 * they are another person's.
 *
 * - A line, or each clause of it, is from one sentence: it has everything hard in it and `USER_SHARE` of its words. Of the others the person
 *   has used none elsewhere: those are the model's synonyms.
 * - The sentence and the clause are both negative or both not; so with words that turn a sentence round ("stop", "hates").
 * - A question says nothing, nor does a list below it.
 * - What changes what may be done (permission-changes.ts) has to be a whole sentence, word for word but for articles and courtesies: a word
 *   more or less is another permission.
 */
import { foldedLine } from '../../records/memory/documents.js';
import {
  allWords,
  evidenceWords,
  folded,
  indexWords,
  NEGATION,
  NEGATIONS,
  significantWords,
  stemWord,
  type SignificantWords,
} from '../documents/significant-words.js';

interface TypedText {
  /** Without what others wrote (records/message-parts.ts). */
  readonly text: string;
  readonly turn: string;
  /** That a model may write into a line because the message came then. */
  readonly day: ReadonlySet<string>;
}

export interface TypedWords {
  /** The turns in which a person typed what these words of a line say, all of them or those that are new; undefined where no one did. */
  findTurns(line: string, needed: SignificantWords): readonly string[] | undefined;
  /** The turn in which a person typed this line, word for word. */
  saidExactly(line: string): string | undefined;
}

export const USER_SHARE = 0.6;
/** Of all messages, the newest. */
const MAX_SENTENCES = 4_000;
/** Words of a sentence that has no end. */
const SENTENCE_WORDS = 60;
/** Sentences that are looked at for one line: those that share most with it. */
const MAX_CANDIDATES = 16;

interface Clause {
  /** What a sentence has to have for it. */
  readonly needed: SignificantWords;
  /** What it says, with the parts of addresses. */
  readonly words: ReadonlySet<string>;
  readonly isNegative: boolean;
  readonly isReversed: boolean;
}

interface Sentence {
  readonly words: ReadonlySet<string>;
  readonly clauses: readonly Clause[];
  readonly turn: string;
}

export function typedWords(texts: readonly TypedText[]): TypedWords {
  const exact = new Map<string, string>();
  const sentences: Sentence[] = [];
  const all = new Set<string>();
  for (const { text, turn, day } of texts) {
    for (const { text: sentence, isQuestion } of sentencesIn(text)) {
      if (isQuestion) {
        for (const word of evidenceWords(sentence)) all.add(word);
        continue;
      }
      const form = spokenForm(sentence);
      if (form !== undefined) exact.set(form, turn);
      for (const clauses of chunked(clausesIn(sentence))) {
        const words = new Set([...clauses.flatMap((clause) => [...clause.words]), ...day]);
        for (const word of words) all.add(word);
        sentences.push({ words, clauses, turn });
      }
    }
  }
  const newest = sentences.slice(-MAX_SENTENCES);
  const index = indexWords(newest.map(({ words }) => words));

  const saidAtOnce = (claim: Omit<Clause, 'words'>): string | undefined => {
    const words = allWords(claim.needed);
    const found: { readonly at: number; readonly count: number }[] = [];
    index.forEachSharing(words, (at, count) => {
      // An address weighs as two words.
      if (count * 2.5 >= words.size) found.push({ at, count });
    });
    const best = found.sort((a, b) => b.count - a.count || a.at - b.at).slice(0, MAX_CANDIDATES);
    return best.flatMap(({ at }) => newest[at] ?? []).find((sentence) => isSaidBy({ ...claim, words }, sentence, all))?.turn;
  };

  return {
    saidExactly(line) {
      const form = spokenForm(foldedLine(line));
      return form === undefined ? undefined : exact.get(form);
    },
    findTurns(line, needed) {
      const size = allWords(needed).size;
      if (size === 0) return undefined;
      const text = foldedLine(line);
      const clauses = clausesIn(text);
      const isPart = allWords(significantWords(text)).size > size;
      const isNegative = isPart ? needed.hard.has(NEGATION) : clauses.some((clause) => clause.isNegative);
      const turn = saidAtOnce({ needed, isNegative, isReversed: clauses.some((clause) => clause.isReversed) });
      if (turn !== undefined) return [turn];
      const saying = clauses.filter((clause) => clause.words.size > 0);
      if (isPart || saying.length < 2) return undefined;
      const turns = saying.map(saidAtOnce);
      return turns.includes(undefined) ? undefined : turns.flatMap((one) => one ?? []);
    },
  };
}

function isSaidBy({ needed: { hard }, words, isNegative, isReversed }: Clause, sentence: Sentence, all: ReadonlySet<string>): boolean {
  const missing = [...words].filter((word) => !sentence.words.has(word));
  if (missing.some((word) => hard.has(word) || all.has(word))) return false;
  const found = new Set([...words].filter((word) => sentence.words.has(word)));
  if (words.size === 0 || weigh(found) / weigh(words) < USER_SHARE) return false;
  // A clause of a negation alone belongs to those around it.
  const touched = sentence.clauses.filter((clause) => clause.words.size <= 1 || [...clause.words].some((word) => found.has(word)));
  return touched.some((clause) => clause.isNegative) === isNegative && touched.some((clause) => clause.isReversed) === isReversed;
}

/** An address weighs as two words: "mail me at ada@x.org" is all of "Email: ada@x.org". */
export function weigh(words: ReadonlySet<string>): number {
  return words.size + [...words].filter(isSignificant).length;
}

/** An address, a path, a name with dots or a long number: no page has it by chance. */
export function isSignificant(word: string): boolean {
  return /[@./\\]/.test(word) || /\d.*\d.*\d.*\d/.test(word);
}

function* chunked(clauses: readonly Clause[]): Iterable<readonly Clause[]> {
  let chunk: Clause[] = [];
  let size = 0;
  for (const clause of clauses) {
    if (size > 0 && size + clause.words.size > SENTENCE_WORDS) {
      yield chunk;
      [chunk, size] = [[], 0];
    }
    chunk.push(clause);
    size += clause.words.size;
  }
  if (size > 0) yield chunk;
}

const BETWEEN_CLAUSES = /[,;:.!?](?=\s|$)|[()–—、，。！？；]|\s(?=(?:and|but|or|und|aber|oder|sondern|et|mais|ou|y|e|pero|sino|ma|o)\s)/;

function clausesIn(sentence: string): Clause[] {
  return folded(sentence)
    .replace(/^(?:no|nope|nein|non)\s?,/, ' ')
    .split(BETWEEN_CLAUSES)
    .map((clause) => {
      const tokens = clause.replace(/n['’]t\b/g, ' not').match(/[\p{L}\p{M}]+/gu) ?? [];
      const needed = significantWords(clause);
      return {
        needed,
        words: needed.hard.size === 0 ? needed.soft : evidenceWords(clause),
        isNegative: needed.hard.has(NEGATION) || tokens.some(isNegation),
        isReversed: tokens.some((token) => REVERSING.test(token)),
      };
    });
}

const MORE_NEGATIONS: ReadonlySet<string> = new Set(
  (
    'neither nobody nowhere dont doesnt didnt cant wont isnt aint keines keinesfalls keineswegs weder niemand n ne ni aucun aucune aucunement ' +
    'rien guere nada ningun ninguno ninguna tampoco nadie non mai nessun nessuno nessuna niente nulla mica neanche'
  ).split(' '),
);

function isNegation(token: string): boolean {
  return NEGATIONS.has(token) || MORE_NEGATIONS.has(token);
}

/** "I stopped eating meat" is not "eats meat". */
const REVERSING =
  /^(?:stop|quit|ceas|avoid|refus|reject|den(?:y|ied|ies)|declin|forb[ai]d|prohibit|disallow|revok|withdr|cancel|hate|hating|dislik|detest|undo|unless|except|hor(?:e|t|en)?$|aufgehort|vermeid|verweiger|ablehn|lehn|verbiet|verbot|untersag|widerruf|hass|ausser|arret|evit|deteste|interdi|annul|revoqu|sauf|dej(?:a|o|e|ar)$|rechaz|prohib|odi|salvo|excepto|smett|smess|rifiut|viet|proib|revoc|tranne|eccetto)/;

const SENTENCE = /([.!?](?=[\s"'”’»)\]]|$)|[。！？；;])/u;
const SHORT = /(?:^|[\s(])(?:\p{Lu}\p{L}?|inc|ltd|corp|co|mrs|prof|sra|sig|ggf|bzw|usw|etc|nr|no|abs|art|ca|vs|approx|[\p{L}]\.[\p{L}])$/iu;

/** Of a text, with its questions. Items of a list below a question belong to it. */
function sentencesIn(text: string): { readonly text: string; readonly isQuestion: boolean }[] {
  const sentences: { readonly text: string; readonly isQuestion: boolean }[] = [];
  let isAsked = false;
  for (const line of text.split(/\r\n|[\r\n\u2028\u2029]/)) {
    if (line.trim() === '') continue;
    if (!/^\s*(?:[-*+•]|\d{1,4}[.)])\s/.test(line)) isAsked = false;
    let asks: boolean = isAsked;
    let sentence = '';
    const parts = foldedLine(line).split(SENTENCE);
    for (let at = 0; at < parts.length; at += 2) {
      const [words = '', mark = ''] = parts.slice(at, at + 2);
      sentence += words;
      // "Acme Inc. after I confirm" is one sentence.
      if (mark === '.' && (SHORT.test(words.slice(-12)) || /^\s\p{Ll}/u.test(parts[at + 2] ?? ''))) sentence += mark;
      else {
        const isQuestion: boolean = isAsked || asksFor(sentence, mark);
        if (sentence.trim() !== '') {
          sentences.push({ text: sentence.trim(), isQuestion });
          asks = isQuestion;
        }
        sentence = '';
      }
    }
    isAsked = asks;
  }
  return sentences;
}

function asksFor(sentence: string, mark: string): boolean {
  if (/[?？]/.test(mark) || sentence.trimEnd().endsWith('?') || /[¿？]/.test(sentence)) return true;
  const text = folded(sentence.slice(0, 300)).trim();
  return ASKING.test(text) || WONDERING.test(text);
}

const ASKING =
  /^(?:and |so |but |und |et |y |e )?(?:should|shall|could|would|may (?:i|we)|can (?:i|we|you)|d(?:o|oes|id) (?:i|we|you|they)|what|why|how|which|whether|suppose|imagine|soll|sollen|sollte|sollten|darf|durfen|kann|konnen|konntest|konnten|was|wie|warum|wieso|welche[rsn]?|ob|angenommen|est-ce|dois-je|faut-il|peut-on|puis-je|pouvez-vous|peux-tu|devrais-je|devrait-on|pourquoi|comment|quels?|quelles?|supposons|debo|deberia|deberiamos|puedo|puedes|podemos|por que|supon|devo|dovrei|dovremmo|posso|puoi|possiamo|perche|quali?|supponi)(?=[\s,’']|$)/;
const WONDERING =
  /(?:wonder|not sure|unsure|don['’]?t know|frage mich|weiss nicht|nicht sicher|demande si|sais pas|pas sur|pregunto si|no se si|no estoy segur|chiedo se|non so se|non sono sicur)/;

const WORD = /[\p{L}\p{M}\p{N}]+(?:[.@:/_\\-][\p{L}\p{M}\p{N}]+)*/gu;

/** A sentence word by word, and in its order; who speaks of a person as "I" or "the user" says the same. Undefined for what is none. */
function spokenForm(text: string): string | undefined {
  if (text.length > SPOKEN_CHARACTERS) return undefined;
  const plain = folded(text)
    .replace(/n['’]t\b/g, ' not')
    .replace(/['’]s\b/g, '');
  const words = (plain.match(WORD) ?? []).flatMap((word) => {
    if (isNegation(word)) return ['not'];
    if (COURTESIES.has(word)) return [];
    if (PERSON.has(word)) return ['@p'];
    return AGENT.has(word) ? ['@a'] : [stemWord(word)];
  });
  // An order has no subject.
  if (words[0] === '@a') words.shift();
  return words.length === 0 ? undefined : words.join(' ');
}

const SPOKEN_CHARACTERS = 2_000;

const asSet = (words: string): ReadonlySet<string> => new Set(words.split(' '));
const COURTESIES = asSet(
  'a an the der die das den dem des ein eine einen einem einer eines le la les l un une el los las una lo il gli please bitte kindly ' +
    'remember merke merk retiens recuerda ricorda that dass que che do does did ok okay thanks thank danke merci gracias grazie hi hello',
);
const PERSON = asSet(
  'i me my mine we us our user users he him his she her they them their ich mich mir mein meine meinen meinem meiner wir uns unser unsere ' +
    'nutzer nutzerin benutzer sein seine seinen ihr ihre ihren je j moi mon ma mes nous notre nos utilisateur son sa ses yo mi mis nosotros ' +
    'nuestro usuario su sus io mio mia miei noi nostro utente suo sua suoi',
);
const AGENT = asSet(
  'you your yours agent assistant du dich dir dein deine deinen assistent tu te toi ton ta tes vous votre vos agente asistente ti tuo tua voi',
);
