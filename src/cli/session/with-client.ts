/** The frame of every command that works on conversations: connect, work, close; Ctrl+C and a closed pipe end it. */
import type { PerduraClient } from '../../client.js';
import type { Config, TemporalConnection } from '../../config.js';
import { temporalConnection } from '../../config.js';
import { connectClient } from './connect.js';
import type { CliContext } from './context.js';
import { CliError, EXIT } from '../terminal/exit.js';
import type { GlobalOptions } from '../args/global-options.js';
import { onInterrupt } from '../terminal/interrupts.js';
import type { Output } from '../terminal/output.js';
import { slowly } from '../terminal/slowly.js';

export interface Desk {
  readonly client: PerduraClient;
  readonly config: Config;
  readonly temporal: TemporalConnection;
  readonly output: Output;
  readonly globals: GlobalOptions;
  /** Aborted by Ctrl+C, and when nobody reads any more. */
  readonly signal: AbortSignal;
  /** Says what `work` is when it takes more than a second. */
  readonly slowly: <T>(what: string, work: Promise<T>) => Promise<T>;
}

export interface DeskOptions {
  /** Says so when no worker takes work. */
  readonly needsWorker?: boolean;
  /** Said on Ctrl+C. */
  readonly whenInterrupted?: string;
}

export async function withClient(context: CliContext, options: DeskOptions, work: (desk: Desk) => Promise<number>): Promise<number> {
  const { output } = context;
  const config = context.config();
  const leave = new AbortController();
  const stopListening = onInterrupt(() => leave.abort(new CliError(options.whenInterrupted ?? 'interrupted', EXIT.interrupted)));
  const onClosed = (): void => leave.abort(new CliError('the reader is gone', EXIT.ok));
  context.closed.addEventListener('abort', onClosed, { once: true });
  let client: PerduraClient | undefined;
  const run = async (): Promise<number> => {
    const temporal = await temporalConnection(config);
    const { address } = temporal.connectionOptions;
    client = await slowly(
      output,
      `connecting to Temporal at ${address}`,
      connectClient(config, output, { needsWorker: options.needsWorker === true }),
    );
    leave.signal.throwIfAborted();
    const globals = context.globals();
    return work({ client, config, temporal, output, globals, signal: leave.signal, slowly: (what, slow) => slowly(output, what, slow) });
  };
  try {
    return await orAborted(run(), leave.signal);
  } catch (error) {
    if (context.closed.aborted) return EXIT.ok;
    throw leave.signal.aborted ? leave.signal.reason : error;
  } finally {
    stopListening();
    context.closed.removeEventListener('abort', onClosed);
    await client?.close();
  }
}

async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop!: () => void;
  const aborted = new Promise<never>((_resolve, reject) => {
    stop = () => reject(signal.reason as Error);
    signal.addEventListener('abort', stop, { once: true });
  });
  // Whoever is no longer waited for may still fail.
  work.catch(() => undefined);
  aborted.catch(() => undefined);
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
