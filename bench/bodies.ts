/** The texts that turns carry, the same in product and floors, so that their sizes cancel out. */

/** What the model says at the end of a turn. */
export const ANSWER = 'The harbour master keeps the ledger. '.repeat(11).slice(0, 400);
/** What a tool finds. */
export const FINDING = 'Tide tables, berths, cargo, names of ships. '.repeat(47).slice(0, 2_048);

/** What a person says: what the scripted model shall do, how often, and a number that makes it unlike the others. */
export function said(what: 'text' | 'quick' | 'ordinary' | 'stream', times: number, number: number): string {
  return `${what} ${times} ${String(number).padStart(6, '0')}`;
}
