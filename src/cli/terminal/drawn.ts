/** A line for people: pieces of text with their looks, so that colours never mix with what others wrote. */
export interface Piece {
  readonly text: string;
  readonly look?: 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';
}

export type Drawn = readonly Piece[];

export function plain(text: string): Drawn {
  return [{ text }];
}

/** What stands there, without looks. */
export function textOfDrawn(line: Drawn): string {
  return line.map(({ text }) => text).join('');
}
