/**
 * The image without a docker: what its second stage holds is put together here by the Dockerfile's own COPY lines, out of this
 * build and the packages that `npm prune --omit=dev` leaves, and its entry point is started.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createClient, type PerduraClient } from '../../src/client.js';
import { loadConfig } from '../../src/config.js';
import { dieWithUs } from '../support/reaper.js';
import { waitFor } from '../support/wait-for.js';
import { PRODUCT } from '../support/worker-process.js';

const ROOT = join(__dirname, '..', '..');

let app: string;
let worker: ChildProcess | undefined;
let client: PerduraClient | undefined;

beforeAll(() => {
  app = mkdtempSync(join(tmpdir(), 'perdura-image-'));
});

afterAll(async () => {
  await client?.close();
  if (worker?.exitCode === null && worker.signalCode === null) worker.kill('SIGKILL');
  rmSync(app, { recursive: true, force: true });
});

/** What stands behind an instruction, in the stage that runs. */
function secondStage(instruction: string): string[] {
  const stage =
    readFileSync(join(ROOT, 'Dockerfile'), 'utf8')
      .split(/^FROM /m)
      .at(-1) ?? '';
  return [...stage.matchAll(new RegExp(`^${instruction} (.*)$`, 'gm'))].map(([, words = '']) => words);
}

function copy(line: string): void {
  const [source = '', target = ''] = line.split(' ').filter((word) => !word.startsWith('--'));
  const from = source.replace(/^\/app\//, '');
  const to = target === './' ? join(app, from) : join(app, target);
  if (from === 'node_modules') return linkProductionPackages(to);
  cpSync(join(line.includes('--from=build') ? PRODUCT : ROOT, from), to, { recursive: true });
}

function linkProductionPackages(to: string): void {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>;
  };
  const { peerDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly peerDependencies: object };
  for (const [path, { dev }] of Object.entries(lock.packages)) {
    const isTopLevel = path.lastIndexOf('node_modules/') === 0;
    const name = path.replace('node_modules/', '');
    // The optional ones are kept (scripts/keep-optional.mjs).
    if (!isTopLevel || (dev === true && !(name in peerDependencies)) || !existsSync(join(PRODUCT, path))) continue;
    const link = join(to, name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(PRODUCT, path), link);
  }
}

test('a worker that has only what the image has starts, answers, and ends when docker asks it to', async () => {
  for (const line of secondStage('COPY')) copy(line);
  const made = secondStage('RUN').find((line) => line.startsWith('install -d')) ?? '';
  for (const folder of made.split(' ').slice(6)) mkdirSync(join(app, folder), { recursive: true });

  const words = [...secondStage('ENTRYPOINT'), ...secondStage('CMD')].flatMap((line) => JSON.parse(line) as string[]);
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
});
