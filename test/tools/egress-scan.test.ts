/** What leaves by an address or an argument: secrets ask a person, what only looks busy does not. */
import { createKnownSecrets } from '../../src/platform/known-secrets.js';
import { approvalFor, type Approval, type ApprovalRule } from '../../src/tools/approval-rules.js';
import { createFetchUrl } from '../../src/tools/builtin/web/fetch-url.js';
import type { JsonValue } from '../../src/records/message.js';
import { leavingFor } from '../../src/tools/mcp/run-server-tool.js';
import type { McpServer } from '../../src/tools/mcp/server-config.js';
import { serversOf } from '../support/mcp.js';
import { secretLeaving, withoutSecrets } from '../../src/tools/egress-scan.js';

/** Put together here, so that no scanner of repositories takes this file for a leak. */
const of = (...parts: string[]): string => parts.join('');
const LETTERS = 'aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6kL9n';

test.each<[string, string]>([
  ['Anthropic', of('sk-', 'ant-', 'api03-', LETTERS)],
  ['OpenAI', of('sk-', 'proj-', LETTERS)],
  ['GitHub', of('gh', 'p_', LETTERS.slice(0, 36))],
  ['GitHub', of('github_', 'pat_', LETTERS, LETTERS)],
  ['GitLab', of('gl', 'pat-', LETTERS.slice(0, 20))],
  ['AWS', of('AK', 'IA', 'ABCDEFGHIJKLMNOP')],
  ['Google', of('AI', 'za', LETTERS.slice(0, 35))],
  ['Slack', of('xo', 'xb-', '1234567890-', LETTERS)],
  ['Stripe', of('sk_', 'live_', LETTERS.slice(0, 24))],
  ['npm', of('np', 'm_', LETTERS.slice(0, 36))],
  ['Hugging Face', of('h', 'f_', LETTERS.slice(0, 34))],
  ['JWT', of('ey', 'JhbGciOiJIUzI1NiJ9.', 'ey', 'JzdWIiOiIxMjM0NTY3ODkwIn0.', LETTERS)],
  ['private key', of('-----BEGIN RSA ', 'PRIVATE KEY-----')],
  ['random token', LETTERS.slice(0, 32)],
])('finds what looks like %s', (what, token) => {
  for (const text of [token, `https://a.example/?q=${token}&r=1`, JSON.stringify({ body: `the key is ${token}.` })]) {
    expect(secretLeaving(text)?.what).toContain(what);
    expect(secretLeaving(text)?.what).not.toContain(token);
  }
});

test.each([
  'https://example.com/a/550e8400-e29b-41d4-a716-446655440000',
  'https://example.com/a/550E8400-E29B-41D4-A716-446655440000?b=6BA7B810-9DAD-11D1-80B4-00C04FD430C8',
  'https://github.com/a/b/commit/da39a3ee5e6b4b0d3255bfef95601890afd80709',
  'https://example.com/sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  'https://example.com/How-To-Set-Up-A-Durable-Agent-With-Node20-In-2026',
  'https://example.com/blog/2026-11-23-what-is-new-in-version-20-of-node-js',
  'https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=120s',
  'https://example.com/api/getUserByIdAndOrganizationFromCacheV2Beta',
  'https://example.com/JavaScript/Reference/GlobalObjects/AsyncGeneratorFunction',
  'https://arxiv.org/abs/2401.12345v2?utm_source=newsletter&utm_campaign=Weekly_Digest_2026_47',
  'https://example.com/?lat=52.520006599999995&lon=13.404953999999975&zoom=1234567890123456',
  'https://registry.npmjs.org/@modelcontextprotocol/server-everything/-/server-everything-2026.8.31.tgz',
  '{"path":"src/tools/builtin/files/search-files.ts","query":"createReadableStreamFromReadable"}',
  'mem_01HZX7KQ3V5N8',
  'task-force-sk-learn skiing AKIAK xoxo eyJ',
])('asks about nothing in %s', (text) => {
  expect(secretLeaving(text)).toBeUndefined();
});

test('a hash is asked about when it is a secret that is known here, however it is written', () => {
  const secret = 'da39a3ee5e6b4b0d3255bfef95601890afd80709';
  const known = createKnownSecrets([secret]);
  for (const written of [secret, Buffer.from(secret).toString('base64'), Buffer.from(`x${secret}`).toString('base64url')]) {
    expect(secretLeaving(`https://a.example/${written}`, known)).toEqual({ what: 'a secret that this program was given', isSure: true });
  }
  expect(secretLeaving(`https://a.example/${secret}`)).toBeUndefined();
});

test('fetch_url asks over a rule that allows the address where a secret is sure, and not where it is only likely', async () => {
  const secret = 'hunter2-hunter2';
  const tool = createFetchUrl({ secrets: createKnownSecrets([secret]) });
  const rules: ApprovalRule[] = [{ tool: 'fetch_url', where: { url: 'https://docs.example.com/*' }, policy: 'allow' }];
  const decided = async (path: string): Promise<Approval> => {
    const input = { url: `https://docs.example.com/${path}` };
    return approvalFor(rules, tool, input, 'default', await tool.examine?.(input, { workspace: '/nowhere' }));
  };
  expect(await decided('page')).toEqual({ policy: 'allow' });
  expect(await decided(`?q=${secret}`)).toEqual({
    policy: 'ask',
    why: 'it would send a secret that this program was given to docs.example.com',
  });
  expect(await decided(`%68unter2-hunter2/`)).toMatchObject({ policy: 'ask' });
  expect(await decided(`?q=${Buffer.from(secret).toString('hex')}`)).toMatchObject({ policy: 'ask' });
  expect(await decided(of('gh', 'p_', LETTERS.slice(0, 36)))).toMatchObject({ policy: 'ask' });
  expect(await decided(LETTERS)).toEqual({ policy: 'allow' });
  const denied = [{ ...rules[0]!, policy: 'deny' as const }];
  const input = { url: `https://docs.example.com/${secret}` };
  expect(approvalFor(denied, tool, input, 'a', await tool.examine?.(input, { workspace: '/' })).policy).toBe('deny');
});

test('what is sent without anybody being asked is sent without them', () => {
  const key = of('sk-', 'ant-', LETTERS);
  expect(withoutSecrets(`{"a":"${key}","b":"hunter2-hunter2"}`, createKnownSecrets(['hunter2-hunter2']))).toBe(
    '{"a":"[redacted]","b":"[redacted]"}',
  );
  expect(
    withoutSecrets(of('a -----BEGIN ', 'PRIVATE KEY-----\\nMIIE', LETTERS, '\\n-----END PRIVATE KEY-----'), createKnownSecrets()),
  ).not.toContain(LETTERS);
});

test('what an MCP server is sent is looked at: of one on this machine only what is known', () => {
  const secrets = createKnownSecrets(['hunter2-hunter2']);
  const [far, near] = serversOf({ far: { url: 'https://mcp.example.com' }, near: { command: 'near' } });
  const asks = (server: McpServer, input: JsonValue): string | undefined => leavingFor({ server, secrets }, input).asks?.why;
  expect(asks(far!, { a: ['hunter2-hunter2'] })).toBe('it would send a secret that this program was given to the MCP server far');
  expect(asks(far!, { a: of('gh', 'p_', LETTERS.slice(0, 36)) })).toContain('a token of GitHub');
  expect(asks(near!, { a: Buffer.from('hunter2-hunter2').toString('base64') })).toContain('the MCP server near');
  expect(asks(near!, { a: of('gh', 'p_', LETTERS.slice(0, 36)) })).toBeUndefined();
  expect(asks(far!, { a: 'nothing of the kind' })).toBeUndefined();
});
