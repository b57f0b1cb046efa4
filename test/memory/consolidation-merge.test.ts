import * as fc from 'fast-check';
import { mergeMemory, nearDuplicateFacts, withoutDuplicateLines } from '../../src/memory/consolidation/merge.js';
import type { SemanticItem } from '../../src/records/memory/items.js';
import { ends } from '../support/ends.js';

describe('an update that a person’s edit overtook', () => {
  const merge = (base: string[], theirs: string[], ours: string[]) =>
    mergeMemory({ base: base.join('\n'), theirs: theirs.join('\n'), ours: ours.join('\n') }).split('\n');

  test.each<[string, string[], string[], string[], string[]]>([
    [
      'changes in different places are both taken',
      ['- a', '- b', '- c'],
      ['- a1', '- b', '- c'],
      ['- a', '- b', '- c', '- d'],
      ['- a1', '- b', '- c', '- d'],
    ],
    ['only ours: ours', ['- a', '- b'], ['- a', '- b'], ['- a', '- b1 more'], ['- a', '- b1 more']],
    ['only theirs: theirs', ['- a', '- b'], ['- x', '- b'], ['- a', '- b'], ['- x', '- b']],
    ['the same change stands once', ['- a'], ['- a', '- b'], ['- a', '- b'], ['- a', '- b']],
    [
      'in a conflict the person’s lines stay, and new ones of ours follow',
      ['# A', '- z'],
      ['# A', '- theirs', '- both', '- z'],
      ['# A', '- ours', '- both', '- z'],
      ['# A', '- theirs', '- both', '- ours', '- z'],
    ],
    [
      'a line that the person deleted does not come back',
      ['- a', '- Likes tea', '- c'],
      ['- a', '- c'],
      ['- a', '- Likes tea', '- c', '- d'],
      ['- a', '- c', '- d'],
    ],
    ['not when ours moved it', ['- Likes tea', '- b', '- c'], ['- b', '- c'], ['- b', '- c', '* Likes  tea'], ['- b', '- c']],
    ['not in other words', ['- Lives in Berlin', '- c'], ['- c'], ['- Lives in Berlin with her cat', '- c'], ['- c']],
    [
      'not beside what the person made of it',
      ['- Lives in Berlin', '- c'],
      ['- Lives in Munich', '- c'],
      ['- Lives in Berlin with cats', '- c', '- d'],
      ['- Lives in Munich', '- c', '- d'],
    ],
    [
      'not when the person emptied the document',
      ['- Likes tea', '- Likes chess'],
      [''],
      ['- Likes tea', '- Likes chess', '- Uses pnpm'],
      ['', '- Uses pnpm'],
    ],
    [
      'what ours pruned goes where the person let it be',
      ['- a', '- b', '- c'],
      ['- a', '- b', '- c', '- d'],
      ['- b', '- c'],
      ['- b', '- c', '- d'],
    ],
    [
      'a line that the person moved does not stand twice',
      ['- a', '- b', '- c'],
      ['- c', '- a', '- b'],
      ['- a', '- b', '- c', '- d'],
      ['- c', '- a', '- b', '- d'],
    ],
  ])('%s', (_, base, theirs, ours, merged) => {
    expect(merge(base, theirs, ours)).toEqual(merged);
  });

  test('the line endings of an editor are no change', () => {
    expect(mergeMemory({ base: '- a\n- b\n', theirs: '- a\r\n- b\r\n- x\r\n', ours: '- z\n- a\n- b\n' })).toBe('- z\n- a\n- b\n- x\n');
  });

  test('documents of many lines are merged by their length', () => {
    const text = '\n'.repeat(60_000);
    expect(ends(() => mergeMemory({ base: text, theirs: `${text}- x`, ours: `- y\n${text}` }))).toMatch(/- x\n- y$/);
    ends(() => mergeMemory({ base: '\n'.repeat(2_000), theirs: `${'\n'.repeat(2_100)}- x`, ours: `- y${'\n'.repeat(2_000)}` }));
  });

  test('every line of the person stays unless only ours changed it, and none that he deleted is there', () => {
    const document = fc.array(fc.constantFrom('- a', '- b', '- likes tea', '- plays chess', '# H', '', '- lives in Berlin'), {
      maxLength: 8,
    });
    fc.assert(
      fc.property(document, document, document, (base, theirs, ours) => {
        const merged = merge(base, theirs, ours);
        for (const line of base) if (line !== '' && !theirs.includes(line)) expect(merged).not.toContain(line);
        for (const line of theirs) if (line !== '' && !base.includes(line)) expect(merged).toContain(line);
      }),
    );
  });
});

describe('care without a model', () => {
  test.each([
    ['a line that stands above', '# A\n- a\n- b\n* a', '# A\n- a\n- b'],
    ['spaces aside', '- a  b\n-   a b ', '- a  b'],
  ])('removes %s', (_, text, cared) => {
    expect(withoutDuplicateLines(text)).toBe(cared);
  });

  test.each([
    ['blank lines and rules', 'a\n\n---\n\nb\n---\n'],
    ['headings', '## A\n- a\n## A\n- b'],
    ['the same under another heading', '## Likes\n- tea\n## Dislikes\n- tea'],
    ['the same below another line', '- pnpm?\n  - yes\n- yarn?\n  - yes'],
    ['code', '```\n}\n}\na\na\n```'],
    ['a line that has others below it', '- A\n  - x\n- B\n- A\n  - y'],
    ['another case, which may be another path', '- /Foo\n- /foo'],
    ['a document of another editor', '- a\r\n- b\r\n'],
  ])('leaves %s', (_, text) => {
    expect(withoutDuplicateLines(text)).toBe(text);
  });

  const fact = (number: number, text: string, salience = 0.5): SemanticItem => ({
    id: `sem_000${number}`,
    ts: 1738100000 + number,
    fact: text,
    tags: [],
    confidence: 1,
    salience,
  });
  const long = 'The nightly build of the mobile client deploys documentation, coverage reports, screenshots, release notes and archives';

  test.each<[string, string[], SemanticItem[]]>([
    ['the less salient of two with the same words', ['sem_0001'], [fact(1, 'Uses pnpm', 0.4), fact(2, 'The user uses PNPM.', 0.9)]],
    ['the older of two as salient', ['sem_0001'], [fact(1, 'Uses pnpm'), fact(2, 'Uses pnpm')]],
    ['one of two that differ in a word of many', ['sem_0001'], [fact(1, long), fact(2, `${long} daily`)]],
    ['none that differ in more', [], [fact(1, long), fact(2, `${long} daily, weekly, monthly and quarterly`)]],
    ['none that differ in a number', [], [fact(1, `${long} to port 8080`), fact(2, `${long} to port 8081`)]],
    ['none that differ in a not', [], [fact(1, long), fact(2, long.replace('deploys', 'deploys no'))]],
    ['none without a word, unless they are the same', ['sem_0001'], [fact(1, 'It is.'), fact(2, 'It is.'), fact(3, 'He was.')]],
    ['nothing of nothing', [], []],
  ])('of facts: %s', (_, removed, facts) => {
    expect(nearDuplicateFacts(facts)).toEqual(removed);
  });
});
