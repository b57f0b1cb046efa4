/** A turn as people type it: `3`, `turn_3`, `turn_0003`. */
import { CliError, EXIT } from '../terminal/exit.js';

export function turnName(text: string): string {
  const digits = /^(?:turn_)?0*(\d{1,9})$/.exec(text)?.[1];
  if (digits === undefined)
    throw new CliError(`${JSON.stringify(text)} is not a turn: write its number, such as 3 or turn_0003`, EXIT.usage);
  return `turn_${digits.padStart(4, '0')}`;
}
