/** `perdura setup`: gives the namespace of the settings what conversations want of it. Can be run again at any time. */
import { temporalConnection, type Config } from '../config.js';
import { registerAttributes } from '../client/temporal/registered-attributes.js';
import { CliError, EXIT } from './terminal/exit.js';
import type { Output } from './terminal/output.js';
import { checkTemporal, openConnection, setRetention } from './services/temporal-connection.js';
import { errorMessage } from '../platform/errors.js';

export const RETENTION_DAYS = 30;

export async function setup(config: Config, output: Output): Promise<number> {
  const temporal = await temporalConnection(config);
  await checkTemporal(temporal);
  const { namespace } = temporal;
  const where = `namespace ${namespace} at ${temporal.connectionOptions.address}`;
  const connection = await openConnection(temporal.connectionOptions, 5000);
  try {
    const registered = await registerAttributes(connection, namespace).catch((cause: unknown) => {
      throw new CliError(
        `cannot register search attributes in ${where}: ${errorMessage(cause)}; ask who runs that server, or add them in its page`,
        EXIT.failed,
        { cause },
      );
    });
    output.line(
      registered.length === 0
        ? `search attributes: all were registered already in ${where}`
        : `search attributes: registered ${registered.join(', ')} in ${where}`,
    );
    const { config: kept } = await connection.workflowService.describeNamespace({ namespace });
    const days = Number(kept?.workflowExecutionRetentionTtl?.seconds ?? 0) / 86_400;
    if (days >= RETENTION_DAYS) {
      output.line(`retention: is ${days} days already`);
      return EXIT.ok;
    }
    try {
      await setRetention(temporal, RETENTION_DAYS);
      output.line(`retention: set from ${days} to ${RETENTION_DAYS} days`);
    } catch (error) {
      // Conversations work without it: their history is gone sooner after their end.
      output.line(`retention: stays ${days} days, since the server does not allow a change (${errorMessage(error)})`);
    }
    return EXIT.ok;
  } finally {
    await connection.close();
  }
}
