/**
 * Cuts Markdown that arrives in pieces into its blocks, as `marked` sees them: a paragraph, a list, a fence of code, a table …
 *
 * 1. Every character of a block is given out once as text, at once where that is possible; then the block's end with its source.
 * 2. Blank lines between blocks are not given out: the code that draws decides about space.
 * 3. The beginning of a line decides whether it still belongs to the block before; until it can be judged it is held back.
 * 4. A line costs a few lines to judge, however long its block is: of an open block only what decides is read again. Where that
 *    is too little, two blocks are taken for one, which `marked` parts when it renders them.
 */
export type BlockPiece = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'end'; readonly source: string };

/** `blockTokens` of `marked`. */
export type BlockLexer = (source: string) => readonly { readonly type: string; readonly items?: readonly unknown[] }[];

export interface BlockSplitter {
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
