/** What the end of a turn means for a program that asked for it. */
import type { TurnResult } from '../../conversation/protocol/contract.js';
import { EXIT } from '../terminal/exit.js';
import type { Output } from '../terminal/output.js';
import type { PerduraClient } from '../../client.js';
import { reasonOf } from '../../insight/turns.js';

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

/** A result that says "ask again" is asked for again. */
export async function untilEnd(client: PerduraClient, id: string, result: TurnResult, signal?: AbortSignal): Promise<TurnResult> {
  let latest = result;
  while ((latest.stopReason === 'continues' || latest.stopReason === 'queued') && latest.turnId !== null) {
    latest = await client.turn(id, latest.turnId, { signal });
  }
  return latest;
}
