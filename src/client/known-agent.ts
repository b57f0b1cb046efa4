/** An agent that the worker of this very folder could not use is refused before anything starts in its name. */
import { realpath } from 'node:fs/promises';
import type { Connection } from '@temporalio/client';
import { qualifiedScope } from '../records/identity.js';
import { agentsMark, hasTheseAgents } from './temporal/worker-place.js';

export interface KnownAgents {
  readonly namespace: string;
  readonly taskQueue: string;
  /** Where agents are, as the worker of this folder finds them. */
  readonly folder: string;
}

/** Why; undefined where it can be used, or where only a worker of another place knows. */
export async function agentRefusal(
  connection: Pick<Connection, 'workflowService'>,
  { namespace, taskQueue, folder }: KnownAgents,
  agent: string,
  tenant?: string,
): Promise<string | undefined> {
  const { AgentConfigError, loadAgent } = await import('../agents/load-agent.js');
  const error = await loadAgent(folder, agent, qualifiedScope(tenant, agent)).then(
    () => undefined,
    (cause: unknown) => cause,
  );
  if (!(error instanceof AgentConfigError)) return undefined;
  const agents = agentsMark(await realpath(folder).catch(() => folder));
  const isKnown = await hasTheseAgents(connection, { namespace, taskQueue, agents }).catch(() => false);
  return isKnown ? error.message : undefined;
}
