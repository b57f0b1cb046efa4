/**
 * Every `sh` block of docs/ is run as it stands, by a person who has a worker, a gateway and a conversation `my-plan`. A block that is not
 * says why in a comment before it; these are counted. The tutorial has a test of its own.
 */
import { randomUUID } from 'node:crypto';
import { execFile } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { perduraEnvironment, PERDURA, runPerdura } from '../support/run-perdura.js';
import { temporalProgram } from '../support/temporal-server.js';
import { SECRET, startReceiver, type Receiver } from '../support/webhook-receiver.js';
import { waitFor } from '../support/wait-for.js';
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process.js';
import { exemptionOf, fencedBlocks, pagesOfDocs, read, ROOT } from './commands.js';

/** Below docs/ with README's own test elsewhere. `branches` begins the conversation that the others are about. */
const BEGINS = 'docs/how-to/branches.md';
const pages = [BEGINS, ...pagesOfDocs().filter((page) => ![BEGINS, 'README.md', 'docs/tutorial.md'].includes(page))];
const blocks = pages.flatMap((page) =>
  fencedBlocks(read(page))
    .filter((block) => block.language === 'sh' && exemptionOf(block) === undefined)
    .map(({ text }, at) => [page, at + 1, text] as const),
);

/** What has to wait for a person before such a command makes sense. */
const WAITS: readonly (readonly [RegExp, string])[] = [
  // What is allowed for good does not ask again: each time another one.
  [/^perdura (approve|deny|approvals) my-plan/, 'run git log'],
  [/^perdura answer my-plan/, 'ask me something'],
];

let dir: string;
const taskQueue = `docs-${randomUUID()}`;
let env: Record<string, string>;
let receiver: Receiver;
const services: WorkerProcess[] = [];

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'perdura-docs-'));
  receiver = await startReceiver();
  for (const folder of ['agents', 'workspace']) cpSync(join(ROOT, folder), join(dir, folder), { recursive: true });
  mkdirSync(join(dir, 'bin'));
  writeFileSync(join(dir, 'bin', 'perdura'), `#!/bin/sh\nexec ${process.execPath} ${PERDURA} "$@"\n`);
  chmodSync(join(dir, 'bin', 'perdura'), 0o755);
  // A PNG of one pixel.
  const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  writeFileSync(join(dir, 'photo.png'), Buffer.from(pixel, 'base64'));
  env = {
    ...perduraEnvironment({ dir, taskQueue }),
    PATH: [join(dir, 'bin'), dirname(process.execPath), dirname(temporalProgram()), process.env['PATH'] ?? ''].join(':'),
  };
  const worker = startWorkerProcess({ env, cwd: dir });
  const gateway = startWorkerProcess({ env, cwd: dir, command: { args: ['serve', '--port', '0'], readyOn: 'http://127.0.0.1:' } });
  services.push(worker, gateway);
  await Promise.all(services.map(({ ready }) => ready));
  env['GATEWAY'] = /http:\/\/127\.0\.0\.1:\d+/.exec(gateway.log())?.[0] ?? '';
  env['TOKEN'] = readFileSync(join(dir, '.perdura', 'token'), 'utf8').trim();
});

afterAll(async () => {
  await Promise.all(services.map((service) => service.stop()));
  await receiver?.stop();
  rmSync(dir, { recursive: true, force: true });
});

/** Of this machine only: an address that is free, and receivers that are there. */
function here(text: string): string {
  return text
    .replaceAll('http://127.0.0.1:7280', env['GATEWAY'] ?? '')
    .replaceAll('https://example.com/perdura', receiver.url)
    .replaceAll('whsec_$(openssl rand -base64 32)', SECRET)
    .replaceAll('--task-queue perdura', `--task-queue ${taskQueue}`);
}

test.each(blocks)('%s, block %i: every command ends well', async (_page, _at, text) => {
  const lines = here(text)
    .split('\n')
    .filter((line) => line !== '');
  if (!lines.every(isPlain)) return endsWell(await inShell(lines.join('\n')));
  for (const line of lines) {
    const [, wish] = WAITS.find(([pattern]) => pattern.test(line)) ?? [];
    const callId = wish === undefined ? '' : await untilWaiting(wish);
    // A person would say yes on a terminal.
    const words = [...wordsOf(line.replace('turn_0007/c1', callId)).slice(1), ...(line.includes('--always') ? ['--yes'] : [])];
    const { code, stdout, stderr } = await runPerdura({ dir, taskQueue }, words);
    endsWell({ code, said: `${line}\n${stdout}${stderr}` });
  }
});

/** Nothing of it needs a shell. */
function isPlain(line: string): boolean {
  return line.startsWith('perdura ') && !/[$|>&\\]/.test(line.replace(/#.*$/, ''));
}

/** As a shell splits it, comments left out. */
function wordsOf(line: string): string[] {
  return [...line.replace(/\s+#\s.*$/, '').matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? '');
}

function endsWell({ code, said }: { readonly code: number | null; readonly said: string }): void {
  if (code !== 0 || /\bcannot\b|no worker takes work/.test(said)) throw new Error(`exit code ${code}:\n${said}`);
}

/** The call that waits: one that an earlier command has left, or another. */
async function untilWaiting(wish: string): Promise<string> {
  const perdura = (...args: readonly string[]) => runPerdura({ dir, taskQueue }, args);
  const waiting = async () =>
    JSON.parse((await perdura('approvals', 'my-plan', '-o', 'json')).stdout) as { callId: string; kind: string }[];
  const isWanted = ({ kind }: { kind: string }): boolean => (kind === 'question') === wish.startsWith('ask');
  const left = await waiting();
  const asked = left.find(isWanted);
  if (asked !== undefined) return asked.callId;
  for (const { callId } of left) await perdura('deny', 'my-plan', callId);
  await perdura('send', 'my-plan', wish.startsWith('run') ? `${wish} -${++wishes}` : wish, '--signal');
  return (await waitFor(waiting, (waits) => waits.some(isWanted))).find(isWanted)?.callId ?? '';
}

let wishes = 0;

function inShell(script: string): Promise<{ readonly code: number; readonly said: string }> {
  return new Promise((resolve) => {
    execFile('sh', ['-ec', script], { cwd: dir, env, timeout: 240_000 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), said: `${stdout}${stderr}` }),
    );
  });
}

test('the message that the temporal program sent is answered', async () => {
  await waitFor(
    async () => (await runPerdura({ dir, taskQueue }, ['show', 'my-conversation'])).stdout,
    (said) => said.includes('scripted stand-in'),
  );
});
