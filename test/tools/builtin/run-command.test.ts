import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../../src/records/message.js';
import type { CommandLimits } from '../../../src/tools/builtin/command/command-supervisor.js';
import { createRunCommand, runCommand } from '../../../src/tools/builtin/command/run-command.js';
import { createSupervisor, findWrappers, type Wrappers } from '../../../src/tools/builtin/command/supervised.js';
import { RESULT_BYTES } from '../../../src/tools/result-text.js';
import type { Tool, ToolContext } from '../../../src/tools/tool.js';
import { CANARY, createPlace, toolContext, type Place } from '../tool-context.js';
import { processesWith, strays } from './strays.js';

let place: Place;

beforeEach(() => {
  place = createPlace();
});

afterEach(() => {
  place.remove();
});

async function run(input: JsonObject, tool: Tool = runCommand, given: Partial<ToolContext> = {}): Promise<string> {
  const result = await tool.run(input, toolContext({ workspace: place.workspace, ...given }));
  return result.ok ? result.content : `error: ${result.error}`;
}

const bash = (script: string, more: JsonObject = {}): JsonObject => ({ command: 'bash', args: ['-c', script], ...more });
/** Seconds to sleep that no other process has. */
const unique = (): string => `${randomInt(100_000, 900_000)}.${randomInt(1_000_000)}`;
const isLinux = process.platform === 'linux';

describe('run_command', () => {
  it('answers how a program ended and what it wrote', async () => {
    expect(await run({ command: 'echo', args: ['a  b', '$HOME', '`id`', '-n'] })).toMatch(
      /^\[echo ended with exit code 0 after \d+\.\d s\]\na {2}b \$HOME `id` -n$/,
    );
    expect(await run(bash('echo out; echo err >&2; exit 3'))).toMatch(
      /^error: \[bash ended with exit code 3 after .* s\]\nout\n\[standard error\]\nerr$/,
    );
    expect(await run({ command: 'true' })).toMatch(/\[it wrote nothing\]$/);
    expect(await run(bash('kill -SEGV $$; sleep 5'))).toMatch(/^error: \[bash was ended by SIGSEGV|exit code/);
  });

  it('runs in the workspace or a folder of it, and reads what it is sent', async () => {
    mkdirSync(join(place.workspace, 'sub'));

    expect(await run({ command: 'pwd' })).toContain(`\n${place.workspace}`);
    expect(await run({ command: 'pwd', cwd: 'sub' })).toContain(`\n${place.workspace}/sub`);
    expect(await run({ command: 'cat', stdin: 'ünï\n' })).toMatch(/\nünï$/);
    expect(await run({ command: 'cat' })).toContain('[it wrote nothing]');
    expect(await run({ command: 'true', stdin: 'x'.repeat(1_000_000) })).toContain('exit code 0');
    expect(await run({ command: 'pwd', cwd: '..' })).toMatch(/leads out/);
    expect(await run({ command: 'pwd', cwd: 'gone' })).toMatch(/cannot find gone/);
  });

  it.each<[string, JsonObject, RegExp]>([
    ['a whole command line', { command: 'ls -la | sort' }, /there is no program "ls -la \| sort"\. `command` is one program/],
    ['S21 a second command after the first', { command: 'echo a; id' }, /there is no program/],
    ['no such program', { command: 'no-such-program', args: ['x'] }, /there is no program "no-such-program"/],
    ['an option in its place', { command: '--help' }, /there is no program "--help"/],
    ['a folder', { command: './', args: [] }, /it is no program/],
    ['NUL', { command: 'echo', args: ['a\0b'] }, /args\[0\]: expected no NUL/],
    ['an argument of 200 KB', { command: 'echo', args: ['x'.repeat(200_000)] }, /args\[0\]: expected at most/],
    ['arguments of 100 MB', { command: 'echo', args: Array(1_000).fill('x'.repeat(100_000)) }, /too long together/],
    ['a limit of a day', { command: 'true', timeoutMs: 86_400_000 }, /timeoutMs: Too big/],
    ['an environment', { command: 'env', env: { A: 'b' } }, /env: no such field/],
  ])('refuses in words: %s', async (_, input, reason) => {
    expect(await run(input)).toMatch(reason);
  });

  it('S24 takes what looks like shell as plain text, in arguments and in names', async () => {
    const hostile = ['$(touch pwned)', '`touch pwned`', ';touch pwned', '--upload-pack=touch pwned', 'a\ntouch pwned'];

    expect(await run({ command: 'printf', args: ['%s|', ...hostile] })).toContain(`${hostile.join('|')}|`);
    expect(await run({ command: 'ls' })).toContain('[it wrote nothing]');
  });

  it('S26 has nothing in its environment but what it is given', async () => {
    process.env['ANTHROPIC_API_KEY_TEST'] = CANARY;
    try {
      const told = await run(bash('env; cat /proc/$PPID/environ /proc/self/environ | tr "\\0" "\\n"'));
      expect(told).not.toContain(CANARY);
      const names = [...told.matchAll(/^([A-Za-z_]+)=/gm)].map(([, name]) => name);
      expect([...new Set(names)].sort()).toEqual(['GIT_CONFIG_COUNT', 'LANG', 'PATH', 'PERDURA_COMMAND', 'PWD', 'SHLVL', '_']);
    } finally {
      delete process.env['ANTHROPIC_API_KEY_TEST'];
    }
  });

  (isLinux ? it : it.skip)('S26 sees no other process where the system allows it', async () => {
    const { namespace } = await findWrappers();
    const told = await run(bash('cat /proc/[0-9]*/environ 2>/dev/null | tr "\\0" "\\n"; echo; ls -d /proc/[0-9]* | wc -l'));

    if (namespace.length > 0) expect(Number(told.trim().split('\n').at(-1))).toBeLessThan(8);
    else expect(told).toContain('exit code');
  });
});

describe('what it writes', () => {
  it('is shown without what steers a terminal or hides', async () => {
    expect(await run({ command: 'printf', args: ['\\033[31mred\\033[0m\\033]0;title\\007 50%%\\r100%%\\r\\nx\\u202ey\\x07'] })).toMatch(
      /\nred 50%\n100%\nx\\u\{202e\}y\\u\{7\}$/,
    );
  });

  it('is described when it is not text', async () => {
    expect(await run({ command: 'head', args: ['-c', '1000', '/dev/urandom'] })).toMatch(
      /\n\[1000 bytes that are not text; they begin with [0-9a-f]{32}\]$/,
    );
    expect(await run({ command: 'printf', args: ['a\\0b'] })).toMatch(/\[3 bytes that are not text/);
  });

  it('keeps its beginning and its end when it is 3 MB, and says what is missing', async () => {
    const told = await run(bash('echo BEGIN; head -c 1500000 /dev/zero | sed "s/\\x00/ü/g"; echo; echo END'));

    expect(Buffer.byteLength(told)).toBeLessThan(RESULT_BYTES);
    expect(told).toMatch(/\nBEGIN\n.*\n\[… \d{7} bytes in the middle are not shown …\]\n/);
    expect(told).toMatch(/\nEND$/);
  });

  it.each([
    ['yes', { command: 'yes' }],
    ['noise', { command: 'cat', args: ['/dev/urandom'] }],
    ['one line of 1 GB', { command: 'head', args: ['-c', '1000000000', '/dev/zero'] }],
  ])('F45 as a flood neither fills the worker nor goes on: %s', async (_, input) => {
    const before = process.memoryUsage().rss;
    let most = 0;
    const watch = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 20);

    const told = await run(input);
    clearInterval(watch);

    expect(told).toMatch(/was stopped after .*, since it wrote too much/);
    expect(Buffer.byteLength(told)).toBeLessThan(RESULT_BYTES);
    expect(most - before).toBeLessThan(100 * 1024 * 1024);
  });
});

const modes: [string, Wrappers | undefined][] = [
  ['as the system allows', undefined],
  ['without a namespace', { limits: [], namespace: [] }],
];

describe.each(modes)('processes, %s', (_, wrappers) => {
  const limits: Partial<CommandLimits> = { graceMs: 300 };
  const tool = createRunCommand({ supervisor: createSupervisor(wrappers), limits });

  /** Under a limit after which the shell had begun: on a busy machine the first ones may be over before. */
  async function stoppedAtLimit(script: string, begun: string): Promise<{ readonly told: string; readonly seconds: number }> {
    for (const timeoutMs of [400, 4_000, 40_000]) {
      const told = await run(bash(script, { timeoutMs }), tool);
      if (told.includes(begun)) return { told, seconds: timeoutMs / 1_000 };
    }
    throw new Error(`bash did not say ${begun} within 40 s`);
  }

  it('F43 that never end are killed at their limit, even those that ignore TERM, and what they wrote is reported', async () => {
    const unending = unique();

    const { told, seconds } = await stoppedAtLimit(
      `trap '' TERM INT HUP; echo begun; sleep ${unending} & sleep ${unending}; sleep ${unending}`,
      'begun',
    );

    expect(told).toContain(
      `error: [bash was stopped at its limit of ${seconds} s, with all that it had started; give timeoutMs for a longer one]`,
    );
    expect(await strays(unending)).toEqual([]);
  });

  it('F43 are asked before they are killed', async () => {
    const { told } = await stoppedAtLimit(`trap 'echo bye; exit 0' TERM; echo hi; while :; do sleep 0.05; done`, 'hi');
    expect(told).toContain('hi\nbye');
  });

  it('F44 are gone soon after an interrupt', async () => {
    const seconds = unique();
    const stop = new AbortController();
    const told = run(bash(`trap '' TERM; (sleep ${seconds}) & sleep ${seconds}`), tool, { signal: stop.signal });
    while (processesWith(seconds).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    stop.abort();

    expect(await told).toMatch(/was stopped after/);
    expect(await strays(seconds)).toEqual([]);
  });

  it.each([
    ['in the background', (s: string) => `sleep ${s} & echo done`],
    ['in a session of its own, holding the output open', (s: string) => `setsid sleep ${s} & sleep 0.2; echo done`],
    ['in a session of its own, without any tie', (s: string) => `setsid -f sleep ${s} < /dev/null > /dev/null 2>&1; echo done`],
    ['without its environment, holding the output open', (s: string) => `env -i setsid -f sleep ${s}; sleep 0.2; echo done`],
    [
      'without environment and output, seen while its parent lived',
      (s: string) => `bash -c 'env -i setsid sleep ${s} > /dev/null 2>&1 & sleep 0.8'; echo done`,
    ],
    [
      'ignoring every signal that can be',
      (s: string) => `trap '' HUP INT TERM; nohup setsid sleep ${s} > /dev/null 2>&1 & sleep 0.2; echo done`,
    ],
  ])('F46 that are left behind are ended with the command, and named: %s', async (_, script) => {
    const seconds = unique();

    const told = await run(bash(script(seconds)), tool);

    expect(told).toMatch(/^\[bash ended with exit code 0/);
    // By the name it has at that moment, which may still be that of what started it.
    expect(told).toMatch(isLinux ? /what it had left running was ended with it: (sleep|setsid|bash|env|nohup)/ : /done/);
    expect(told).toMatch(/\ndone$/);
    expect(await strays(seconds)).toEqual([]);
  });

  it('S25 that multiply are ended all together', async () => {
    const seconds = unique();
    const many = createRunCommand({ supervisor: createSupervisor(wrappers), limits: { ...limits, processes: 40 } });

    const told = await run(bash(`for i in $(seq 150); do sleep ${seconds} & done; wait`), many);

    expect(told).toMatch(/was stopped after .*, since it started too many processes/);
    expect(await strays(seconds)).toEqual([]);
  });

  it('S25 that eat memory are ended', async () => {
    const little = createRunCommand({ supervisor: createSupervisor(wrappers), limits: { ...limits, memoryBytes: 150 * 1024 * 1024 } });
    const eat = 'const all = []; setInterval(() => all.push(Buffer.alloc(20_000_000, 1)), 50)';

    expect(await run({ command: process.execPath, args: ['-e', eat], timeoutMs: 20_000 }, little)).toMatch(/since it took too much memory/);
  });

  it('die with the worker, however that dies', async () => {
    const seconds = unique();
    const script = `
      require(${JSON.stringify(join(process.cwd(), 'test', 'stores', 'register-swc.cjs'))});
      const { createRunCommand } = require(${JSON.stringify(join(process.cwd(), 'src/tools/builtin/command/run-command.ts'))});
      const { createSupervisor } = require(${JSON.stringify(join(process.cwd(), 'src/tools/builtin/command/supervised.ts'))});
      createRunCommand({ supervisor: createSupervisor(${JSON.stringify(wrappers)}) }).run(
        { command: 'bash', args: ['-c', 'trap "" TERM HUP; setsid sleep ${seconds} & sleep ${seconds}'] },
        { workspace: ${JSON.stringify(place.workspace)}, signal: new AbortController().signal },
      );`;
    const worker = spawn(process.execPath, ['-e', script], { stdio: 'inherit' });
    const ended = once(worker, 'exit');
    const running = (): number => processesWith(`sleep ${seconds}`).filter((line) => !line.includes('trap')).length;
    while (running() < 2 && worker.exitCode === null) await new Promise((resolve) => setTimeout(resolve, 50));
    expect(running()).toBe(2);

    worker.kill('SIGKILL');
    await ended;

    expect(await strays(seconds)).toEqual([]);
  });

  it('cannot get away by killing who watches over them', async () => {
    const seconds = unique();

    const told = await run(bash(`setsid sleep ${seconds} & kill -STOP $PPID; kill -9 $PPID; sleep 1; echo still here`), tool);

    expect(told).toMatch(/lost hold of "bash", and killed what it had started|still here/);
    expect(await strays(seconds)).toEqual([]);
  });
});

it('twenty hostile commands at once leave no process, and the worker as it was', async () => {
  const seconds = unique();
  const tool = createRunCommand({ limits: { graceMs: 200, processes: 60 } });
  const hostile = [
    `sleep ${seconds}`,
    `trap '' TERM; sleep ${seconds}; sleep ${seconds}`,
    `setsid sleep ${seconds} & wait`,
    `env -i setsid sleep ${seconds} & wait`,
    `yes ${seconds}`,
    `cat /dev/urandom`,
    `for i in $(seq 100); do sleep ${seconds} & done; wait`,
    `kill -9 $PPID; setsid sleep ${seconds}`,
    `exec > /dev/null 2>&1; nohup setsid sleep ${seconds} &`,
    `while :; do (sleep ${seconds} &) ; sleep 0.01; done`,
  ];
  const listeners = process.listenerCount('exit');

  const told = await Promise.all([...hostile, ...hostile].map((script) => run(bash(script, { timeoutMs: 1_500 }), tool)));

  expect(told.filter((text) => !/was stopped|lost hold|ended with/.test(text))).toEqual([]);
  expect(await strays(seconds)).toEqual([]);
  expect(process.listenerCount('exit')).toBe(listeners);
  // The worker itself goes on.
  writeFileSync(join(place.workspace, 'x'), 'x');
  expect(readFileSync(join(place.workspace, 'x'), 'utf8')).toBe('x');
  expect(await run({ command: 'echo', args: ['fine'] }, tool)).toContain('fine');
});
