/** Sums that people type, for options of commander. */
import { InvalidArgumentError } from 'commander';

/** US dollars: `2.50`, `$2.50`. */
export function parseAmount(text: string): number {
  const amount = /^\$?(\d+(?:\.\d+)?|\.\d+)$/.exec(text.trim())?.[1];
  if (amount === undefined) throw new InvalidArgumentError('write US dollars, such as 2.50.');
  return Number(amount);
}

/** `500000`, `500k`, `2M`. */
export function parseTokens(text: string): number {
  const [, digits, unit = ''] = /^(\d{1,15}(?:\.\d+)?)([kM]?)$/.exec(text.trim()) ?? [];
  const count = Number(digits) * (unit === 'k' ? 1_000 : unit === 'M' ? 1_000_000 : 1);
  if (!Number.isSafeInteger(count)) throw new InvalidArgumentError('write a number of tokens, such as 500000 or 500k.');
  return count;
}
