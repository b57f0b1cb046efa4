/**
 * Draws Markdown on a terminal while it arrives: plain as it comes, and each block once more, rendered, in the place of its
 * plain text as soon as it has ended.
 *
 * 1. Only rows that this pen drew are taken back, and only while all of them are on the screen: what has scrolled away, or was
 *    drawn at another width, stays as it is.
 * 2. Plain rows are cut before the last column by line ends of the pen, so that their number does not depend on the terminal. A word
 *    that does not fit is taken back and begins the next row.
 * 3. The input has passed `toTerminalText`; the only sequences that go out are those of the pen and of the renderer.
 */
import { createBlockSplitter, type BlockLexer } from './markdown-blocks.js';

export interface TextPen {
  /** What to write for it. */
  add(text: string): string;
  /** The text has ended, or something else is drawn below it: closes the line. */
  end(): string;
  /** True while the cursor stands behind text of the pen. */
  isInLine(): boolean;
}

export interface PenOptions {
  readonly columns: () => number;
  readonly rows: () => number;
  readonly widthOf: (text: string) => number;
  readonly render: (source: string, columns: number) => string;
  readonly lex: BlockLexer;
}

export function createMarkdownPen({ columns, rows, widthOf, render, lex }: PenOptions): TextPen {
  const splitter = createBlockSplitter(lex);
  const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
  let isFirst = true;
  let waiting = '';
  let drawn = emptyBlock();

  const drawWaiting = (): string => {
    let out = '';
    if (waiting === '') return out;
    if (!drawn.begun) {
      out += separator();
      drawn = { ...emptyBlock(), begun: true, columns: columns() };
    }
    for (const { segment } of graphemes.segment(waiting)) {
      if (segment === '\n') {
        out += nextRow();
        continue;
      }
      const piece = segment === '\t' ? '    ' : segment;
      const width = widthOf(piece);
      const isBlank = piece.trim() === '';
      if (drawn.column > 0 && drawn.column + width > Math.max(drawn.columns - 1, 2)) {
        const { word, wordWidth } = drawn;
        const isMoved = !isBlank && wordWidth > 0 && wordWidth < drawn.column;
        out += isMoved ? `\x1b[${wordWidth}D\x1b[K${nextRow()}${word}` : nextRow();
        if (isMoved) drawn = { ...drawn, column: wordWidth, word, wordWidth };
        // The end of the row says it.
        if (isBlank) continue;
      }
      drawn.column += width;
      // Wide characters stand each for itself: a row may end between two of them.
      const isWord = !isBlank && width < 2;
      drawn.word = isWord ? drawn.word + piece : '';
      drawn.wordWidth = isWord ? drawn.wordWidth + width : 0;
      out += piece;
    }
    if (drawn.rows >= rows() - 2 || drawn.columns !== columns()) drawn.isReplaceable = false;
    waiting = '';
    return out;
  };

  const nextRow = (): string => {
    drawn = { ...drawn, rows: drawn.rows + 1, column: 0, word: '', wordWidth: 0 };
    return '\n';
  };

  const separator = (): string => {
    const out = isFirst ? '' : '\n';
    isFirst = false;
    return out;
  };

  const endBlock = (source: string): string => {
    const { begun, isReplaceable, column } = drawn;
    if (begun && (!isReplaceable || drawn.columns !== columns())) {
      const rest = drawWaiting();
      const out = rest + (drawn.column > 0 ? '\n' : '');
      drawn = emptyBlock();
      return out;
    }
    const back = begun ? `${drawn.rows > 0 ? `\x1b[${drawn.rows}A` : ''}${drawn.rows > 0 || column > 0 ? '\r\x1b[J' : ''}` : separator();
    waiting = '';
    drawn = emptyBlock();
    return `${back}${render(source, columns())}\n`;
  };

  const draw = (pieces: ReturnType<typeof splitter.add>): string => {
    let out = '';
    for (const piece of pieces) {
      if (piece.kind === 'text') waiting += piece.text;
      else out += endBlock(piece.source);
    }
    return out + drawWaiting();
  };

  return {
    add: (text) => draw(splitter.add(text)),
    end() {
      const out = draw(splitter.end());
      isFirst = true;
      return out;
    },
    isInLine: () => drawn.begun,
  };
}

interface DrawnBlock {
  begun: boolean;
  isReplaceable: boolean;
  /** Line ends drawn. */
  rows: number;
  column: number;
  columns: number;
  /** What stands before the cursor since the last blank. */
  word: string;
  wordWidth: number;
}

function emptyBlock(): DrawnBlock {
  return { begun: false, isReplaceable: true, rows: 0, column: 0, columns: 0, word: '', wordWidth: 0 };
}
