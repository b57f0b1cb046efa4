/** Writers in processes of their own, which can be killed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { WriterTask } from './child-writer.js';

export interface Writer {
  /** The numbers whose writes were acknowledged so far. */
  readonly acknowledged: number[];
  /** Resolves once `count` writes are acknowledged. */
  reached(count: number): Promise<void>;
  /** SIGKILL, and until all that it said has been heard. */
  kill(): Promise<void>;
  /** Until it has ended by itself; rejects when it failed. */
  finished(): Promise<void>;
}

export function startWriter(task: WriterTask): Writer {
  const child = spawn(
    process.execPath,
    ['--require', join(__dirname, 'register-swc.cjs'), join(__dirname, 'child-writer.ts'), JSON.stringify(task)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const acknowledged: number[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    acknowledged.push(Number(line));
    for (const { count, resolve } of waiting) if (acknowledged.length >= count) resolve();
  });
  const closed = once(child, 'close');

  return {
    acknowledged,
    reached: async (count) => {
      if (acknowledged.length >= count) return;
      const reached = new Promise<void>((resolve) => waiting.push({ count, resolve }));
      const ended = closed.then(([code]) => {
        throw new Error(`the writer ended (${String(code)}) after ${acknowledged.length} of ${count} writes`);
      });
      await Promise.race([reached, ended]);
      ended.catch(() => undefined);
    },
    kill: async () => {
      child.kill('SIGKILL');
      await closed;
    },
    finished: async () => {
      const [code] = (await closed) as [number | null];
      if (code !== 0) throw new Error(`the writer ended with ${String(code)}`);
    },
  };
}
