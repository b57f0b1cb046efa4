/**
 * The tutorial, followed from the packed package as it stands: each file written as shown, each command run, each chat typed, with what it
 * promises on the screen. Only the installation is another one.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { openProject, type Project } from '../package/linked-package.js';
import { dieWithUs } from '../support/reaper.js';
import { startTemporal, type TemporalServer } from '../support/temporal-server.js';
import { openTerminal, type Terminal } from '../support/terminal.js';
import { waitFor } from '../support/wait-for.js';
import { exemptionOf, fencedBlocks, read, type Fenced } from './commands.js';

const blocks = fencedBlocks(read('docs/tutorial.md')).filter((block) => exemptionOf(block) === undefined);

let project: Project;
let temporal: TemporalServer;
let chat: Terminal | undefined;
let dev: ChildProcess | undefined;

beforeAll(async () => {
  [project, temporal] = await Promise.all([openProject(null), startTemporal()]);
  dieWithUs(temporal.pid);
  writeFileSync(join(project.dir, 'package.json'), '{"name":"room-desk"}');
});

afterAll(async () => {
  chat?.hangUp();
  if (dev?.pid !== undefined && dev.exitCode === null) {
    const ended = once(dev, 'exit');
    process.kill(-dev.pid, 'SIGTERM');
    await ended;
  }
  await temporal?.stop();
  project?.remove();
});

const env = (): NodeJS.ProcessEnv => ({
  PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
  HOME: project.dir,
  TERM: 'xterm',
  TEMPORAL_ADDRESS: temporal.address,
  npm_config_update_notifier: 'false',
});

test('each step does what the tutorial says', async () => {
  const printed: string[] = [];
  for (const block of blocks) {
    if (block.language === 'sh') for (const line of block.text.trim().split('\n')) printed.push(await obey(line));
    else if (block.marks.includes('chat')) await talk(block);
    else write(block);
  }
  expect(readFileSync(join(project.dir, 'workspace', 'bookings.txt'), 'utf8')).toMatch(/^2026-12-01 Oslo \S+\n$/);
  expect(printed.find((said) => said.includes('building C'))).toContain('- I sit in building C');
  const times = printed.filter((said) => /^It is \S+Z\.\n$/.test(said));
  expect(times).toHaveLength(2);
  expect(times[0]).toBe(times[1]);
  expect(await chat?.end()).toBe(0);
});

function write({ marks, text }: Fenced): void {
  const [file] = marks.flatMap((mark) => /^file: (.*)/.exec(mark)?.[1] ?? []);
  if (file === undefined) throw new Error(`a block of the tutorial is neither a command, a chat nor a file:\n${text}`);
  mkdirSync(dirname(join(project.dir, file)), { recursive: true });
  writeFileSync(join(project.dir, file), text);
}

async function obey(line: string): Promise<string> {
  if (line === 'npx perdura up') {
    dev = spawn('sh', ['-c', `exec ${line}`], { cwd: project.dir, env: env(), detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    dieWithUs(-(dev.pid ?? 0));
    let log = '';
    for (const stream of [dev.stdout, dev.stderr]) stream?.setEncoding('utf8').on('data', (piece: string) => (log += piece));
    await waitFor(
      () => log,
      (said) => /Worker +started in/.test(said),
    );
    return '';
  }
  if (line.startsWith('npx perdura chat')) {
    chat = openTerminal(line, { cwd: project.dir, env: env() });
    await chat.shows(/^›/m);
    return '';
  }
  // The story that runs meanwhile is told to its end before the next line.
  const isKill = line.startsWith('kill -9');
  const said = await run(line === 'npx perdura trust' ? `${line} --yes` : line);
  if (isKill) await chat?.shows(/The end\.\s+›/);
  return said;
}

function run(command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('sh', ['-ec', command], { cwd: project.dir, env: env(), timeout: 240_000 }, (error, stdout, stderr) =>
      error === null ? resolve(stdout) : reject(new Error(`${command}:\n${stdout}${stderr}`)),
    );
  });
}

/** Lines with `›` are typed, each after the prompt stands; the others appear in their order. */
async function talk({ text }: Fenced): Promise<void> {
  if (chat === undefined) throw new Error('the tutorial talks before it has started a chat');
  let from = chat.screen().length;
  for (const line of text.trim().split('\n')) {
    if (line.startsWith('› ')) {
      from = chat.screen().length;
      chat.type(line.slice(2));
    } else await chat.shows(line.trim(), Math.max(0, from - 200));
  }
  if (!text.includes('Chapter')) await chat.shows(/\n›\s*$/);
}
