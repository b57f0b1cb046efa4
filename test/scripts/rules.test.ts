/** How `npm run check` reads rules and the references to them (scripts/rules.mjs), on examples that are broken in one way each. */
interface File {
  readonly path: string;
  readonly text: string;
}

const { readRules, ruleFiles } = jest.requireActual<{
  readRules(files: readonly File[]): {
    readonly rules: readonly { readonly name: string; readonly text: string; readonly test: string; readonly file: string }[];
    readonly problems: readonly string[];
  };
  ruleFiles(): readonly File[];
}>('../../scripts/rules.mjs');

const TEST: File = { path: 'test/turn/turns.test.ts', text: '' };
const head = (...lines: readonly string[]) => ['/**', ...lines.map((line) => ` * ${line}`), ' */'].join('\n');
const turn = (...lines: readonly string[]): File => ({ path: 'src/conversation/turn/turn.ts', text: head('One turn.', ...lines) });
/** Not written as one text, so that this file itself refers to no rule. */
const to = (...names: readonly string[]) => `(${names.join(', ')})`;
const ENDS_ONCE = '@rule turn/ends-once: A turn ends once. (test: test/turn/turns.test.ts)';

test('a rule and its references may be broken over lines, and a media type is no reference', () => {
  const broken = turn(
    '@rule turn/ends-once: A turn ends',
    '  once. (test:',
    '  test/turn/turns.test.ts)',
    ENDS_ONCE.replace('ends-once', 'begins-once'),
  );
  const guide = { path: 'docs/guide.md', text: `Turns end ${to('turn/ends-once')}, as pictures do ${to('image/png')}.` };
  const wrapped = { path: 'src/b.ts', text: `// ends ${to('turn/ends-once', 'turn/begins-once').replace(' ', '\n// ')}` };
  const rule = { name: 'turn/ends-once', text: 'A turn ends once.', test: TEST.path, file: broken.path };
  expect(readRules([broken, guide, wrapped, TEST])).toEqual({ rules: [rule, { ...rule, name: 'turn/begins-once' }], problems: [] });
});

test.each<[string, readonly File[], string]>([
  [
    'a second definition',
    [turn(ENDS_ONCE), { path: 'src/gateway/turn/ends.ts', text: head(ENDS_ONCE) }],
    'src/gateway/turn/ends.ts: turn/ends-once is defined in src/conversation/turn/turn.ts too',
  ],
  [
    'a reference without a definition, in a list too',
    [turn(ENDS_ONCE), { path: 'docs/guide.md', text: `as ever ${to('turn/ends-once', 'turn/ends-twice')}` }],
    `docs/guide.md: there is no rule ${to('turn/ends-twice')}`,
  ],
  [
    'a test that is not there',
    [turn(ENDS_ONCE.replace('turns.test', 'gone.test'))],
    'src/conversation/turn/turn.ts: the test of turn/ends-once, test/turn/gone.test.ts, is not there',
  ],
  [
    'no test',
    [turn('@rule turn/ends-once: A turn ends once.')],
    'src/conversation/turn/turn.ts: write each rule as `@rule folder/claim: sentence (test: path)`',
  ],
  [
    'a claim of one word',
    [turn(ENDS_ONCE.replace('ends-once', 'ends'))],
    'src/conversation/turn/turn.ts: turn/ends is no name of a rule: folder/claim, the claim of two words or more',
  ],
  [
    'another folder',
    [turn(ENDS_ONCE.replace('turn/ends', 'inbox/ends'))],
    'src/conversation/turn/turn.ts: inbox/ends-once has to begin with a folder of this file',
  ],
  ['a letter', [turn('', 'T1  A turn ends once.')], 'src/conversation/turn/turn.ts: a rule has a name, not a letter: * T1'],
])('%s is refused', (_, files, problem) => {
  expect(readRules([...files, TEST]).problems).toEqual([problem]);
});

test('our own rules are in order', () => {
  const { rules, problems } = readRules(ruleFiles());
  expect(problems).toEqual([]);
  expect(rules.length).toBeGreaterThan(100);
});
