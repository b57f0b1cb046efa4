/**
 * Every `sh` block of docs/ is run as it stands, by a person who has a worker, a gateway and a conversation `my-plan`. A block that is not
 * says why in a comment before it; these are counted. The tutorial has a test of its own.
 */
import { randomUUID } from 'node:crypto';
import { execFile } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { perduraEnvironment, PERDURA } from '../support/run-perdura.js';
import { temporalProgram } from '../support/temporal-server.js';
import { startReceiver, type Receiver } from '../support/webhook-receiver.js';
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

/** What has to wait for a person before such a line makes sense. */
const WAITS: readonly (readonly [RegExp, string])[] = [
  [/^perdura (approve|deny) my-plan/, 'run git status'],
  [/^perdura approvals my-plan/, 'run git status'],
  [/^perdura answer my-plan/, 'ask me something'],
];

let dir: string;
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
    ...perduraEnvironment({ dir, taskQueue: `docs-${randomUUID()}` }),
    PATH: [join(dir, 'bin'), dirname(process.execPath), dirname(temporalProgram()), process.env['PATH'] ?? ''].join(':'),
  };
  const worker = startWorkerProcess({ env, cwd: dir });
  const gateway = startWorkerProcess({ env, cwd: dir, command: { args: ['serve', '--port', '0'], readyOn: 'http://127.0.0.1:' } });
  services.push(worker, gateway);
  await Promise.all(services.map(({ ready }) => ready));
  env['GATEWAY'] = /http:\/\/127\.0\.0\.1:\d+/.exec(gateway.log())?.[0] ?? '';
  env['TOKEN'] = readFileSync(join(dir, '.perdura', 'token'), 'utf8').trim();
}, 60_000);

afterAll(async () => {
  await Promise.all(services.map((service) => service.stop()));
  await receiver?.stop();
  rmSync(dir, { recursive: true, force: true });
}, 60_000);

/** Of this machine only: an address that is free, and receivers that are there. */
function here(text: string): string {
  return text
    .replaceAll('http://127.0.0.1:7280', env['GATEWAY'] ?? '')
    .replaceAll('https://example.com/perdura', receiver.url)
    .replaceAll('--task-queue perdura', `--task-queue ${env['PERDURA_TASK_QUEUE']}`);
}

/** Each with what it needs before; the first that fails ends the block. */
function scriptOf(text: string): string {
  return text
    .split('\n')
    .flatMap((line) => {
      const [, wish] = WAITS.find(([pattern]) => pattern.test(line)) ?? [];
      return wish === undefined ? [line] : [`waiting '${wish}'`, line];
    })
    .join('\n');
}

/** Sends what leads to a question, and waits until it is asked; what an earlier line has left waiting is stopped. */
const WAITING = `
waiting() {
  perdura stop my-plan -q >/dev/null 2>&1 || true
  perdura send my-plan "$1" --signal -q >/dev/null
  for try in 1 2 3 4 5 6 7 8 9 10; do
    [ "$(perdura approvals my-plan -o json)" != "[]" ] && return 0
    sleep 0.2
  done
  echo "nothing waits in my-plan"; return 1
}
`;

function run(script: string): Promise<{ readonly code: number; readonly said: string }> {
  return new Promise((resolve) => {
    execFile('sh', ['-ec', script], { cwd: dir, env, timeout: 90_000 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), said: `${stdout}${stderr}` }),
    );
  });
}

test.each(blocks)('%s, block %i: every command ends well', async (_page, _at, text) => {
  const { code, said } = await run(`${WAITING}\n${scriptOf(here(text))}`);
  expect({ code, said }).toEqual({ code: 0, said: expect.not.stringMatching(/cannot|no worker takes work/) });
}, 120_000);

test('each block is run, or says why not; so many are not', () => {
  const exempt = pagesOfDocs().flatMap((page) =>
    fencedBlocks(read(page)).flatMap((block) => {
      const why = exemptionOf(block);
      return why === undefined ? [] : [`${page}: ${why}`];
    }),
  );
  const elsewhere = exempt.flatMap((one) => /: run by (\S+?\.ts)/.exec(one)?.[1] ?? []);
  expect(elsewhere.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  expect(exempt.filter((one) => !/: run by /.test(one))).toEqual([
    'docs/how-to/start.md: not run: needs the npm registry',
    'docs/operations/deploying.md: not run: needs Docker',
  ]);
});

test('no block leaves its language out, so that no command passes for a drawing', () => {
  const LANGUAGES = ['sh', 'text', 'ts', 'js', 'tsx', 'json', 'yaml', 'sql', 'python', 'dotenv', 'conf'];
  const others = pagesOfDocs().flatMap((page) =>
    fencedBlocks(read(page))
      .filter(({ language, text }) => !LANGUAGES.includes(language) || (language === 'text' && /^(\$ |perdura |npm |npx |docker )/m.test(text)))
      .map(({ language, text }) => `${page}: ${language} ${text.slice(0, 40)}`),
  );
  expect(others).toEqual([]);
});
