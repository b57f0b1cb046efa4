/**
 * A separate program, never imported: it runs one command, answers for all of its processes, and lives no longer than the
 * worker. It imports nothing from this project but types, since it is started by itself, with an empty environment.
 *
 * The processes of a command are its group, its session, processes with its mark in the environment, its known descendants, and holders of
 * its output. In a new process namespace (we are process 1 there) they are every other process, and our end is theirs, whatever ends
 * us.
 *
 * The supervisor makes one report, on the standard output, at the end.
 *
 * @rule command/ends-with-worker: The supervisor's standard input says what to run, and `stop`; when that input ends, the worker is gone,
 *   and the supervisor kills everything at once. (test: test/tools/builtin/run-command.test.ts)
 * @rule command/no-process-left: The command has a session, and all of its processes end with it. (test:
 *   test/tools/builtin/run-command.test.ts)
 * @rule command/output-bounded: The supervisor keeps the beginning and the end of the output, and holds no more. (test:
 *   test/tools/builtin/run-command.test.ts)
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync, statfsSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

export interface CommandRequest {
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly timeoutMs: number;
  /** Stands in `env` as well: what carries it belongs to this command. */
  readonly mark: string;
  readonly limits: CommandLimits;
  /** Socket of the proxy that leads out of a sandbox; the command finds it at a local address. */
  readonly proxy?: string;
}

export interface CommandLimits {
  /** Of each output, at its beginning and at its end. */
  readonly keptBytes: number;
  /** Of both outputs together; then the command is killed. */
  readonly outputBytes: number;
  readonly memoryBytes: number;
  readonly processes: number;
  /** By which the free space of its folder's disk may fall meanwhile. */
  readonly diskBytes: number;
  /** Between SIGTERM and SIGKILL. */
  readonly graceMs: number;
}

export interface KeptOutput {
  /** base64 */
  readonly head: string;
  readonly tail: string;
  /** How many there were in all. */
  readonly bytes: number;
}

export type CommandEnd = 'itself' | 'time' | 'stopped' | 'output' | 'memory' | 'processes' | 'disk';

export type CommandReport =
  | { readonly kind: 'not-started'; readonly code: string; readonly message: string }
  | {
      readonly kind: 'ended';
      readonly why: CommandEnd;
      readonly code: number | null;
      readonly signal: string | null;
      readonly ms: number;
      readonly stdout: KeptOutput;
      readonly stderr: KeptOutput;
      /** Names of processes that were still there when the command itself had ended, and were killed. */
      readonly leftBehind: readonly string[];
      /** How many of them could not be killed. */
      readonly alive: number;
    };

const LOOK_MS = 250;
const PAGE_BYTES = 4096;
const isLinux = process.platform === 'linux';
/** In a new process namespace (command/no-process-left). */
const isFirst = process.pid === 1;

const lines = createInterface({ input: process.stdin });
lines.once('line', (line) => {
  void begin(JSON.parse(line) as CommandRequest);
});
lines.once('close', () => process.exit(0));

async function begin({ proxy, ...request }: CommandRequest): Promise<void> {
  supervise(proxy === undefined ? request : { ...request, env: { ...request.env, ...proxied(await bringProxy(proxy)) } });
}

/** Port on which connections are led to the proxy's socket. */
function bringProxy(path: string): Promise<number> {
  const server = createServer((client) => {
    const proxy = connect(path);
    client.pipe(proxy).pipe(client);
    for (const [one, other] of [[client, proxy] as const, [proxy, client] as const]) {
      one.on('error', () => other.destroy());
      one.on('close', () => other.destroy());
    }
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)));
}

/** As programs read it: curl, git, npm, pip, cargo, Go, and Node from 24 on. */
function proxied(port: number): Readonly<Record<string, string>> {
  const address = `http://127.0.0.1:${port}`;
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'].flatMap((name) => [name, name.toLowerCase()]);
  return { ...Object.fromEntries(names.map((name) => [name, address])), NO_PROXY: 'localhost,127.0.0.1,::1', NODE_USE_ENV_PROXY: '1' };
}

function supervise(request: Omit<CommandRequest, 'proxy'>): void {
  const { limits, mark } = request;
  const begin = Date.now();
  const stdout = createHeadTailBuffer(limits.keptBytes);
  const stderr = createHeadTailBuffer(limits.keptBytes);
  let why: CommandEnd = 'itself';
  let ended: { code: number | null; signal: string | null } | undefined;

  let child: ChildProcess;
  try {
    child = start(request);
  } catch (error) {
    // Some failures of a start are thrown and not emitted.
    const { code = 'unknown', message } = error as NodeJS.ErrnoException;
    return report({ kind: 'not-started', code, message });
  }
  const family = createFamily(child, mark);

  const killAll = (): void => {
    family.look();
    killGroup(child.pid, 'SIGKILL');
    family.kill();
  };
  // (command/ends-with-worker)
  lines.removeAllListeners('close');
  lines.once('close', () => {
    for (let round = 0; round < 20; round++) {
      killAll();
      if (family.living().length === 0) break;
    }
    process.exit(0);
  });

  let isStopping = false;
  const stop = (reason: CommandEnd, hard = false): void => {
    if (ended || isStopping) return;
    isStopping = true;
    why = reason;
    if (hard) return killAll();
    killGroup(child.pid, 'SIGTERM');
    setTimeout(killAll, limits.graceMs);
  };
  lines.on('line', () => stop('stopped'));
  const timer = setTimeout(() => stop('time'), request.timeoutMs);
  const room = freeBytes(request.cwd);
  const looking = setInterval(() => {
    const { processes, bytes } = family.look();
    if (room - freeBytes(request.cwd) > limits.diskBytes) stop('disk', true);
    if (processes > limits.processes) stop('processes', true);
    if (bytes > limits.memoryBytes) stop('memory', true);
  }, LOOK_MS);

  child.once('error', (error: NodeJS.ErrnoException) => {
    if (child.pid === undefined) report({ kind: 'not-started', code: error.code ?? 'unknown', message: error.message });
  });
  if (child.pid === undefined) return;
  const take = (stream: Readable | null, kept: HeadTailBuffer): Promise<void> =>
    new Promise((resolve) => {
      stream?.on('data', (chunk: Buffer) => {
        kept.add(chunk);
        if (stdout.bytes() + stderr.bytes() > limits.outputBytes) stop('output', true);
      });
      stream?.once('error', () => resolve());
      stream?.once('close', () => resolve());
    });
  const read = Promise.all([take(child.stdout, stdout), take(child.stderr, stderr)]);
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(request.stdin);

  child.once('exit', (code, signal) => {
    ended = { code, signal };
    clearTimeout(timer);
    clearInterval(looking);
    void finish(code, signal);
  });

  async function finish(code: number | null, signal: string | null): Promise<void> {
    // What it has written is here at once unless another process holds its output open.
    await Promise.race([read, sleep(50)]);
    const leftBehind = family.living(true).map(processName);
    let alive = 0;
    for (let round = 0; round < 40; round++) {
      killGroup(child.pid, 'SIGKILL');
      alive = family.kill();
      if (alive === 0) break;
      await sleep(25);
    }
    await Promise.race([read, sleep(500)]);
    report({
      kind: 'ended',
      why,
      code,
      signal,
      ms: Date.now() - begin,
      stdout: stdout.kept(),
      stderr: stderr.kept(),
      leftBehind: leftBehind.slice(0, 20),
      alive,
    });
  }
}

function start({ program, args, cwd, env, stdin }: CommandRequest): ChildProcess {
  // When memory runs out the kernel takes the command first, and neither us nor the worker. What we start has it from us.
  const before = adjustOom('1000');
  try {
    return spawn(program, args, { cwd, env: { ...env }, detached: true, stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] });
  } finally {
    if (before !== undefined) adjustOom(before);
  }
}

function adjustOom(value: string): string | undefined {
  if (!isLinux) return undefined;
  try {
    const before = readFileSync('/proc/self/oom_score_adj', 'utf8').trim();
    writeFileSync('/proc/self/oom_score_adj', value);
    return before;
  } catch {
    return undefined;
  }
}

interface Family {
  /** Who there is now, by descent and session; remembers them. */
  look(): { readonly processes: number; readonly bytes: number };
  /** All that belong to the command and are no corpses. `slowly`: also by mark and by open output. */
  living(slowly?: boolean): number[];
  /** How many there still were. */
  kill(): number;
}

/** A process is known by its number and the time it began, since numbers come again (command/no-process-left). */
function createFamily(child: ChildProcess, mark: string): Family {
  const known = new Map<number, string>();
  // None where it has ended by now: then what only holds its output is not found, unless a namespace ends it.
  const outputs = child.pid === undefined ? new Set<string>() : listOutputs(child.pid);

  const look = (slowly: boolean): Process[] => {
    if (!isLinux) return [];
    const all = processes();
    if (isFirst) return all;
    for (const [pid, begun] of known) if (!all.some((one) => one.pid === pid && one.begun === begun)) known.delete(pid);
    for (let before = -1; before !== known.size;) {
      before = known.size;
      for (const one of all) {
        if (known.has(one.pid)) continue;
        const belongs = one.pid === child.pid || one.session === child.pid || known.has(one.parent);
        if (belongs || (slowly && (isMarked(one.pid, mark) || holds(one.pid, outputs)))) known.set(one.pid, one.begun);
      }
      // Marks and outputs do not change from one pass to the next.
      slowly = false;
    }
    return all.filter(({ pid }) => known.has(pid));
  };

  const living = (slowly = true): number[] => look(slowly).map(({ pid }) => pid);
  return {
    look() {
      const found = look(false);
      return { processes: found.length, bytes: found.reduce((sum, { pid }) => sum + residentBytes(pid), 0) };
    },
    living,
    kill() {
      if (isFirst) kill(-1, 'SIGKILL');
      const found = living();
      for (const pid of found) kill(pid, 'SIGKILL');
      return found.length;
    },
  };
}

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly session: number;
  readonly begun: string;
}

/** Without ourselves, and without those that have ended and are only not yet taken note of. */
function processes(): Process[] {
  return readdirSync('/proc').flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) return [];
    // `pid (any name) state parent group session … `: the name may hold blanks and brackets.
    const stat = readOr(`/proc/${pid}/stat`);
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields.length < 20 || fields[0] === 'Z' || fields[0] === 'X') return [];
    return [{ pid, parent: Number(fields[1]), session: Number(fields[3]), begun: fields[19] ?? '' }];
  });
}

function isMarked(pid: number, mark: string): boolean {
  return readOr(`/proc/${pid}/environ`).includes(mark);
}

function listOutputs(pid: number): Set<string> {
  return new Set([1, 2].flatMap((fd) => linkOr(`/proc/${pid}/fd/${fd}`)).filter((link) => /^(socket|pipe):/.test(link)));
}

function holds(pid: number, outputs: ReadonlySet<string>): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => linkOr(`/proc/${pid}/fd/${fd}`).some((link) => outputs.has(link)));
  } catch {
    return false;
  }
}

function residentBytes(pid: number): number {
  return Number(readOr(`/proc/${pid}/statm`).split(' ')[1] ?? 0) * PAGE_BYTES;
}

/** 0 where it cannot be told: then nothing is stopped for it. */
function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return 0;
  }
}

function processName(pid: number): string {
  return readOr(`/proc/${pid}/comm`).trim() || String(pid);
}

function readOr(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}

function linkOr(file: string): string[] {
  try {
    return [readlinkSync(file)];
  } catch {
    return [];
  }
}

function killGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid !== undefined) kill(-pid, signal);
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Gone already.
  }
}

interface HeadTailBuffer {
  add(chunk: Buffer): void;
  bytes(): number;
  kept(): KeptOutput;
}

/** (command/output-bounded) */
function createHeadTailBuffer(most: number): HeadTailBuffer {
  const head: Buffer[] = [];
  let tail: Buffer[] = [];
  let [headBytes, tailBytes, bytes] = [0, 0, 0];
  return {
    add(chunk) {
      bytes += chunk.length;
      const first = chunk.subarray(0, most - headBytes);
      if (first.length > 0) head.push(Buffer.from(first));
      headBytes += first.length;
      const rest = chunk.subarray(first.length);
      if (rest.length === 0) return;
      tail.push(Buffer.from(rest.subarray(-most)));
      tailBytes += Math.min(rest.length, most);
      if (tailBytes < 4 * most) return;
      tail = [Buffer.concat(tail).subarray(-most)];
      tailBytes = most;
    },
    bytes: () => bytes,
    kept: () => ({
      head: Buffer.concat(head).toString('base64'),
      tail: Buffer.concat(tail).subarray(-most).toString('base64'),
      bytes,
    }),
  };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function report(outcome: CommandReport): void {
  process.stdout.write(`${JSON.stringify(outcome)}\n`, () => process.exit(0));
}
