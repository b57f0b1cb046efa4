/** Runs a command under its supervisor (command-supervisor.ts) and brings its report, whatever becomes of either. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { childProgram } from '../../../platform/processes.js';
import type { CommandLimits, CommandReport, CommandRequest } from './command-supervisor.js';
import { openEgress, type EgressRules } from './egress.js';
import { findSandbox, sandboxWords, SYSTEM_ENVIRONMENT, works, type SandboxMeans, type SandboxNeeds } from './sandbox.js';

export interface Supervised extends Omit<CommandRequest, 'mark' | 'limits'> {
  readonly limits?: Partial<CommandLimits>;
  /** In which it runs; absent: in none. */
  readonly sandbox?: Pick<SandboxNeeds, 'workspace' | 'protectedPlaces' | 'hiddenPlaces'> & { readonly egress?: EgressRules };
}

/** `lost`: the supervisor was killed, or hung; what it ran was killed after it. */
export type Outcome = CommandReport | { readonly kind: 'lost' };

export type Supervisor = (command: Supervised, signal: AbortSignal) => Promise<Outcome>;

/** Every process that belongs to a command carries it in its environment, with a value that only this command has. */
const MARK = 'PERDURA_COMMAND';

const MEBIBYTE = 1024 * 1024;
const LIMITS: CommandLimits = {
  keptBytes: 48 * 1024,
  outputBytes: 64 * MEBIBYTE,
  memoryBytes: 4096 * MEBIBYTE,
  processes: 512,
  diskBytes: 8192 * MEBIBYTE,
  graceMs: 1_000,
};

/** How long after a command's limit a supervisor may take to end it and report. */
const REPORT_MS = 10_000;

/** `wrappers`: for tests; found out at the first command otherwise. */
export function createSupervisor(wrappers?: Wrappers): Supervisor {
  let found: Promise<Wrappers> | undefined = wrappers && Promise.resolve(wrappers);
  const superviseIn =
    (sandbox: Supervised['sandbox']): Attempt =>
    async (request, signal) => {
      const { limits, namespace } = await (found ??= findWrappers());
      const program = await childProgram(require.resolve('./command-supervisor'));
      const files = program.kind === 'file' ? [program.path] : [];
      const ours = [process.execPath, ...(program.kind === 'file' ? [program.path] : ['-e', program.code])];
      signal.throwIfAborted();
      if (sandbox === undefined) return runSupervisor([...limits, ...namespace, ...ours], request, signal);
      const means = await requireSandbox();
      const out = sandbox.egress && (await openEgress(sandbox.egress));
      try {
        const words = sandboxWords({ ...sandbox, env: request.env, files: [...files, ...(out ? [out.folder] : [])] }, means);
        return await runSupervisor([...limits, ...words, ...ours], { ...request, ...(out && { proxy: out.socket }) }, signal);
      } finally {
        await out?.close();
      }
    };
  return async ({ limits, sandbox, ...command }, signal) => {
    const supervise = superviseIn(sandbox);
    const mark = randomBytes(16).toString('hex');
    const request: CommandRequest = { ...command, env: { ...command.env, [MARK]: mark }, mark, limits: { ...LIMITS, ...limits } };
    const outcome = await supervise(request, signal);
    if (outcome.kind === 'lost') await sweep(request, supervise);
    return outcome;
  };
}

/** Never without one in its place: what is to run in a sandbox runs in none but that. */
async function requireSandbox(): Promise<SandboxMeans> {
  const means = await findSandbox();
  if (means === undefined) throw new Error('no sandbox can be made here (bubblewrap)');
  return means;
}

/** Another command of the same mark, which does nothing: what carries the mark ends with it. */
async function sweep(request: CommandRequest, supervise: Attempt): Promise<void> {
  const nothing = { ...request, program: process.execPath, args: ['-e', '0'], cwd: '/', stdin: undefined, timeoutMs: 5_000 };
  await supervise(nothing, new AbortController().signal);
}

type Attempt = (request: CommandRequest, signal: AbortSignal) => Promise<Outcome>;

function runSupervisor([file = '', ...args]: readonly string[], request: CommandRequest, signal: AbortSignal): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    // A new session, so that a Ctrl-C in the worker's terminal does not end it before it has cleared up.
    const supervisor = spawn(file, args, { cwd: '/', env: SYSTEM_ENVIRONMENT, detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
    const chunks: Buffer[] = [];
    let bytes = 0;
    const kill = (): void => {
      try {
        if (supervisor.pid !== undefined) process.kill(-supervisor.pid, 'SIGKILL');
      } catch {
        // Gone already.
      }
    };
    const stop = (): void => {
      supervisor.stdin.write('stop\n');
      deadline = remind(deadline, request.limits.graceMs + REPORT_MS);
    };
    const remind = (old: NodeJS.Timeout | undefined, ms: number): NodeJS.Timeout => {
      clearTimeout(old);
      return setTimeout(kill, ms);
    };
    let deadline = remind(undefined, request.timeoutMs + request.limits.graceMs + REPORT_MS);
    const end = (): void => {
      clearTimeout(deadline);
      signal.removeEventListener('abort', stop);
    };

    supervisor.once('error', (cause) => {
      end();
      reject(new Error(`cannot start the supervisor of a command: ${cause.message}`, { cause }));
    });
    supervisor.stdin.on('error', () => undefined);
    supervisor.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      // It cannot be as long as this: the command wrote it.
      if (bytes > 6 * request.limits.keptBytes + MEBIBYTE) kill();
      else chunks.push(chunk);
    });
    supervisor.once('close', () => {
      end();
      kill();
      resolve(toOutcome(Buffer.concat(chunks).toString()));
    });
    supervisor.stdin.write(`${JSON.stringify(request)}\n`);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  });
}

function toOutcome(text: string): Outcome {
  try {
    return JSON.parse(text) as CommandReport;
  } catch {
    return { kind: 'lost' };
  }
}

// Programs of the system that are put before ours, and what they give: limits (`prlimit`), and a process namespace of the
// command (`unshare`): there it sees no other process, neither their environment nor the worker's, and what it starts
// cannot outlive it. Which of them work here is found out by trying: containers and some systems forbid namespaces.

/** A command writes no file larger than this: a full disk hurts every process. */
const FILE_BYTES = 4 * 1024 ** 3;

/** A command gives way to the worker and to all others. */
const WRAPPED_LIMITS = ['nice', '-n', '10', 'prlimit', '--core=0', `--fsize=${FILE_BYTES}`, '--'];
const PROCESS_NAMESPACE = ['--pid', '--fork', '--kill-child', '--mount-proc', '--'];
const NAMESPACES = [
  ['unshare', ...PROCESS_NAMESPACE],
  ['unshare', '--user', '--map-current-user', ...PROCESS_NAMESPACE],
];

export interface Wrappers {
  /** To be put before an argv; empty where nothing works. */
  readonly limits: readonly string[];
  /** After them, where there is no sandbox. */
  readonly namespace: readonly string[];
}

export async function findWrappers(): Promise<Wrappers> {
  if (process.platform !== 'linux') return { limits: [], namespace: [] };
  const limits = (await works([...WRAPPED_LIMITS, 'true'])) ? WRAPPED_LIMITS : [];
  for (const namespace of NAMESPACES) {
    if (await works([...limits, ...namespace, 'true'])) return { limits, namespace };
  }
  return { limits, namespace: [] };
}
