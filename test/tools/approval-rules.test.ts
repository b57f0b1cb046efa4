/** Which calls run, which ask a person and which never run: rules of the agent, then the tool's own policy. */
import fc from 'fast-check';
import type { JsonValue } from '../../src/records/message.js';
import { approvalFor, matches, type ApprovalRule } from '../../src/tools/approval-rules.js';
import { builtinTools } from '../../src/tools/builtin/index.js';
import { ends } from '../support/ends.js';

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

test('whatever the pieces are, a text that is made of them in their order fits, and one of 100,000 characters comes to an end', () => {
  const piece = fc.string({ maxLength: 4 }).map((text) => text.replaceAll('*', ''));
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1, maxLength: 5 }), fc.array(piece, { minLength: 5, maxLength: 5 }), (pieces, gaps) =>
      matches(pieces.join('*'), pieces.map((text, i) => (i === 0 ? text : `${gaps[i] ?? ''}${text}`)).join('')),
    ),
  );
  expect(ends(() => matches('*a'.repeat(200) + 'b', 'a'.repeat(100_000)))).toBe(false);
});

test('what is denied says why, in the rule’s words or in ours', () => {
  const denied = (why?: string): string | undefined =>
    approvalFor([{ tool: 'read_*', policy: 'deny', ...(why === undefined ? {} : { why }) }], { name: 'read_file', policy }, {}, 'desk').why;
  expect(denied('not these')).toBe('not these');
  expect(denied()).toBe('the rules of agent "desk" do not allow read_file with these arguments.');
});

describe('other spellings of one thing', () => {
  const fits = (where: NonNullable<ApprovalRule['where']>, policy: 'allow' | 'deny', input: JsonValue): boolean =>
    of([{ tool: '*', where, policy }], input) === policy;

  test.each([
    'HTTP://Evil.example/a',
    'http://evil.example:80/a',
    'http://user:pw@evil.example/a',
    'http://evil.example/b/../a',
    'http://evil.example/%61',
    'http://evil.example/b/%2e%2e/a',
    'http://evil.example/b%2f..%2fa',
    'http://evil.example./a',
    'http:\\\\evil.example\\a',
    ' http://evil.example/a',
    'ht\ntp://evil.example/a',
    'http:evil.example/a',
    'http://ｅvil.example/a#x',
  ])('a rule that denies an address denies %j', (url) => {
    expect(fits({ url: 'http://evil.example/a*' }, 'deny', { url })).toBe(true);
    expect(fits({ url: 'HTTP://EVIL.example:80/a*' }, 'deny', { url })).toBe(true);
  });

  test.each<[string, boolean]>([
    ['https://docs.example.com/open/a', true],
    ['HTTPS://DOCS.example.com:443/open/a', true],
    ['https://docs.example.com/open/%61', true],
    ['https://docs.example.com/open/../closed', false],
    ['https://docs.example.com/open/%2e%2e/closed', false],
    ['https://docs.example.com/open/..%2fclosed', false],
    ['https://docs.example.com/open/..%5cclosed', false],
    ['https://docs.example.com/open/%2e%2e%2fclosed', false],
    ['https://docs.example.com@evil.example/open/a', false],
    ['https://a:b@docs.example.com/open/a', false],
    ['https://docs.example.com/open/a#b', false],
    ['https://docs.example.com/open/a#', false],
    [' https://docs.example.com/open/a', false],
    ['https://docs.exa\tmple.com/open/a', false],
    ['https://docs.example.com/open/a\n', false],
    ['https://docs.example.com/open/a\u200b', false],
  ])('a rule that allows an address allows %j: %p', (url, allowed) => {
    expect(fits({ url: 'https://docs.example.com/open/*' }, 'allow', { url })).toBe(allowed);
  });

  // @rule tools/allow-only-what-is-named
  test.each(['--author=a\nb', 'a\u0000', 'a\u202eb', ' a', 'a\t'])('no rule that allows arguments allows %j', (argument) => {
    const input = { command: 'git', args: ['log', argument] };
    for (const args of [['log', '*'], ['log', '**'], ['**']]) {
      expect(fits({ command: 'git', args }, 'allow', input)).toBe(false);
      expect(fits({ command: 'git', args }, 'deny', input)).toBe(true);
    }
    expect(fits({ command: 'git', args: ['log', '*'] }, 'allow', { command: 'git', args: ['log', '--format=%h %s'] })).toBe(true);
  });

  test.each(['rm', '/bin/rm', '/usr/bin/rm', './rm', '/bin/../bin/rm', 'RM', 'rm.exe'])('a rule that denies rm denies %s', (command) => {
    expect(fits({ command: 'rm' }, 'deny', { command, args: [] })).toBe(true);
  });

  test.each<[string, boolean]>([
    ['git', true],
    ['./git', false],
    ['/tmp/git', false],
    ['bin/../git', false],
    ['GIT', false],
  ])('a rule that allows git allows %s: %p', (command, allowed) => {
    expect(fits({ command: 'git' }, 'allow', { command, args: [] })).toBe(allowed);
  });

  test('paths are compared without detours', () => {
    expect(fits({ path: 'closed/*' }, 'deny', { path: './open/../closed/a' })).toBe(true);
    expect(fits({ path: 'open/*' }, 'allow', { path: 'open/../closed/a' })).toBe(false);
    expect(fits({ path: 'open/*' }, 'allow', { path: './open//a' })).toBe(true);
  });
});

test('a rule that allows a command allows it in the workspace, without input; elsewhere it must say so', () => {
  const allows = (where: ApprovalRule['where'], more: Record<string, string>): boolean =>
    of([{ tool: '*', ...(where && { where }), policy: 'allow' }], { ...(git('status') as object), ...more }) === 'allow';
  const rule = { command: 'git', args: ['status', '**'] };
  const plain: Record<string, string>[] = [{}, { cwd: '.' }, { cwd: './' }, { cwd: 'sub/..' }];
  const other: Record<string, string>[] = [{ cwd: 'sub' }, { cwd: '..' }, { cwd: '/' }, { stdin: 'x' }];
  expect(plain.map((more) => allows(rule, more))).toEqual([true, true, true, true]);
  expect(other.map((more) => allows(rule, more))).toEqual([false, false, false, false]);
  expect(allows({ ...rule, cwd: 'sub/*' }, { cwd: 'sub/a' })).toBe(true);
  expect(allows({ ...rule, cwd: 'sub/*' }, { cwd: 'sub/../other' })).toBe(false);
  expect(allows({ ...rule, stdin: '*' }, { stdin: 'x' })).toBe(true);
  // Who allows a tool whatever it is asked for has said so.
  expect(allows(undefined, { cwd: 'sub', stdin: 'x' })).toBe(true);
  // A rule that denies or asks needs nothing of the kind.
  expect(of([{ tool: '*', where: { command: 'git' }, policy: 'deny' }], { ...(git('push') as object), cwd: 'sub' })).toBe('deny');
});
