/** A rule that a person has agreed to, in the agent's own file: whole or not at all, and trusted as it was shown. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { trustFile } from '../../../src/config.js';
import { allowInAgent, createAgentTrust } from '../../../src/cli/trust/agent-trust.js';
import { folderContents } from '../../../src/cli/trust/folder-contents.js';
import { readTrust, rememberTrust } from '../../../src/cli/trust/folder-trust.js';
import type { ApprovalRule } from '../../../src/tools/approval-rules.js';

const RULE: ApprovalRule = { tool: 'run_command', exactly: { command: 'git', args: ['*', '\u202e'] }, policy: 'allow' };
let base: string;
let cwd: string;
let env: Record<string, string>;
let file: string;

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'perdura-rule-')));
  cwd = join(base, 'folder');
  file = join(cwd, 'agents', 'ada', 'agent.json');
  mkdirSync(join(cwd, 'agents', 'ada'), { recursive: true });
  env = { XDG_STATE_HOME: join(base, 'state') };
});
afterEach(() => rmSync(base, { recursive: true }));

const allow = (agent = 'ada', agentsDir = join(cwd, 'agents')): Promise<string> => allowInAgent({ cwd, env, agentsDir }, agent, RULE);
const written = (): unknown => JSON.parse(readFileSync(file, 'utf8'));
const untrusted = async (): Promise<string[]> => {
  const known = await readTrust(trustFile(env), cwd);
  return folderContents(cwd, env).flatMap(({ name, sha256 }) => (known[name] === sha256 ? [] : [name]));
};

test('it comes before the rules that asked, all else stays, and the folder is trusted with it', async () => {
  const asked = { tool: 'run_command', policy: 'ask' };
  writeFileSync(file, `\uFEFF${JSON.stringify({ name: 'Ada', approvals: [asked] })}`);
  chmodSync(file, 0o640);
  const worker = createAgentTrust({ cwd, env }, () => undefined);
  expect(await allow()).toBe('agents/ada/agent.json');
  expect(written()).toEqual({ name: 'Ada', approvals: [RULE, asked] });
  expect(await untrusted()).toEqual([]);
  // A worker that runs takes it at once.
  expect(await worker?.mayUse(file, readFileSync(file, 'utf8'))).toBe(true);
  expect(statSync(file).mode & 0o777).toBe(0o640);
  expect(readdirSync(join(cwd, 'agents', 'ada'))).toEqual(['agent.json']);
});

test('a second one goes before the first, whose trust it keeps', async () => {
  writeFileSync(file, '{}');
  await allow();
  await allow();
  expect(written()).toEqual({ approvals: [RULE, RULE] });
  expect(await untrusted()).toEqual([]);
});

test('what the file allows already and nobody has agreed to is not trusted along the way', async () => {
  const granted = JSON.stringify({ approvals: [{ tool: '*', policy: 'allow' }] });
  writeFileSync(file, granted);
  await expect(allow()).rejects.toThrow(/not trusted yet; run `perdura trust` first/);
  expect(readFileSync(file, 'utf8')).toBe(granted);
  await rememberTrust(trustFile(env), cwd, folderContents(cwd, env));
  await allow();
  expect(await untrusted()).toEqual([]);
});

test('what else of the folder is not trusted stays so', async () => {
  writeFileSync(file, '{}');
  writeFileSync(join(cwd, 'agents', 'ada', 'mcp.json'), JSON.stringify({ mcpServers: { a: { command: 'evil' } } }));
  await allow();
  expect(await untrusted()).toEqual(['agents/ada/mcp.json']);
});

test('an agents folder elsewhere, which nobody asks about, gets the rule alone', async () => {
  const elsewhere = join(base, 'elsewhere');
  mkdirSync(join(elsewhere, 'ada'), { recursive: true });
  writeFileSync(join(elsewhere, 'ada', 'agent.json'), '{}');
  await allow('ada', elsewhere);
  expect(JSON.parse(readFileSync(join(elsewhere, 'ada', 'agent.json'), 'utf8'))).toEqual({ approvals: [RULE] });
  expect(existsSync(trustFile(env))).toBe(false);
});

test.each<[what: string, prepare: () => void, words: RegExp]>([
  ['an agent that is not here', () => undefined, /there is no such file here/],
  ['no JSON', () => writeFileSync(file, '{'), /it is no JSON/],
  ['what no agent may say', () => writeFileSync(file, '{"nonsense":1}'), /cannot write a rule/],
  [
    'more rules than there may be',
    () => writeFileSync(file, JSON.stringify({ approvals: Array(200).fill({ tool: 'a', policy: 'ask' }) })),
    /cannot write a rule/,
  ],
  ['a link', () => symlinkSync('/etc/hostname', file), /no file of its own/],
])('%s is left as it is', async (_, prepare, words) => {
  prepare();
  const text = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  await expect(allow()).rejects.toThrow(words);
  expect(existsSync(file) ? readFileSync(file, 'utf8') : undefined).toBe(text);
});

test.each(['../ada', '.', '', 'a/b'])('%j is no agent', async (agent) => {
  await expect(allow(agent)).rejects.toThrow(/not the name of an agent/);
});
