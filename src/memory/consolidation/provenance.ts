/**
 * Where each new line of MEMORY.md comes from, and which of them wait for a person (design section 4: what a tool brought into
 * memory carries where it came from). What counts first is the source of a text: typed by a person, a file or a quotation, an application's
 * data, a tool's result, an answer (records/message-parts.ts). The evidence within them is lexical: the same conversation gives the same
 * answer, and no model can be talked out of it.
 *
 * A line is new if the current memory does not have it; moved, indented or numbered anew it is the same line. A line without a source
 * is the model's conclusion: `model`, with the tools and files that it had read before (`tools`).
 *
 * A page with every common word does not take a line from the user. One passage of another source does, if it has every word that the
 * user did not use, and as much of the line as they: then the line was the user's until that source added to it. Words of an assistant's
 * answer count as the tool's if the tool's result, in the same turn, has them too: the model only passed them on.
 *
 * What changes what may be done (permission-changes.ts) waits, whatever its source, unless a person typed it word for word (a secret that is only
 * stated: typed it), or memory has it already. Nor does such a line leave memory where other sources spoke.
 *
 * Limits: it sees words, not meaning. A tool's text in another language than the line counts as the model's conclusion, which
 * then waits (consolidation/untrusted-waits). So does a tool's result of an earlier range, if the model repeats it in this one.
 *
 * @rule consolidation/from-the-user: A line is the user's if they typed what it says: each clause in one sentence that has 60 % of its
 *   words and everything hard in it (documents/hard-words-exact), is no question, and denies what the line denies. (test:
 *   test/memory/consolidation-provenance.test.ts)
 * @rule consolidation/only-the-rest-judged: If half of a line or more is in memory, only the rest of it is judged; without a rest it is
 *   the model's rewriting. (test: test/memory/consolidation-provenance.test.ts)
 * @rule consolidation/brought-by-a-tool: A line is a tool's (`tool:<name>`), a `file`'s or the `application`'s if their text supports it
 *   better than the user does; a trusted tool goes before another one. (test: test/memory/consolidation-provenance.test.ts)
 * @rule consolidation/untrusted-waits: A line from an untrusted tool, or a conclusion after other sources spoke (`waitsForReview`), waits
 *   for a person; the line that it would have replaced stays. (test: test/memory/consolidation-provenance.test.ts)
 */
import { isBodyRef, isFromPerson, shownText, sourcesIn, type Body, type Entry } from '../../records/message.js';
import {
  type LineSource,
  type SourcedLine,
  type Trust,
  foldedLine,
  lineCounts,
  splitLines,
  takeLine,
} from '../../records/memory/documents.js';
import { messageParts, textFrom } from '../../records/message-parts.js';
import {
  allWords,
  evidenceWords,
  indexWords,
  significantWords,
  type SignificantWords,
  type WordIndex,
} from '../documents/significant-words.js';
import { REWRITTEN_SHARE, withoutProposed } from './merge.js';
import { changesWhatMayBeDone, readChange } from './permission-changes.js';
import { INTERNAL_TOOLS, waitsForReview, type ReviewWhenToolsSpoke } from './review.js';
import { isSignificant, typedWords, USER_SHARE, weigh, type TypedWords } from './typed-words.js';

export interface ProvenanceRequest {
  readonly currentMemory: string;
  readonly memoryUpdate: string;
  /** The range that the update was made from, with every text at hand. */
  readonly entries: readonly Entry[];
  readonly conversation: string;
  readonly trustedTools: ReadonlySet<string>;
  readonly reviewWhenToolsSpoke?: ReviewWhenToolsSpoke;
}

export interface Provenance {
  /** The update without what is proposed. */
  readonly text: string;
  readonly added: readonly SourcedLine[];
  /** Lines that only the word of a tool, a file or an application stands behind, or may. */
  readonly proposed: readonly SourcedLine[];
}

const USER_MESSAGES = 3;
const TOOL_SHARE = 0.5;
/** Of the line in a tool's result, when the answer of the same turn has the rest. */
const PASSED_ON_SHARE = 0.3;
const SENTENCE_END = /[.!?](?=\s|$)|[。！？\n]/u;
/** Of a longer memory, which a person has written, the first lines. */
const MAX_EVIDENCE_LINES = 4_000;

export function withProvenance(request: ProvenanceRequest): Provenance {
  const { currentMemory, memoryUpdate, trustedTools, entries, reviewWhenToolsSpoke = true } = request;
  const before = splitLines(currentMemory);
  const after = splitLines(memoryUpdate);
  const evidence = evidenceIn(request);
  const isNew = newIn(before, after);
  const spoke = toolsThatSpoke(entries, trustedTools);
  const isKnown = (word: string): boolean =>
    [...evidenceWords(word)].every((part) => evidence.user.words.has(part) || evidence.memory.words.has(part));
  const isToReview = (line: string): boolean => spoke.length > 0 && waitsForReview(line, reviewWhenToolsSpoke, isKnown);
  const judged = after.map((line, at): Judged | undefined => {
    if (isNew[at] !== true) return undefined;
    const source = findSource(line, evidence, request.conversation, spoke);
    const change = readChange(line);
    if (change === undefined) {
      if (source.trust.startsWith('tool:')) return { source, waits: isUntrustedTool(source.trust, trustedTools) };
      if (source.trust === 'user' || !isToReview(line)) return { source, waits: false };
      return { source: source.trust === 'model' ? { ...source, tools: spoke } : source, waits: true };
    }
    // A code or an account is there exactly, or not at all.
    if (change === 'secret' && source.trust === 'user') return { source, waits: false };
    const turn = evidence.typed.saidExactly(line);
    if (turn !== undefined) return { source: toSource('user', request.conversation, [turn]), waits: false };
    const changed: LineSource = source.trust === 'user' ? { ...source, trust: 'model' } : source;
    return { source: changed, waits: evidence.remembered.saidExactly(line) === undefined };
  });
  const isProposed = judged.map((one) => one?.waits === true);
  const sourced = (wanted: boolean): SourcedLine[] =>
    after.flatMap((line, at) => {
      const one = judged[at];
      return one === undefined || one.waits !== wanted ? [] : [{ line, source: one.source }];
    });
  const isTyped = judged.map((one) => one?.source.trust === 'user');
  const stays = new Set(after.map(foldedLine));
  const mustStay = (line: string): boolean => spoke.length > 0 && !stays.has(foldedLine(line)) && changesWhatMayBeDone(line);
  const isChanged = isProposed.includes(true) || before.some(mustStay);
  const text = isChanged ? withoutProposed({ before, after, isNew, isProposed, isTyped, mustStay }) : memoryUpdate;
  return { text, added: sourced(false), proposed: sourced(true) };
}

interface Judged {
  readonly source: LineSource;
  /** For a person. */
  readonly waits: boolean;
}

/** Names of the tools in a range whose word is not enough, and `file` and `application` where those spoke; sorted. */
export function toolsThatSpoke(entries: readonly Entry[], trusted: ReadonlySet<string>): readonly string[] {
  return [...new Set(entries.flatMap((entry) => listSources(entry, trusted)))].sort();
}

/** What an entry brings beside the words of people and of the model. */
export function listSources({ message }: Entry, trusted: ReadonlySet<string>): readonly string[] {
  switch (message.role) {
    case 'assistant':
      return [];
    case 'tool':
      return isTrusted(message.name, trusted) ? [] : [message.name];
    case 'user': {
      const text = shownPart(message.text);
      if (message.from === 'app') return ['application'];
      if (message.late) return isTrusted(message.late.name, trusted) ? [] : [message.late.name];
      if (message.from === 'notice') return toolsInNotice(text);
      const parts = messageParts(text).flatMap(({ source }) => (source === 'typed' ? [] : [source]));
      return sourcesIn(message).length > 0 ? [...parts, 'file'] : parts;
    }
  }
}

/** What was recalled says itself what of it is not to be trusted. */
function toolsInNotice(text: string): readonly string[] {
  return /^\[RECALLED\]/.test(text) && /^\[[^\]\n]*\] [^\n]*UNTRUSTED/m.test(text) ? ['recall'] : [];
}

function isTrusted(tool: string, trusted: ReadonlySet<string>): boolean {
  return trusted.has(tool) || INTERNAL_TOOLS.has(tool);
}

function newIn(before: readonly string[], after: readonly string[]): boolean[] {
  const known = lineCounts(before);
  return after.map((line) => !takeLine(known, line));
}

function isUntrustedTool(trust: Trust, trusted: ReadonlySet<string>): boolean {
  return trust.startsWith('tool:') && !trusted.has(trust.slice('tool:'.length));
}

interface Statement {
  readonly words: ReadonlySet<string>;
  readonly turn: string;
}

/** Of what is neither a person's nor the model's. */
interface ForeignStatement extends Statement {
  readonly trust: Exclude<Trust, 'user' | 'model' | 'person'>;
  readonly isTrusted: boolean;
}

/** Of an assistant's text. */
interface AnswerStatement extends Statement {
  /** What spoke before it in its turn. */
  readonly after: readonly string[];
}

/** A sentence of a source that is not trusted. */
interface Passage {
  readonly words: ReadonlySet<string>;
  readonly from: ForeignStatement;
}

/** Statements of one side, found by their words. */
interface Statements<One extends Statement = Statement> {
  readonly all: readonly One[];
  readonly index: WordIndex;
  readonly words: ReadonlySet<string>;
}

interface Evidence {
  /** What people typed. */
  readonly user: Statements;
  readonly typed: TypedWords;
  readonly assistant: Statements<AnswerStatement>;
  readonly foreign: readonly ForeignStatement[];
  readonly passages: { readonly all: readonly Passage[]; readonly index: WordIndex };
  readonly memory: Statements;
  readonly remembered: TypedWords;
}

function toStatements<One extends Statement>(all: readonly One[]): Statements<One> {
  return { all, index: indexWords(all.map(({ words }) => words)), words: new Set(all.flatMap(({ words }) => [...words])) };
}

function evidenceIn({ entries, currentMemory, trustedTools }: ProvenanceRequest): Evidence {
  const texts = entries.flatMap((entry) => foreignTexts(entry, trustedTools));
  const foreign = texts.map(({ text, ...from }): ForeignStatement => ({ ...from, words: evidenceWords(text) }));
  const passages = texts.flatMap(({ text }, at) => {
    const from = foreign[at];
    if (from === undefined || from.isTrusted) return [];
    return text.split(SENTENCE_END).map((sentence): Passage => ({ words: evidenceWords(sentence), from }));
  });
  // Its day comes with a message, and a model may write it into a line.
  const typed = entries.flatMap(({ message, turn, ts }) =>
    isFromPerson(message) ? [{ text: textFrom(shownPart(message.text), 'typed'), turn, day: dayWords(ts) }] : [],
  );
  const lines = splitLines(currentMemory).slice(0, MAX_EVIDENCE_LINES);
  return {
    user: toStatements(typed.map(({ text, turn, day }) => ({ words: new Set([...evidenceWords(text), ...day]), turn }))),
    typed: typedWords(typed),
    assistant: toStatements(answersIn(entries, trustedTools)),
    foreign,
    passages: { all: passages, index: indexWords(passages.map(({ words }) => words)) },
    memory: toStatements(lines.map((line) => ({ words: evidenceWords(line), turn: '' }))),
    remembered: typedWords(lines.map((text) => ({ text, turn: '', day: new Set() }))),
  };
}

type ForeignText = Omit<ForeignStatement, 'words'> & { readonly text: string };

function foreignTexts({ message, turn }: Entry, trustedTools: ReadonlySet<string>): readonly ForeignText[] {
  if (message.role === 'tool') {
    return [{ trust: `tool:${message.name}`, isTrusted: trustedTools.has(message.name), turn, text: shownPart(message.text) }];
  }
  if (message.role !== 'user') return [];
  const whole = shownPart(message.text);
  if (message.late) {
    const { name, text } = message.late;
    return [{ trust: `tool:${name}`, isTrusted: trustedTools.has(name), turn, text }];
  }
  if (message.from === 'notice') return [];
  if (message.from === 'app') return [{ trust: 'application', isTrusted: false, turn, text: whole }];
  return (['file', 'application'] as const).flatMap((trust) => {
    const text = textFrom(whole, trust);
    return text === '' ? [] : [{ trust, isTrusted: false, turn, text }];
  });
}

function answersIn(entries: readonly Entry[], trustedTools: ReadonlySet<string>): AnswerStatement[] {
  const spoke = new Map<string, Set<string>>();
  return entries.flatMap((entry) => {
    const { turn, message } = entry;
    const ofTurn = spoke.get(turn) ?? new Set<string>();
    spoke.set(turn, ofTurn);
    for (const source of listSources(entry, trustedTools)) ofTurn.add(source);
    if (message.role !== 'assistant') return [];
    const after = [...ofTurn].sort();
    return message.blocks.flatMap((block) => (block.kind === 'text' ? [{ words: evidenceWords(shownPart(block.text)), turn, after }] : []));
  });
}

function toSource(trust: Trust, conversation: string, turns: readonly string[], tools: readonly string[] = []): LineSource {
  return {
    trust,
    conversation,
    ...(turns.length > 0 ? { turn_ids: [...new Set(turns)].sort() } : {}),
    ...(tools.length > 0 && { tools }),
  };
}

function findSource(line: string, evidence: Evidence, conversation: string, spoke: readonly string[]): LineSource {
  const needed = significantWords(foldedLine(line));
  const words = allWords(needed);
  const user = bestSupport(words, evidence.user);
  if (isWhole(user, needed.hard)) {
    const adder = passageBeyond(words, user, evidence);
    if (adder) return toSource(adder.trust, conversation, [adder.turn]);
    const turns = evidence.typed.findTurns(line, needed);
    if (turns) return toSource('user', conversation, turns);
  }
  // The same holds for a line without a word (consolidation/only-the-rest-judged).
  const memory = bestSupport(words, evidence.memory);
  const rest = memory.share >= REWRITTEN_SHARE ? without(words, memory.found) : words;
  const neededRest: SignificantWords = { soft: intersection(needed.soft, rest), hard: intersection(needed.hard, rest) };
  const userOfRest = bestSupport(rest, evidence.user);
  const turns = rest.size > 0 && rest.size < words.size ? evidence.typed.findTurns(line, neededRest) : undefined;
  if (turns && isWhole(userOfRest, neededRest.hard)) return toSource('user', conversation, turns);
  const foreign = foreignBehind(rest, neededRest.hard, userOfRest, evidence);
  if (foreign) return toSource(foreign.trust, conversation, [foreign.turn]);
  const answers = bestSupport(words, evidence.assistant);
  const isAnswer = answers.share >= USER_SHARE;
  const tools = isAnswer ? [...new Set(answers.statements.flatMap(({ after }) => after))].sort() : rest.size > 0 ? spoke : [];
  return toSource('model', conversation, turnsIn(isWhole(user, needed.hard) ? user : answers), tools);
}

interface Support<One extends Statement = Statement> {
  readonly share: number;
  readonly found: ReadonlySet<string>;
  readonly statements: readonly One[];
}

function turnsIn({ statements }: Support): string[] {
  return statements.map(({ turn }) => turn);
}

/** The words of the few messages that have most of the line. All of a long conversation has every common word. */
function bestSupport<One extends Statement>(words: ReadonlySet<string>, { all, index }: Statements<One>): Support<One> {
  const found = new Set<string>();
  const statements: One[] = [];
  for (let taken = 0; taken < USER_MESSAGES; taken++) {
    const missing = without(words, found);
    let best = { at: Infinity, count: 0 };
    index.forEachSharing(missing, (at, count) => {
      if (count > best.count || (count === best.count && at < best.at)) best = { at, count };
    });
    const statement = all[best.at];
    if (statement === undefined) break;
    for (const word of missing) if (statement.words.has(word)) found.add(word);
    statements.push(statement);
  }
  return { share: weightedShare(words, found), found, statements };
}

function weightedShare(words: ReadonlySet<string>, others: ReadonlySet<string>): number {
  const found = new Set([...words].filter((word) => others.has(word)));
  return words.size === 0 ? 0 : weigh(found) / weigh(words);
}

function isWhole({ share, found }: Support, hard: ReadonlySet<string>): boolean {
  return share >= USER_SHARE && [...hard].every((word) => found.has(word));
}

function passageBeyond(words: ReadonlySet<string>, user: Support, { passages: { all, index } }: Evidence): ForeignStatement | undefined {
  const unsaid = without(words, user.found);
  let first = Infinity;
  index.forEachSharing(unsaid, (at, count) => {
    const passage = all[at];
    if (at < first && count === unsaid.size && passage && weightedShare(words, passage.words) >= user.share) first = at;
  });
  return all[first]?.from;
}

/** (consolidation/brought-by-a-tool) */
function foreignBehind(
  words: ReadonlySet<string>,
  hard: ReadonlySet<string>,
  user: Support,
  { foreign, assistant }: Evidence,
): ForeignStatement | undefined {
  const unsaid = [...hard].filter((word) => isSignificant(word) && !user.found.has(word));
  const candidates = foreign.flatMap((one) => {
    const share = weightedShare(words, one.words);
    const passedOn =
      share >= PASSED_ON_SHARE &&
      assistant.all.some((answer) => answer.turn === one.turn && weightedShare(words, answer.words) >= USER_SHARE);
    const brings = unsaid.some((word) => one.words.has(word));
    const hardOnes = [...hard].filter((word) => one.words.has(word)).length;
    const saysMore = share > user.share || hardOnes > [...hard].filter((word) => user.found.has(word)).length;
    return brings || (saysMore && (share >= TOOL_SHARE || passedOn)) ? [{ ...one, support: share + (brings ? 1 : 0) }] : [];
  });
  return candidates.sort((a, b) => b.support - a.support || Number(b.isTrusted) - Number(a.isTrusted))[0];
}

function without(words: ReadonlySet<string>, others: ReadonlySet<string>): Set<string> {
  return new Set([...words].filter((word) => !others.has(word)));
}

function intersection(words: ReadonlySet<string>, others: ReadonlySet<string>): Set<string> {
  return new Set([...words].filter((word) => others.has(word)));
}

function dayWords(ts: number): Set<string> {
  const date = new Date(ts * 1000);
  return Number.isNaN(date.getTime()) ? new Set() : evidenceWords(date.toISOString().slice(0, 10));
}

/** What is not at hand is known by its preview, without the note on how to read the rest. */
function shownPart(body: Body): string {
  return isBodyRef(body) ? body.preview : shownText(body);
}
