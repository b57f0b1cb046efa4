/** What a command is given beside its own arguments. */
import type { Config } from '../../config.js';
import type { GlobalOptions } from '../args/global-options.js';
import type { Output } from '../terminal/output.js';
import type { Surroundings } from './surroundings.js';

export interface CliContext {
  readonly surroundings: Surroundings;
  readonly output: Output;
  /** Aborted when the reader of stdout or stderr is gone. */
  readonly closed: AbortSignal;
  /** To be called once, with the exit code. */
  readonly end: (exitCode: number) => void;
  /** Of the command that runs; to be asked inside its action. */
  readonly globals: () => GlobalOptions;
  /** From now on the folder is trusted, by this command and by the programs that it starts. */
  readonly trustFolder: () => void;
  /** The settings, with what the flags say in place of `TEMPORAL_*`. Throws `ConfigError`. */
  readonly config: () => Config;
}
