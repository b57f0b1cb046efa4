/** Ways out of the sandbox of commands, each tried; `escapes.json` has them, and docs/security.md shows it. Add yours. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRunCommand } from '../../../src/tools/builtin/command/run-command.js';
import { approvalFor } from '../../../src/tools/approval-rules.js';
import type { ToolContext } from '../../../src/tools/tool.js';

interface Escape {
  readonly what: string;
  /** Of bash; it says REACHED, or the canary, where it gets out. */
  readonly script: string;
}

const escapes = JSON.parse(readFileSync(join(__dirname, 'escapes.json'), 'utf8')) as readonly Escape[];
const CANARY = 'plum-4711-canary';
const dir = realpathSync(mkdtempSync(join(tmpdir(), 'perdura-sandbox-')));
const [workspace, other] = [join(dir, 'workspaces', 'mine'), join(dir, 'workspaces', 'other')];
const socket = join(dir, 'server.sock');
const abstract = `perdura-${process.pid}`;
const heard: string[] = [];
const servers: Server[] = [];
let port = 0;
/** The processes of this test are the worker's. */
process.env['PERDURA_TEST_CANARY'] = CANARY;

const tool = createRunCommand({
  environment: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '/root', LANG: 'C.UTF-8' },
  protectedPlaces: [join(workspace, 'agents')],
  hiddenPlaces: [join(workspace, '.env'), join(workspace, '.perdura')],
  limits: { graceMs: 300 },
});

async function run(script: string, more: Partial<ToolContext> = {}, input: object = {}): Promise<string> {
  const context = { workspace, signal: new AbortController().signal, sandbox: 'bwrap', ...more } as ToolContext;
  const result = await tool.run({ command: 'bash', args: ['-c', script], timeoutMs: 120_000, ...input }, context);
  return result.ok ? result.content : result.error;
}

function listen(at: number | string): Promise<Server> {
  return new Promise((resolve) => {
    const server = createServer((connection) => {
      heard.push(String(at));
      connection.on('error', () => undefined);
      connection.end(CANARY);
    });
    servers.push(server);
    server.listen(at, () => resolve(server));
  });
}

beforeAll(async () => {
  const server = await listen(0);
  port = (server.address() as { port: number }).port;
  await Promise.all([listen(socket), listen(`\0${abstract}`)]);
});
beforeEach(() => {
  for (const folder of [workspace, other]) rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(workspace, 'agents'), { recursive: true });
  mkdirSync(other, { recursive: true });
  writeFileSync(join(workspace, 'agents', 'agent.json'), '{}');
  mkdirSync(join(workspace, '.perdura'));
  for (const name of ['.env', '.perdura/token']) writeFileSync(join(workspace, name), CANARY);
  writeFileSync(join(other, 'secret.txt'), CANARY);
  heard.length = 0;
});
afterAll(() => {
  for (const server of servers) server.close();
  rmSync(dir, { recursive: true, force: true });
  delete process.env['PERDURA_TEST_CANARY'];
});

/** Skipped, by name, on a machine that can make none: there is no sandbox to get out of. */
const inSandbox = spawnSync('bwrap', ['--unshare-all', '--ro-bind', '/', '/', 'true']).status === 0 ? test : test.skip;

describe('no way out', () => {
  inSandbox.each(escapes.map(({ what, script }) => [what, script] as const))('%s', async (_, script) => {
    const places: Record<string, string | number> = {
      other,
      workspace,
      port,
      socket,
      abstract,
      pid: process.pid,
      parent: process.ppid,
      key: 'perdura',
    };
    const told = await run(script.replace(/\{(\w+)\}/g, (whole, name: string) => String(places[name] ?? whole)));
    expect(told).not.toContain(CANARY);
    expect(told).not.toMatch(/^REACHED/m);
    expect(heard).toEqual([]);
    expect(readdirSync(other)).toEqual(['secret.txt']);
    expect(readFileSync(join(other, 'secret.txt'), 'utf8')).toBe(CANARY);
    expect(readFileSync(join(workspace, 'agents', 'agent.json'), 'utf8')).toBe('{}');
    expect(readdirSync(join(workspace, 'agents'))).toEqual(['agent.json']);
    await new Promise((resolve) => setTimeout(resolve, script.includes('late.txt') ? 1_500 : 0));
    expect(readdirSync(workspace)).not.toContain('late.txt');
  });
});

describe('what a command needs is there', () => {
  inSandbox('programs of the system, its workspace to write in, a home, and a place for what is temporary', async () => {
    const told = await run(
      'echo hi > made.txt && cat made.txt && touch ~/x /tmp/y && git --version && node -e "console.log(6*7)" && pwd && id -u',
    );
    expect(told).toContain('hi\n');
    expect(told).toContain('42');
    expect(told).toContain(`${workspace}\n`);
    expect(readFileSync(join(workspace, 'made.txt'), 'utf8')).toBe('hi\n');
  });

  inSandbox('a folder of the workspace to run in, what it reads, and its limits', async () => {
    mkdirSync(join(workspace, 'inner'));
    expect(await run('pwd; cat', {}, { cwd: 'inner', stdin: 'words' })).toMatch(/inner\nwords/);
    expect(await run('sleep 30', {}, { timeoutMs: 300 })).toMatch(/stopped at its limit/);
    expect(await run('exit 3')).toMatch(/exit code 3/);
    const little = createRunCommand({ limits: { graceMs: 300, diskBytes: 20 * 1024 * 1024 } });
    const context = { workspace, signal: new AbortController().signal, sandbox: 'bwrap' } as ToolContext;
    const input = { command: 'bash', args: ['-c', 'head -c 80M /dev/zero > large; sleep 100'], timeoutMs: 120_000 };
    expect(await little.run(input, context)).toMatchObject({ error: expect.stringContaining('wrote too much to the disk') as string });
  });
});

describe('never a silent none', () => {
  const examine = (more: Partial<ToolContext>) => tool.examine?.({ command: 'ls' }, { workspace, ...more });

  test('a tenant without one runs nothing', async () => {
    expect(await examine({ sandbox: 'none', tenant: 'acme' })).toMatchObject({
      refused: expect.stringContaining('"sandbox": "none"') as string,
    });
    expect(await run('echo ran', { sandbox: 'none', tenant: 'acme' })).toMatch(/run_command did not run/);
  });

  test('whose agent names none is not asked more than its rules ask', async () => {
    expect(await examine({ sandbox: 'none' })).not.toHaveProperty('asks');
    expect(await run('echo ran', { sandbox: 'none' })).toContain('ran');
  });

  test('where none can be made, a tenant is refused, and a person told why they are asked', async () => {
    const without = createRunCommand({ means: () => Promise.resolve(undefined) });
    const call = { command: 'echo', args: ['ran'] };
    const context = (more: Partial<ToolContext>) =>
      ({ workspace, signal: new AbortController().signal, sandbox: 'bwrap', ...more }) as ToolContext;
    expect(await without.examine?.(call, context({}))).toMatchObject({
      asks: { why: expect.stringContaining('without a sandbox') as string },
    });
    expect(await without.run(call, context({}))).toMatchObject({ ok: true });
    const refused = expect.stringContaining('run_command did not run') as string;
    expect(await without.examine?.(call, context({ tenant: 'acme' }))).toMatchObject({ refused });
    expect(await without.run(call, context({ tenant: 'acme' }))).toMatchObject({ ok: false, error: refused });
    const approvals = [{ tool: 'run_command', policy: 'allow' as const }];
    const examined = await without.examine?.(call, context({ tenant: 'acme' }));
    expect(approvalFor(approvals, without, call, 'default', examined)).toMatchObject({ policy: 'deny', why: refused });
  });

  inSandbox('where one can be made, neither is', async () => {
    expect(await examine({ sandbox: 'bwrap', tenant: 'acme' })).toEqual({ real: { cwd: '.' } });
    expect(await run('echo ran', { tenant: 'acme' })).toContain('ran');
  });
});
