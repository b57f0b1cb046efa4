/**
 * From a window of turns to memory (seed 000, "Summarizer"): by a model, and where that does not work, by rule. A bad answer never
 * fails a turn.
 *
 * S1  The model is asked once, and once more when its answer was not usable, with the reason.
 * S2  File operations and tool failures are facts: they come into the summary by themselves, whoever writes it.
 * S3  Being stopped is no failure: an interrupt goes through.
 */
import type { Entry } from '../../records/message.js';
import { cut, oneLine } from '../../records/text.js';
import { workNotes } from './file-operations.js';
import { ruleSummary } from './rule-summary.js';
import { parseSummary, type Summary } from './summary-answer.js';
import { repairPrompt, summaryPrompt, type SummaryRequest } from './summary-prompt.js';

/** Asks a model; resolves with all of its text. */
export type Ask = (system: string, text: string) => Promise<string>;

export interface Summarized extends Summary {
  readonly method: 'model' | 'repaired' | 'rules';
  /** Why it was not `model`, for people; absent when it was. */
  readonly failure?: string;
}

const FAILURE_CHARACTERS = 500;
/** By name: the errors come from several packages, and from other realms. */
const INTERRUPTS: readonly string[] = ['AbortError', 'ModelInterrupted', 'CancelledFailure'];

/** Throws only what says that the work was stopped (S3). */
export async function summarize(
  ask: Ask,
  entries: readonly Entry[],
  options: Omit<SummaryRequest, 'entries'> & { readonly signal?: AbortSignal } = {},
): Promise<Summarized> {
  const prompt = summaryPrompt({ ...options, entries });
  const first = await askFor(ask, prompt, options.signal);
  if (first.ok) return withNotes(first.summary, entries, { method: 'model' });
  if (first.answer !== undefined) {
    const second = await askFor(ask, repairPrompt(prompt, first.answer, first.reason), options.signal);
    if (second.ok) return withNotes(second.summary, entries, { method: 'repaired', failure: first.reason });
    return withNotes(ruleSummary(entries, options), entries, { method: 'rules', failure: second.reason });
  }
  return withNotes(ruleSummary(entries, options), entries, { method: 'rules', failure: first.reason });
}

type Asked =
  | { readonly ok: true; readonly summary: Summary }
  /** Without `answer` there was none. */
  | { readonly ok: false; readonly reason: string; readonly answer?: string };

async function askFor(ask: Ask, { system, text }: { system: string; text: string }, signal: AbortSignal | undefined): Promise<Asked> {
  let answer: string;
  try {
    answer = await ask(system, text);
  } catch (error) {
    if (signal?.aborted || isInterrupt(error)) throw error;
    return { ok: false, reason: cut(oneLine(`the summarizer did not answer: ${messageOf(error)}`), FAILURE_CHARACTERS) };
  }
  const parsed = parseSummary(answer);
  return parsed.ok ? parsed : { ok: false, reason: cut(oneLine(parsed.reason), FAILURE_CHARACTERS), answer };
}

/** S2. */
export function withNotes(
  { episodic, semantic }: Summary,
  entries: readonly Entry[],
  how: { readonly method: Summarized['method']; readonly failure?: string },
): Summarized {
  const notes = workNotes(entries);
  return { episodic: { ...episodic, summary: notes === '' ? episodic.summary : `${episodic.summary}\n${notes}` }, semantic, ...how };
}

export function isInterrupt(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'name' in error && INTERRUPTS.includes(String(error.name));
}

function messageOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : String(error);
}
