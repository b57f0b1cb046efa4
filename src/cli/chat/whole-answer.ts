import type { PerduraClient } from '../../client.js';
import type { TurnResult } from '../../conversation/protocol/contract.js';
import type { Entry } from '../../records/message.js';
import { shownText } from '../../records/message.js';

/** The answer in full: a long one travels as its beginning and lies in the store. */
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
