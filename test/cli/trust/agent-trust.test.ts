/** A worker that has passed the door reads an agent's files again: what grants something and has changed since waits for a yes. */
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { trustFile } from '../../../src/config.js';
import { rememberTrust } from '../../../src/cli/trust/folder-trust.js';
import { createAgentTrust } from '../../../src/cli/trust/agent-trust.js';
import { folderContents } from '../../../src/cli/trust/folder-contents.js';
import type { AgentTrust } from '../../../src/agents/load-agent.js';
import { mcpConfigSchema, toServers } from '../../../src/tools/mcp/server-config.js';

const at = (name: string): string => join(folder, name);
const text = (command: string): string => JSON.stringify({ mcpServers: { a: { command } } });
let base: string;
let folder: string;
let env: Record<string, string>;
let warned: string[];

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'perdura-servers-')));
  folder = join(base, 'folder');
  mkdirSync(at('agents/ada'), { recursive: true });
  env = { XDG_STATE_HOME: join(base, 'state') };
  warned = [];
});
afterEach(() => rmSync(base, { recursive: true }));

const trustOf = (): AgentTrust | undefined => createAgentTrust({ cwd: folder, env }, (line) => warned.push(line));
const made = (): AgentTrust['mayUse'] => trustOf()?.mayUse ?? (() => Promise.resolve(true));
/** A person says yes to all that lies there. */
const sayYes = (): Promise<void> => rememberTrust(trustFile(env), folder, folderContents(folder, env));

/** As a worker finds it: written, then asked about. */
function asked(mayUse: ReturnType<typeof made>, name: string, content: string): Promise<boolean> {
  writeFileSync(at(name), content);
  return mayUse(at(name), content);
}

test('what was there at the start is used, another text only once a person has said yes to it', async () => {
  const name = 'agents/ada/mcp.json';
  writeFileSync(at(name), text('good'));
  const mayUse = made();
  expect(await asked(mayUse, name, text('good'))).toBe(true);
  expect(await asked(mayUse, name, text('evil'))).toBe(false);
  expect(await asked(mayUse, name, text('evil'))).toBe(false);
  expect(warned).toEqual([expect.stringContaining('agents/ada/mcp.json has changed and is not trusted')]);
  const sha256 = createHash('sha256').update(text('evil')).digest('hex');
  await rememberTrust(trustFile(env), folder, [{ name, sha256 }]);
  expect(await asked(mayUse, name, text('evil'))).toBe(true);
  expect(await asked(mayUse, name, text('good'))).toBe(true);
  expect(await asked(mayUse, name, text('worse'))).toBe(false);
});

test('one that is new, in a new agent, or behind a link out of the folder is not used either', async () => {
  mkdirSync(join(base, 'elsewhere', 'eve'), { recursive: true });
  const mayUse = made();
  expect(await asked(mayUse, 'agents/ada/mcp.json', text('new'))).toBe(false);
  symlinkSync(join(base, 'elsewhere', 'eve'), at('agents/eve'));
  expect(await asked(mayUse, 'agents/eve/mcp.json', text('new'))).toBe(false);
});

test('what a person has named themselves, or trusts without being asked, is used as it is', async () => {
  mkdirSync(join(base, 'own', 'ada'), { recursive: true });
  env['PERDURA_AGENTS_DIR'] = join(base, 'own');
  expect(await asked(made(), '../own/ada/mcp.json', text('mine'))).toBe(true);
  delete env['PERDURA_AGENTS_DIR'];
  env['PERDURA_TRUST'] = '1';
  expect(await asked(made(), 'agents/ada/mcp.json', text('mine'))).toBe(true);
});

describe('an agent.json', () => {
  const name = 'agents/ada/agent.json';
  const config = (rules: unknown, more: object = {}): string => JSON.stringify({ approvals: rules, ...more });
  const ALLOW = { tool: 'run_command', policy: 'allow' };

  test('that allows what it did not at the start waits for a yes; every other change counts at once', async () => {
    writeFileSync(at(name), '{}');
    const mayUse = made();
    expect(await asked(mayUse, name, config([{ tool: 'run_command', policy: 'deny' }], { name: 'Ada', limits: { maxTokens: 9 } }))).toBe(
      true,
    );
    expect(warned).toEqual([]);
    expect(await asked(mayUse, name, config([ALLOW]))).toBe(false);
    expect(await asked(mayUse, name, config([ALLOW], { name: 'Eve' }))).toBe(false);
    expect(warned).toEqual([expect.stringMatching(/agents\/ada\/agent\.json has changed.*Run `perdura trust` in/)]);
    await sayYes();
    expect(await asked(mayUse, name, config([ALLOW], { name: 'Eve' }))).toBe(true);
    expect(await asked(mayUse, name, '{}')).toBe(true);
    expect(await asked(mayUse, name, `\ufeff${config([])}`)).toBe(true);
  });

  test.each([
    ['believes a tool', { memory: { trustedTools: ['fetch_url'] } }],
    ['remembers without review', { memory: { reviewWhenToolsSpoke: false } }],
    ['runs commands without a sandbox', { sandbox: 'none' }],
    ['lets commands reach example.org', { commandHosts: ['example.org'] }],
    ['has lost a rule that stood before one that allows', { approvals: [ALLOW] }],
  ])('that %s waits', async (_what, content) => {
    writeFileSync(at(name), config([{ tool: 'run_command', where: { command: 'rm' }, policy: 'deny' }, ALLOW]));
    const mayUse = made();
    expect(await asked(mayUse, name, JSON.stringify({ approvals: [], ...content }))).toBe(false);
  });
});

describe('the files that a server runs', () => {
  const server = (settings: object) => toServers(mcpConfigSchema.parse({ mcpServers: { a: settings } }), at('agents/ada'))[0]!;
  const settings = { command: 'sh', args: ['-c', 'exec node ./server.js'] };

  test('are those of the worker’s start when it is started again', async () => {
    writeFileSync(at('agents/ada/mcp.json'), JSON.stringify({ mcpServers: { a: settings } }));
    writeFileSync(at('agents/ada/server.js'), "require('./part.js')");
    writeFileSync(at('agents/ada/part.js'), 'good');
    const trust = trustOf();
    expect(await trust?.whyNotStart(server(settings))).toBeUndefined();
    writeFileSync(at('agents/ada/part.js'), 'evil');
    expect(await trust?.whyNotStart(server(settings))).toMatch(
      /it runs agents\/ada\/part\.js, changed and not trusted: run `perdura trust` in/,
    );
    await sayYes();
    expect(await trust?.whyNotStart(server(settings))).toBeUndefined();
  });

  test('do not matter where there are none, or where the operator has named the agents', async () => {
    expect(await trustOf()?.whyNotStart(server({ command: 'npx', args: ['-y', 'some-server'] }))).toBeUndefined();
    expect(await trustOf()?.whyNotStart(server({ url: 'http://127.0.0.1:1' }))).toBeUndefined();
    env['PERDURA_AGENTS_DIR'] = at('agents');
    const trust = trustOf();
    writeFileSync(at('agents/ada/mcp.json'), JSON.stringify({ mcpServers: { a: settings } }));
    writeFileSync(at('agents/ada/server.js'), '');
    expect(await trust?.whyNotStart(server(settings))).toBeUndefined();
  });
});

test('of hundreds of agents each one is looked at', async () => {
  for (let i = 0; i < 520; i++) {
    mkdirSync(at(`agents/a${i}`));
    writeFileSync(at(`agents/a${i}/mcp.json`), text('good'));
  }
  expect(folderContents(folder, env)).toHaveLength(520);
});
