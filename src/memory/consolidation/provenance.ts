/**
 * Where each new line of MEMORY.md comes from, and which of them wait for a person (design section 4: what a tool brought into
 * memory carries where it came from). The evidence is lexical: the same conversation gives the same answer, and no model can be
 * talked out of it.
 *
 * A line is new if the current memory does not have it; moved, indented or numbered anew it is the same line. A line without such a source
 * is the model's conclusion: `model`.
 *
 * A page with every common word does not take a line from the user. One passage of an untrusted tool does, if it has every word that the
 * user did not use, and as much of the line as they: then the line was the user's until the tool added to it. Words of an assistant's
 * answer count as the tool's if the tool's result, in the same turn, has them too: the model only passed them on.
 *
 * Limits: it sees words, not meaning. A tool's text in another language than the line counts as the model's conclusion, which
 * then waits (consolidation/untrusted-waits). So does a tool's result of an earlier range, if the model repeats it in this one.
 *
 * @rule consolidation/from-the-user: A line is the user's if up to three of their messages have 60 % of its words and everything hard in
 *   it (documents/hard-words-exact). (test: test/memory/consolidation-provenance.test.ts)
 * @rule consolidation/only-the-rest-judged: If half of a line or more is in memory, only the rest of it is judged; without a rest it is
 *   the model's rewriting. (test: test/memory/consolidation-provenance.test.ts)
 * @rule consolidation/brought-by-a-tool: A line is a tool's (`tool:<name>`) if a result supports it better than the user does; a trusted
 *   tool goes before another one. (test: test/memory/consolidation-provenance.test.ts)
 * @rule consolidation/untrusted-waits: A line from an untrusted tool, or a model's conclusion after such a tool spoke (`waitsForReview`), waits
 *   for a person; the line that it would have replaced stays. (test: test/memory/consolidation-provenance.test.ts)
 */
import { diffArrays } from 'diff';
import { isNotice, isBodyRef, shownText, type Body, type Entry } from '../../records/message.js';
import {
  type LineSource,
  type SourcedLine,
  type Trust,
  foldedLine,
  lineCounts,
  splitLines,
  takeLine,
} from '../../records/memory/documents.js';
import { allWords, evidenceWords, indexWords, significantWords, type WordIndex } from '../documents/significant-words.js';
import { INTERNAL_TOOLS, waitsForReview, type ReviewWhenToolsSpoke } from './review.js';

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
  /** Lines that only an untrusted tool's word stands behind, or may. */
  readonly proposed: readonly SourcedLine[];
}

const USER_SHARE = 0.6;
const USER_MESSAGES = 3;
const TOOL_SHARE = 0.5;
/** Of the line in a tool's result, when the answer of the same turn has the rest. */
const PASSED_ON_SHARE = 0.3;
const SENTENCE_END = /[.!?](?=\s|$)|[。！？\n]/u;
/** Of a longer memory, which a person has written, the first lines. */
const MAX_EVIDENCE_LINES = 4_000;
/** Comparing takes time by its square. */
const MAX_EDITS = 1_000;
/** From here on a new line is a rewriting of an old one. */
const REWRITTEN_SHARE = 0.5;

export function withProvenance(request: ProvenanceRequest): Provenance {
  const { currentMemory, memoryUpdate, trustedTools, entries, reviewWhenToolsSpoke = true } = request;
  const before = splitLines(currentMemory);
  const after = splitLines(memoryUpdate);
  const evidence = evidenceIn(request);
  const isNew = newIn(before, after);
  const tools = toolsThatSpoke(entries, trustedTools);
  const isKnown = (word: string): boolean =>
    [...evidenceWords(word)].every((part) => evidence.user.words.has(part) || evidence.memory.words.has(part));
  const isToReview = (line: string): boolean => tools.length > 0 && waitsForReview(line, reviewWhenToolsSpoke, isKnown);
  const sources = after.map((line, at): LineSource | undefined => {
    const source = isNew[at] ? findSource(line, evidence, request.conversation) : undefined;
    return source?.trust === 'model' && isToReview(line) ? { ...source, tools } : source;
  });
  const isProposed = sources.map(
    (source) => source !== undefined && (source.tools !== undefined || isUntrustedTool(source.trust, trustedTools)),
  );
  const sourced = (wanted: boolean): SourcedLine[] =>
    after.flatMap((line, at) => {
      const source = sources[at];
      return source === undefined || isProposed[at] !== wanted ? [] : [{ line, source }];
    });
  const text = isProposed.includes(true) ? withoutProposed(before, after, isNew, isProposed) : memoryUpdate;
  return { text, added: sourced(false), proposed: sourced(true) };
}

/** Names of the tools in a range whose word is not enough, sorted. */
export function toolsThatSpoke(entries: readonly Entry[], trusted: ReadonlySet<string>): readonly string[] {
  const names = entries.flatMap(({ message }) => (message.role === 'tool' ? [message.name] : []));
  return [...new Set(names)].filter((name) => !trusted.has(name) && !INTERNAL_TOOLS.has(name)).sort();
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

interface ToolStatement extends Statement {
  readonly name: string;
  readonly isTrusted: boolean;
}

/** A sentence of a tool that is not trusted. */
interface Passage {
  readonly words: ReadonlySet<string>;
  readonly tool: ToolStatement;
}

/** Statements of one side, found by their words. */
interface Statements {
  readonly all: readonly Statement[];
  readonly index: WordIndex;
  readonly words: ReadonlySet<string>;
}

interface Evidence {
  readonly user: Statements;
  readonly assistant: Statements;
  readonly tools: readonly ToolStatement[];
  readonly passages: { readonly all: readonly Passage[]; readonly index: WordIndex };
  readonly memory: Statements;
}

function toStatements(all: readonly Statement[]): Statements {
  return { all, index: indexWords(all.map(({ words }) => words)), words: new Set(all.flatMap(({ words }) => [...words])) };
}

function evidenceIn({ entries, currentMemory, trustedTools }: ProvenanceRequest): Evidence {
  const statement = (body: Body, turn: string): Statement => ({ words: evidenceWords(shownPart(body)), turn });
  const tools = entries.flatMap(({ turn, message }): (ToolStatement & { readonly text: string })[] => {
    if (message.role !== 'tool') return [];
    const isTrusted = trustedTools.has(message.name);
    return [{ ...statement(message.text, turn), name: message.name, isTrusted, text: shownPart(message.text) }];
  });
  const passages = tools.flatMap((tool) =>
    tool.isTrusted ? [] : tool.text.split(SENTENCE_END).map((sentence): Passage => ({ words: evidenceWords(sentence), tool })),
  );
  // Its day comes with a message, and a model may write it into a line.
  const dated = (body: Body, { turn, ts }: Entry): Statement => ({
    words: new Set([...statement(body, turn).words, ...dayWords(ts)]),
    turn,
  });
  return {
    user: toStatements(
      entries.flatMap((entry) => (entry.message.role === 'user' && !isNotice(entry.message) ? [dated(entry.message.text, entry)] : [])),
    ),
    assistant: toStatements(
      entries.flatMap(({ turn, message }) =>
        message.role === 'assistant' ? message.blocks.flatMap((block) => (block.kind === 'text' ? [statement(block.text, turn)] : [])) : [],
      ),
    ),
    tools,
    passages: { all: passages, index: indexWords(passages.map(({ words }) => words)) },
    memory: toStatements(
      splitLines(currentMemory)
        .slice(0, MAX_EVIDENCE_LINES)
        .map((line) => statement(line, '')),
    ),
  };
}

function findSource(line: string, evidence: Evidence, conversation: string): LineSource {
  const { soft, hard } = significantWords(foldedLine(line));
  const words = allWords({ soft, hard });
  const by = (trust: Trust, turns: readonly string[]): LineSource => ({
    trust,
    conversation,
    ...(turns.length > 0 ? { turn_ids: [...new Set(turns)].sort() } : {}),
  });
  const user = bestSupport(words, evidence.user);
  if (isWhole(user, hard)) {
    const adder = passageBeyond(words, user, evidence);
    return adder ? by(`tool:${adder.name}`, [adder.turn]) : by('user', user.turns);
  }
  // The same holds for a line without a word (consolidation/only-the-rest-judged).
  const memory = bestSupport(words, evidence.memory);
  const rest = memory.share >= REWRITTEN_SHARE ? without(words, memory.found) : words;
  const hardRest = without(hard, without(hard, rest));
  const userOfRest = bestSupport(rest, evidence.user);
  if (rest.size > 0 && isWhole(userOfRest, hardRest)) return by('user', userOfRest.turns);
  const tool = toolBehind(rest, hardRest, userOfRest, evidence);
  return tool ? by(`tool:${tool.name}`, [tool.turn]) : by('model', bestSupport(words, evidence.assistant).turns);
}

interface Support {
  readonly share: number;
  readonly found: ReadonlySet<string>;
  readonly turns: readonly string[];
}

/**
 * The words of the few messages that have most of the line. All of a long conversation has every common word
 * (consolidation/from-the-user).
 */
function bestSupport(words: ReadonlySet<string>, { all, index }: Statements): Support {
  const found = new Set<string>();
  const turns: string[] = [];
  for (let taken = 0; taken < USER_MESSAGES; taken++) {
    const missing = without(words, found);
    let best = { at: Infinity, count: 0 };
    index.forEachSharing(missing, (at, count) => {
      if (count > best.count || (count === best.count && at < best.at)) best = { at, count };
    });
    const statement = all[best.at];
    if (statement === undefined) break;
    for (const word of missing) if (statement.words.has(word)) found.add(word);
    turns.push(statement.turn);
  }
  return { share: weightedShare(words, found), found, turns };
}

function weightedShare(words: ReadonlySet<string>, others: ReadonlySet<string>): number {
  const found = new Set([...words].filter((word) => others.has(word)));
  return words.size === 0 ? 0 : weigh(found) / weigh(words);
}

/** An address weighs as two words: "mail me at ada@x.org" is all of "Email: ada@x.org". */
function weigh(words: ReadonlySet<string>): number {
  return words.size + [...words].filter(isSignificant).length;
}

function isWhole({ share, found }: Support, hard: ReadonlySet<string>): boolean {
  return share >= USER_SHARE && [...hard].every((word) => found.has(word));
}

/** (consolidation/from-the-user) */
function passageBeyond(words: ReadonlySet<string>, user: Support, { passages: { all, index } }: Evidence): ToolStatement | undefined {
  const unsaid = without(words, user.found);
  let first = Infinity;
  index.forEachSharing(unsaid, (at, count) => {
    const passage = all[at];
    if (at < first && count === unsaid.size && passage && weightedShare(words, passage.words) >= user.share) first = at;
  });
  return all[first]?.tool;
}

/** (consolidation/brought-by-a-tool) */
function toolBehind(
  words: ReadonlySet<string>,
  hard: ReadonlySet<string>,
  user: Support,
  { tools, assistant }: Evidence,
): ToolStatement | undefined {
  const unsaid = [...hard].filter((word) => isSignificant(word) && !user.found.has(word));
  const candidates = tools.flatMap((tool) => {
    const share = weightedShare(words, tool.words);
    const passedOn =
      share >= PASSED_ON_SHARE &&
      assistant.all.some((answer) => answer.turn === tool.turn && weightedShare(words, answer.words) >= USER_SHARE);
    const brings = unsaid.some((word) => tool.words.has(word));
    const hardOnes = [...hard].filter((word) => tool.words.has(word)).length;
    const saysMore = share > user.share || hardOnes > [...hard].filter((word) => user.found.has(word)).length;
    return brings || (saysMore && (share >= TOOL_SHARE || passedOn)) ? [{ ...tool, support: share + (brings ? 1 : 0) }] : [];
  });
  return candidates.sort((a, b) => b.support - a.support || Number(b.isTrusted) - Number(a.isTrusted))[0];
}

/** An address, a path, a name with dots or a long number: no page has it by chance. */
function isSignificant(word: string): boolean {
  return /[@./\\]/.test(word) || /\d.*\d.*\d.*\d/.test(word);
}

/** Removed lines go back to where the proposed line stands that replaced them (consolidation/untrusted-waits). */
function withoutProposed(
  before: readonly string[],
  after: readonly string[],
  isNew: readonly boolean[],
  isProposed: readonly boolean[],
): string {
  const places = after.flatMap((_, at) => (isNew[at] ? [at] : []));
  const index = indexWords(places.map((at) => foldedWords(after[at] ?? '')));
  const restored = new Map<number, string[]>();
  const proposedIn = ({ from, to }: Range): number | undefined => {
    const at = isProposed.indexOf(true, from);
    return at !== -1 && at < to ? at : undefined;
  };
  for (const { line, besides } of removedLines(before, after)) {
    const words = foldedWords(line);
    let best: { readonly at: number; readonly count: number } | undefined;
    // The same in a line that stays and in a proposed one: it is not lost.
    const isBetter = (at: number, count: number): boolean =>
      best === undefined || (count - best.count || Number(isProposed[best.at]) - Number(isProposed[at]) || best.at - at) > 0;
    index.forEachSharing(words, (place, count) => {
      const at = places[place];
      if (at !== undefined && isBetter(at, count)) best = { at, count };
    });
    const home = best !== undefined && best.count / words.size >= REWRITTEN_SHARE ? best.at : proposedIn(besides);
    if (home !== undefined && isProposed[home]) restored.set(home, [...(restored.get(home) ?? []), line]);
  }
  return after.flatMap((line, at) => (isProposed[at] ? (restored.get(at) ?? []) : [line])).join('\n');
}

/** Places of lines, from the first to before the last. */
interface Range {
  readonly from: number;
  readonly to: number;
}

/** Lines of `before` that are nowhere in `after`, each with the lines of `after` that are in its place. */
function removedLines(before: readonly string[], after: readonly string[]): { readonly line: string; readonly besides: Range }[] {
  const still = lineCounts(after);
  const isGone = before.map((line) => !takeLine(still, line));
  const gone: { line: string; besides: Range }[] = [];
  let from = 0;
  let to = 0;
  let pending: { line: string; besides: Range }[] = [];
  // Texts further apart have one part that is gone, and one that is new.
  const parts = diffArrays(before.map(foldedLine), after.map(foldedLine), { maxEditLength: MAX_EDITS }) ?? [
    { added: false, removed: true, count: before.length },
    { added: true, removed: false, count: after.length },
  ];
  for (const { added, removed, count } of parts) {
    if (removed) {
      const besides = { from: to, to };
      pending = before.slice(from, from + count).flatMap((line, at) => (isGone[from + at] ? [{ line, besides }] : []));
      for (const removal of pending) gone.push(removal);
      from += count;
    } else if (added) {
      for (const removal of pending) removal.besides = { from: to, to: to + count };
      to += count;
      pending = [];
    } else {
      from += count;
      to += count;
      pending = [];
    }
  }
  return gone;
}

function without(words: ReadonlySet<string>, others: ReadonlySet<string>): Set<string> {
  return new Set([...words].filter((word) => !others.has(word)));
}

function foldedWords(line: string): Set<string> {
  return allWords(significantWords(foldedLine(line)));
}

function dayWords(ts: number): Set<string> {
  const date = new Date(ts * 1000);
  return Number.isNaN(date.getTime()) ? new Set() : evidenceWords(date.toISOString().slice(0, 10));
}

/** What is not at hand is known by its preview, without the note on how to read the rest. */
function shownPart(body: Body): string {
  return isBodyRef(body) ? body.preview : shownText(body);
}
