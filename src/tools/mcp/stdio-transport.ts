/**
 * A server as a child process that speaks over its stdin and stdout. The library's transport keeps a line of any length, and
 * ends the process that it started but not that one's children; ours does neither.
 *
 * - The child leads a process group, and the whole group ends with the connection. On Linux processes that left the group and the session
 *   end too, by the mark in their environment.
 * - They also end when this process dies without a word: a shell that waits for that does it.
 * - A line beyond `MAX_BYTES` or of a shape that takes long to parse, or more messages than any server needs, ends the connection.
 */
import { spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import type * as Library from '@modelcontextprotocol/client' with { 'resolution-mode': 'import' };
import { loadOptional, MCP_PACKAGE } from '../../platform/optional-package.js';
import { withoutMark } from '../../records/file-type.js';

export type { Client, JSONRPCMessage, Tool, Transport } from '@modelcontextprotocol/client' with { 'resolution-mode': 'import' };
export type Sdk = typeof Library;

/** The MCP library: loaded when an agent has a server, since most have none. */
export async function loadSdk(): Promise<Sdk> {
  return await loadOptional([MCP_PACKAGE], () => import('@modelcontextprotocol/client'));
}

export interface StdioServer {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

export interface StdioTransport extends Library.Transport {
  /** By these two the library knows a child process. */
  readonly stderr: null;
  readonly pid: number | null;
  /** The end of its stderr. */
  readonly stderrTail: () => string;
  /** Resolves when all of its output was read, at its end. */
  readonly stderrClosed: () => Promise<void>;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** Of one message. */
export const MAX_BYTES = 16 * 1024 * 1024;
const STDERR_CHARACTERS = 1_000;
const GRACE_MS = 2_000;
/** As commands carry theirs. */
const MARK = 'PERDURA_COMMAND';
/**
 * What it is given is a process id and a mark, and a word when the group has ended in our sight already. A process that is found may have
 * begun another one meanwhile, so it is looked again until none is left.
 */
const LAST_WILL = `
read -r word
if [ "$word" != ended ]; then kill -TERM "-$0"; sleep 2; fi
kill -KILL "-$0"
for round in 1 2 3 4 5 6 7 8 9 10; do
  found=$(grep -slF "${MARK}=$1" /proc/[0-9]*/environ)
  [ -n "$found" ] || break
  for file in $found; do file=\${file#/proc/}; kill -KILL "\${file%/environ}"; done
done
`;
/** Resolves a pending wait for that. */
const SWEEP_MS = 2_000;

export function createStdioTransport({ command, args, env, cwd }: StdioServer, sdk: Pick<Sdk, 'deserializeMessage'>): StdioTransport {
  let child: Child | undefined;
  let guard: ChildProcess | undefined;
  let stderrTail = '';
  let parts: Buffer[] = [];
  let held = 0;
  let isClosed = false;
  let fallSilent = (): void => undefined;
  const silence = new Promise<void>((resolve) => (fallSilent = resolve));
  const gate = createMessageRateLimiter();
  const shape = createJsonDepthLimit();
  const mark = randomBytes(16).toString('hex');

  /** Of what is left, when the child itself has ended. */
  const sweep = async (): Promise<void> => {
    const last = guard;
    guard = undefined;
    if (!last || last.exitCode !== null || last.signalCode !== null) return;
    const done = new Promise<void>((resolve) => last.once('exit', () => resolve()));
    // A command that only waits for this would end before its last output.
    last.ref();
    last.stdin?.end('ended\n');
    await Promise.race([done, new Promise<void>((resolve) => setTimeout(resolve, SWEEP_MS).unref())]);
  };

  const fail = (reason: string): void => {
    transport.onerror?.(new Error(reason));
    if (child) killGroup(child, 'SIGKILL');
    void transport.close();
  };

  const takeLine = (line: string): void => {
    if (line.trim() === '') return;
    if (!gate.pass(line.length)) return fail(gate.reason);
    let message: Library.JSONRPCMessage;
    try {
      message = sdk.deserializeMessage(withoutNullFields(line));
    } catch {
      // Servers print all kinds of things on their stdout; the protocol says to ignore what is none of it.
      return;
    }
    transport.onmessage?.(message);
  };

  const take = (chunk: Buffer): void => {
    let rest = chunk;
    for (let newline = rest.indexOf(0x0a); newline >= 0 && !isClosed; newline = rest.indexOf(0x0a)) {
      const line = Buffer.concat([...parts, rest.subarray(0, newline)]);
      parts = [];
      held = 0;
      rest = rest.subarray(newline + 1);
      shape.next();
      if (!shape.pass(line)) return fail(SHAPE_REFUSAL);
      takeLine(withoutMark(line.toString('utf8')).replace(/\r$/, ''));
    }
    if (isClosed) return;
    if (rest.length > 0) parts.push(rest);
    held += rest.length;
    if (held > MAX_BYTES) fail(`it sent a message of more than ${MAX_BYTES} bytes`);
  };

  const ended = (): void => {
    if (isClosed) return;
    isClosed = true;
    parts = [];
    void sweep();
    transport.onclose?.();
  };

  const transport: StdioTransport = {
    stderr: null,
    get pid() {
      return child?.pid ?? null;
    },

    stderrTail: () => stderrTail.trim(),

    stderrClosed: () => silence,

    start: () =>
      new Promise((resolve, reject) => {
        const started: Child = spawn(command, args, {
          cwd,
          env: { ...env, [MARK]: mark },
          stdio: ['pipe', 'pipe', 'pipe'],
          detached: true,
          shell: false,
          windowsHide: true,
        });
        child = started;
        started.once('spawn', () => {
          if (started.pid !== undefined) guard = startGuard(started.pid, mark);
          resolve();
        });
        started.once('error', (error) => {
          reject(error);
          fallSilent();
          ended();
        });
        started.once('close', fallSilent);
        started.once('exit', (code, signal) => {
          if (!isClosed) transport.onerror?.(new Error(signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`));
          // What it leaves behind can reach no client any more.
          killGroup(started, 'SIGKILL');
          ended();
        });
        started.stdin.on('error', () => undefined);
        started.stdout.on('data', take);
        started.stdout.on('error', () => undefined);
        started.stderr.on('data', (chunk: Buffer) => {
          stderrTail = (stderrTail + chunk.toString('utf8')).slice(-STDERR_CHARACTERS);
        });
        started.stderr.on('error', () => undefined);
      }),

    send: (message) =>
      new Promise((resolve, reject) => {
        if (!child || isClosed) return reject(new Error('it is not running'));
        child.stdin.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
      }),

    async close() {
      const running = child;
      child = undefined;
      if (!running || isClosed) return ended();
      isClosed = true;
      parts = [];
      // As the protocol wants: first its stdin is closed, then it gets SIGTERM, then it is killed.
      running.stdin.end();
      running.stdout.removeAllListeners('data').resume();
      if (!(await hasEnded(running, GRACE_MS / 4))) {
        killGroup(running, 'SIGTERM');
        await hasEnded(running, GRACE_MS);
      }
      killGroup(running, 'SIGKILL');
      await sweep();
      transport.onclose?.();
    },
  };
  return transport;
}

/** Its stdin is our pipe, to which nothing is written: it ends when we do. */
function startGuard(pid: number, mark: string): ChildProcess {
  const guard = spawn('/bin/sh', ['-c', LAST_WILL, String(pid), mark], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
    env: { PATH: '/usr/bin:/bin' },
  });
  guard.on('error', () => undefined);
  guard.stdin?.on('error', () => undefined);
  guard.unref();
  return guard;
}

function killGroup({ pid }: Child, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // No process is left in it.
  }
}

function hasEnded(child: Child, withinMs: number): Promise<boolean> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(true);
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), withinMs);
    child.once('exit', () => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}

// Counts what a server sends without a request: endless notifications cost a worker its turns, a few very large ones as well.

const MAX_MESSAGES = 5_000;
const MAX_WINDOW_BYTES = 2 * MAX_BYTES;
const WINDOW_MS = 10_000;

interface MessageRateLimiter {
  /** What is wrong with a server that does not pass. */
  readonly reason: string;
  /** False once there were more messages in a window, or more bytes, than any server needs. */
  pass(bytes: number): boolean;
}

export function createMessageRateLimiter(now: () => number = Date.now): MessageRateLimiter {
  let began = now();
  let count = 0;
  let sum = 0;
  return {
    reason: `it sent more than ${MAX_MESSAGES} messages or ${MAX_WINDOW_BYTES} bytes in ${WINDOW_MS / 1000} s`,
    pass(bytes) {
      const at = now();
      if (at - began >= WINDOW_MS) {
        began = at;
        count = 0;
        sum = 0;
      }
      count += 1;
      sum += bytes;
      return count <= MAX_MESSAGES && sum <= MAX_WINDOW_BYTES;
    },
  };
}

/**
 * How deep a server's message is and how many values it has, counted in its bytes before anything parses it: sixteen mebibytes of brackets
 * take a parser seconds in which the worker does nothing else, and this a tenth of one.
 */
export const MAX_DEPTH = 128;
export const MAX_VALUES = 250_000;
export const SHAPE_REFUSAL = `it sent a message of more than ${MAX_VALUES} values, or more than ${MAX_DEPTH} deep`;

interface JsonDepthLimit {
  /** The next bytes of a message; false once it is too deep, or has too many values. */
  pass(bytes: Uint8Array): boolean;
  /** Another message begins. */
  next(): void;
}

const [NEWLINE, QUOTE, COMMA, BACKSLASH] = [0x0a, 0x22, 0x2c, 0x5c];
const [OPENS_LIST, CLOSES_LIST, OPENS_OBJECT, CLOSES_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

export function createJsonDepthLimit(): JsonDepthLimit {
  let [depth, values, isString, isEscaped] = [0, 0, false, false];
  return {
    pass(bytes) {
      for (const byte of bytes) {
        if (isEscaped) isEscaped = false;
        else if (isString) {
          // No JSON string holds a line break: what began before one was none.
          if (byte === QUOTE || byte === NEWLINE) isString = false;
          else if (byte === BACKSLASH) isEscaped = true;
        } else if (byte === QUOTE) isString = true;
        else if (byte === COMMA) values++;
        else if (byte === OPENS_LIST || byte === OPENS_OBJECT) {
          depth++;
          values++;
        } else if (byte === CLOSES_LIST || byte === CLOSES_OBJECT) {
          // What a comment between events closes has never been open.
          depth = Math.max(0, depth - 1);
        }
        if (depth > MAX_DEPTH || values > MAX_VALUES) return false;
      }
      return true;
    },
    next() {
      [depth, values, isString, isEscaped] = [0, 0, false, false];
    },
  };
}

// Many servers write `null` where a field is not there, which no schema of the protocol takes: a message with one would be lost, and its
// request would wait for ever.

/** In these `null` is a value that a tool or a schema means. */
const MEANT = new Set(['structuredContent', 'inputSchema', 'outputSchema', 'requestedSchema', 'arguments', 'data', '_meta']);
const NULL_FIELD = /:\s*null\b/;
/** Of a message that could not be read there is none. */
const ID = 'id';

/** A message as JSON text, without such fields; the same text where there are none, or it is no JSON. */
export function withoutNullFields(text: string): string {
  if (!NULL_FIELD.test(text)) return text;
  try {
    return JSON.stringify(withoutNulls(JSON.parse(text) as unknown));
  } catch {
    return text;
  }
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  // Entries, so that a field called `__proto__` stays one.
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => {
      if (inner === null) return name === ID ? [[name, null]] : [];
      return [[name, MEANT.has(name) ? inner : withoutNulls(inner)]];
    }),
  );
}
