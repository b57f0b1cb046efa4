/** What a command has around it: it reads, writes, asks and listens here and nowhere else, so that it can run inside another program. */
import type { Readable } from 'node:stream';
import type { PerduraClient } from '../../client.js';
import type { Config, Environment } from '../../config.js';
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
