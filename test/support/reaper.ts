/** No process outlives the tests, however these end: a shell waits at a pipe whose other end only we hold. */
import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';

/** Kills `pid` when we are gone. Call what it answers as soon as that process has ended: its number may become another's. */
export function dieWithUs(pid: number): () => void {
  const reaper = spawn('sh', ['-c', 'read -r _ || kill -9 "$0" 2>/dev/null', String(pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    // Ctrl+C in the terminal is for us: the reaper is needed after it.
    detached: true,
  });
  reaper.on('error', () => undefined);
  reaper.stdin.on('error', () => undefined);
  reaper.unref();
  (reaper.stdin as Socket).unref();
  return () => void reaper.stdin.end('it has ended\n');
}
