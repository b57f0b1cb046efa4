/**
 * From a conversation to a history entry and a memory (seed 001, ConsolidationService).
 *
 * C1  The model is asked once, and once more when something in its answer was not usable, with the reason.
 * C2  After that a field that is fit is taken, be it from the first answer; a bad field does not cost the good one.
 * C3  What the model throws goes through: a provider's failure is its caller's to retry, an interrupt nobody's.
 */
import type { Ask } from '../compaction/summary.js';
import { cut, oneLine } from '../../records/text.js';
import { checkResult, type CheckedResult } from './check-result.js';
import { parseResponse, type ConsolidationResult } from './parse-response.js';
import { carePrompt, consolidationPrompt, repairPrompt, type ConsolidationPrompt, type ConsolidationRequest } from './prompt.js';

export type Consolidated =
  /** At least one of the two. `memoryUpdate` is absent when memory stays as it is. */
  | ({ readonly kind: 'done'; readonly method: 'model' | 'repaired' } & ConsolidationResult)
  /** `reason` is for people. */
  | { readonly kind: 'unusable'; readonly reason: string };

const REASON_CHARACTERS = 500;

/** Throws only what `ask` throws (C3). */
export async function consolidate(ask: Ask, request: ConsolidationRequest): Promise<Consolidated> {
  return askTwice(ask, consolidationPrompt(request), (result) => checkResult(result, request));
}

/** Memory put in order without a conversation; `unusable` when it should stay as it is. Throws only what `ask` throws (C3). */
export async function tendMemory(
  ask: Ask,
  { currentMemory, maxMemorySize }: Pick<ConsolidationRequest, 'currentMemory' | 'maxMemorySize'>,
): Promise<Consolidated> {
  return askTwice(ask, carePrompt(currentMemory, maxMemorySize), ({ memoryUpdate }) =>
    checkResult({ memoryUpdate }, { entries: [], currentMemory, maxMemorySize }),
  );
}

async function askTwice(
  ask: Ask,
  prompt: ConsolidationPrompt,
  check: (result: ConsolidationResult) => CheckedResult,
): Promise<Consolidated> {
  const answer = await ask(prompt.system, prompt.text);
  const first = read(answer, check);
  if (first.problems.length === 0) return { kind: 'done', method: 'model', ...first.result };
  const repair = repairPrompt(prompt, answer, reasonOf(first));
  const second = read(await ask(repair.system, repair.text), check);
  const result = { ...first.result, ...second.result };
  if (result.historyEntry === undefined && result.memoryUpdate === undefined) return { kind: 'unusable', reason: reasonOf(second) };
  return { kind: 'done', method: 'repaired', ...result };
}

function read(answer: string, check: (result: ConsolidationResult) => CheckedResult): CheckedResult {
  const parsed = parseResponse(answer);
  return parsed.ok ? check(parsed.result) : { result: {}, problems: [parsed.reason] };
}

function reasonOf({ problems }: CheckedResult): string {
  return cut(oneLine(problems.join('; ')), REASON_CHARACTERS);
}
