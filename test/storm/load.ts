/** Load beside the workers: a process that takes a third of a core, in bursts. */
import { spawn } from 'node:child_process';
import { dieWithUs } from '../support/reaper.js';

const BURSTS = `setInterval(() => { for (const until = Date.now() + 100 * Math.random(); Date.now() < until;); }, 150)`;

/** Answers with the way to end it. */
export function startLoad(): () => void {
  const child = spawn(process.execPath, ['-e', BURSTS], { stdio: 'ignore' });
  const spare = dieWithUs(child.pid ?? 0);
  child.once('close', spare);
  return () => void child.kill('SIGKILL');
}
