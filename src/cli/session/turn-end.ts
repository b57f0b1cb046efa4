/** What the end of a turn means for a program that asked for it. */
import type { TurnResult } from '../../conversation/protocol/contract.js';
import { EXIT } from '../terminal/exit.js';
import type { Output } from '../terminal/output.js';
import type { PerduraClient } from '../../client.js';
import { type Entry, shownText } from '../../records/message.js';

export function answerExitCode(result: TurnResult): number {
  switch (result.stopReason) {
    case 'end':
    case 'reset':
    case 'continues':
    case 'queued':
      return EXIT.ok;
    case 'interrupted':
      return EXIT.interrupted;
    default:
      return EXIT.failed;
  }
}

/** Says on stderr why there is no answer, or only a part of one. */
export function explainEnd(result: TurnResult, output: Output): void {
  const reason = reasonOf(result);
  if (reason !== undefined) output.problem(reason);
}

/** Undefined where the answer is whole. */
export function reasonOf(result: Pick<TurnResult, 'stopReason' | 'error'>): string | undefined {
  switch (result.stopReason) {
    case 'end':
      return result.error?.message;
    case 'reset':
    case 'continues':
    case 'queued':
      return undefined;
    case 'interrupted':
      return '(stopped)';
    case 'withdrawn':
      return '(withdrawn before it was answered)';
    case 'tool-limit':
      return result.error?.message ?? "stopped: the agent's limit of tool calls is reached";
    case 'budget':
      return result.error?.message ?? 'stopped: the budget is used up';
    case 'refused':
      return result.error?.message ?? 'the model refused to answer';
    case 'failed':
      return result.error?.message ?? 'the turn failed, and no reason was given';
  }
}

/** The answer in full: of a long one only the beginning travels, and the store has the whole. */
export async function wholeAnswer(client: PerduraClient, id: string, result: TurnResult): Promise<string> {
  if (result.textRef === undefined) return result.text;
  const entries = await client.history(id);
  const answer = entries.findLast((entry) => entry.turn === result.turnId && entry.message.role === 'assistant');
  return answer === undefined ? result.text : answerText(answer);
}

/** A result that says "ask again" is asked for again. */
export async function untilEnd(client: PerduraClient, id: string, result: TurnResult, signal?: AbortSignal): Promise<TurnResult> {
  let latest = result;
  while ((latest.stopReason === 'continues' || latest.stopReason === 'queued') && latest.turnId !== null) {
    latest = await client.turn(id, latest.turnId, { signal });
  }
  return latest;
}

/** What the model said to the person in one message. */
export function answerText(entry: Entry): string {
  if (entry.message.role !== 'assistant') return '';
  return entry.message.blocks.flatMap((block) => (block.kind === 'text' ? [shownText(block.text)] : [])).join('');
}
