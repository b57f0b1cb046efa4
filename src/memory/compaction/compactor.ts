/**
 * Who makes memory of older turns (seed 004, CompactionManager): a registry with `WorkingFlowCompactor`, and custom compactors.
 *
 * - A compactor that throws, hangs or gives an unusable answer costs no turn: the default does the work, and the result says so.
 * - Its answer is checked and cut to the same bounds as a model's answer.
 * - An interrupt is no failure (compaction/interrupt-passes).
 */
import { z } from 'zod';
import type { Entry } from '../../records/message.js';
import { cut, oneLine } from '../../records/text.js';
import { foldedFact } from '../../records/memory/items.js';
import { flattenTurns, type FlatTurn } from './recent-turns.js';
import type { KnownFact } from './summary-prompt.js';
import { checkSummary, type ParsedSummary } from './summary-answer.js';
import type { Ask } from '../long-record.js';
import { isInterrupt, summarize, withNotes, type SummarizeOptions, type Summarized } from './summary.js';
import { timeoutSignal, orAborted } from '../../platform/promises.js';
import { errorMessage } from '../../platform/errors.js';

/** The default's name (seed 004). */
export const WORKING_FLOW_COMPACTOR = 'WorkingFlowCompactor';
/** An agent.json names them. */
export const COMPACTOR_NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,99}$/;

/** What a compactor works on. */
export interface CompactorInput {
  /** The turns that are to become memory, as text; each text in them cut to 8,000 characters. */
  readonly turns: readonly FlatTurn[];
  /** The same as messages, with every text at hand. */
  readonly entries: readonly Entry[];
  /** What the conversation is for, and what is still open of it. */
  readonly goal: string;
  readonly openTasks: readonly string[];
  /** What earlier compactions of the session say; '' at the first one. */
  readonly progress: string;
  /** What the scope knows already. */
  readonly knownFacts: readonly string[];
  /** Aborted when the work is stopped, or has taken too long. */
  readonly signal: AbortSignal;
  /** Asks the model that the agent summarizes with; resolves with its text. What it costs is counted. */
  readonly ask: Ask;
}

/** What a compactor has made. */
export interface CompactorAnswer {
  /** Replaces the turns; cut to 6,000 characters. */
  readonly summary: string;
  /** The 20 most salient count, each cut to 500 characters. */
  readonly facts?: readonly (
    | string
    | {
        readonly fact: string;
        readonly tags?: readonly string[];
        readonly confidence?: number;
        readonly salience?: number;
        /** Those of `knownFacts` that it replaces, in their words. */
        readonly replaces?: readonly string[];
      }
  )[];
  readonly tags?: readonly string[];
  /** 0 to 1: how much it will matter later; default 0.5. */
  readonly salience?: number;
}

/** Makes memory of older turns; `perdura.config.*` may bring one. */
export interface Compactor {
  /** As `context.compactor` in agent.json names it. */
  readonly name: string;
  /** Rejects where it cannot: rules make a summary then. */
  compact(input: CompactorInput): Promise<CompactorAnswer>;
}

export interface CompactorRegistry {
  /** The default first. */
  readonly names: readonly string[];
  readonly find: (name: string) => Compactor | undefined;
}

export class UnknownCompactor extends Error {
  override readonly name = 'UnknownCompactor';
  constructor(unknown: string, known: readonly string[]) {
    super(
      `context.compactor: no compactor is named ${JSON.stringify(unknown)}; there are: ${known.join(', ')}. Custom ones are given to createWorker, or stand in perdura.config.*, as "compactors"`,
    );
  }
}

export function createCompactorRegistry(compactors: readonly Compactor[] = []): CompactorRegistry {
  const byName = new Map(compactors.map((compactor) => [compactor.name, compactor]));
  return { names: [WORKING_FLOW_COMPACTOR, ...byName.keys()], find: (name) => byName.get(name) };
}

/** Throws UnknownCompactor. */
export function checkCompactor(registry: CompactorRegistry, name: string | undefined): void {
  if (name !== undefined && !registry.names.includes(name)) throw new UnknownCompactor(name, registry.names);
}

export interface Made extends Omit<Summarized, 'method'> {
  readonly method: Summarized['method'] | 'compactor';
  /** Whose summary it is. */
  readonly compactor: string;
}

export interface CompactionWork
  extends Omit<CompactorInput, 'turns' | 'signal' | 'knownFacts'>, Pick<SummarizeOptions, 'maxCharacters' | 'throws' | 'folding'> {
  readonly knownFacts: readonly KnownFact[];
  readonly signal: AbortSignal | undefined;
  /** As `ask`, for an answer by the default's schema. */
  readonly askForSummary: Ask;
  /** Milliseconds for a custom one; default 90,000. */
  readonly patienceMs?: number;
}

const PATIENCE_MS = 90_000;
const TURN_CHARACTERS = 8_000;
const FAILURE_CHARACTERS = 500;

/** Throws only what says that the work was stopped (compaction/interrupt-passes), and what `throws` names. */
export async function compactWith(compactor: Compactor | undefined, work: CompactionWork): Promise<Made> {
  const answered = compactor && (await askCompactor(compactor, work));
  if (compactor && answered?.ok)
    return { ...withNotes(answered.summary, work.entries, { method: 'model' }), method: 'compactor', compactor: compactor.name };
  const { entries, askForSummary, ask: askForNotes, patienceMs: _, ...options } = work;
  const made = await summarize(askForSummary, entries, { ...options, askForNotes });
  if (!compactor || !answered || answered.ok) return { ...made, compactor: WORKING_FLOW_COMPACTOR };
  const failure = [`compactor ${compactor.name}: ${answered.reason}`, ...(made.failure === undefined ? [] : [made.failure])].join('; ');
  return { ...made, compactor: WORKING_FLOW_COMPACTOR, failure };
}

type CompactorResult = ParsedSummary;

async function askCompactor(
  compactor: Compactor,
  { signal: stopped, patienceMs = PATIENCE_MS, throws, ...work }: CompactionWork,
): Promise<CompactorResult> {
  const timeout = timeoutSignal(patienceMs);
  const signal = AbortSignal.any([timeout, ...(stopped ? [stopped] : [])]);
  const { entries, goal, openTasks, progress, ask } = work;
  const knownFacts = work.knownFacts.map(({ fact }) => fact);
  try {
    const input = { turns: flattenTurns(entries, TURN_CHARACTERS), entries, goal, openTasks, progress, knownFacts, signal, ask };
    // A copy, so that what it does to its input is not what the default then reads.
    const copied: CompactorInput = { ...input, entries: structuredClone(entries), openTasks: [...openTasks] };
    signal.throwIfAborted();
    // One that does not listen to its signal is not waited for.
    const compacted = (async () => compactor.compact(copied))();
    return readAnswer(await orAborted(signal, compacted), work.knownFacts);
  } catch (error) {
    if (stopped?.aborted || throws?.(error)) throw error;
    if (timeout.aborted) return { ok: false, reason: `it did not answer within ${patienceMs} ms` };
    if (isInterrupt(error)) throw error;
    return { ok: false, reason: cut(oneLine(`it failed: ${errorMessage(error)}`), FAILURE_CHARACTERS) };
  }
}

/** Its shape; `checkSummary` cuts it to the bounds. */
const share = z.number();
const tags = z.array(z.string()).default([]);
const fact = z.string().min(1);
const answerSchema = z.object({
  summary: z.string().min(1),
  facts: z
    .array(
      z.union([
        fact.transform((text) => ({ fact: text, tags: [] as string[], confidence: 0.8, salience: 0.5, replaces: [] as string[] })),
        z.object({ fact, tags, confidence: share.default(0.8), salience: share.default(0.5), replaces: tags }),
      ]),
    )
    .default([]),
  tags,
  salience: share.default(0.5),
});

function readAnswer(answer: unknown, known: readonly KnownFact[]): CompactorResult {
  const checked = answerSchema.safeParse(answer);
  if (!checked.success) {
    const issues = checked.error.issues.slice(0, 3).map(({ path, message }) => `${path.map(String).join('.') || 'it'}: ${message}`);
    return { ok: false, reason: cut(oneLine(`its answer cannot be used: ${issues.join('; ')}`), FAILURE_CHARACTERS) };
  }
  const { summary, facts, tags: episodeTags, salience } = checked.data;
  const idByFact = new Map(known.map(({ id, fact: words }) => [foldedFact(words), id]));
  const semantic = facts.map(({ replaces, ...item }) => ({
    ...item,
    supersedes: replaces.map((words) => idByFact.get(foldedFact(words))),
  }));
  return checkSummary({ episodic: { summary, tags: episodeTags, salience }, semantic });
}
