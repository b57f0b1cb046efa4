import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ChatSession } from '../../src/cli/chat/chat-session.js';
import type { Waiting } from '../../src/conversation/protocol/contract.js';
import { withProgress } from '../../src/cli/session/with-progress.js';
import { checkMemoryFolder, asSentence } from '../../src/cli/services/before-start.js';
import { openNamespace } from '../../src/cli/services/temporal-connection.js';

describe('a folder that cannot be written', () => {
  const failure = (code: string, syscall: string): Error => Object.assign(new Error(code), { code, syscall, path: '/there' });

  test.each([
    ['EACCES', 'open', 'make that folder writable'],
    // What Node says of a folder on a read-only disk.
    ['ENOENT', 'mkdir', 'make that folder writable'],
    ['ENOSPC', 'write', 'free some space'],
  ])('%s of %s is named with what to do: exit code 3', (code, syscall, advice) => {
    expect(asSentence(failure(code, syscall))).toMatchObject({ exitCode: 3, message: expect.stringContaining(advice) });
    expect(asSentence(failure(code, syscall))).toMatchObject({ message: expect.stringContaining('cannot write /there') });
  });

  test('a program that is not there is another matter', () => {
    const error = failure('ENOENT', 'spawn temporal');
    expect(asSentence(error)).toBe(error);
  });
});

test('a disk that is full is said before anybody talks, and one with room is no matter', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'perdura-memory-'));
  await expect(checkMemoryFolder(join(dir, 'memory'), Infinity)).rejects.toMatchObject({
    exitCode: 3,
    message: expect.stringMatching(/its disk is full \(\d+ KiB free\); free some space, or set PERDURA_MEMORY_DIR/),
  });
  await checkMemoryFolder(join(dir, 'memory'), 1);
  rmSync(dir, { recursive: true });
});

describe('Temporal’s port', () => {
  let server: Server;
  const listen = (): Promise<string> =>
    new Promise((resolve) => {
      server = createServer((socket) =>
        socket
          .on('error', () => undefined)
          .resume()
          .end('HTTP/1.1 400 Bad Request\r\n\r\n'),
      ).listen(0, '127.0.0.1', () => resolve(`127.0.0.1:${(server.address() as AddressInfo).port}`));
    });
  const ours = (address: string) => ({ connectionOptions: { address }, namespace: 'default', named: false });

  test('taken by another program is not taken for a Temporal that must be started', async () => {
    const address = await listen();
    await expect(openNamespace(ours(address))).rejects.toMatchObject({
      exitCode: 3,
      message: `cannot reach Temporal at ${address}: a program that is not Temporal, or hangs, has that port; stop it, or set TEMPORAL_ADDRESS`,
    });
    await new Promise((resolve) => server.close(resolve));
    await expect(openNamespace(ours(address))).rejects.toMatchObject({
      exitCode: 3,
      message: expect.stringContaining('`bin/perdura up` starts one'),
    });
  });
});

test('an answer that waits for a store says for what, once for each reason', async () => {
  jest.useFakeTimers();
  const retry = { kind: 'retry', reason: 'StoreUnavailable' } as const;
  const waits: Waiting[] = [
    { ...retry, message: 'disk full', until: '2026-11-21T20:00:00.000Z' },
    { ...retry, message: 'disk full', until: '2026-11-21T20:00:10.000Z' },
    { ...retry, message: 'redis closed', until: '2026-11-21T20:00:20.000Z' },
  ];
  const wait = (): Waiting | undefined => (waits.length > 1 ? waits.shift() : waits[0]);
  const notes: string[] = [];
  const client = { status: async () => ({ waiting: wait(), waitingFor: 'in words' }) };
  // Of a session it asks for nothing else.
  const session = { client, id: 'c-1', output: { note: (text: string) => notes.push(text) } } as unknown as ChatSession;
  const answered = withProgress(session, new Promise((resolve) => setTimeout(() => resolve('an answer'), 22_000)));
  await jest.advanceTimersByTimeAsync(30_000);
  jest.useRealTimers();
  expect(await answered).toBe('an answer');
  expect(notes).toEqual(['(waiting: StoreUnavailable: disk full)', '(waiting: StoreUnavailable: redis closed)']);
});
