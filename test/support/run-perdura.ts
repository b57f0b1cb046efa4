/** Commands as a person runs them: in the world's folder, with its Temporal and its file store. */
import { spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { join } from 'node:path';
import { PassThrough, Readable, Writable } from 'node:stream';
import { main } from '../../src/cli/main.js';
import type { Surroundings } from '../../src/cli/session/context.js';
import type { World } from './world.js';

export const PERDURA = join(__dirname, '..', '..', 'bin', 'perdura');

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly ended: Promise<Ran>;
  readonly stdout: () => string;
  readonly stderr: () => string;
  kill(signal: NodeJS.Signals): void;
}

export interface RunOptions {
  /** Beside that of the world. */
  readonly env?: Readonly<Record<string, string>>;
  /** What stands on stdin. */
  readonly input?: string;
  /** A person sits at a terminal, and types what `type` says. */
  readonly isTerminal?: boolean;
  /** In place of a client that the command opens itself. */
  readonly openClient?: Surroundings['openClient'];
  readonly recordings?: Surroundings['recordings'];
}

export type Place = Pick<World, 'dir' | 'taskQueue'>;

export function perduraEnvironment({ dir, taskQueue }: Place): Record<string, string> {
  return {
    PATH: '',
    HOME: dir,
    TEMPORAL_ADDRESS: process.env['PERDURA_TEST_ADDRESS'] ?? '',
    PERDURA_TASK_QUEUE: taskQueue,
    PERDURA_MEMORY_DIR: join(dir, 'memory'),
    PERDURA_TRUST: '1',
  };
}

/** A command as a process of its own: what a start costs, signals, pipes and the built product are shown by it. */
export function startPerdura(world: Place, args: readonly string[], { env = {}, input = '' }: RunOptions = {}): Running {
  const child = spawn(process.execPath, [PERDURA, ...args], { cwd: world.dir, env: { ...perduraEnvironment(world), ...env } });
  const said = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (said.stdout += piece));
  child.stderr.setEncoding('utf8').on('data', (piece: string) => (said.stderr += piece));
  child.stdin.end(input);
  return {
    ended: new Promise((resolve) => child.on('close', (code) => resolve({ code, ...said }))),
    stdout: () => said.stdout,
    stderr: () => said.stderr,
    kill: (signal) => void child.kill(signal),
  };
}

export interface RunningHere extends Running {
  type(text: string): void;
}

/** A command in this process, from its arguments to its exit code. What it leaves behind is an error. */
export function beginPerdura(
  world: Place,
  args: readonly string[],
  { env = {}, input = '', isTerminal = false, openClient, recordings }: RunOptions = {},
): RunningHere {
  const signals = new EventEmitter();
  const [stdout, stderr] = [new Collected(isTerminal), new Collected(isTerminal)];
  const keys = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => undefined });
  const surroundings: Surroundings = {
    ...{ stdout, stderr, signals, cwd: world.dir },
    input: isTerminal ? keys : Readable.from(input === '' ? [] : [Buffer.from(input)]),
    env: { ...perduraEnvironment(world), ...env },
    ...(openClient && { openClient }),
    ...(recordings && { recordings }),
  };
  return {
    ended: main(args, surroundings).then((code) => {
      const left = [signals, stdout, stderr].flatMap((one) => one.eventNames());
      if (left.length > 0) throw new Error(`perdura ${args.join(' ')} still listens to ${left.join(', ')} after its end`);
      return { code, stdout: stdout.text, stderr: stderr.text };
    }),
    stdout: () => stdout.text,
    stderr: () => stderr.text,
    kill: (signal) => void signals.emit(signal),
    type: (text) => void keys.write(text),
  };
}

export function runPerdura(world: Place, args: readonly string[], options?: RunOptions): Promise<Ran> {
  return beginPerdura(world, args, options).ended;
}

class Collected extends Writable {
  text = '';
  /** So wide that no line is broken. */
  readonly columns = 1_000;

  constructor(readonly isTTY: boolean) {
    super();
  }

  override _write(piece: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += piece.toString('utf8');
    done();
  }
}
