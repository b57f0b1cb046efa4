/** Each example, done as its README says: command by command, in an empty folder, with our tarball as all it has of us. */
import { randomUUID } from 'node:crypto';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fencedBlocks } from '../readme/commands.js';
import { lastToolResults, systemText, textOf } from '../support/provider-apis/api-request.js';
import { startMessagesApi, type MessagesApi } from '../support/provider-apis/messages-api.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { dieWithUs } from '../support/reaper.js';
import { EXAMPLES, openProject, type Project } from './linked-package.js';

const run = promisify(execFile);

/** Commands that run until Ctrl+C, and the words by which they are ready. */
const STAYS: Readonly<Record<string, RegExp>> = {
  'npx perdura up': /Worker +started in/,
  'npx perdura up --no-worker': /Worker +none/,
  'npm run worker': /ready|takes work from task queue/,
};

interface Walk {
  readonly project: Project;
  readonly env: Record<string, string>;
  readonly staying: ChildProcess[];
}

let api: MessagesApi;
const walks: Walk[] = [];

beforeAll(async () => {
  api = await startMessagesApi({
    answer(request) {
      const [result] = lastToolResults(request);
      if (result) return text(textOf(result.content));
      return systemText(request).startsWith('You keep a book of expenses')
        ? callTool('book_expense', { what: 'tea', cents: 350 })
        : text(request.messages.map(({ content }) => textOf(content)).join(' | '));
    },
  });
});
afterEach(async () => {
  for (const { project, staying } of walks.splice(0)) {
    await endAll(staying);
    project.remove();
  }
});
afterAll(() => api?.close());

async function begin(example: string): Promise<Walk> {
  const project = await openProject(example);
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: project.dir,
    // What a machine has at hand: here a Temporal server, and an address in place of the real model's.
    TEMPORAL_ADDRESS: process.env['PERDURA_TEST_ADDRESS'] ?? '',
    PERDURA_TASK_QUEUE: `readme-${randomUUID()}`,
    ANTHROPIC_BASE_URL: api.url,
  };
  const walk: Walk = { project, env, staying: [] };
  walks.push(walk);
  return walk;
}

/** What one line of the README gives; `npm install` is done already, from the tarball instead of a registry. */
async function follow({ project, env, staying }: Walk, line: string): Promise<string> {
  const command = line.replace(/\s+#.*$/, '');
  const [, name, value] = /^export (\w+)=(.*)$/.exec(command) ?? [];
  if (command === 'npm install') return '';
  if (name !== undefined && value !== undefined) {
    env[name] = 'test-key';
    return '';
  }
  const ready = STAYS[command];
  if (ready !== undefined) {
    // Another way to run the same takes the place of the first.
    if (command.includes(' up')) await endAll(staying);
    return stay(staying, command, { ready, cwd: project.dir, env });
  }
  // A person answers the question of `trust`; here nobody sits at a terminal.
  const asked = command === 'npx perdura trust' ? `${command} --yes` : command;
  const { stdout } = await run('sh', ['-c', asked], { cwd: project.dir, env, timeout: 240_000 });
  return stdout;
}

async function stay(
  staying: ChildProcess[],
  command: string,
  { ready, ...where }: { ready: RegExp; cwd: string; env: Record<string, string> },
): Promise<string> {
  const child = spawn('sh', ['-c', `exec ${command}`], { ...where, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  child.once('exit', dieWithUs(-(child.pid ?? 0)));
  staying.push(child);
  let log = '';
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (heard: string) => {
        log += heard;
        if (ready.test(log)) resolve();
      });
    child.once('close', (code) => reject(new Error(`${command} ended with ${code}:\n${log}`)));
  });
  return log;
}

/** Each with its children: a signal to `npx` alone does not reach what it runs. */
async function endAll(staying: ChildProcess[]): Promise<void> {
  for (const child of staying.splice(0)) {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) continue;
    const ended = once(child, 'exit');
    process.kill(-child.pid, 'SIGTERM');
    await ended;
  }
}

function commandsOf(example: string): string[] {
  const page = readFileSync(join(EXAMPLES, example, 'README.md'), 'utf8');
  return fencedBlocks(page)
    .filter(({ language }) => language === 'sh')
    .flatMap(({ text: lines }) => lines.split('\n').filter((line) => line !== ''));
}

test('each example has its commands in its README, and is tried here', () => {
  expect(readdirSync(EXAMPLES).sort()).toEqual(['own-agent', 'own-events']);
});

test('own-agent: the tool is there whichever way the worker is started', async () => {
  const walk = await begin('own-agent');
  const answers: string[] = [];
  for (const line of commandsOf('own-agent')) {
    const shown = await follow(walk, line);
    if (!line.startsWith('npm run ask')) continue;
    answers.push(lastLine(shown));
    // With a second worker that lacks the tool, half of these would fail.
    for (let more = 0; more < 4; more++) answers.push(lastLine(await follow(walk, line)));
  }
  expect(answers).toEqual([...answers.keys()].map((at) => `Booked tea. The total is ${((at + 1) * 3.5).toFixed(2)}.`));
  expect(answers).toHaveLength(10);
});

test('own-events: its reducers, its compactor and its observer are at work', async () => {
  const walk = await begin('own-events');
  const shown: Record<string, string> = {};
  for (const line of commandsOf('own-events')) shown[line.replace(/\s+#.*$/, '')] = await follow(walk, line);
  expect(shown['npm run ask']).toContain('[TICKET] Ticket 7: The printer is on fire (open)');
  expect(Object.entries(shown).find(([line]) => line.includes('dispatch'))?.[1]).toMatch(/^[\da-f-]{36}\n$/);
  expect(shown['npx perdura debug inspect my-desk']).toContain('desk');
});

function lastLine(shown: string): string {
  return shown.trim().split('\n').at(-1) ?? '';
}
