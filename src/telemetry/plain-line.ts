/**
 * What a log may hold, which people look at in a terminal: JSON escapes the older control characters alone, not those that begin a
 * sequence by one character (C1), turn a line around or hide a part of it.
 */
const UNSEEN = /[\p{Cc}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u2028\u2029\ufff9-\ufffb]/gu;

/** Of a line of JSON, with its line feed or without: means the same. */
export function plainJsonLine(line: string): string {
  return line.replace(UNSEEN, (character) =>
    character === '\n'
      ? character
      : Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`).join(''),
  );
}

/** Line feeds stay. */
export function plainLines(text: string): string {
  return text.replace(UNSEEN, (character) => (character === '\n' ? character : ' '));
}
