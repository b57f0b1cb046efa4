/** Runs a command of this program again and again: at once, and when a file of the project has changed. */
import { spawn, type ChildProcess } from 'node:child_process';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../config.js';
import type { CliContext } from '../session/context.js';
import { onInterrupt, onTermination } from '../terminal/input.js';

/** Looking costs a `stat` a file, works on every file system, and needs no handle that could be lost. */
const LOOK_EVERY_MS = 400;
const MAX_FILES = 5_000;
const SOURCES = /\.(?:[cm]?[jt]s|json|jsonl|md|txt)$/;

/** Until Ctrl+C, or until the reader of the output is gone; its child has ended then. */
export async function watchProject(
  { output, surroundings, closed }: Pick<CliContext, 'output' | 'surroundings' | 'closed'>,
  { cwd, workspace, memoryDir, temporalEnv }: Pick<Config, 'cwd' | 'workspace' | 'memoryDir' | 'temporalEnv'>,
  args: readonly string[],
): Promise<void> {
  const stop = new AbortController();
  const end = (): void => stop.abort();
  const forget = [onInterrupt(surroundings.signals, end), onTermination(surroundings.signals, end)];
  closed.addEventListener('abort', end, { once: true });
  const skipped = new Set([workspace, memoryDir]);
  let child: ChildProcess | undefined;
  let running: Promise<unknown> = Promise.resolve();
  const begin = (): void => {
    const { env } = surroundings;
    // Apart from the terminal's group: of Ctrl+C this process hears alone, and tells it once.
    const started = spawn(process.execPath, [join(__dirname, '..', 'main.js'), ...args], {
      ...{ cwd, env: { ...env, ...temporalEnv }, stdio: ['ignore', 'pipe', 'pipe'], detached: process.platform !== 'win32' },
    });
    started.stdout.pipe(surroundings.stdout, { end: false });
    started.stderr.pipe(surroundings.stderr, { end: false });
    child = started;
    running = new Promise((resolve) => started.once('close', resolve).once('error', resolve));
  };
  const endChild = async (): Promise<void> => {
    if (child?.exitCode === null && child.signalCode === null) child.kill('SIGINT');
    await running;
  };
  try {
    let seen = await look(cwd, skipped);
    begin();
    void running.then(() => output.note('waiting for a change …'));
    while (!stop.signal.aborted) {
      await sleep(LOOK_EVERY_MS, undefined, { signal: stop.signal }).catch(() => undefined);
      if (stop.signal.aborted) break;
      const now = await look(cwd, skipped);
      const changed = [...new Map([...now, ...seen])].map(([file]) => file).filter((file) => now.get(file) !== seen.get(file));
      seen = now;
      if (changed.length === 0) continue;
      await endChild();
      if (stop.signal.aborted) break;
      output.note(`${changed[0] ?? ''} has changed${changed.length > 1 ? `, and ${changed.length - 1} more` : ''}`);
      begin();
      void running.then(() => output.note('waiting for a change …'));
    }
  } finally {
    await endChild();
    closed.removeEventListener('abort', end);
    for (const one of forget) one();
  }
}

/** What a run may read, with its time and size: sources and texts of the project, without what conversations write. */
async function look(cwd: string, skipped: ReadonlySet<string>): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const walk = async (dir: string, below: string): Promise<void> => {
    const names = await readdir(dir, { withFileTypes: true }).catch(() => []);
    for (const one of names) {
      if (found.size >= MAX_FILES) return;
      const path = join(dir, one.name);
      const name = below === '' ? one.name : `${below}/${one.name}`;
      if (one.isDirectory()) {
        if (one.name !== 'node_modules' && !one.name.startsWith('.') && !skipped.has(path)) await walk(path, name);
      } else if (SOURCES.test(one.name)) {
        const at = await stat(path).catch(() => undefined);
        if (at) found.set(name, `${at.mtimeMs} ${at.size}`);
      }
    }
  };
  await walk(cwd, '');
  return found;
}
