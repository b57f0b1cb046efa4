import type { PerduraClient } from '../client.js';
import type { Config } from '../config.js';
import { temporalConnection } from '../config.js';
import type { Output } from './output.js';
import { checkTemporal, hasWorker } from './services/temporal-connection.js';

/** A client on a server that answers. Says so when no worker is there to take the message. */
export async function connectClient(config: Config, output: Output, options: { readonly needsWorker: boolean }): Promise<PerduraClient> {
  const temporal = await temporalConnection(config);
  await checkTemporal(temporal);
  if (options.needsWorker && !(await hasWorker(temporal, config.taskQueue))) {
    output.problem(
      `no worker takes work from task queue ${config.taskQueue}: messages wait until \`perdura worker\` or \`npm start\` runs`,
    );
  }
  const { createClient } = await import('../client.js');
  return createClient(config);
}
