/** What the end of a turn means for a program that asked for it. */
import type { TurnResult } from '../../conversation/protocol/contract.js';
import { EXIT } from '../terminal/exit.js';
import type { Output } from '../terminal/output.js';
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
