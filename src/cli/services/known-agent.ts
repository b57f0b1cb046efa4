/** An agent that there is not is refused before anything starts in its name. */
import { realpath } from 'node:fs/promises';
import { agentsFolder } from '../../agents/agents-folder.js';
import { findUserConfig, temporalConnection, type Config } from '../../config.js';
import { qualifiedScope } from '../../records/scope.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { openNamespace } from './temporal-connection.js';

/** Where the worker has another agents folder, or the folder's own code names one, only the worker knows: then nothing is refused. */
export async function refuseUnusableAgent(config: Config, agent: string | undefined, tenant?: string): Promise<void> {
  if (agent === undefined) return;
  const [{ AgentConfigError, loadAgent }, { agentsMark, mayHaveOtherAgents }] = await Promise.all([
    import('../../agents/load-agent.js'),
    import('../../client/temporal/worker-place.js'),
  ]);
  const folder = agentsFolder(config);
  const error = await loadAgent(folder, agent, qualifiedScope(tenant, agent)).then(
    () => undefined,
    (cause: unknown) => cause,
  );
  if (!(error instanceof AgentConfigError) || findUserConfig(config.cwd) !== undefined) return;
  const temporal = await temporalConnection(config);
  const connection = await openNamespace(temporal);
  try {
    const agents = agentsMark(await realpath(folder).catch(() => folder));
    const { namespace } = temporal;
    if (await mayHaveOtherAgents(connection, { namespace, taskQueue: config.taskQueue, agents })) return;
  } finally {
    await connection.close();
  }
  throw new CliError(`cannot start a conversation: ${error.message}`, error.kind === 'unknown-agent' ? EXIT.notFound : EXIT.failed, {
    cause: error,
  });
}
