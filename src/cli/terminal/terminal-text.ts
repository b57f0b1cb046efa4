/**
 * What may reach a terminal. Text of models, tools and servers can carry sequences that move the cursor, write the
 * clipboard, draw false links or hide words.
 *
 * 1. Each character is judged alone, without memory: a sequence that is split over two chunks meets the same rule, because
 *    its first character, the one that makes it a sequence, never gets through.
 * 2. Of the control characters only `\n` and `\t` pass. The others are shown as their pictures (␛), C1 as U+FFFD; `\r` is
 *    dropped, so that `\r\n` stays a line end and a lone one overwrites nothing.
 * 3. Invisible characters that change the view are dropped: bidi overrides, zero-width characters, tags, fillers.
 */
import type wrapAnsi from 'wrap-ansi';

export function toTerminalText(text: string): string {
  return text.replace(UNSAFE, shown);
}

/** The same on one line, at most `width` characters. */
export function toTerminalLine(text: string, width: number): string {
  // The cut comes first, so that a megabyte is not walked for eighty characters; the rules only shorten or keep.
  const characters = Array.from(
    toTerminalText(text.slice(0, width * 4))
      .replace(/\s+/g, ' ')
      .trim(),
  );
  const whole = text.length <= width * 4 && characters.length <= width;
  return whole ? characters.join('') : `${characters.slice(0, Math.max(width - 1, 0)).join('')}…`;
}

/** JSON that means the same and holds no character that rule 2 or 3 would touch. */
export function toTerminalJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(UNSAFE, (character) =>
    Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`).join(''),
  );
}

// Variation selectors 15 and 16 stay: they choose between text and emoji. Lone surrogates are half characters.
const CONTROL = '[\\p{Cc}--[\\n\\t]]\\p{Surrogate}\\u{2028}\\u{2029}';
const INVISIBLE = '[[\\p{Default_Ignorable_Code_Point}\\p{Bidi_Control}\\u{fff9}-\\u{fffb}]--[\\u{fe0e}\\u{fe0f}]]';
const UNSAFE = new RegExp(`[${CONTROL}${INVISIBLE}]`, 'gv');

function shown(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (character === '\r') return '';
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return '\u2421';
  if (code < 0xa0) return '\ufffd';
  if (code === 0x2028 || code === 0x2029) return '\n';
  return code >= 0xd800 && code <= 0xdfff ? '\ufffd' : '';
}

/** A line for people: pieces of text with their looks, so that colours never mix with what others wrote. */
export interface StyledSpan {
  readonly text: string;
  readonly style?: 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';
}

export type StyledLine = readonly StyledSpan[];

export function plain(text: string): StyledLine {
  return [{ text }];
}

/** What stands there, without looks. */
export function textOfDrawn(line: StyledLine): string {
  return line.map(({ text }) => text).join('');
}

/** A column for the rest of a line is worth it while this share of the screen is left for it. */
const MIN_ROOM = 0.5;

/**
 * Cuts each line that is wider than `columns` between two words, a word that is wider than a line within itself. What follows
 * begins where the line's text began: behind its blanks, or behind its first column (`  /new      clear the session`).
 * Colours stay whole.
 */
export function wrapWords(text: string, columns: number): string {
  // No character takes more than two cells.
  if (text.length * 2 <= columns) return text;
  return text
    .split('\n')
    .map((line) => {
      const indent = measureIndent(line, columns);
      const [head, rest] = [line.slice(0, indent), line.slice(indent)];
      const rows = wrapInPieces(rest, columns - indent);
      return head + rows.map((row, at) => row.replace(at === 0 ? / +$/ : /^ | +$/g, '')).join(`\n${' '.repeat(indent)}`);
    })
    .join('\n');
}

/** Colours whole, and no half of a character. */
const PIECES = /(?:\x1b\[[\d;]*m|.){1,64}/gsu;
/** Characters for each cell of a row: colours and marks take no cells, so that a row without an end may have any number. */
const MAX_CHARACTERS = 16;

/** What wraps takes the square of what it is given, so it is given a piece at a time, behind the row that is not yet full. */
function wrapInPieces(line: string, columns: number): string[] {
  // Loaded by who has a screen alone.
  const wrap = require('wrap-ansi') as typeof wrapAnsi;
  const rows: string[] = [];
  let open = '';
  for (const [piece] of line.matchAll(PIECES)) {
    const wrapped = wrap(open + piece, columns, { hard: true, trim: false }).split('\n');
    open = wrapped.pop() ?? '';
    rows.push(...wrapped);
    if (open.length <= columns * MAX_CHARACTERS) continue;
    rows.push(open);
    open = '';
  }
  return [...rows, open];
}

function measureIndent(line: string, columns: number): number {
  const [blanks = ''] = /^ */.exec(line) ?? [];
  const column = /^ *\S.{0,30}? {2,}(?=\S)/.exec(line)?.[0] ?? blanks;
  return [column, blanks].map(({ length }) => length).find((length) => length <= columns * (1 - MIN_ROOM)) ?? 0;
}
