import * as fc from 'fast-check';
import { createBlockSplitter } from '../../../src/cli/terminal/markdown.js';
import { lexBlocks } from './marked.js';

function blocksOf(text: string, size = text.length): string[] {
  const splitter = createBlockSplitter(lexBlocks);
  const pieces = [];
  for (let at = 0; at < text.length; at += size) pieces.push(...splitter.add(text.slice(at, at + size)));
  pieces.push(...splitter.end());
  return pieces.flatMap((piece) => (piece.kind === 'end' ? [piece.source] : []));
}

test.each([
  ['paragraphs end at a blank line', 'one\ntwo\n\nthree', ['one\ntwo\n', 'three']],
  ['a heading is a block of its own', '# A\ntext\n## B\n', ['# A\n', 'text\n', '## B\n']],
  ['a fence keeps its blank lines', '```js\na\n\nb\n```\nafter', ['```js\na\n\nb\n```\n', 'after']],
  ['a longer fence holds a shorter one', '````\n```\nx\n```\n````\n', ['````\n```\nx\n```\n````\n']],
  ['a fence that is never closed ends with the text', '```\na', ['```\na']],
  ['a fence ends the paragraph before it', 'look:\n```\na\n```\n', ['look:\n', '```\na\n```\n']],
  ['a loose list is one block, so that its numbers go on', '1. a\n\n2. b\n\nafter', ['1. a\n\n2. b\n', 'after']],
  ['a list keeps what is indented', '- a\n\n  more\n- b\n\nafter', ['- a\n\n  more\n- b\n', 'after']],
  ['code inside a list keeps its blank lines', '- a\n  ```\n  x\n\n  y\n  ```\n- b\n', ['- a\n  ```\n  x\n\n  y\n  ```\n- b\n']],
  ['a list may follow its introduction at once', 'these:\n- a\n\n- b\n\nend', ['these:\n', '- a\n\n- b\n', 'end']],
  ['a table is one block', '| a |\n|---|\n| 1 |\n\nx', ['| a |\n|---|\n| 1 |\n', 'x']],
])('%s', (_name, text, expected) => {
  expect(blocksOf(text)).toEqual(expected);
});

const line = fc.constantFrom(
  '',
  '',
  'text',
  '- item',
  '2. item',
  '  more',
  '```',
  '~~~',
  '# head',
  '| a | b |',
  '> quote',
  '---',
  '   ',
  '    deep',
  '```js `x`',
  '12345678. x',
  '* * *',
  '***bold***',
  '===',
  '| --- | --- |',
  '<div>',
  '<https://x>',
  '<!-- a',
  'b -->',
  '[a]: b',
  '- ```',
  '> ```',
);

test('however the text is cut on its way, its blocks are the same, and each is given out once before it ends', () => {
  fc.assert(
    fc.property(fc.array(line, { maxLength: 14 }), fc.integer({ min: 1, max: 9 }), (lines, size) => {
      const text = lines.join('\n');
      expect(blocksOf(text, size)).toEqual(blocksOf(text));
      const splitter = createBlockSplitter(lexBlocks);
      let given = '';
      for (const piece of [...Array.from(text).flatMap((letter) => splitter.add(letter)), ...splitter.end()]) {
        if (piece.kind === 'text') given += piece.text;
        else {
          expect(given).toBe(piece.source);
          given = '';
        }
      }
      expect(given).toBe('');
    }),
  );
});

test('its blocks are those of marked: none is cut in two', () => {
  const typesIn = (text: string): string[] => lexBlocks(text).flatMap(({ type }) => (type === 'space' ? [] : [type]));
  const ordinary = [
    '',
    '',
    'text',
    '- item',
    '1. item',
    '  more',
    '```',
    '~~~',
    '# head',
    '> quote',
    '| a |',
    '| --- |',
    '<!-- a',
    'b -->',
  ];
  const lines = fc.array(fc.constantFrom(...ordinary), { maxLength: 14 });
  fc.assert(
    fc.property(lines, (all) => {
      const text = all.join('\n');
      expect(blocksOf(text).flatMap(typesIn)).toEqual(typesIn(text));
    }),
    { numRuns: 150 },
  );
});

test.each(['text', '- item', '  - item', '> quote', '>>>>>>>> deep', '| a |', '<!-- a', '```', '    code', '[a]: b', '\n'])(
  'what %j costs grows with the text, not with its square',
  (each) => {
    const charactersReadOf = (lines: number): number => {
      let read = 0;
      const splitter = createBlockSplitter((source) => {
        read += source.length;
        return lexBlocks(source);
      });
      const beginning = each === '| a |' ? '| a |\n| - |\n' : '- a\n';
      for (const text of [beginning, ...Array<string>(lines).fill(`${each}\n`)]) splitter.add(text);
      return read;
    };
    expect(charactersReadOf(2_000) / charactersReadOf(1_000)).toBeLessThan(2.5);
  },
);
