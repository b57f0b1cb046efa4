/**
 * From a window of turns to memory (seed 000, "Summarizer"): by a model, and where that does not work, by rule. A bad answer never
 * fails a turn.
 *
 * The model gets one call, and a second one with the reason if its answer was not usable. A record that is too long is read in pieces
 * before (long-record.ts).
 *
 * @rule compaction/facts-in-every-summary: File operations and tool failures are facts: every summary has them, also one that a model
 *   writes. (test: test/memory/summary.test.ts)
 * @rule compaction/interrupt-passes: An interrupt is no failure: it passes through. (test: test/memory/summary.test.ts)
 */
import { isNotice, type Entry, shownText } from '../../records/message.js';
import { cut, oneLine } from '../../records/text.js';
import { readPieces, type Ask } from '../long-record.js';
import { workNotes } from './recent-turns.js';
import { onlyKnown, parseSummary, type Summary, SUMMARY_LIMITS } from './summary-answer.js';
import { repairPrompt, summaryPrompt, type SummaryPrompt, type SummaryRequest } from './summary-prompt.js';
import { turnNumber } from '../../records/identity.js';
import { errorMessage } from '../../platform/errors.js';
import { countSlots } from '../../records/slots.js';
import type { EpisodeRecord } from '../../stores/store.js';

/** What a compaction has made of turns, and by which way. */
export interface Summarized extends Summary {
  readonly method: 'model' | 'repaired' | 'rules';
  /** Why it was not `model`, for people; absent when it was. */
  readonly failure?: string;
}

const FAILURE_CHARACTERS = 500;
/** By name: the errors come from several packages, and from other realms. */
const INTERRUPTS: readonly string[] = ['AbortError', 'ModelInterrupted', 'CancelledFailure'];

export interface SummarizeOptions extends Omit<SummaryRequest, 'entries' | 'notes'> {
  readonly signal?: AbortSignal;
  /** Takes the notes on what is too long; default: `ask`. */
  readonly askForNotes?: Ask;
  /** Failures that are the caller's to see to, who asks later or with less. Default: none. */
  readonly throws?: (error: unknown) => boolean;
}

/** Throws only what says that the work was stopped (compaction/interrupt-passes), and what `throws` names. */
export async function summarize(
  ask: Ask,
  entries: readonly Entry[],
  { signal, askForNotes = ask, throws = () => false, ...options }: SummarizeOptions = {},
): Promise<Summarized> {
  const byRule = (failure: string): Summarized => summarizeByRules(entries, { failure });
  try {
    const prompt = await wholePrompt(askForNotes, { ...options, entries });
    const answer = await ask(prompt.system, prompt.text);
    const first = parseSummary(answer, prompt.text);
    if (first.ok) return withNotes(onlyKnown(first.summary, prompt.shown), entries, { method: 'model' });
    const repair = repairPrompt(prompt, answer, cut(oneLine(first.reason), FAILURE_CHARACTERS));
    // What a repair shows of the first answer is the model's text, and no part of the question.
    const second = parseSummary(await ask(repair.system, repair.text), prompt.text);
    if (!second.ok) return byRule(second.reason);
    return withNotes(onlyKnown(second.summary, prompt.shown), entries, {
      method: 'repaired',
      failure: cut(oneLine(first.reason), FAILURE_CHARACTERS),
    });
  } catch (error) {
    if (signal?.aborted || isInterrupt(error) || throws(error)) throw error;
    return byRule(`the summarizer did not answer: ${errorMessage(error)}`);
  }
}

export function summarizeByRules(entries: readonly Entry[], { failure = '' }: { readonly failure?: string | undefined } = {}): Summarized {
  return withNotes(ruleSummary(entries), entries, { method: 'rules', failure: cut(oneLine(failure), FAILURE_CHARACTERS) });
}

/** With the notes on what it has no room for. */
async function wholePrompt(ask: Ask, request: SummaryRequest): Promise<SummaryPrompt> {
  const prompt = summaryPrompt(request);
  if (prompt.pieces.length === 0) return prompt;
  return summaryPrompt({ ...request, notes: await readPieces(ask, prompt.pieces) });
}

/** (compaction/facts-in-every-summary) */
export function withNotes(
  { episodic, ...facts }: Summary,
  entries: readonly Entry[],
  how: { readonly method: Summarized['method']; readonly failure?: string },
): Summarized {
  const notes = workNotes(entries);
  return { episodic: { ...episodic, summary: notes === '' ? episodic.summary : `${episodic.summary}\n${notes}` }, ...facts, ...how };
}

export function isInterrupt(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'name' in error && INTERRUPTS.includes(String(error.name));
}

// A summary without a model: the same window gives the same summary, always, so that no compaction ever fails for want of one.

const ASKED_CHARACTERS = 160;
const ANSWERED_CHARACTERS = 240;
const FACT_CHARACTERS = SUMMARY_LIMITS.fact - 20;
/** Facts by rule are the person's words, but no model has judged them. */
const REMEMBERED = { tags: ['remember'], confidence: 0.6, salience: 0.8 } as const;

export function ruleSummary(entries: readonly Entry[]): Summary {
  const turns = toSummarizedTurns(entries);
  return {
    episodic: {
      summary: fitting(turns.map(turnLine), SUMMARY_LIMITS.summary - 100).join('\n') || 'Nothing was said.',
      tags: ['by-rule'],
      salience: 0.5,
    },
    semantic: rememberedIn(turns),
  };
}

/** A line for each turn: its question and its last answer. */
export function outlineTurns(entries: readonly Entry[], maxCharacters: number): string {
  return fitting(toSummarizedTurns(entries).map(turnLine), maxCharacters).join('\n');
}

interface SummarizedTurn {
  readonly number: number;
  /** All that the person wrote in it. */
  readonly question: string;
  /** The last text of the assistant. */
  readonly answered: string;
  readonly tools: number;
}

function toSummarizedTurns(entries: readonly Entry[]): SummarizedTurn[] {
  return [...new Set(entries.map(({ turn }) => turn))].map((turn) => {
    const messages = entries.filter((entry) => entry.turn === turn).map(({ message }) => message);
    const questions = messages.flatMap((message) => (message.role === 'user' && !isNotice(message) ? [shownText(message.text)] : []));
    const answers = messages.flatMap((message) =>
      message.role === 'assistant' ? message.blocks.flatMap((block) => (block.kind === 'text' ? [shownText(block.text)] : [])) : [],
    );
    return {
      number: turnNumber(turn),
      question: questions.join('\n'),
      answered: answers.findLast((text) => text.trim() !== '') ?? '',
      tools: messages.filter(({ role }) => role === 'tool').length,
    };
  });
}

function turnLine({ number, question, answered, tools }: SummarizedTurn): string {
  const used = tools === 0 ? '' : ` (${tools} tool ${tools === 1 ? 'call' : 'calls'})`;
  const reply = answered === '' ? 'no answer' : cut(oneLine(answered), ANSWERED_CHARACTERS);
  return `Turn ${number}: asked: ${cut(oneLine(question), ASKED_CHARACTERS)} | answered${used}: ${reply}`;
}

/** The first and the last lines that have room, and how many are between. */
function fitting(lines: readonly string[], room: number): string[] {
  const total = lines.reduce((sum, line) => sum + line.length + 1, 0);
  if (total <= room) return [...lines];
  const head: string[] = [];
  const tail: string[] = [];
  let left = room;
  for (let i = 0; i < lines.length; i++) {
    const fromEnd = i % 2 === 0;
    const line = fromEnd ? lines[lines.length - 1 - i / 2] : lines[(i - 1) / 2];
    left -= (line ?? '').length + 1;
    if (line === undefined || left < 0) break;
    if (fromEnd) tail.unshift(line);
    else head.push(line);
  }
  return [...head, `[left out here: ${lines.length - head.length - tail.length} of ${lines.length} turns]`, ...tail];
}

/** Only what the person wanted remembered, in so many (English) words. */
const ASKS_TO_REMEMBER = /\b(remember|don['’]t forget|do not forget|keep in mind|from now on)\b/i;

function rememberedIn(turns: readonly SummarizedTurn[]): Summary['semantic'] {
  const facts = turns.flatMap(({ question }) =>
    question
      .split(/(?<=[.!?])\s+|\n/)
      .map(oneLine)
      .filter((sentence) => ASKS_TO_REMEMBER.test(sentence) && !sentence.endsWith('?') && sentence.length <= FACT_CHARACTERS),
  );
  return [...new Set(facts)]
    .slice(-SUMMARY_LIMITS.facts)
    .map((fact) => ({ fact: `The person said: ${fact}`, ...REMEMBERED, tags: [...REMEMBERED.tags] }));
}

// Summaries that rules have made for want of a model, and shortened lines that a trim has left: as `[raw-fallback]` entries of HISTORY they
// stand until a model has read their turns.

/** How many entries are read again at once: what a long absence of the model has left is caught up with bit by bit. */
const MAX_ENTRIES = 2_000;

/** Of a session's episodes that count, newest first, those that the next compaction reads again: the newest that fit, oldest first. */
export function selectProvisional(episodes: readonly EpisodeRecord[]): EpisodeRecord[] {
  let room = MAX_ENTRIES;
  const made = episodes.filter((episode) => (episode.made?.method === 'rules' || hasShortenedLines(episode)) && episode.slots.length > 0);
  return made.filter(({ slots }) => (room -= countSlots(slots)) >= 0).reverse();
}

/** Of an episode that a trim has made: some of its messages no model had summarized. */
export const SHORTENED = 'by-rule';

/** A compaction says itself how it was made, whatever tags its model has thought of. */
export function hasShortenedLines({ made, tags }: EpisodeRecord): boolean {
  return made === undefined && tags.includes('trimmed') && tags.includes(SHORTENED);
}
