/**
 * Every command of README is run, in its order, in a clone of its own; what it says one sees is compared with a real screen.
 * `npm test` is the one exception: it is what runs this.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { dieWithUs } from '../support/reaper.js';
import { openTerminal, type Terminal } from '../support/terminal.js';
import { startTemporal, temporalProgram, type TemporalServer } from '../support/temporal-server.js';
import { commandsIn, fencedBlocks, lasting, read, ROOT } from './commands.js';

const README = read('README.md');
const START = read('docs/how-to/start.md');

/** Those that a person talks to, and what becomes of them below. */
const DRIVEN = ['npm start', 'kill -9 $(cat .perdura/worker.pid)', 'npm start -- -c'];
const NOT_RUN = ['npm test'];
let clone: string;
let temporal: TemporalServer;
let chat: Terminal;
/** Ends what a failed test has left. */
const terminals: (() => void)[] = [];

beforeAll(async () => {
  clone = mkdtempSync(join(tmpdir(), 'perdura-readme-'));
  const files = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' });
  for (const path of ['dist', ...files.stdout.split('\0').filter((one) => !/^(test\/|$)/.test(one))]) {
    cpSync(join(ROOT, path), join(clone, path), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
  temporal = await startTemporal();
  dieWithUs(temporal.pid);
});

afterAll(async () => {
  for (const hangUp of terminals) hangUp();
  await temporal?.stop();
  // A link: what it leads to is not ours to remove.
  unlinkSync(join(clone, 'node_modules'));
  rmSync(clone, { recursive: true, force: true });
});

function environment(): NodeJS.ProcessEnv {
  const { PATH = '' } = process.env;
  const path = [dirname(process.execPath), dirname(temporalProgram()), PATH].join(':');
  return { PATH: path, HOME: clone, TERM: 'xterm', TEMPORAL_ADDRESS: temporal.address, npm_config_update_notifier: 'false' };
}

function inTerminal(command: string): Terminal {
  const terminal = openTerminal(command, { cwd: clone, env: environment() });
  terminals.push(() => terminal.hangUp());
  return terminal;
}

function run(command: string): { readonly code: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], {
    cwd: clone,
    env: environment(),
    encoding: 'utf8',
    timeout: 120_000,
  });
  return { code: status, said: `${stdout}${stderr}` };
}

test('npm start shows what the page about it says one sees', async () => {
  const wanted = fencedBlocks(START).find(({ language, text }) => language === 'text' && text.includes('› '))?.text ?? '';
  const typed = [...wanted.matchAll(/^› (.*)$/gm)].map(([, line = '']) => line);
  expect(typed.at(-1)).toBe('/exit');
  const first = inTerminal('npm start');
  await first.shows(/^›/m);
  // Until the prompt stands below it: what is typed sooner is typed into the answer.
  for (const line of typed.slice(0, -1)) {
    first.type(line);
    await first.shows(/^It is \S+Z\.\s+›/m);
  }
  expect(await first.end()).toBe(0);
  const seen = first.screen();
  expect(lasting(seen.slice(seen.indexOf('  ✔ Packages')))).toBe(lasting(wanted));
});

test('the worker is killed in the middle of a story; there is one answer, and it is whole', async () => {
  chat = inTerminal('npm start');
  await chat.shows(/^›/m);
  chat.type('tell me a long story');
  await chat.shows('Chapter 3.');
  expect(run('kill -9 $(cat .perdura/worker.pid)')).toEqual({ code: 0, said: '' });
  await chat.shows('worker ended by SIGKILL 0 s ago; another starts and goes on');
  await chat.shows('The end.');
  const { said } = run('bin/perdura show $(cat .perdura/last-conversation) -q');
  expect(said.match(/Chapter 40\./g)).toHaveLength(1);
});

test('a second chat goes on with the conversation of the first', async () => {
  const again = inTerminal('npm start -- -c');
  await again.shows('/help lists');
  expect(again.screen()).toContain('› tell me a long story');
  expect(again.screen()).toContain('The end.');
  expect(await again.end()).toBe(0);
});

test('its own tool is trusted, asks, and runs once it is allowed', async () => {
  expect(await chat.end()).toBe(0);
  const [tool] = fencedBlocks(README).filter(({ marks }) => marks.includes('file: perdura.config.mjs'));
  writeFileSync(join(clone, 'perdura.config.mjs'), tool?.text ?? '');
  const wanted = fencedBlocks(README).find(({ text }) => text.includes('› use book_room'))?.text ?? '';
  const own = inTerminal('npm start');
  await own.shows('Trust what is listed here?');
  own.type('y');
  await own.shows(/^›/m);
  for (const line of wanted.trim().split('\n')) {
    if (line.startsWith('› ')) own.type(line.slice(2));
    else await own.shows(line.trim());
  }
  await own.shows('Booked Oslo on 2026-12-01 (');
  expect(await own.end()).toBe(0);
});

test('no command of README is left out', () => {
  expect(new Set(commandsIn(README))).toEqual(new Set([...DRIVEN, ...NOT_RUN]));
});
