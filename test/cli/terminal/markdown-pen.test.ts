import { lexBlocks } from './marked.js';
import { createMarkdownPen, type TextPen } from '../../../src/cli/terminal/markdown.js';

/** A terminal that knows what the pen may send: text, line ends, up, left, return, clear to the end. */
function screen(
  columns: number,
  rows: number,
): { pen: TextPen; draw: (out: string) => void; shown: () => string; resize: (to: number) => void } {
  let width = columns;
  let lines = [''];
  let [row, column] = [0, 0];
  const pen = createMarkdownPen({
    columns: () => width,
    rows: () => rows,
    widthOf: (text) => (/[\u3000-\u9fff]/.test(text) ? 2 : text.length),
    lex: lexBlocks,
    render: (source) => `<${source.trim()}>`,
  });
  const draw = (out: string): void => {
    for (const [token] of out.matchAll(/\x1b\[(\d*)[A-Z]|\n|\r|[^\x1b\n\r]/gu)) {
      const up = /^\x1b\[(\d+)A$/.exec(token)?.[1];
      const left = /^\x1b\[(\d+)D$/.exec(token)?.[1];
      if (up !== undefined) row -= Number(up);
      else if (left !== undefined) column -= Number(left);
      else if (token === '\x1b[K') lines[row] = (lines[row] ?? '').slice(0, column);
      else if (token === '\x1b[J') {
        lines = lines.slice(0, row + 1);
        lines[row] = (lines[row] ?? '').slice(0, column);
      } else if (token === '\r') column = 0;
      else if (token === '\n') {
        row += 1;
        column = 0;
        lines[row] ??= '';
      } else {
        lines[row] = (lines[row] ?? '').slice(0, column) + token;
        column += token.length;
      }
    }
  };
  return { pen, draw, shown: () => lines.join('\n'), resize: (to) => (width = to) };
}

test('a block is plain while it comes and rendered when it has ended', () => {
  const { pen, draw, shown } = screen(40, 24);
  draw(pen.add('**bold** wor'));
  expect(shown()).toBe('**bold** wor');
  draw(pen.add('ds\n\nnext one'));
  expect(shown()).toBe('<**bold** words>\n\nnext one');
  draw(pen.end());
  expect(shown()).toBe('<**bold** words>\n\n<next one>\n');
});

test('a block of several rows is taken back whole, and nothing above it', () => {
  const { pen, draw, shown } = screen(11, 24);
  draw('above\n');
  for (const letter of 'abcdefghijklmnopqrstuvwxyz') draw(pen.add(letter));
  expect(shown()).toBe('above\nabcdefghij\nklmnopqrst\nuvwxyz');
  draw(pen.end());
  expect(shown()).toBe('above\n<abcdefghijklmnopqrstuvwxyz>\n');
});

test('a word that does not fit is taken back and begins the next row, however it comes', () => {
  for (const pieces of [['one two three four'], [...'one two three four']]) {
    const { pen, draw, shown } = screen(11, 24);
    for (const piece of pieces) draw(pen.add(piece));
    expect(
      shown()
        .split('\n')
        .map((row) => row.trimEnd()),
    ).toEqual(['one two', 'three four']);
  }
});

test('wide characters count twice', () => {
  const { pen, draw, shown } = screen(8, 24);
  for (const letter of '日本語日本語') draw(pen.add(letter));
  expect(shown()).toBe('日本語\n日本語');
});

test('what is higher than the screen stays plain', () => {
  const { pen, draw, shown } = screen(40, 5);
  for (const text of ['```\n', '1\n', '2\n', '3\n', '4\n', '```\n', 'after']) draw(pen.add(text));
  draw(pen.end());
  expect(shown()).toBe('```\n1\n2\n3\n4\n```\n\n<after>\n');
});

test('what was begun at another width stays plain', () => {
  const { pen, draw, shown, resize } = screen(40, 24);
  draw(pen.add('some text that was drawn'));
  resize(20);
  draw(pen.end());
  expect(shown()).toBe('some text that was drawn\n');
});

test('what comes at once is rendered without being drawn plain first', () => {
  const { pen } = screen(40, 24);
  expect(pen.add('one\n\ntwo\n\n')).toBe('<one>\n\n<two>\n');
  expect(pen.isInLine()).toBe(false);
  expect(pen.end()).toBe('');
});
