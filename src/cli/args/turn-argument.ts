import { turnId } from '../../records/identity.js';
import { CliError, EXIT } from '../terminal/exit.js';

/** `7` or `turn_0007`, as people write a turn. */
export function toTurn(text: string): string {
  const digits = /^(?:turn_)?0*(\d{1,9})$/.exec(text)?.[1];
  if (digits === undefined)
    throw new CliError(`${JSON.stringify(text)} is not a turn: write its number, such as 7 or turn_0007`, EXIT.usage);
  return turnId(Number(digits));
}
