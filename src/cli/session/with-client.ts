/** The frame of every command that works on conversations: connect, work, close; Ctrl+C and a closed pipe end it. */
import type { PerduraClient } from '../../client.js';
import { DEFAULT_TEMPORAL_ADDRESS, temporalConnection, type Config, type TemporalConnection } from '../../config.js';
import { createReplay } from '../debug/replayed-runs.js';
import type { CliContext } from './context.js';
import type { Surroundings } from './surroundings.js';
import { startCommands } from '../terminal/start-commands.js';
import { CliError, EXIT } from '../terminal/exit.js';
import type { GlobalOptions } from '../args/global-options.js';
import { onInterrupt } from '../terminal/interrupts.js';
import type { Output } from '../terminal/output.js';
import { withSlowNotice } from './with-progress.js';
import { hasWorker, openNamespace } from '../services/temporal-connection.js';
import { orAborted } from '../../platform/promises.js';

export interface CommandSession {
  readonly client: PerduraClient;
  readonly config: Config;
  readonly temporal: TemporalConnection;
  readonly output: Output;
  readonly surroundings: Surroundings;
  readonly globals: GlobalOptions;
  /** Aborted by Ctrl+C, and when the reader of the output is gone. */
  readonly signal: AbortSignal;
  /** Says what `work` is when it takes more than a second. */
  readonly withSlowNotice: <T>(what: string, work: Promise<T>) => Promise<T>;
}

export interface DeskOptions {
  /** Says so when no worker takes work. */
  readonly needsWorker?: boolean;
  /** Said on Ctrl+C. */
  readonly whenInterrupted?: string;
}

export async function withClient(
  context: CliContext,
  options: DeskOptions,
  work: (desk: CommandSession) => Promise<number>,
): Promise<number> {
  const { output, surroundings } = context;
  const config = context.config();
  const leave = new AbortController();
  const stopListening = onInterrupt(surroundings.signals, () =>
    leave.abort(new CliError(options.whenInterrupted ?? 'interrupted', EXIT.interrupted)),
  );
  const onClosed = (): void => leave.abort(new CliError('the reader is gone', EXIT.ok));
  context.closed.addEventListener('abort', onClosed, { once: true });
  let client: PerduraClient | undefined;
  const run = async (): Promise<number> => {
    const temporal = await temporalConnection(config);
    const { address } = temporal.connectionOptions;
    client = await withSlowNotice(
      output,
      `connecting to Temporal at ${address}`,
      openClient(surroundings, config, output, { needsWorker: options.needsWorker === true }),
    );
    leave.signal.throwIfAborted();
    const globals = context.globals();
    return work({
      client,
      config,
      temporal,
      output,
      surroundings,
      globals,
      signal: leave.signal,
      withSlowNotice: (what, slow) => withSlowNotice(output, what, slow),
    });
  };
  try {
    return await orAborted(leave.signal, run());
  } catch (error) {
    if (context.closed.aborted) return EXIT.ok;
    throw leave.signal.aborted ? leave.signal.reason : error;
  } finally {
    stopListening();
    context.closed.removeEventListener('abort', onClosed);
    await client?.close();
  }
}

/** The one that is at hand, or one of the command's own. */
export function openClient(
  { openClient: open }: Surroundings,
  config: Config,
  output: Output,
  options: { readonly needsWorker: boolean },
): Promise<PerduraClient> {
  return open === undefined ? connectClient(config, output, options) : open(config, output);
}

/** A client on a server that answers. Says so when no worker is there to take the message. */
async function connectClient(config: Config, output: Output, options: { readonly needsWorker: boolean }): Promise<PerduraClient> {
  const temporal = await temporalConnection(config);
  const connection = await openNamespace(temporal);
  try {
    if (options.needsWorker && !(await hasWorker(connection, temporal.namespace, config.taskQueue))) {
      output.problem(
        `no worker takes work from task queue ${config.taskQueue}: messages wait until \`${startCommands().worker}\` or \`${startCommands().chat}\` runs`,
      );
    }
    const { createClientOn } = await import('../../client.js');
    // A folder's own code runs for a search alone.
    const embedder = async () => (await (await import('../../extensions/user-config.js')).loadUserConfig(config.cwd)).embedder;
    return createClientOn(config, { connection, namespace: temporal.namespace }, { replay: createReplay(config), embedder });
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** What a person would type to see or do the same with the `temporal` program. */
export function temporalCommand(temporal: TemporalConnection, words: readonly string[]): string {
  const { address } = temporal.connectionOptions;
  const where = [
    ...(address === DEFAULT_TEMPORAL_ADDRESS ? [] : ['--address', address]),
    ...(temporal.namespace === 'default' ? [] : ['-n', temporal.namespace]),
  ];
  return ['temporal', ...words, ...where].map(shellWord).join(' ');
}

/** For a POSIX shell; double quotes where they need no escapes, since queries are full of single ones. */
function shellWord(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return word.includes("'") && !/["$`\\!]/.test(word) ? `"${word}"` : `'${word.replaceAll("'", `'\\''`)}'`;
}
