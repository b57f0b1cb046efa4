/** What a command does where there is no Temporal: it helps, refuses, and says what is missing. Nothing that was refused is asked of a client. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { listCommands } from '../../src/cli/main.js';
import type { PerduraClient } from '../../src/client.js';
import { runPerdura, startPerdura, type Ran } from '../support/run-perdura.js';

let dir: string;

beforeAll(() => void (dir = mkdtempSync(join(tmpdir(), 'perdura-cli-'))));
afterAll(() => rmSync(dir, { recursive: true }));

/** In an empty folder, on an address where nobody listens. */
const NOBODY = { TEMPORAL_ADDRESS: '127.0.0.1:1', PERDURA_MEMORY_DIR: '' };
const perdura = (args: readonly string[], env: Readonly<Record<string, string>> = {}, input = ''): Promise<Ran> =>
  runPerdura({ dir, taskQueue: 'none' }, args, { env: { ...NOBODY, ...env }, input });

test('the first help fits on a screen of 80 by 24 and names commands that there are, the whole one has all of them', async () => {
  const [first, all] = await Promise.all([perdura(['help']), perdura(['help', 'all'])]);
  const lines = first.stdout.split('\n');
  expect(lines.length).toBeLessThanOrEqual(24);
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(80);
  const names = listCommands().flatMap(({ commands }) => commands.map(({ name }) => name));
  const shown = lines.flatMap((line) => (/^(?: {8}|[A-Z][a-z]+ +)([a-z|]+)/.exec(line)?.[1] ?? '').split('|').filter(Boolean));
  expect(shown.length).toBeGreaterThan(20);
  expect(shown.filter((name) => name !== 'admin' && !names.includes(name))).toEqual([]);
  for (const name of names) expect(all.stdout).toContain(`\n  ${name}`);
  expect(all.stdout).toContain('--namespace');
  expect((await perdura(['list', '--help'])).stdout).not.toContain('--namespace');
});

test('every command prints help on stdout, and is completed', async () => {
  const names = listCommands().flatMap(({ commands }) => commands.map(({ name }) => name));
  expect(names.length).toBeGreaterThan(50);
  const { stdout: completion } = await perdura(['completion', 'bash']);
  for (const name of ['', ...names]) {
    const words = name.split(' ').filter(Boolean);
    expect([name, await perdura([...words, '--help'])]).toEqual([
      name,
      { code: 0, stdout: expect.stringMatching(new RegExp(`^Usage: perdura ${name}`)) as string, stderr: '' },
    ]);
    if (words[0] !== undefined) expect(completion).toContain(`"${words[0]}"`);
  }
});

test('the program itself prints its help, and ends with the code of what it refuses', async () => {
  const start = (...args: readonly string[]): Promise<Ran> => startPerdura({ dir, taskQueue: 'none' }, args, { env: NOBODY }).ended;
  expect(await start('--help')).toEqual({ code: 0, stdout: (await perdura(['--help'])).stdout, stderr: '' });
  expect(await start('lsit')).toEqual({ ...(await perdura(['lsit'])), code: 2 });
});

test.each<[what: string, args: readonly string[], message: RegExp]>([
  ['a command that does not exist is not sent to the model', ['shwo', 'conv_1'], /^there is no command shwo/],
  ['one that is nearly there', ['lsit'], /there is no command lsit; did you mean list\?/],
  ['one of a group', ['inspect', 'x'], /there is no command inspect; did you mean debug inspect\?/],
  ['an unknown option', ['chat', '--loud'], /unknown option '--loud'/],
  ['an option that is nearly there', ['list', '--limt', '3'], /Did you mean --limit\?/],
  ['a format that does not exist', ['chat', '--output-format', 'xml'], /Allowed choices are text, json, stream-json/],
  ['an output that does not exist', ['list', '-o', 'xml'], /Allowed choices are text, json\./],
  ['-c and -r together', ['chat', '-c', '-r', 'conv_1'], /cannot be used with/],
  ['an id that cannot be one', ['chat', '-r', 'a b'], /"a b" is not an id of a conversation/],
  ['-r without an id where nobody can be asked', ['chat', '-r'], /-r needs the id of a conversation/],
  ['-p without a message', ['-p', ''], /-p needs a message/],
  ['silence', ['chat'], /nothing to say: stdin is empty/],
  ['a port that is none', ['up', '--port', '70000'], /A port is a number/],
  ['a place for a server of ours beside a server that was named', ['up', '--temporal-port', '17000'], /TEMPORAL_\* or its profile names/],
  ['a shell that is not known', ['completion', 'tcsh'], /Allowed choices are bash, zsh, fish/],
  ['a missing argument', ['send', 'conv_1'], /missing required argument 'message'/],
  ['an empty message', ['send', 'conv_1', ' '], /the message is empty/],
  ['a duration that is none', ['send', 'x', 'hi', '--timeout', 'soon'], /write a duration such as 30s/],
  ['other words that are none', ['edit', 'x', ' '], /the message is empty/],
  ['a title that is none', ['rename', 'x', ' '], /the title is empty/],
  ['--archived alone', ['show', 'x', '--archived'], /--archived is for --raw/],
  ['--out alone', ['admin', 'export', 'x', '--out', 'there'], /--out is for --format seed/],
  ['a group alone', ['admin'], /Usage: perdura admin/],
  ['another group alone', ['history'], /Usage: perdura history/],
  ['a text of no day', ['memory', '--at'], /argument missing/],
  ['a command that its group does not have', ['admin', 'lsit'], /unknown command 'lsit'/],
  ['items of no conversation', ['memory', '--items'], /of which conversation/],
  ['two ends', ['end', 'x', '--now', '--wait'], /cannot be used with/],
  ['a turn that is none', ['fork', 'c1', '--at', 'soon'], /"soon" is not a turn/],
  ['a fork without a turn', ['fork', 'c1'], /required option '--at <turn>'/],
  ['a rewind without a turn', ['rewind', 'c1'], /required option '--to <turn>'/],
  ['a branch that is none', ['show', 'c1', '--branch', 'x'], /write a whole number from 1/],
  ['a branch that goes on', ['show', 'c1', '--branch', '1', '--follow'], /a branch has ended/],
  ['a price that is none', ['debug', 'break', 'x', '--cost', 'much'], /US dollars/],
  ['a mode that is none', ['debug', 'mode', 'x', 'sideways'], /auto, stepping/],
  ['a whole screen where there is none', ['debug', 'x'], /needs a terminal/],
  ['an argument for good, and another one', ['approve', 'x', '--always', '--input', '{}'], /leave out --input/],
])('%s is wrong usage: exit code 2, before a client is opened', async (_name, args, message) => {
  const openClient = (): never => {
    throw new Error('a client was opened');
  };
  expect(await runPerdura({ dir, taskQueue: 'none' }, args, { env: NOBODY, openClient })).toEqual({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(message) as string,
  });
});

/** Those that Temporal's client waits for take five seconds each: all at once. */
const MISSING: readonly (readonly [
  what: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  code: number,
  message: RegExp,
])[] = [
  ['a setting with a wrong value', ['show', 'x'], { PERDURA_LOG_LEVEL: 'loud' }, 2, /^PERDURA_LOG_LEVEL is "loud", which cannot be used/],
  [
    'a worker of a tool that the project has not',
    ['worker', '--tools', 'render'],
    {},
    2,
    /render is none of the project's tools, which are none/,
  ],
  ['how many at once, of no tools', ['worker', '--at-once', '2'], {}, 2, /--at-once is for a worker of some tools: add --tools/],
  ['-c in a folder without a conversation', ['chat', '-c'], {}, 4, /there is none in this folder/],
  ['a Temporal that was named and does not answer', ['list'], {}, 3, /cannot reach Temporal at 127\.0\.0\.1:1: .*; check TEMPORAL_ADDRESS/],
  ['one that a flag names', ['list', '--address', '127.0.0.1:2'], {}, 3, /cannot reach Temporal at 127\.0\.0\.1:2/],
  [
    'the same, and nothing is started instead',
    ['chat', '--start-services'],
    {},
    3,
    /cannot reach Temporal at 127\.0\.0\.1:1: .*; check TEMPORAL_ADDRESS/,
  ],
  [
    'a Redis that was named and is down: files are no substitute',
    ['chat', '--start-services'],
    { REDIS_URL: 'redis://:hunter2@127.0.0.1:1/0' },
    3,
    /^cannot reach the store that REDIS_URL names: redis at redis:\/\/127\.0\.0\.1:1\/0: .*ECONNREFUSED/,
  ],
];

test('what is needed and does not answer is said, with its exit code and without secrets', async () => {
  const all = MISSING.map(async ([what, args, env, code, message]) => {
    const ran = await perdura(args, env, args[0] === 'chat' ? 'hello\n' : '');
    expect([what, ran]).toEqual([what, { code, stdout: '', stderr: expect.stringMatching(message) as string }]);
    expect(ran.stderr).not.toContain('hunter2');
  });
  await Promise.all(all);
});

test('a command asks the client that it is handed, and closes it', async () => {
  let closed = 0;
  const client = { list: async () => [{ id: 'c1' }, { id: 'c1:child' }], close: async () => void closed++ };
  // It asks for nothing else.
  const openClient = () => Promise.resolve(client as unknown as PerduraClient);
  const ran = await runPerdura({ dir, taskQueue: 'none' }, ['complete', 'conversations'], { env: NOBODY, openClient });
  expect([ran, closed]).toEqual([{ code: 0, stdout: 'c1\n', stderr: '' }, 1]);
});

test('a worker whose Temporal does not answer says so in the same words: exit code 3', async () => {
  const { code, stderr } = await startPerdura({ dir, taskQueue: 'none' }, ['worker'], { env: { ...NOBODY, PERDURA_LOG_LEVEL: 'error' } })
    .ended;
  expect([code, stderr]).toEqual([3, expect.stringMatching(/^cannot reach Temporal at 127\.0\.0\.1:1: .*; check TEMPORAL_ADDRESS/m)]);
});

test('doctor says what is broken and how to mend it, shows no secret and no home, and exits with 1; it answers programs too', async () => {
  const [{ code, stdout }, told] = await Promise.all([
    perdura(['doctor', '--report'], { REDIS_URL: 'redis://:hunter2@127.0.0.1:1' }),
    perdura(['doctor', '-o', 'json']),
  ]);
  expect(code).toBe(1);
  expect(stdout).toMatch(/✘ Temporal +cannot reach Temporal at 127\.0\.0\.1:1/);
  expect(stdout).toMatch(/✘ Store .*127\.0\.0\.1:1/);
  expect(stdout).toMatch(/REDIS_URL +set +\(environment\)/);
  expect(stdout).not.toContain('hunter2');
  expect(stdout).not.toContain(dir);
  const report = JSON.parse(told.stdout) as {
    findings: { what: string; health: string }[];
    settings: { name: string }[];
  };
  expect(report.findings).toContainEqual(expect.objectContaining({ what: 'Node', health: 'ok' }));
  expect(report.settings.map(({ name }) => name)).toContain('PERDURA_MODEL');
});

test('a file in place of our folder is said with what to do: exit code 3', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'perdura-cli-'));
  writeFileSync(join(folder, '.perdura'), '');
  const place = { dir: folder, taskQueue: 'none' };
  const { code, stderr } = await runPerdura(place, ['chat', '--start-services'], {
    env: { TEMPORAL_ADDRESS: '', PERDURA_MEMORY_DIR: '' },
    input: 'hello\n',
  });
  rmSync(folder, { recursive: true });
  expect(stderr).toMatch(/cannot write .*\.perdura.*a file stands where a folder is needed/);
  expect(code).toBe(3);
});

test('a message names no command that is not there', () => {
  const names = listCommands().flatMap(({ commands }) => commands.map(({ name }) => name));
  const known = new Set(names.flatMap((name) => name.split(' ').map((_, at, words) => words.slice(0, at + 1).join(' '))));
  // A word behind a group that only holds commands is one of these.
  const isKnown = (first: string, second: string): boolean =>
    first === 'help' || (known.has(first) && (names.includes(first) || second === '' || known.has(`${first} ${second}`)));
  const src = join(__dirname, '..', '..', 'src');
  const named = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) =>
      [
        ...readFileSync(join(src, file), 'utf8')
          .replace(/^ *(\*|\/\*|\/\/).*$/gm, '')
          // Words of a key are no command.
          .replace(/`perdura gateway \$\{use\} v1`/, '')
          .matchAll(/`perdura ([a-z]+)(?: ([a-z]+))?(?=[ `])/g),
      ].map(([, first = '', second = '']) => ({ file, first, second })),
    );
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter(({ first, second }) => !isKnown(first, second))).toEqual([]);
});

test('S60 behind -- a message that looks like an option is a message, and before it one that no command knows is refused', async () => {
  const sent: unknown[] = [];
  const client = {
    message: (...given: unknown[]) => Promise.resolve((sent.push(given), { messageId: 'm' })),
    close: () => Promise.resolve(),
  };
  const openClient = (): Promise<PerduraClient> => Promise.resolve(client as unknown as PerduraClient);
  const run = (...args: readonly string[]): Promise<Ran> =>
    runPerdura({ dir, taskQueue: 'none' }, ['send', 'talk', '--signal', ...args], { env: NOBODY, openClient });
  const hostile = '--settings=/tmp/evil.json';
  expect(await run(hostile)).toMatchObject({ code: 2, stderr: expect.stringContaining('--settings') });
  expect(sent).toEqual([]);
  expect(await run('--', hostile)).toMatchObject({ code: 0 });
  expect(JSON.stringify(sent)).toContain(`"${hostile}"`);
});
