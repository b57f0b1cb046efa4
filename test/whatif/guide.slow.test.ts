/** docs/how-to/change-a-prompt.md by the letter: in a project as `perdura init` makes it, with a model that does what its prompt says. */
import { randomUUID } from 'node:crypto';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fencedBlocks, read, ROOT } from '../readme/commands.js';
import { openProject, type Project } from '../package/linked-package.js';
import { saidIn, latestResults, resultText } from '../support/echo-model.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { startMessagesApi, type MessagesApi } from '../support/provider-apis/messages-api.js';
import { callTool, text, type Reply } from '../support/provider-apis/reply.js';
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process.js';

const GUIDE = 'docs/how-to/change-a-prompt.md';

/** It books what a person names, where its prompt tells it to; else it claims to. */
function answer(request: ApiRequest): Reply {
  const asked = saidIn(request).at(-1) ?? '';
  if (asked.includes('<conversation>')) return text(JSON.stringify({ why: 'It booked.', better: verdict(asked) }));
  const [result] = latestResults(request);
  if (result !== undefined) return text(resultText(result));
  const [, what = 'something', amount = '1'] = /(?:I had )?(.*?)(?: for|,) (\d+\.\d\d)/.exec(saidIn(request).at(-1) ?? '') ?? [];
  if (!/book every expense/i.test(JSON.stringify(request.system ?? ''))) return text(`Lovely, ${what} is noted!`);
  return callTool('book_expense', { what, cents: Math.round(Number(amount) * 100) });
}

/** The judge of this test prefers who calls the tool. */
function verdict(asked: string): 'A' | 'B' | 'same' {
  const { turns } = JSON.parse(/\{.*\}/.exec(asked)?.[0] ?? '{}') as { turns: readonly Record<'A' | 'B', { calls: readonly unknown[] }>[] };
  const [a, b] = (['A', 'B'] as const).map((side) => turns.reduce((sum, turn) => sum + turn[side].calls.length, 0));
  return a === b ? 'same' : (a ?? 0) > (b ?? 0) ? 'A' : 'B';
}

let project: Project;
let api: MessagesApi;
let worker: WorkerProcess;
let env: Record<string, string>;

beforeAll(async () => {
  api = await startMessagesApi({ answer });
  project = await openProject(null);
  cpSync(join(ROOT, 'templates', 'project'), project.dir, { recursive: true });
  env = {
    PATH: [join(project.dir, 'node_modules', '.bin'), dirname(process.execPath), '/usr/bin', '/bin'].join(':'),
    HOME: project.dir,
    TEMPORAL_ADDRESS: process.env['PERDURA_TEST_ADDRESS'] ?? '',
    PERDURA_TASK_QUEUE: `guide-${randomUUID()}`,
    PERDURA_TRUST: '1',
    ANTHROPIC_API_KEY: 'sk-ant-of-a-test',
    ANTHROPIC_BASE_URL: api.url,
  };
  worker = startWorkerProcess({ env, cwd: project.dir });
  await worker.ready;
});

afterAll(async () => {
  await worker?.stop();
  await api?.close();
  project?.remove();
});

function inShell(script: string): Promise<{ readonly code: number; readonly said: string }> {
  return new Promise((resolve) => {
    execFile('sh', ['-ec', script], { cwd: project.dir, env, timeout: 240_000 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), said: `${stdout}${stderr}` }),
    );
  });
}

const blocks = fencedBlocks(read(GUIDE));
const [talk = '', forgets = '', books = ''] = blocks.filter(({ language }) => language === 'sh').map(({ text: script }) => script);
const screen = blocks.find(({ language }) => language === 'text')?.text.trimEnd() ?? '';
const bookings = (): string[] =>
  readFileSync(join(project.dir, 'workspace', 'book.jsonl'), 'utf8')
    .trim()
    .split('\n');

test('the worse prompt shows on the first screen, as the guide prints it; the better one passes, and no tool has run', async () => {
  // Conversations of other files are on the same server: the guide's are three.
  const only = (script: string): string => script.replace('--agent default --last 200', 'march april may');
  expect(blocks.filter(({ language }) => language === 'sh')).toHaveLength(3);
  expect(await inShell(talk)).toMatchObject({ code: 0, said: expect.stringContaining('Booked Lunch with a customer') as unknown });
  expect(bookings()).toHaveLength(3);

  const worse = await inShell(only(forgets));
  expect(worse.code).toBe(0);
  expect(worse.said).toContain(screen);
  expect(worse.said).toMatch(/recorded +│ played[^]*book_expense[^]*│/);

  const better = await inShell(only(books));
  expect(better.said).not.toContain('✗');
  expect(better.code).toBe(0);
  expect(readFileSync(join(project.dir, 'report.xml'), 'utf8')).toContain('tests="3" failures="0"');
  expect(existsSync(join(project.dir, 'report.html'))).toBe(true);

  const failing = await inShell(`${only(forgets)}\nperdura report report.jsonl --fail-on acts,stopped`);
  expect(failing.code).toBe(1);
  expect(bookings()).toHaveLength(3);

  // Where the report goes by itself; the first screen is shown at once.
  const judged = await inShell('perdura whatif march april may --prompt SOUL.next.md --judge anthropic/claude-sonnet-5-5');
  expect(judged).toMatchObject({ code: 0, said: expect.stringContaining('book_expense was called 0 times instead of 3') as unknown });
  expect(judged.said).toContain('judge anthropic/claude-sonnet-5-5');
  const worst = await inShell('perdura report .perdura/whatif.jsonl --fail-on worse');
  expect([worst.code, worst.said]).toEqual([1, expect.stringContaining('3 of 3 conversations fail (--fail-on worse)')]);
  expect(await inShell('perdura whatif may --rubric SOUL.md')).toMatchObject({
    code: 2,
    said: expect.stringContaining('--judge') as unknown,
  });
});
