/** Long conversations whose facts, decisions and goals are known: the same seed gives the same words. */
import { GOAL, question, sentence, type Statement } from './statements.js';

export type Line =
  /** Something a person says, with what it states. */
  | {
      readonly kind: 'say';
      readonly text: string;
      readonly states: readonly Statement[];
      /** What stands in a document that it brings, or in what tools find in its turn. */
      readonly finds?: readonly Statement[];
    }
  | { readonly kind: 'ask'; readonly text: string; readonly subject: string }
  /** `/new`. */
  | { readonly kind: 'reset' };

export interface Scenario {
  readonly name: string;
  /** What an ordinary conversation costs in summaries is held; a turn of 200 rounds has many. */
  readonly isTalk: boolean;
  readonly agent: object;
  readonly lines: readonly Line[];
  /** What the tool `survey` finds in its nth round. */
  readonly findings?: (round: number) => string;
  /** Of its workspace, by path. */
  readonly files?: Readonly<Record<string, string>>;
  /** Turns have left its prompt by the end. */
  readonly isTrimmed?: true;
  /** Of its requests with a provider's cache, as a share of what they would cost without. */
  readonly maxCost?: number;
}

/** Tokens of context: of a small model, of one of middle size, of a large one. */
const SMALL = { context: { maxTokens: 32_000 }, maxTokens: 2_000 };
const MIDDLE = { context: { maxTokens: 64_000 }, maxTokens: 4_000 };
const LARGE = { context: { maxTokens: 200_000 } };
/** Characters. */
const PASTE = 450_000;
const FINDING = 3_000;
const SURVEYED = 200;
const PLANTED_EVERY = 10;

export function scenarios(scale: number): Scenario[] {
  return [
    { name: '200 messages', isTalk: true, agent: SMALL, lines: talk(200 * scale, 1) },
    { name: '1,000 messages', isTalk: true, agent: SMALL, lines: talk(1_000 * scale, 2) },
    { name: '5,000 messages', isTalk: true, agent: MIDDLE, lines: talk(5_000 * scale, 3) },
    { name: 'a turn of 200 tool rounds', isTalk: false, agent: { ...SMALL, limits: { maxToolRounds: 300 } }, lines: survey(), findings },
    { name: 'a paste of 450 KB', isTalk: false, agent: LARGE, lines: paste() },
    { name: 'ten topics that change', isTalk: true, agent: SMALL, lines: topics(Math.ceil(300 * scale)) },
    { name: 'three sessions with /new', isTalk: true, agent: SMALL, lines: sessions() },
  ];
}

/** A fact or a decision now and then, some of which change; now and then a question; in the end a question about each. */
function talk(messages: number, seed: number): Line[] {
  const random = randomFrom(seed);
  const subjects = SUBJECTS.slice(0, 24);
  const said = new Map<string, string>();
  const lines: Line[] = [goalLine(1, random)];
  let number = 1;
  for (let n = 2; lines.length * 2 < messages; n++) {
    const known = [...said.keys()];
    if (n % 97 === 0) lines.push(goalLine(++number, random));
    else if (n % 9 === 0) {
      const subject = pick(random, subjects);
      lines.push(stating({ subject, value: valueOf(n) }, random));
      said.set(subject, '');
    } else if (n % 23 === 0 && known.length > 0) lines.push(asking(pick(random, known)));
    else lines.push(filler(random));
  }
  return [...lines, ...[...said.keys()].map(asking), asking(GOAL)];
}

/** Decisions that are made anew, round after round. */
function topics(messages: number): Line[] {
  const random = randomFrom(4);
  const subjects = SUBJECTS.slice(0, 10);
  const lines: Line[] = [goalLine(1, random)];
  for (let n = 2; lines.length * 2 < messages; n++) {
    lines.push(n % 3 === 0 ? stating({ subject: subjects[(n / 3) % 10] ?? '', value: valueOf(n) }, random) : filler(random));
  }
  const said = new Set(lines.flatMap((line) => (line.kind === 'say' ? line.states.map(({ subject }) => subject) : [])));
  return [...lines, ...[...said].map(asking)];
}

/** What is said in one session is asked for in the next. */
function sessions(): Line[] {
  const random = randomFrom(5);
  return [0, 1, 2].flatMap((session): Line[] => {
    const subjects = SUBJECTS.slice(session * 6, session * 6 + 6);
    const before = SUBJECTS.slice(0, session * 6);
    return [
      ...(session === 0 ? [] : [{ kind: 'reset' } as const]),
      goalLine(session + 1, random),
      ...subjects.flatMap((subject, n): Line[] => [stating({ subject, value: valueOf(session * 6 + n) }, random), filler(random)]),
      ...Array.from({ length: 30 }, () => filler(random)),
      ...[...before, ...subjects].map(asking),
    ];
  });
}

function paste(): Line[] {
  const random = randomFrom(6);
  const places = [12_015, PASTE / 2, PASTE - 9_000];
  const planted = places.map((at, n) => ({ at, statement: { subject: SUBJECTS[n] ?? '', value: valueOf(n) } }));
  let text = '';
  for (const { at, statement } of planted) text = `${grown(text, at, random)}${sentence(statement)}. `;
  const said: Line = { kind: 'say', text: grown(text, PASTE, random), states: [], finds: planted.map(({ statement }) => statement) };
  const later = Array.from({ length: 12 }, () => filler(random));
  return [goalLine(1, random), said, ...later, ...planted.map(({ statement }) => asking(statement.subject)), asking(GOAL)];
}

function survey(): Line[] {
  const random = randomFrom(7);
  const finds = Array.from({ length: SURVEYED / PLANTED_EVERY }, (_, n) => findingOf(n * PLANTED_EVERY)).filter((one) => one !== undefined);
  const say: Line = { kind: 'say', text: `Please survey ${SURVEYED} rounds.`, states: [], finds };
  return [goalLine(1, random), say, ...finds.map(({ subject }) => asking(subject)), asking(GOAL)];
}

function findings(round: number): string {
  const random = randomFrom(1_000 + round);
  const planted = findingOf(round);
  return grown(planted ? `${sentence(planted)}. ` : '', FINDING, random);
}

function findingOf(round: number): Statement | undefined {
  if (round % PLANTED_EVERY !== 0) return undefined;
  return { subject: SUBJECTS[round / PLANTED_EVERY] ?? '', value: valueOf(round) };
}

export function goalLine(number: number, random: () => number): Line {
  return stating({ subject: GOAL, value: `Goal-${number}` }, random);
}

function stating(statement: Statement, random: () => number): Line {
  const words = [prose(random, 20), `Note that ${sentence(statement)}.`, prose(random, 20)];
  return { kind: 'say', text: words.join(' '), states: [statement] };
}

export function asking(subject: string): Line {
  return { kind: 'ask', text: question(subject), subject };
}

function filler(random: () => number): Line {
  return { kind: 'say', text: prose(random, 40 + Math.floor(random() * 160)), states: [] };
}

export function grown(text: string, characters: number, random: () => number): string {
  let grown = text;
  while (grown.length < characters) grown += `${prose(random, 60)}\n`;
  return grown;
}

export function prose(random: () => number, words: number): string {
  const sentence = Array.from({ length: words }, () => pick(random, WORDS)).join(' ');
  return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`;
}

export function valueOf(n: number): string {
  return `${NAMES[n % NAMES.length] ?? ''}-${n}`;
}

export function pick<T>(random: () => number, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)] as T;
}

/** Mulberry32: small, and the same everywhere. */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export const WORDS =
  'harbour tide crane ledger cargo pilot berth signal rope anchor deck lantern chart compass gale hull keel mast port quay rudder sail'.split(
    ' ',
  );
const NAMES = ['Heron', 'Gannet', 'Petrel', 'Curlew', 'Avocet', 'Dunlin', 'Fulmar'];
export const SUBJECTS = ['staging', 'primary', 'reserve', 'archive', 'public'].flatMap((first) =>
  ['database', 'server', 'region', 'language', 'manager', 'deadline'].map((second) => `${first} ${second}`),
);
