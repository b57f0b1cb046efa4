/**
 * The image without a docker: its stages are made here by the Dockerfile's own lines, in folders that hold only what the context holds, and
 * its entry point is started. `npm ci` is what every clean clone does: the packages of this one are linked.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createClient, type PerduraClient } from '../../src/client.js';
import { loadConfig } from '../../src/config.js';
import { dieWithUs } from '../support/reaper.js';
import { waitFor } from '../support/wait-for.js';
import { PRODUCT } from '../support/worker-process.js';

const ROOT = join(__dirname, '..', '..');

let dir: string;
let worker: ChildProcess | undefined;
let client: PerduraClient | undefined;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'perdura-image-'));
});

afterAll(async () => {
  await client?.close();
  if (worker?.exitCode === null && worker.signalCode === null) worker.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

type Line = readonly [instruction: string, words: string];

/** The Dockerfile's stages, each with its instructions. */
function stages(): readonly (readonly Line[])[] {
  const text = readFileSync(join(ROOT, 'Dockerfile'), 'utf8').replace(/^\s*#.*\n/gm, '');
  return text
    .split(/^FROM .*$/m)
    .slice(1)
    .map((stage) => [...stage.matchAll(/^([A-Z]+) (.*)$/gm)].map(([, instruction = '', words = '']): Line => [instruction, words]));
}

/** What `docker build .` would send: all is left out but what `.dockerignore` names. */
function copyContext(to: string): void {
  const [all, ...kept] = readFileSync(join(ROOT, '.dockerignore'), 'utf8').trim().split('\n');
  expect(all).toBe('*');
  for (const name of kept.map((line) => line.replace('!', ''))) cpSync(join(ROOT, name), join(to, name), { recursive: true });
}

/** What cannot be done here as it stands: another system's packages, and the image's user. */
function run(command: string, app: string): void {
  if (command.startsWith('apt-get ')) return;
  const here = command.replace(' -o node -g node', '');
  if (here === 'npm ci') linkPackages(join(app, 'node_modules'));
  else execFileSync('sh', ['-c', here], { cwd: app, env: { PATH: process.env['PATH'] ?? '', HOME: dir }, stdio: 'pipe' });
}

/** Or copies them, where the temporary folder lies on another file system. What is written anew is never linked. */
function linkPackages(to: string): void {
  const from = join(PRODUCT, 'node_modules');
  try {
    execFileSync('cp', ['-al', from, to], { stdio: 'pipe' });
  } catch {
    rmSync(to, { recursive: true, force: true });
    execFileSync('cp', ['-a', from, to]);
  }
  rmSync(join(to, '.package-lock.json'));
  cpSync(join(from, '.package-lock.json'), join(to, '.package-lock.json'));
  rmSync(join(to, '.perdura-stamp'), { force: true });
}

function build(lines: readonly Line[], app: string, context: string, earlier: string): void {
  for (const [instruction, words] of lines) {
    if (instruction === 'RUN') run(words, app);
    if (instruction !== 'COPY') continue;
    const paths = words.split(' ').filter((word) => !word.startsWith('--'));
    const target = paths.pop() ?? '';
    for (const path of paths) {
      const to = target === './' ? join(app, basename(path)) : join(app, target);
      if (words.startsWith('--from=')) renameSync(join(earlier, path.replace('/app/', '')), to);
      else cpSync(join(context, path), to, { recursive: true });
    }
  }
}

test('a worker that has only what the image has starts, answers, and ends when docker asks it to', async () => {
  const [context, built, app] = ['context', 'built', 'app'].map((name) => mkdtempSync(join(dir, name))) as [string, string, string];
  copyContext(context);
  const [first, last] = stages() as [readonly Line[], readonly Line[]];
  build(first, built, context, built);
  build(last, app, context, built);
  expect(readdirSync(app)).not.toContain('src');
  expect(existsSync(join(app, 'dist', 'web', 'index.html'))).toBe(true);
  expect(existsSync(join(app, 'node_modules', 'eslint'))).toBe(false);

  const words = last.flatMap(([name, line]) => (['ENTRYPOINT', 'CMD'].includes(name) ? (JSON.parse(line) as string[]) : []));
  expect(words).toEqual(['node', 'dist/cli/main.js', 'worker']);
  const env = {
    NODE_ENV: 'production',
    HOME: app,
    TEMPORAL_ADDRESS: process.env['PERDURA_TEST_ADDRESS'] ?? '',
    PERDURA_TASK_QUEUE: `image-${randomUUID()}`,
  };
  worker = spawn(process.execPath, words.slice(1), { cwd: app, env, stdio: ['ignore', 'ignore', 'pipe'] });
  const spare = dieWithUs(worker.pid ?? 0);
  const ended = once(worker, 'exit').then(([code]) => (spare(), code as number));
  let said = '';
  worker.stderr?.setEncoding('utf8').on('data', (piece: string) => (said += piece));
  await waitFor(
    () => said,
    (text) => text.includes('takes work from task queue'),
  );

  client = await createClient(loadConfig(env, app));
  const result = await client.send('in-the-image', 'read README.md', { start: {} });
  expect(result).toMatchObject({ stopReason: 'end', toolCalls: 1, text: expect.stringContaining('# The workspace') });
  worker.kill('SIGTERM');
  expect(await ended).toBe(0);
}, 600_000);
