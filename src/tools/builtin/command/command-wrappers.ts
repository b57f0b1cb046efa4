/**
 * Programs of the system that are put before ours, and what they give: limits (`prlimit`), and a process namespace of the
 * command's own (`unshare`): there it sees no other process, neither their environment nor the worker's, and what it starts
 * cannot outlive it. Which of them work here is found out by trying: containers and some systems forbid namespaces.
 */
import { spawn } from 'node:child_process';

/** One file that a command writes is not larger: a full disk is everybody's trouble. */
const FILE_BYTES = 4 * 1024 ** 3;

const WRAPPED_LIMITS = ['prlimit', '--core=0', `--fsize=${FILE_BYTES}`, '--'];
const OWN_PROCESSES = ['--pid', '--fork', '--kill-child', '--mount-proc', '--'];
const NAMESPACES = [
  ['unshare', ...OWN_PROCESSES],
  ['unshare', '--user', '--map-current-user', ...OWN_PROCESSES],
];

/** Where the system's own programs lie, whatever the worker's PATH says. */
const SYSTEM_PATH = '/usr/sbin:/usr/bin:/sbin:/bin';
export const SYSTEM_ENVIRONMENT: Readonly<Record<string, string>> = { PATH: SYSTEM_PATH };

export interface Wrappers {
  /** To be put before an argv; empty where nothing works. */
  readonly before: readonly string[];
  readonly hasOwnProcesses: boolean;
}

export async function findWrappers(): Promise<Wrappers> {
  if (process.platform !== 'linux') return { before: [], hasOwnProcesses: false };
  const limits = (await works(WRAPPED_LIMITS)) ? WRAPPED_LIMITS : [];
  for (const namespace of NAMESPACES) {
    if (await works([...limits, ...namespace])) return { before: [...limits, ...namespace], hasOwnProcesses: true };
  }
  return { before: limits, hasOwnProcesses: false };
}

function works([program = '', ...args]: readonly string[]): Promise<boolean> {
  return new Promise((resolve) => {
    const trial = spawn(program, [...args, 'true'], { env: SYSTEM_ENVIRONMENT, stdio: 'ignore', timeout: 5_000, killSignal: 'SIGKILL' });
    trial.once('error', () => resolve(false));
    trial.once('close', (code) => resolve(code === 0));
  });
}
