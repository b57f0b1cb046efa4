/** Which calls run, which ask a person and which never run: rules of the agent, then the tool's own policy. */
import fc from 'fast-check';
import type { JsonValue } from '../../src/records/message.js';
import { approvalFor, matches, type ApprovalRule } from '../../src/tools/approval-rules.js';
import { builtinTools } from '../../src/tools/builtin/index.js';

const policy = { repeatable: false, quick: false, timeoutMs: 1_000 };
const of = (rules: readonly ApprovalRule[], input: JsonValue, name = 'run_command'): string =>
  approvalFor(rules, { name, policy: { ...policy, approval: 'ask' } }, input, 'default').policy;
const git = (...args: string[]): JsonValue => ({ command: 'git', args });

test('of the built-in tools, commands and pages ask, and no other', () => {
  const asking = builtinTools.filter((tool) => approvalFor([], tool, {}, 'default').policy !== 'allow').map(({ name }) => name);
  expect(asking).toEqual(['fetch_url', 'run_command']);
});

test('the first rule that fits counts, and the tool’s own policy where none does', () => {
  const rules: ApprovalRule[] = [
    { tool: 'run_command', where: { command: 'git', args: ['push', '**'] }, policy: 'deny' },
    { tool: 'run_command', where: { command: 'git' }, policy: 'allow' },
  ];
  expect([git('push', 'origin'), git('status'), { command: 'rm', args: [] }].map((input) => of(rules, input))).toEqual([
    'deny',
    'allow',
    'ask',
  ]);
});

test.each<[readonly string[], readonly string[], boolean]>([
  [['status'], ['status'], true],
  [['status'], ['status', '--ext'], false],
  [['status'], [], false],
  [['push', '**'], ['push'], true],
  [['push', '**'], ['push', 'origin', 'main'], true],
  [['push', '**'], ['pull', 'push'], false],
  [['*', 'push', '**'], ['push'], false],
  [['**'], [], true],
  [['log', '-*'], ['log', '-3'], true],
])('the list %j, asked for %j: %p', (wanted, args, fits) => {
  expect(of([{ tool: 'run_command', where: { args: wanted }, policy: 'allow' }], git(...args))).toBe(fits ? 'allow' : 'ask');
});

test('an argument that is missing, of another shape, or only inherited fits nothing', () => {
  const allows = (where: NonNullable<ApprovalRule['where']>, input: JsonValue): boolean =>
    of([{ tool: '*', where, policy: 'allow' }], input) === 'allow';
  expect(allows({ url: '*' }, {})).toBe(false);
  expect(allows({ args: ['**'] }, { args: 'status' })).toBe(false);
  expect(allows({ url: '*' }, ['url'])).toBe(false);
  expect(allows({ url: '*' }, null)).toBe(false);
  expect(allows({ constructor: '*' }, {})).toBe(false);
  expect(allows({ all: 'true' }, { all: true })).toBe(true);
});

test.each([
  ['https://docs.example.com/*', 'https://docs.example.com/a/b', true],
  ['https://docs.example.com/*', 'https://docs.example.com.evil.net/', false],
  ['https://docs.example.com*', 'https://docs.example.com.evil.net/', true],
  ['mcp__github__*', 'mcp__github__search', true],
  ['mcp__github__*', 'mcp__gitlab__search', false],
  ['a*a', 'a', false],
  ['a*b*c', 'a-c-b', false],
  ['a*bc*cd', 'abcd', false],
  ['a.c', 'abc', false],
  ['*', '', true],
])('the pattern %s, asked for %s: %p', (pattern, text, fits) => {
  expect(matches(pattern, text)).toBe(fits);
});

test('whatever the pieces are, a text that is made of them in their order fits, and one of 100,000 characters takes no time', () => {
  const piece = fc.string({ maxLength: 4 }).map((text) => text.replaceAll('*', ''));
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1, maxLength: 5 }), fc.array(piece, { minLength: 5, maxLength: 5 }), (pieces, gaps) =>
      matches(pieces.join('*'), pieces.map((text, i) => (i === 0 ? text : `${gaps[i] ?? ''}${text}`)).join('')),
    ),
  );
  const began = Date.now();
  expect(matches('*a'.repeat(200) + 'b', 'a'.repeat(100_000))).toBe(false);
  expect(Date.now() - began).toBeLessThan(1_000);
});

test('what is denied says why, in the rule’s words or in ours', () => {
  const denied = (why?: string): string | undefined =>
    approvalFor([{ tool: 'read_*', policy: 'deny', ...(why === undefined ? {} : { why }) }], { name: 'read_file', policy }, {}, 'desk').why;
  expect(denied('not these')).toBe('not these');
  expect(denied()).toBe('the rules of agent "desk" do not allow read_file with these arguments.');
});
