/**
 * What a command has around it: it reads, writes, asks and listens here and nowhere else, so that it can run inside another program.
 * The process is one such surrounding.
 */
import { createRequire } from 'node:module';
import type { Readable } from 'node:stream';
import type * as Undici from 'undici';
import type { PerduraClient } from '../../client.js';
import { type Config, type Environment, loadEnvironment } from '../../config.js';
import type { Recordings } from '../../whatif/recording.js';
import type { GlobalOptions } from '../args/global-options.js';
import type { Output, TerminalStream } from '../terminal/output.js';

/** Stdin: at a terminal its keys can be had as they are pressed. */
export type Input = Readable & { readonly isTTY?: boolean; setRawMode?(isRaw: boolean): unknown };

/** Where Ctrl+C and requests to end arrive; the process itself is one. */
export interface Signals {
  on(signal: NodeJS.Signals, listener: () => void): unknown;
  off(signal: NodeJS.Signals, listener: () => void): unknown;
}

export interface Surroundings {
  readonly input: Input;
  readonly stdout: TerminalStream;
  readonly stderr: TerminalStream;
  readonly env: Environment;
  readonly cwd: string;
  readonly signals: Signals;
  /** In place of a connection that the command opens. The command closes what it is given. */
  readonly openClient?: (config: Config, output: Output) => Promise<PerduraClient>;
  /** In place of those that `perdura whatif` reads from Temporal and the store. */
  readonly recordings?: Recordings;
}

export interface CliContext {
  readonly surroundings: Surroundings;
  readonly output: Output;
  /** Aborted when the reader of stdout or stderr is gone. */
  readonly closed: AbortSignal;
  /** To be called once, with the exit code. */
  readonly end: (exitCode: number) => void;
  /** Of the command that runs; to be read inside its action. */
  readonly globals: () => GlobalOptions;
  /** From now on the folder is trusted, by this command and by the programs that it starts. */
  readonly trustFolder: () => void;
  /** The settings, with what the flags say in place of `TEMPORAL_*`. Throws `ConfigError`. */
  readonly config: () => Config;
}

// The process as surroundings of a command: the one place where the CLI meets its streams, its environment and its folder.

export function processSurroundings(): Surroundings {
  const { stdin: input, stdout, stderr } = process;
  // A reader may be gone before the last of what was written has reached it, after the command has ended.
  for (const stream of [stdout, stderr]) stream.on('error', () => undefined);
  useProxies(loadEnvironment());
  return { input, stdout, stderr, env: loadEnvironment(), cwd: process.cwd(), signals: process };
}

const PROXY_SETTINGS = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'];

/**
 * Requests of this process go through the proxy that its environment names, but those to this machine. Node 20 knows no such setting by
 * itself. A folder's `.env` has no say here: it could lead keys to a stranger. `fetch_url` resolves and checks each address itself, and
 * goes there directly.
 */
function useProxies(env: Environment): void {
  if (!PROXY_SETTINGS.some((name) => (env[name] ?? '') !== '')) return;
  const { EnvHttpProxyAgent, setGlobalDispatcher } = createRequire(__filename)('undici') as typeof Undici;
  const direct = [env['NO_PROXY'] ?? env['no_proxy'] ?? '', 'localhost', '127.0.0.1', '[::1]'].filter((one) => one !== '').join(',');
  // How long a model may be silent is the guard's to say.
  setGlobalDispatcher(new EnvHttpProxyAgent({ noProxy: direct, headersTimeout: 0, bodyTimeout: 0 }));
}

export function processArguments(): readonly string[] {
  return process.argv.slice(2);
}

/** For executables: all that was opened is closed by now, and what a library still holds does not keep a person waiting. */
export function endProcessWith(exitCode: number): void {
  process.exitCode = exitCode;
  setTimeout(() => process.exit(exitCode), 2000).unref();
}
