/**
 * Markdown on a terminal: a pen, and the splitter that gives it blocks (markdown-render.ts draws them).
 *
 * The pen draws it while it arrives: plain as it comes, and each block once more, rendered, in the place of its
 * plain text as soon as it has ended.
 *
 * 1. Only rows that this pen drew are taken back, and only while all of them are on the screen: what has scrolled away, or was
 *    drawn at another width, stays as it is.
 * 2. Plain rows are cut before the last column by line ends of the pen, so that their number does not depend on the terminal. A word
 *    that does not fit is taken back and begins the next row.
 * 3. The input has passed `toTerminalText`; the only sequences that go out are those of the pen and of the renderer.
 */

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

/**
 * Cuts Markdown that arrives in pieces into its blocks, as `marked` sees them: a paragraph, a list, a fence of code, a table …
 *
 * 1. Every character of a block is given out once as text, at once where that is possible; then the block's end with its source.
 * 2. Blank lines between blocks are not given out: the code that draws decides about space.
 * 3. The beginning of a line decides whether it still belongs to the block before; until it can be judged it is held back.
 * 4. A line costs a few lines to judge, however long its block is: of an open block only what decides is read again. Where that
 *    is too little, two blocks are taken for one, which `marked` parts when it renders them.
 */
type BlockPiece = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'end'; readonly source: string };

/** `blockTokens` of `marked`. */
export type BlockLexer = (source: string) => readonly { readonly type: string; readonly items?: readonly unknown[] }[];

interface BlockSplitter {
  add(text: string): BlockPiece[];
  /** Nothing more comes: what is open ends. */
  end(): BlockPiece[];
}

/** Nothing but marks so far, or what may become a tag: a rule, an item, a heading, the second line of a table. */
const UNDECIDED = /^\s*(?:[\s`~#*+=_:|-]*|\d{1,9}[.)]?|<[^\s>]*)$/;
/** Its last character decides whether it opens a fence. */
const FENCE = /^\s*(?:`{3}|~{3})/;
const MAX_UNDECIDED = 200;
/** The part of a line that decides its kind. */
const MAX_JUDGED = 1_000;
/** A longer block of HTML is cut. */
const MAX_CONTEXT = 4_096;

export function createBlockSplitter(lex: BlockLexer): BlockSplitter {
  /** What decides about the open block's next line; undefined while none is open. */
  let context: string | undefined;
  let type = '';
  let source = '';
  /** Blank lines after an item: a part of the list if it goes on, else of nothing. */
  let blanks = '';
  let line = '';
  let given = 0;
  let judged = false;
  let pieces: BlockPiece[] = [];

  const blocksIn = (text: string): ReturnType<BlockLexer> => {
    try {
      return lex(text).filter((block) => block.type !== 'space');
    } catch {
      // Nested so deep that it cannot be read.
      return [];
    }
  };
  const give = (text: string): void => {
    if (text !== '') pieces.push({ kind: 'text', text });
  };
  const endBlock = (): void => {
    if (source !== '') pieces.push({ kind: 'end', source });
    [context, type, source, blanks] = [undefined, '', '', ''];
  };
  const judge = (): void => {
    judged = true;
    if (context !== undefined && blocksIn(`${context}\n${blanks}${line.slice(0, MAX_JUDGED)}`).length > 1) endBlock();
    give(blanks);
    source += blanks;
    blanks = '';
  };
  const giveLine = (end: string): void => {
    if (!judged) judge();
    give(`${line.slice(given)}${end}`);
    source += `${line}${end}`;
  };
  /** A whole line belongs to the block: is that its end, and if not, what decides about the next? */
  const goOn = (whole: string): void => {
    const joined = context === undefined ? whole : `${context}\n${whole}`;
    const [block] = blocksIn(joined);
    const before = type;
    type = block?.type ?? 'paragraph';
    if (type === 'list') {
      if (context === undefined || (block?.items?.length ?? 0) > 1) context = whole;
    } else if (type === 'blockquote' || type === 'paragraph') {
      if (context === undefined || blocksIn(whole)[0]?.type === type) context = whole;
    } else if (type === 'html' || (type === 'table' && before !== 'table')) context = joined;
    else context ??= whole;
    const isLeaf = type !== 'list' && type !== 'blockquote';
    if ((isLeaf && blocksIn(`${joined}\nx`).length > 1) || joined.length > MAX_CONTEXT) endBlock();
  };
  const endLine = (): void => {
    const isBetween = line.trim() === '' && (context === undefined || blocksIn(`${context}\n\nx`).length > 1);
    if (!isBetween) {
      giveLine('\n');
      goOn(line.slice(0, MAX_JUDGED));
    } else if (type === 'list') blanks += '\n';
    else endBlock();
    [line, given, judged] = ['', 0, false];
  };
  const isDecided = (): boolean => line.trim() !== '' && (line.length > MAX_UNDECIDED || !(UNDECIDED.test(line) || FENCE.test(line)));
  const taken = (): BlockPiece[] => {
    const all = pieces;
    pieces = [];
    return all;
  };

  return {
    add(text) {
      const [first = '', ...rest] = text.split('\n');
      line += first;
      for (const part of rest) {
        endLine();
        line = part;
      }
      if (!judged && isDecided()) judge();
      if (judged) {
        give(line.slice(given));
        given = line.length;
      }
      return taken();
    },
    end() {
      if (line.trim() !== '') giveLine('');
      [line, given, judged] = ['', 0, false];
      endBlock();
      return taken();
    },
  };
}
