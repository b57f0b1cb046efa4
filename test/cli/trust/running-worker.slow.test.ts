/** A worker of the built product that runs in a trusted folder, while somebody edits its agent. */
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPerdura, type Ran } from '../../support/run-perdura.js';
import { waitFor } from '../../support/wait-for.js';

let base: string;
let dir: string;

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'perdura-edited-')));
  dir = join(base, 'folder');
  mkdirSync(join(dir, 'agents', 'default'), { recursive: true });
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

test('what the edit allows and starts waits for a yes, and counts after it', async () => {
  const taskQueue = `edited-${process.pid}`;
  const id = `edited-${process.pid}`;
  const env = { HOME: join(base, 'home'), XDG_STATE_HOME: '', PERDURA_TRUST: '', PATH: process.env['PATH'] ?? '' };
  const trust = (): Promise<Ran> => startPerdura({ dir, taskQueue }, ['trust', '--yes'], { env }).ended;
  // From elsewhere, since in the folder each command would ask first.
  const outside = { ...env, PERDURA_TRUST: '1', PERDURA_MEMORY_DIR: join(dir, 'memory') };
  const perdura = (...args: string[]): Promise<Ran> => startPerdura({ dir: base, taskQueue }, args, { env: outside }).ended;
  const agent = (name: string, content: unknown): void => writeFileSync(join(dir, 'agents', 'default', name), JSON.stringify(content));
  const marker = join(base, 'it-ran');

  agent('agent.json', { model: 'offline/scripted' });
  agent('mcp.json', { mcpServers: {} });
  expect(await trust()).toMatchObject({ code: 0 });
  const worker = startPerdura({ dir, taskQueue }, ['worker'], { env });
  try {
    expect(await perdura('new', '--id', id)).toMatchObject({ code: 0 });
    expect((await perdura('send', id, 'hello')).code).toBe(0);

    agent('agent.json', { model: 'offline/scripted', approvals: [{ tool: 'run_command', policy: 'allow' }] });
    agent('mcp.json', { mcpServers: { x: { command: 'touch', args: [marker] } } });
    expect((await perdura('send', id, 'run git --version', '--enqueue')).code).toBe(0);
    const waiting = async (): Promise<string> => (await perdura('approvals', id)).stdout;
    await waitFor(waiting, (shown) => shown.includes('run_command'));
    expect(existsSync(marker)).toBe(false);

    expect(await trust()).toMatchObject({ code: 0 });
    expect(await perdura('deny', id)).toMatchObject({ code: 0 });
    expect((await perdura('send', id, 'run git --version')).code).toBe(0);
    expect(await waiting()).not.toContain('run_command');
    expect(existsSync(marker)).toBe(true);
  } finally {
    worker.kill('SIGTERM');
    await worker.ended;
  }
  const { stderr } = await worker.ended;
  for (const name of ['agent', 'mcp']) expect(stderr).toContain(`agents/default/${name}.json has changed and is not trusted`);
});
