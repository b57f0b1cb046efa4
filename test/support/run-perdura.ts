/** A command as a person runs it: a process of its own in the world's folder, with its Temporal and its file store. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { World } from './world.js';

const PERDURA = join(__dirname, '..', '..', 'bin', 'perdura');

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export function runPerdura({ dir, taskQueue }: Pick<World, 'dir' | 'taskQueue'>, args: readonly string[], input = ''): Promise<Ran> {
  const env = {
    PATH: '',
    HOME: dir,
    TEMPORAL_ADDRESS: process.env['PERDURA_TEST_ADDRESS'],
    PERDURA_TASK_QUEUE: taskQueue,
    PERDURA_MEMORY_DIR: join(dir, 'memory'),
  };
  const child = spawn(process.execPath, [PERDURA, ...args], { cwd: dir, env });
  const said = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (said.stdout += piece));
  child.stderr.setEncoding('utf8').on('data', (piece: string) => (said.stderr += piece));
  child.stdin.end(input);
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, ...said })));
}
