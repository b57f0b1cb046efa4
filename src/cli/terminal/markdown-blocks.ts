/**
 * Cuts Markdown that arrives in pieces into its blocks: a paragraph, a list, a fence of code, a table, a heading.
 *
 * 1. Every character of a block is given out once as text, at once where that is possible; then the block's end with its source.
 * 2. Blank lines between blocks are given out by nobody: whoever draws decides about space.
 * 3. The beginning of a line decides whether it still belongs to the block before; until it is long enough to be judged it is kept.
 */
export type BlockPiece = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'end'; readonly source: string };

export interface BlockSplitter {
  add(text: string): BlockPiece[];
  /** Nothing more comes: what is open ends. */
  end(): BlockPiece[];
}

type BlockKind = 'none' | 'paragraph' | 'list' | 'fence';

/** A line that begins with one of these may be a list item, a fence or a heading, which so many characters tell. */
const MAY_BE_SPECIAL = /^\s*[`~#*+\d-]/;
const ENOUGH_TO_JUDGE = 8;

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}#{1,6}(\s|$)/;
const LIST_ITEM = /^ {0,3}([-*+]|\d{1,9}[.)])(\s|$)/;
const INDENTED = /^( {2,}|\t)/;

export function createBlockSplitter(): BlockSplitter {
  let kind: BlockKind = 'none';
  let fence = '';
  let source = '';
  /** Blank lines after an item: a part of the list if it goes on, else of nothing. */
  let blanks = '';
  let line = '';
  let given = 0;
  let judged = false;
  let pieces: BlockPiece[] = [];

  const give = (text: string): void => {
    if (text !== '') pieces.push({ kind: 'text', text });
  };
  const endBlock = (): void => {
    if (kind !== 'none') pieces.push({ kind: 'end', source });
    kind = 'none';
    source = '';
    blanks = '';
  };
  const begin = (): void => {
    const opening = FENCE.exec(line)?.[1];
    fence = opening ?? '';
    kind = opening !== undefined ? 'fence' : LIST_ITEM.test(line) ? 'list' : 'paragraph';
  };
  const isContinued = (): boolean => {
    if (kind === 'fence') return true;
    if (kind === 'list') {
      if (fence !== '' || INDENTED.test(line) || LIST_ITEM.test(line)) return true;
      return blanks === '' && !FENCE.test(line) && !HEADING.test(line);
    }
    return !FENCE.test(line) && !HEADING.test(line);
  };
  const judge = (): void => {
    judged = true;
    if (kind !== 'none' && !isContinued()) endBlock();
    if (kind === 'none') return begin();
    if (kind === 'paragraph' && LIST_ITEM.test(line)) kind = 'list';
    give(blanks);
    source += blanks;
    blanks = '';
  };
  const closesFence = (): boolean => {
    const mark = line.trim();
    return mark.length >= fence.length && mark === (fence[0] ?? '').repeat(mark.length);
  };
  const endLine = (): void => {
    const wasFirst = source === '';
    if (line.trim() === '' && kind !== 'fence') {
      if (kind === 'list') blanks += '\n';
      else endBlock();
    } else {
      if (!judged) judge();
      give(`${line.slice(given)}\n`);
      source += `${line}\n`;
      if (kind === 'fence') {
        if (!(wasFirst || source === `${line}\n`) && closesFence()) endBlock();
      } else if (kind === 'list') {
        const mark = /^\s*(?:(?:[-*+]|\d{1,9}[.)])\s+)?(`{3,}|~{3,})/.exec(line)?.[1];
        if (fence !== '') fence = closesFence() ? '' : fence;
        else if (mark !== undefined) fence = mark;
      } else if (HEADING.test(line)) endBlock();
    }
    line = '';
    given = 0;
    judged = false;
  };
  const taken = (): BlockPiece[] => {
    const all = pieces;
    pieces = [];
    return all;
  };

  return {
    add(text) {
      const parts = text.split('\n');
      for (const [at, part] of parts.entries()) {
        line += part;
        if (at < parts.length - 1) {
          endLine();
          continue;
        }
        if (!judged && line.trim() !== '' && (line.length >= ENOUGH_TO_JUDGE || !MAY_BE_SPECIAL.test(line))) judge();
        if (judged) {
          give(line.slice(given));
          given = line.length;
        }
      }
      return taken();
    },
    end() {
      if (line.trim() !== '') {
        if (!judged) judge();
        give(line.slice(given));
        source += line;
      }
      line = '';
      given = 0;
      judged = false;
      endBlock();
      fence = '';
      return taken();
    },
  };
}
