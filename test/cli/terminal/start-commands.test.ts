import { createServer, type AddressInfo } from 'node:net';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { isListening, programInHints, startCommands } from '../../../src/cli/services/temporal-connection.js';
import { createOutput } from '../../../src/cli/terminal/output.js';

let installed: string;
beforeEach(() => (installed = mkdtempSync(join(tmpdir(), 'perdura-installed-'))));
afterEach(() => rmSync(installed, { recursive: true }));

test('a clone and an installed package name commands that there are', () => {
  expect(startCommands()).toMatchObject({ isClone: true, chat: 'npm start', up: 'bin/perdura up' });
  expect(startCommands(installed)).toEqual({
    isClone: false,
    chat: 'npx perdura chat --start-services',
    up: 'npx perdura up',
    worker: 'npx perdura worker',
  });
});

test('hints name the program as the person’s shell finds it, whatever npx has put on PATH', () => {
  const [ofProject, global] = [join(installed, 'node_modules', '.bin'), join(installed, 'bin')];
  for (const dir of [ofProject, global]) {
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, 'perdura'), '');
  }
  expect(programInHints([ofProject, '/nowhere', ''].join(delimiter), installed)).toBe('npx perdura');
  expect(programInHints([ofProject, global].join(delimiter), installed)).toBe('perdura');
});

test('what stands beside the data names it so, and the data stay as they are', async () => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const output = createOutput(stdout, stderr, () => undefined, {
    color: () => 'never',
    isQuiet: () => false,
    program: () => 'npx perdura',
  });
  output.line('say `perdura new`');
  output.note('`perdura new` starts one, `perdura` alone talks; perdura goes on');
  output.problem('no such conversation: `perdura list` shows them');
  for (const stream of [stdout, stderr]) stream.end();
  expect(await text(stdout)).toBe('say `perdura new`\n');
  expect(await text(stderr)).toBe(
    '`npx perdura new` starts one, `npx perdura` alone talks; perdura goes on\nno such conversation: `npx perdura list` shows them\n',
  );
});

test('what listens is found by addresses of either kind', async () => {
  for (const host of ['127.0.0.1', '::1']) {
    const server = createServer();
    const isThere = await new Promise<boolean>((resolve) =>
      server.once('error', () => resolve(false)).listen(0, host, () => resolve(true)),
    );
    // A machine may have no IPv6.
    if (!isThere) continue;
    const { port } = server.address() as AddressInfo;
    const address = `${host.includes(':') ? `[${host}]` : host}:${port}`;
    expect([address, await isListening(address)]).toEqual([address, true]);
    await new Promise((resolve) => server.close(resolve));
    expect([address, await isListening(address)]).toEqual([address, false]);
  }
});
