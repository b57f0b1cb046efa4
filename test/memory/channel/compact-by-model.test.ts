/** What a model makes to stand for a long result: in the form that it was asked for, whatever it answers. */
import { compactByModel } from '../../../src/memory/channel/compaction-plugin.js';

const COMPACTION = { goal: 'find the plum thief', action: 'fetch_page', result: 'All about plums.', memoryId: 'mem_1' };
const answeredWith = (answer: string): Promise<string | undefined> => compactByModel(() => Promise.resolve(answer), COMPACTION);

test('the asked form is taken, in a fence too, with the item’s own id and nothing else', async () => {
  const answer = JSON.stringify({
    summary: 'By the harbour.',
    keyFacts: ['It is Ada.', 'At nine.'],
    memoryId: 'mem_of_another',
    more: 'x',
  });
  const expected = JSON.stringify({ summary: 'By the harbour.', keyFacts: ['It is Ada.', 'At nine.'], memoryId: 'mem_1' }, null, 2);
  expect(await answeredWith(answer)).toBe(expected);
  expect(await answeredWith(`\`\`\`json\n${answer}\n\`\`\``)).toBe(expected);
});

test('what is too long is cut, what is no fact is left out', async () => {
  const keyFacts = [7, '', ' ', null, ...Array.from({ length: 9 }, (_, n) => `${n} ${'y'.repeat(500)}`)];
  const made = JSON.parse((await answeredWith(JSON.stringify({ summary: `a\n\u0007b ${'x'.repeat(2_000)}`, keyFacts }))) ?? '{}') as {
    readonly summary: string;
    readonly keyFacts: readonly string[];
  };
  expect(made.summary).toHaveLength(600);
  expect(made.summary).toMatch(/^a b x/);
  expect(made.keyFacts.map((fact) => fact.length)).toEqual([200, 200, 200, 200, 200]);
});

test.each([
  '',
  'It was Ada.',
  '[]',
  'null',
  '{"keyFacts":["a"]}',
  '{"summary":7}',
  '{"summary":" "}',
  `{"summary":"${'x'.repeat(20_000)}"}`,
])('another answer is of no use: %.20s', async (answer) => {
  expect(await answeredWith(answer)).toBeUndefined();
});
