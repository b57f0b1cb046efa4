/** Who is told that a person is waited for: a real program, and a real server. */
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Notice } from '../../src/activities/dependencies.js';
import { createKnownSecrets } from '../../src/platform/known-secrets.js';
import { withoutSecrets } from '../../src/tools/egress-scan.js';
import { createNotify, type NotifySettings } from '../../src/extensions/notify.js';
import { waitFor } from '../support/wait-for.js';

const NOTICE: Notice = {
  conversation: 'chat',
  agent: 'default',
  title: null,
  callId: 'turn_0001/c1',
  kind: 'approval',
  tool: 'pay',
  arguments: '{"to":"$(touch hacked) \\u202e"}',
  expiresAt: '2026-11-28T12:00:00.000Z',
  command: 'perdura approve chat turn_0001/c1',
};
const NEVER = new AbortController().signal;

let dir: string;
let server: Server;
let got: { readonly body: string; readonly type: string | undefined }[];
let status: number;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-notify-'));
  got = [];
  status = 204;
  server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (piece: string) => (body += piece));
    request.on('end', () => {
      got.push({ body, type: request.headers['content-type'] });
      if (status === 0) return;
      response.writeHead(status, status === 302 ? { location: '/elsewhere' } : {}).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await rm(dir, { recursive: true, force: true });
});

const url = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook/secret-token`;

async function program(script: string): Promise<string> {
  const path = join(dir, 'tell me.sh');
  await writeFile(path, `#!/bin/sh\ncd "$(dirname "$0")"\n${script}\n`);
  await chmod(path, 0o755);
  return path;
}

async function tell(settings: NotifySettings, signal = NEVER): Promise<void> {
  const notify = createNotify(settings);
  if (!notify) throw new Error('nobody is told');
  await notify([NOTICE], signal);
}

test('without settings nobody is told', () => {
  expect(createNotify({})).toBeUndefined();
});

test('a program gets what waits on its stdin, no argument, and of the environment what is listed', async () => {
  const command = await program('cat > told.json; echo "$#" > arguments; env > environment');
  await tell({ command, environment: { PATH: '/usr/bin:/bin', LANG: 'C' } });
  expect(JSON.parse(await readFile(join(dir, 'told.json'), 'utf8'))).toEqual({ notices: [NOTICE] });
  expect(await readFile(join(dir, 'arguments'), 'utf8')).toBe('0\n');
  const names = (await readFile(join(dir, 'environment'), 'utf8')).split('\n').map((line) => line.replace(/=.*/, ''));
  expect(names.filter((name) => !['', 'PATH', 'LANG', 'PWD', 'OLDPWD', 'SHLVL', '_'].includes(name))).toEqual([]);
});

test.each([
  ['fails', 'exit 7', /PERDURA_NOTIFY_COMMAND: the program ended with code 7/],
  ['is killed', 'kill -9 $$', /PERDURA_NOTIFY_COMMAND: the program was ended by SIGKILL/],
])('a program that %s is said by the name of the setting', async (_, script, message) => {
  await expect(tell({ command: await program(script), environment: { PATH: '/usr/bin:/bin' } })).rejects.toThrow(message);
});

test('a program that is not there is said', async () => {
  await expect(tell({ command: join(dir, 'nobody') })).rejects.toThrow('PERDURA_NOTIFY_COMMAND: the program cannot be run (ENOENT)');
});

test('a program that does not end is killed with its children', async () => {
  const command = await program('sleep 600 & echo $! > child; wait');
  await expect(tell({ command, environment: { PATH: '/usr/bin:/bin' }, commandMs: 500 })).rejects.toThrow('did not end within 500 ms');
  const child = Number(await readFile(join(dir, 'child'), 'utf8'));
  await waitFor(
    async () => (await readFile(`/proc/${child}/stat`, 'utf8').catch(() => '')).replace(/^.*\) /, ''),
    (state) => state === '' || state.startsWith('Z'),
  );
});

test('a program is stopped with the worker', async () => {
  const stop = new AbortController();
  const told = tell({ command: await program('sleep 600'), environment: { PATH: '/usr/bin:/bin' } }, stop.signal);
  stop.abort();
  await expect(told).rejects.toThrow('stopped');
});

test('an address gets the same as JSON', async () => {
  await tell({ url: url() });
  expect(got).toEqual([{ body: JSON.stringify({ notices: [NOTICE] }), type: 'application/json' }]);
});

test('an address gets no secret', async () => {
  const known = createKnownSecrets([NOTICE.agent]);
  await tell({ url: url(), redact: (text) => withoutSecrets(text, known) });
  expect(JSON.parse(got[0]?.body ?? '')).toEqual({ notices: [{ ...NOTICE, agent: '[redacted]' }] });
});

test.each([
  ['answers with an error', 500, /PERDURA_NOTIFY_URL: it answered 500/],
  ['redirects', 302, /PERDURA_NOTIFY_URL: it answered 302, and redirects are not followed/],
  ['does not answer', 0, /PERDURA_NOTIFY_URL: no answer within 300 ms/],
])('an address that %s is said, and not by its address, which may be a secret', async (_, answer, message) => {
  status = answer;
  const failure = await tell({ url: url(), urlMs: 300 }).catch((error: unknown) => error as Error);
  expect(failure).toBeInstanceOf(Error);
  expect((failure as Error).message).toMatch(message);
  expect((failure as Error).message).not.toContain('secret-token');
  expect(got).toHaveLength(1);
});

test('an address where nobody listens is said', async () => {
  const nobody = url();
  await new Promise((resolve) => server.close(resolve));
  await expect(tell({ url: nobody })).rejects.toThrow('PERDURA_NOTIFY_URL: it cannot be reached (ECONNREFUSED)');
});

test('where one of two fails and all is tried again, the other does not hear it twice', async () => {
  const command = await program('cat >> told; test -e ready');
  const notify = createNotify({ command, url: url(), environment: { PATH: '/usr/bin:/bin' } });
  await expect(notify?.([NOTICE], NEVER)).rejects.toThrow('PERDURA_NOTIFY_COMMAND');
  await writeFile(join(dir, 'ready'), '');
  await notify?.([NOTICE], NEVER);
  expect(got).toHaveLength(1);
  expect((await readFile(join(dir, 'told'), 'utf8')).split('{"notices"')).toHaveLength(3);
});
