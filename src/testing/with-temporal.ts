/** The real thing in a test: a Temporal server, a worker and a client, started and closed together. */
import { randomUUID } from 'node:crypto';
import { createClient, type PerduraClient } from '../client.js';
import { SERVER_FLAGS } from '../cli/services/temporal-binary.js';
import { openTestProject, type TestOptions } from './project.js';
import { startTemporalServer } from './temporal-server.js';

/** What `startWithTemporal` is given. */
export interface WithTemporalOptions extends TestOptions {
  /** `host:port` of a server that runs; without it one is started for this test and stopped with it. */
  readonly address?: string;
}

/** A worker that takes work, and a client for it. */
export interface WithTemporal {
  readonly client: PerduraClient;
  readonly address: string;
  /** Of this worker alone. */
  readonly taskQueue: string;
  /** Stops the worker, and another one goes on in its place: what a worker's end must not lose can be tested so. */
  restartWorker(): Promise<void>;
  /** Ends client, worker and server, and deletes the test's folder. */
  close(): Promise<void>;
}

/**
 * Starts a Temporal dev server, where `address` names none, and a worker with the project's agents and extensions. It takes about three
 * seconds, so start it once for many tests. Throws where the machine has no `temporal`, and says how to get it.
 *
 * ```ts
 * const perdura = await startWithTemporal({ model: createScriptedModel(['Hello!']) });
 * const { text } = await perdura.client.send('chat-1', 'hi', { start: { agent: 'default' } });
 * await perdura.close();
 * ```
 */
export async function startWithTemporal(options: WithTemporalOptions): Promise<WithTemporal> {
  const ends: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (let end = ends.pop(); end; end = ends.pop()) await end();
  };
  try {
    const project = await openTestProject(options);
    ends.push(project.close);
    const address = options.address ?? (await ownServer(ends));
    const taskQueue = `test-${randomUUID()}`;
    const config = project.settings({ TEMPORAL_ADDRESS: address, PERDURA_TASK_QUEUE: taskQueue });
    // Native code, which a test in memory need not load.
    const { createWorkerWith } = await import('../worker.js');

    let stopWorker = async (): Promise<void> => {};
    const startWorker = async (): Promise<void> => {
      let ready = (): void => undefined;
      const isReady = new Promise<void>((resolve) => (ready = resolve));
      const worker = createWorkerWith({ ...project.extensions, config, onReady: () => ready() }, { answering: options.model });
      const running = worker.run();
      await Promise.race([isReady, running]);
      stopWorker = async () => {
        worker.shutdown();
        await running;
      };
    };
    await startWorker();
    ends.push(() => stopWorker());
    const client = await createClient(config);
    ends.push(() => client.close());
    return {
      client,
      address,
      taskQueue,
      async restartWorker() {
        await stopWorker();
        await startWorker();
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function ownServer(ends: (() => Promise<unknown>)[]): Promise<string> {
  const server = await startTemporalServer({ flags: SERVER_FLAGS.searchAttributes });
  ends.push(server.stop);
  return server.address;
}
