import { type StyledLine, textOfDrawn } from '../../../src/cli/terminal/terminal-text.js';
import { cellsOf, describeOutcome, renderMeter } from '../../../src/cli/views/context-meter.js';
import type { ContextIndex } from '../../../src/conversation/protocol/contract.js';
import { measure } from './measure.js';

const INDEX: ContextIndex = {
  epoch: 3,
  session: 1,
  budget: 190_000,
  compactsAt: 152_000,
  total: 61_450,
  reported: 58_210,
  compactions: 2,
  canUndo: true,
  chunks: [
    { kind: 'SYSTEM', tokens: 3_200 },
    { kind: 'MEMORY', tokens: 1_250, ref: 'body:1' },
    {
      kind: 'WORKING_FLOW',
      tokens: 57_000,
      slots: [
        [41, 60],
        [62, 62],
      ],
    },
  ],
};

function drawn(lines: readonly StyledLine[]): string {
  return lines.map((line) => `|${textOfDrawn(line)}|`).join('\n');
}

test('at 80 columns each part has its sign in the bar, and its numbers below', () => {
  expect(drawn(renderMeter(INDEX, 80))).toMatchInlineSnapshot(`
   "|█▓▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒····························┃···········|
   ||
   |█ system and tools    3,200    2 %|
   |▓ memory              1,250   <1 %|
   |▒ messages           57,000   30 %|
   |· free              128,550   68 %|
   |┃ compacted from    152,000   80 %|
   ||
   |61,450 of 190,000 tokens, 32 %|
   |21 messages in epoch 3|
   |compacted 2 times; the last one can be taken back|
   |the last prompt as its provider counted it: 58,210 tokens|
   |what came since is estimated: four characters are a token|"
  `);
});

test('at 20 columns the numbers stand under the names', () => {
  expect(drawn(renderMeter(INDEX, 20))).toMatchInlineSnapshot(`
   "|█▓▒▒▒▒▒▒········┃···|
   ||
   |█ system and tools|
   |    3,200    2 %|
   |▓ memory|
   |    1,250   <1 %|
   |▒ messages|
   |   57,000   30 %|
   |· free|
   |  128,550   68 %|
   |┃ compacted from|
   |  152,000   80 %|
   ||
   |61,450 of 190,000|
   |tokens, 32 %|
   |21 messages in epoch|
   |3|
   |compacted 2 times;|
   |the last one can be|
   |taken back|
   |the last prompt as|
   |its provider counted|
   |it: 58,210 tokens|
   |what came since is|
   |estimated: four|
   |characters are a|
   |token|"
  `);
});

test('at no width between 20 and 120 does a line of it pass the edge', () => {
  for (let width = 20; width <= 120; width++) {
    expect([width, Math.max(...renderMeter(INDEX, width).map((line) => measure(textOfDrawn(line)))) <= width]).toEqual([width, true]);
  }
});

test('the line of compaction stands behind what was used, red once it is reached', () => {
  const bar = (index: ContextIndex): StyledLine => renderMeter(index, 60)[0] ?? [];
  const text = textOfDrawn(bar(INDEX));
  expect(text.indexOf('┃')).toBe(48);
  expect(text.lastIndexOf('▒')).toBeLessThan(48);
  expect(bar(INDEX).find(({ text: piece }) => piece === '┃')?.style).toBe('bold');
  const full: ContextIndex = { ...INDEX, total: 170_000, chunks: [{ kind: 'WORKING_FLOW', tokens: 170_000 }] };
  expect(bar(full).find(({ text: piece }) => piece === '┃')?.style).toBe('red');
  expect(textOfDrawn(bar(full)).lastIndexOf('▒')).toBeGreaterThan(48);
});

test('more than fits leaves nothing free, and the bar stays as wide as it is', () => {
  const over: ContextIndex = { ...INDEX, total: 400_000, chunks: [{ kind: 'WORKING_FLOW', tokens: 400_000 }] };
  const [bar = []] = renderMeter(over, 40);
  expect(textOfDrawn(bar)).toMatch(/^▒+┃▒+$/);
  expect(measure(textOfDrawn(bar))).toBe(40);
});

test('before the first turn there is no bar to draw', () => {
  const nothing: ContextIndex = { ...INDEX, budget: 0, compactsAt: 0, total: 0, reported: null, compactions: 0, chunks: [] };
  expect(drawn(renderMeter(nothing))).toContain('known once the first turn has begun');
});

test.each([
  [[1, 1, 1_000_000], 20, [1, 1, 18]],
  [[0, 0, 0], 10, [0, 0, 10]],
  [[1, 1, 1], 10, [4, 3, 3]],
  [[99, 0, 1], 10, [9, 0, 1]],
])('%j in %i cells: something is never drawn as nothing', (parts, width, cells) => {
  expect(cellsOf(parts, width)).toEqual(cells);
});

test('how a compaction went is said in words', () => {
  expect(describeOutcome({ kind: 'compacted', epoch: 2, turns: 1, method: 'rules', tokensBefore: 4000, tokensAfter: 900 })).toBe(
    '1 turn is memory now, summarized by rules, since the model gave no usable summary: 4,000 tokens of messages are 900 now',
  );
  expect(describeOutcome({ kind: 'failed', message: 'store away' })).toBe('the conversation is as it was: store away');
});

test('what trims have left, and what is to leave next, is said as it is', () => {
  const facts = (window: NonNullable<ContextIndex['window']>): string =>
    drawn(renderMeter({ ...INDEX, compactions: 0, reported: null, window }, 200))
      .split('\n')
      .slice(10, -1)
      .join('\n');
  expect(facts({ consolidated: 42, trimsFrom: 50_000, trims: 0, messages: 0, unsummarized: 0 })).toBe(
    '|long-term memory has 42 of these: they leave when the prompt passes 50,000 tokens|',
  );
  expect(facts({ consolidated: 0, trimsFrom: null, trims: 1, messages: 42, unsummarized: 0 })).toBe(
    "|trimmed once: 42 messages left the prompt; its memory has long-term memory's summary of 42|",
  );
  expect(facts({ consolidated: 1, trimsFrom: null, trims: 2, messages: 84, unsummarized: 40 })).toBe(
    [
      "|trimmed 2 times: 84 messages left the prompt; its memory has long-term memory's summary of 44, shortened lines of 40 that no model had summarized|",
      '|long-term memory has 1 of these: they leave once that makes the prompt smaller|',
    ].join('\n'),
  );
});
