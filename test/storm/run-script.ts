/** `npm run storm` as people run it, with its folders in one that a test can look into. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const root = join(__dirname, '..', '..');

export function runStormScript(folder: string, ...args: readonly string[]): Promise<Ran> {
  const child = spawn(process.execPath, [join(root, 'scripts', 'storm.mjs'), ...args], {
    cwd: root,
    env: { ...process.env, TMPDIR: folder },
  });
  const ran = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (ran.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (ran.stderr += text));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, ...ran })));
}
