/** Clients of PyPI, in a virtual environment that is made once for these versions. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fencedBlocks } from '../readme/commands.js';
import { answerTo } from '../support/echo-model.js';
import { PRODUCT } from '../support/worker-process.js';
import { runProgram } from './run-program.js';
import { MissingProgram, SPOKEN, type ClientPlace, type Outcome, type Suite } from './suite.js';

const OPENAI = 'openai==3.57.0';
const ANTHROPIC = 'anthropic==2.13.0';
const PROGRAMS = join(__dirname, 'python');

export const PYTHON_SUITES: readonly Suite[] = [
  suite('Chat Completions', OPENAI, 'chat_completions.py'),
  suite('Responses', OPENAI, 'responses.py'),
  suite('Messages', ANTHROPIC, 'messages.py'),
  { name: 'Responses, worker killed', client: onPypi(OPENAI), run: whileKilled },
  { name: 'docs', client: onPypi(OPENAI), run: programsOfDocs },
];

function suite(name: string, pin: string, file: string): Suite {
  return { name, client: onPypi(pin), run: async (place) => outcomesOf(await python(place, file)) };
}

function onPypi(pin: string): string {
  return `${pin.replace('==', ' ')} (PyPI)`;
}

async function whileKilled(place: ClientPlace): Promise<readonly Outcome[]> {
  const { code, stdout, stderr } = await place.killedMeanwhile(() => python(place, 'worker_killed.py'));
  const isRight = code === 0 && stdout === `${SPOKEN}\n`;
  const check = 'kill -9 of the worker in mid-stream: the whole answer, once';
  return [isRight ? { check, result: 'passed' } : { check, result: 'failed', why: `${stdout}${stderr}`.slice(-500) }];
}

/** Where a reader of docs/how-to/from-a-program.md is: in the folder of the gateway, with its token. Only the address is another one. */
async function programsOfDocs(place: ClientPlace): Promise<readonly Outcome[]> {
  const page = await readFile(join(PRODUCT, 'docs', 'how-to', 'from-a-program.md'), 'utf8');
  const program = await environment(place.cacheDir);
  const cwd = await mkdtemp(join(tmpdir(), 'perdura-docs-'));
  try {
    await mkdir(join(cwd, '.perdura'));
    await writeFile(join(cwd, '.perdura', 'token'), `${place.token}\n`);
    const outcomes: Outcome[] = [];
    for (const { text } of fencedBlocks(page).filter(({ language }) => language === 'python')) {
      const { code, stdout, stderr } = await runProgram(program, ['-c', text.replace('http://127.0.0.1:7280', place.url)], { cwd });
      const asked = [...text.matchAll(/input="([^"]*)"/g)].map(([, words = '']) => words);
      const isRight = code === 0 && asked.length > 0 && stdout === asked.map((words) => `${answerTo(words)}\n`).join('');
      const check = 'its program in Python';
      outcomes.push(isRight ? { check, result: 'passed' } : { check, result: 'failed', why: `${stdout}${stderr}`.slice(-500) });
    }
    return outcomes.length > 0 ? outcomes : [{ check: 'its program in Python', result: 'failed', why: 'the page has none' }];
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}

async function python(place: ClientPlace, file: string) {
  const env = { PERDURA_URL: place.url, PERDURA_TOKEN: place.token, PYTHONDONTWRITEBYTECODE: '1' };
  return runProgram(await environment(place.cacheDir), [join(PROGRAMS, file)], { env });
}

/** A line of JSON for each check (python/checks.py); a program that ends badly has failed too. */
function outcomesOf({ code, stdout, stderr }: { code: number | null; stdout: string; stderr: string }): readonly Outcome[] {
  const outcomes = stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Outcome);
  if (code === 0 && outcomes.length > 0) return outcomes;
  return [...outcomes, { check: 'the program', result: 'failed', why: `it ended with ${code}: ${stderr.slice(-500)}` }];
}

/** The python of the environment. */
export async function environment(cacheDir: string, pins = [OPENAI, ANTHROPIC]): Promise<string> {
  const dir = join(cacheDir, `python-${createHash('sha256').update(pins.join()).digest('hex').slice(0, 12)}`);
  const program = join(dir, 'bin', 'python');
  if (existsSync(join(dir, 'ready'))) return program;
  await rm(dir, { recursive: true, force: true });
  const made = await runProgram('python3', ['-m', 'venv', dir]).catch(() => undefined);
  if (made === undefined) throw new MissingProgram('python3 is not on PATH: install Python 3.9 or newer');
  if (made.code !== 0) {
    throw new MissingProgram(
      `python3 cannot make a virtual environment (on Debian: apt install python3-venv): ${`${made.stdout}${made.stderr}`.trim().slice(-300)}`,
    );
  }
  const installed = await runProgram(program, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...pins], {
    timeoutMs: 600_000,
  });
  if (installed.code !== 0) throw new MissingProgram(`pip cannot install ${pins.join(' and ')}: ${installed.stderr.trim().slice(-300)}`);
  await runProgram('touch', [join(dir, 'ready')]);
  return program;
}
