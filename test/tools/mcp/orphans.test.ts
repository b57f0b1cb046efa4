/** A worker that is killed says nothing to anybody: its servers end all the same. By the compiled product, in a process of its own. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { aTool, hostileServer } from '../../support/mcp.js';
import { waitFor } from '../../support/wait-for.js';
import { PRODUCT } from '../../support/worker-process.js';

const OWNER = `
const { createServerTools } = require(${JSON.stringify(join(PRODUCT, 'dist/tools/mcp/server-tools.js'))});
const pins = { list: async () => ({ accepted: [], waiting: [], servers: [] }), acceptServer: async () => {}, wait: async () => {} };
const tools = createServerTools({ pins, variables: process.env, version: '0', log: () => {} });
const server = { ...JSON.parse(process.argv[1]), name: 'evil', type: 'stdio', env: {}, folder: '/', disabled: false, timeout: 1000 };
void tools.of({ namespace: 'default', agent: 'ada', servers: [server], taken: [] }, { patienceMs: 8000 }).then(() => console.log('ready'));
`;

test('a server that heeds nothing, and its child, end with a worker that is killed', () => expectEnded('stubborn', 2));

test('children that left its group and its session end with a worker that is killed', async () => {
  if (process.platform === 'linux') await expectEnded('escaping', 3);
});

async function expectEnded(mode: 'stubborn' | 'escaping', processes: number): Promise<void> {
  const hostile = await hostileServer({ mode, tools: [aTool('echo')] });
  const owner = spawn(process.execPath, ['-e', OWNER, JSON.stringify(hostile.config)], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    await new Promise((resolve) => owner.stdout.once('data', resolve));
    const notes = await waitFor(
      () => hostile.notes(),
      (lines) => lines.length === processes,
    );
    const pids = notes.map((line) => Number(line.split(' ')[1]));
    expect(pids.filter(isRunning)).toEqual(pids);
    owner.kill('SIGKILL');
    await waitFor(
      () => pids.filter(isRunning),
      (left) => left.length === 0,
    );
  } finally {
    owner.kill('SIGKILL');
    await hostile.remove();
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
