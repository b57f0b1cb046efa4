import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PERDURA = join(__dirname, '..', '..', 'bin', 'perdura');

let cwd: string;

beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'perdura-cli-'));
});

afterAll(() => {
  rmSync(cwd, { recursive: true });
});

/** Runs the CLI in an empty folder, on a Temporal address where nobody listens. */
function perdura(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input = '',
): { code: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [PERDURA, ...args], {
    cwd,
    env: { PATH: '', HOME: cwd, TEMPORAL_ADDRESS: '127.0.0.1:1', ...env },
    input,
    encoding: 'utf8',
  });
  return { code: status, stdout, stderr };
}

test.each([[['--help']], [['chat', '--help']], [['worker', '--help']], [['send', '--help']], [['show', '--help']]])(
  '%j prints help on stdout',
  (args) => {
    const { code, stdout, stderr } = perdura(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^Usage: perdura/);
  },
);

test.each([
  ['a command that does not exist is not sent to the model', ['shwo', 'conv_1'], /^there is no command shwo/],
  ['an unknown option', ['chat', '--loud'], /unknown option '--loud'/],
  ['a format that does not exist', ['chat', '--output-format', 'xml'], /Allowed choices are text, json, stream-json/],
  ['-c and -r together', ['chat', '-c', '-r', 'conv_1'], /cannot be used with/],
  ['an id that cannot be one', ['chat', '-r', 'a b'], /"a b" is not an id of a conversation/],
  ['-r without an id where nobody can be asked', ['chat', '-r'], /-r needs the id of a conversation/],
  ['a port that is none', ['dev', '--port', '70000'], /A port is a number/],
  ['a place for a server of ours beside a server that was named', ['dev', '--port', '17000'], /TEMPORAL_\* or its profile names/],
  ['a shell that is not known', ['completion', 'tcsh'], /Allowed choices are bash, zsh, fish/],
  ['a missing argument', ['send', 'conv_1'], /missing required argument 'message'/],
  ['an empty message', ['send', 'conv_1', ' '], /the message is empty/],
])('%s is wrong usage: exit code 2', (_name, args, message) => {
  const { code, stdout, stderr } = perdura(args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(message);
});

test('a setting with a wrong value is refused by name: exit code 2', () => {
  const { code, stderr } = perdura(['show', 'conv_1'], { PERDURA_LOG_LEVEL: 'loud' });
  expect(code).toBe(2);
  expect(stderr).toMatch(/^PERDURA_LOG_LEVEL is "loud", which cannot be used/);
});

test('-c in a folder without a conversation: exit code 4', () => {
  const { code, stderr } = perdura(['chat', '-c']);
  expect(code).toBe(4);
  expect(stderr).toMatch(/there is none in this folder/);
});

test('a Temporal that was named and does not answer is said, and nothing is started instead: exit code 3', () => {
  const { code, stdout, stderr } = perdura(['chat', '--start-services'], {}, 'hello\n');
  expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
  expect(stderr).toMatch(/cannot reach Temporal at 127\.0\.0\.1:1: .*; check TEMPORAL_ADDRESS/);
});

test('a worker whose Temporal does not answer says so in the same words: exit code 3', () => {
  const { code, stderr } = perdura(['worker'], { PERDURA_LOG_LEVEL: 'error' });
  expect(stderr).toMatch(/^cannot reach Temporal at 127\.0\.0\.1:1: .*; check TEMPORAL_ADDRESS/m);
  expect(code).toBe(3);
});

test('a Redis that was named and is down is said, without its password, and files are no substitute: exit code 3', () => {
  const { code, stderr } = perdura(['chat', '--start-services'], { REDIS_URL: 'redis://:hunter2@127.0.0.1:1/0' }, 'hello\n');
  expect(code).toBe(3);
  expect(stderr).toMatch(/^cannot reach Redis at redis:\/\/127\.0\.0\.1:1\/0, which REDIS_URL names: .*ECONNREFUSED/);
  expect(stderr).not.toContain('hunter2');
});

test('doctor says what is broken and how to mend it, shows no secret and no home, and exits with 1', () => {
  const { code, stdout } = perdura(['doctor', '--report'], { REDIS_URL: 'redis://:hunter2@127.0.0.1:1' });
  expect(code).toBe(1);
  expect(stdout).toMatch(/✘ Temporal +cannot reach Temporal at 127\.0\.0\.1:1/);
  expect(stdout).toMatch(/✘ Store .*127\.0\.0\.1:1/);
  expect(stdout).toMatch(/REDIS_URL +set +\(environment\)/);
  expect(stdout).not.toContain('hunter2');
  expect(stdout).not.toContain(cwd);
});

test('doctor answers programs too', () => {
  const { stdout } = perdura(['doctor', '-o', 'json']);
  const report = JSON.parse(stdout) as { findings: { what: string; health: string }[]; settings: { name: string }[] };
  expect(report.findings).toContainEqual(expect.objectContaining({ what: 'Node', health: 'ok' }));
  expect(report.settings.map(({ name }) => name)).toContain('PERDURA_MODEL');
});

test('a file in place of our folder is said with what to do: exit code 3', () => {
  const folder = mkdtempSync(join(tmpdir(), 'perdura-cli-'));
  writeFileSync(join(folder, '.perdura'), '');
  const { status, stderr } = spawnSync(process.execPath, [PERDURA, 'chat', '--start-services'], {
    cwd: folder,
    env: { PATH: '', HOME: folder },
    input: 'hello\n',
    encoding: 'utf8',
  });
  rmSync(folder, { recursive: true });
  expect(stderr).toMatch(/cannot write .*\.perdura.*a file stands where a folder is needed/);
  expect(status).toBe(3);
});

test('a message names no command that is not there', () => {
  const commands = new Set([...perdura(['--help']).stdout.matchAll(/^ {2}([a-z]+)\b/gm)].map(([, name]) => name));
  const src = join(__dirname, '..', '..', 'src');
  const named = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) =>
      [
        ...readFileSync(join(src, file), 'utf8')
          .replace(/^ *(\*|\/\*|\/\/).*$/gm, '')
          // Words of a key are no command.
          .replace(/`perdura gateway \$\{use\} v1`/, '')
          .matchAll(/`perdura ([a-z]+)(?=[ `])/g),
      ].map(([, name]) => `${file}: ${name}`),
    );
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((one) => !commands.has(one.replace(/^.*: /, '')))).toEqual([]);
});
