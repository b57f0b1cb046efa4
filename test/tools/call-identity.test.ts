/** Which calls are one and the same for a person who has allowed one of them for good: whatever could make another call of it counts. */
import fc from 'fast-check';
import { approvalFor, type ApprovalRule } from '../../src/tools/approval-rules.js';
import { callIdentity } from '../../src/tools/call-identity.js';
import type { JsonObject, JsonValue } from '../../src/records/message.js';
import { agentConfigSchema } from '../../src/agents/agent-config.js';

const same = (tool: string, a: JsonValue, b: JsonValue, real?: Readonly<Record<string, string>>): boolean =>
  callIdentity(tool, a) === callIdentity(tool, b, real);
const git: JsonObject = { command: 'git', args: ['status'] };

test.each<[what: string, tool: string, a: JsonValue, b: JsonValue]>([
  ['the order of arguments', 'run_command', git, { args: ['status'], command: 'git' }],
  ['a cwd that says what is meant anyway', 'run_command', git, { ...git, cwd: './', stdin: '' }],
  ['a path with detours', 'write_file', { path: 'a/b.txt', content: 'x' }, { path: './a//c/../b.txt', content: 'x' }],
  ['an address in other letters', 'fetch_url', { url: 'https://Example.com:443/a' }, { url: 'https://example.com/a' }],
])('%s makes no other call of it', (_, tool, a, b) => expect(same(tool, a, b)).toBe(true));

test.each<[what: string, b: JsonValue]>([
  ['another argument', { ...git, args: ['push'] }],
  ['one more', { ...git, args: ['status', '-c'] }],
  ['arguments in one word', { ...git, args: ['status '] }],
  ['a folder', { ...git, cwd: 'packages/a' }],
  ['input', { ...git, stdin: 'yes\n' }],
  ['a limit', { ...git, timeoutMs: 1 }],
  ['a program of that name here', { ...git, command: './git' }],
  ['a program of that name elsewhere', { ...git, command: '/tmp/git' }],
  ['other letters', { ...git, command: 'GIT' }],
  ['a list where a text was', { ...git, command: ['git'] }],
  ['a text where a list was', { ...git, args: 'status' }],
  ['nothing', {}],
  ['no object', ['git', 'status']],
  ['null', null],
])('%s makes another call of it', (_, b) => expect(same('run_command', git, b)).toBe(false));

// @rule tools/allow-only-what-is-named
test.each([
  'https://example.com/a#b',
  'https://b@example.com/a',
  'https://:b@example.com/a',
  ' https://example.com/a',
  'https://exam\tple.com/a',
  'https://example.com/a\n',
])('an address that carries something, %j, is another call than the address', (url) => {
  expect(same('fetch_url', { url: 'https://example.com/a' }, { url })).toBe(false);
  expect(same('fetch_url', { url }, { url })).toBe(true);
});

test('another tool with the same arguments is another call, and so are a number and its text', () => {
  expect(callIdentity('a', git)).not.toBe(callIdentity('b', git));
  expect(same('pay', { euros: 5 }, { euros: '5' })).toBe(false);
  expect(same('pay', { euros: null }, {})).toBe(false);
});

test('a path is where it leads: the same words through a link that was put there since are another call', () => {
  expect(same('read_file', { path: 'notes/a' }, { path: 'notes/a' }, { path: 'private/a' })).toBe(false);
  expect(same('read_file', { path: 'private/a' }, { path: 'notes/a' }, { path: 'private/a' })).toBe(true);
  expect(same('run_command', git, git, { cwd: '.' })).toBe(true);
  expect(same('run_command', git, git, { cwd: 'elsewhere' })).toBe(false);
});

describe('a rule that names a call exactly', () => {
  const rule = (exactly: JsonObject): ApprovalRule[] => [{ tool: 'run_command', exactly, policy: 'allow' }];
  const policyOf = (rules: readonly ApprovalRule[], input: JsonValue, real = {}): string =>
    approvalFor(rules, { name: 'run_command', policy: { repeatable: false, quick: false, timeoutMs: 1, approval: 'ask' } }, input, 'a', {
      real,
    }).policy;

  test('allows that call alone', () => {
    expect(policyOf(rule(git), git)).toBe('allow');
    const others: JsonValue[] = [{ ...git, cwd: 'x' }, { ...git, stdin: 'x' }, { ...git, env: {} }, { command: 'git' }];
    for (const other of others) expect(policyOf(rule(git), other)).toBe('ask');
    expect(policyOf(rule(git), git, { cwd: 'elsewhere' })).toBe('ask');
  });

  test('knows no patterns: a star is a star', () => {
    const star: JsonObject = { command: 'rm', args: ['*', '**'] };
    expect(policyOf(rule(star), star)).toBe('allow');
    expect(policyOf(rule(star), { command: 'rm', args: ['-rf', '/'] })).toBe('ask');
    expect(policyOf([{ tool: '*', exactly: git, policy: 'allow' }], git)).toBe('ask');
  });

  test('never allows a call that differs, whatever it is', () => {
    const word = fc.oneof(fc.constantFrom('git', '*', '**', './git', 'a/../b', 'HTTP://h/', '.', ''), fc.string({ maxLength: 6 }));
    const call = fc.record({ command: word, args: fc.array(word, { maxLength: 3 }), cwd: word, stdin: word }, { requiredKeys: [] });
    fc.assert(
      fc.property(call, call, (a, b) => {
        const allows = policyOf(rule(a as JsonObject), b as JsonValue) === 'allow';
        return allows === (callIdentity('run_command', a as JsonValue) === callIdentity('run_command', b as JsonValue));
      }),
    );
  });

  test('stands in agent.json beside the others, and not with `where`', () => {
    expect(agentConfigSchema.safeParse({ approvals: rule(git) }).success).toBe(true);
    expect(agentConfigSchema.safeParse({ approvals: [{ ...rule(git)[0], where: { command: 'git' } }] }).success).toBe(false);
  });
});
