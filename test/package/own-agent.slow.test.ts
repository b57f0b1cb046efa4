/** The example, as somebody else's project: our tarball is all it has of us. */
import { randomUUID } from 'node:crypto';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { lastToolResults, systemText, textOf } from '../support/provider-apis/api-request.js';
import { startMessagesApi, type MessagesApi } from '../support/provider-apis/messages-api.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { dieWithUs } from '../support/reaper.js';
import { openProject, type Project } from './linked-package.js';

const run = promisify(execFile);
const bin = (name: string): string => join(__dirname, '..', '..', 'node_modules', '.bin', name);

/** The compiler itself: what stands in .bin is a shell script on some systems. */
const TSC = join(__dirname, '..', '..', 'node_modules', 'typescript', 'bin', 'tsc');

let project: Project;
let api: MessagesApi;
const children: ChildProcess[] = [];

beforeAll(async () => {
  project = await openProject();
  api = await startMessagesApi({
    answer(request) {
      const [result] = lastToolResults(request);
      if (result) return text(textOf(result.content));
      if (!systemText(request).startsWith('You keep a book of expenses')) return text('another agent');
      return callTool('book_expense', { what: 'tea', cents: 350 });
    },
  });
});

afterEach(async () => {
  for (const child of children.splice(0)) {
    const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined;
    child.kill('SIGKILL');
    await ended;
  }
});

afterAll(async () => {
  await api?.close();
  project?.remove();
});

function environment(): Record<string, string> {
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: project.dir,
    TEMPORAL_ADDRESS: process.env['PERDURA_TEST_ADDRESS'] ?? '',
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    PERDURA_TRUST: '1',
    PERDURA_TASK_QUEUE: `own-${randomUUID()}`,
  };
}

/** Resolves once it takes work. */
async function startWorker(args: readonly string[], readyWord: string, env: Record<string, string>): Promise<() => string> {
  const child = spawn(process.execPath, args, { cwd: project.dir, env, stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  const spare = dieWithUs(child.pid ?? 0);
  child.once('exit', spare);
  let log = '';
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (said: string) => {
        log += said;
        if (log.includes(readyWord)) resolve();
      });
    }
    child.once('close', (code) => reject(new Error(`the worker ended with ${code}:\n${log}`)));
  });
  return () => log;
}

async function ask(env: Record<string, string>, id: string): Promise<string> {
  const { stdout } = await run(process.execPath, ['client.js', 'I had tea for 3.50.', id], { cwd: project.dir, env, timeout: 240_000 });
  return stdout;
}

test('its worker runs its agent with its own tool, and its client gets the answer; its observer gets the events', async () => {
  const env = environment();
  const log = await startWorker(['worker.js'], 'ready', env);
  const id = `own-${randomUUID()}`;
  expect(await ask(env, id)).toBe('Booked tea. The total is 3.50.\n');
  expect(await ask(env, id)).toBe('Booked tea. The total is 7.00.\n');
  expect(
    readFileSync(join(project.dir, 'workspace', 'book.jsonl'), 'utf8')
      .trim()
      .split('\n'),
  ).toHaveLength(2);
  expect(log()).toContain(`${id}: book_expense ended ok`);
});

test('the same tool in perdura.config.ts, with the installed program and its worker', async () => {
  const env = environment();
  rmSync(join(project.dir, 'perdura.config.mjs'), { force: true });
  writeFileSync(
    join(project.dir, 'perdura.config.ts'),
    "import type { Extensions } from 'perdura/worker';\nimport { tools } from './tools.js';\nexport default { tools } satisfies Extensions;\n",
  );
  writeFileSync(join(project.dir, 'tools.ts'), "import { bookExpense } from './book-expense.cjs';\nexport const tools = [bookExpense];\n");
  // A project of CommonJS, where Node of any age can load what a .ts file imports.
  const source = readFileSync(join(project.dir, 'book-expense.js'), 'utf8');
  const common = source
    .replace(/^import (\{.*\}) from ('.*');$/gm, 'const $1 = require($2);')
    .replace('export const', 'exports.bookExpense =');
  writeFileSync(join(project.dir, 'book-expense.cjs'), common.replace('exports.bookExpense = bookExpense =', 'exports.bookExpense ='));
  rmSync(join(project.dir, 'workspace'), { recursive: true, force: true });

  await startWorker([join(project.perdura, 'bin', 'perdura'), 'worker'], 'takes work from task queue', env);
  expect(await ask(env, `own-${randomUUID()}`)).toBe('Booked tea. The total is 3.50.\n');
  rmSync(join(project.dir, 'perdura.config.ts'));
});

test('a folder without agents has the one that we ship', async () => {
  const env = environment();
  renameSync(join(project.dir, 'agents'), join(project.dir, 'elsewhere'));
  try {
    await startWorker([join(project.perdura, 'bin', 'perdura'), 'worker'], 'takes work from task queue', env);
    const args = [join(project.perdura, 'bin', 'perdura'), '-p', 'hello'];
    const { stdout } = await run(process.execPath, args, { cwd: project.dir, env, timeout: 240_000 });
    expect(stdout).toBe('another agent\n');
    const doctor = await run(process.execPath, [join(project.perdura, 'bin', 'perdura'), 'doctor'], { cwd: project.dir, env }).catch(
      (failed: { stdout: string }) => failed,
    );
    expect(doctor.stdout).toMatch(/✔ Agents +default/);
  } finally {
    renameSync(join(project.dir, 'elsewhere'), join(project.dir, 'agents'));
  }
});

test('publint and attw find nothing wrong with it', async () => {
  const { tarball } = project;
  const lint = await run(process.execPath, [bin('publint'), tarball, '--strict']);
  expect(lint.stdout).toContain('All good!');
  // Resolution as before Node 12 knows no `exports`; we need Node 20.
  const types = await run(process.execPath, [bin('attw'), tarball, '--profile', 'node16', '--no-emoji', '--format', 'table']);
  expect(types.stdout).not.toContain('❌');
});

test('its types say what a program in TypeScript needs, and compile without skipLibCheck', async () => {
  writeFileSync(
    join(project.dir, 'typed.ts'),
    `import { createClient, defineTool, z, type TurnResult } from 'perdura';
import { createWorker, type Observer, type PerduraWorker } from 'perdura/worker';
import { loadConfig, type Config } from 'perdura/config';
import { createConversation } from 'perdura/workflows';
import { createDraft, type Body, type Model, type ModelHook, type ModelStop, type Processors, type TextToolFormat } from 'perdura';
import type { EpisodicItem, RawTraceItem, SemanticItem, StepResult, TokenUsage, ToolInteraction } from 'perdura';
export type Seed = [EpisodicItem['turn_ids'], RawTraceItem['trace_type'], SemanticItem['fact'], StepResult['eventProcessed'], TokenUsage['totalTokens'], ToolInteraction['status']];
const config: Config = loadConfig();
const double = defineTool({ name: 'double', description: 'Doubles.', input: z.object({ n: z.number() }), run: ({ n }) => String(n * 2) });
const observer: Observer = (event, { conversation }) => void (event.kind === 'renamed' && console.log(conversation, event.title));
const worker: PerduraWorker = createWorker({ config, tools: [double], observers: [observer] });
export const result: Promise<TurnResult> = createClient(config).then((perdura) => perdura.send('c', 'hi', { start: { agent: 'ledger' } }));
const textTools: TextToolFormat = 'xml';
const stop: ModelStop = 'end';
const parrot: Model = {
  provider: 'parrot',
  textTools,
  async stream({ messages }, { onDelta }) {
    const draft = createDraft('parrot', onDelta);
    const said: Body | undefined = messages.flatMap((one) => (one.role === 'user' ? [one.text] : [])).at(-1);
    draft.say('text', typeof said === 'string' ? said : (said?.preview ?? ''));
    return { blocks: draft.blocks({ withCalls: true }), stop, usage: { inputTokens: 1, cachedTokens: 0, outputTokens: 1 } };
  },
};
const hook: ModelHook = { name: 'log', afterInvoke: (_messages, { usage }, { call }) => console.log(call, usage.outputTokens) };
const processors: Processors = { input: [{ name: 'trim', order: 1, process: (text, { turn }) => (turn === '' ? text : text.trim()) }] };
createWorker({ config, providers: { parrot }, hooks: [hook], processors });
export const conversation = createConversation();
// @ts-expect-error the tool's input is typed
defineTool({ name: 'bad', description: 'Bad.', input: z.object({ n: z.number() }), run: ({ m }) => String(m) });
// @ts-expect-error such an option there is not
createWorker({ tool: [double] });
export default worker;
`,
  );
  const flags = ['--noEmit', '--strict', '--module', 'node16', '--target', 'es2022', '--types', 'node', '--ignoreConfig'];
  const roots = ['--typeRoots', join(__dirname, '..', '..', 'node_modules', '@types')];
  await run(process.execPath, [TSC, ...flags, ...roots, 'typed.ts'], { cwd: project.dir }).catch(
    ({ stdout, message }: { stdout: string; message: string }) => {
      throw new Error(`${message}\n${stdout}`);
    },
  );
});
