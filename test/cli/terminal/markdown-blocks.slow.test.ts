/** Lines without end: markdown-blocks.test.ts has how the cost grows. */
import { createBlockSplitter } from '../../../src/cli/terminal/markdown.js';
import { lexBlocks } from './marked.js';

test.each(['>', '- ', '* ', '[', '<', '|', '`', ' '])('a megabyte of %j in one line is judged by its beginning', (mark) => {
  let longest = 0;
  const splitter = createBlockSplitter((source) => {
    longest = Math.max(longest, source.length);
    return lexBlocks(source);
  });
  for (let at = 0; at < 100; at++) splitter.add(mark.repeat(10_000));
  splitter.add('\nnext\n');
  splitter.end();
  expect(longest).toBeLessThan(5_000);
});
