import type { PerduraClient } from '../../client.js';
import type { Config } from '../../config.js';
import { temporalConnection } from '../../config.js';
import type { Output } from '../terminal/output.js';
import { hasWorker, openNamespace } from '../services/temporal-connection.js';

/** A client on a server that answers. Says so when no worker is there to take the message. */
export async function connectClient(config: Config, output: Output, options: { readonly needsWorker: boolean }): Promise<PerduraClient> {
  const temporal = await temporalConnection(config);
  const connection = await openNamespace(temporal);
  try {
    if (options.needsWorker && !(await hasWorker(connection, temporal.namespace, config.taskQueue))) {
      output.problem(
        `no worker takes work from task queue ${config.taskQueue}: messages wait until \`perdura worker\` or \`npm start\` runs`,
      );
    }
    const { createClientOn } = await import('../../client.js');
    return createClientOn(config, { connection, namespace: temporal.namespace });
  } catch (error) {
    await connection.close();
    throw error;
  }
}
