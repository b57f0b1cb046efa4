/** The frame of the commands on an agent's MCP servers: they are asked from here, as a worker would ask them. */
import { agentsFolder } from '../../agents/agents-folder.js';
import { loadAgent } from '../../agents/load-agent.js';
import { variablesOf, temporalConnection } from '../../config.js';
import type { Store } from '../../stores/store.js';
import { toPin } from '../../tools/mcp/pins.js';
import type { ServerReport, ToolReport } from '../../tools/mcp/server-tools.js';
import { loadUserConfig, sharedServers } from '../../extensions/user-config.js';
import { packageVersion } from '../../platform/version.js';
import type { CliContext } from './context.js';
import { withSlowNotice } from './with-progress.js';

export interface ServersDesk {
  readonly agent: string;
  readonly namespace: string;
  readonly store: Store;
  readonly reports: readonly ServerReport[];
}

/** `new`: no person has seen it yet, and the first worker that does pins it. */
export type ToolState = 'accepted' | 'changed' | 'new';

export async function withServers(context: CliContext, agent: string, work: (desk: ServersDesk) => Promise<number>): Promise<number> {
  const config = context.config();
  const own = await loadUserConfig(config.cwd);
  const { servers } = await loadAgent(agentsFolder(config, own.agentsDir), agent, agent, sharedServers(own, config.cwd));
  const { namespace } = await temporalConnection(config);
  const [{ openStore }, { inspectServers }] = await Promise.all([
    import('../../stores/open.js'),
    import('../../tools/mcp/server-tools.js'),
  ]);
  const store = openStore(config, { log: (line) => context.output.problem(line) });
  try {
    const names = servers.map(({ name }) => name).join(', ');
    const asking = inspectServers(
      { agent, namespace, servers },
      // What goes wrong with a server stands in its report.
      { pins: store.pins, variables: variablesOf(config), version: packageVersion(), log: () => undefined },
    );
    const reports = await withSlowNotice(context.output, `asking the MCP servers ${names}`, asking);
    return await work({ agent, namespace, store, reports });
  } finally {
    await store.close();
  }
}

export function stateOf({ live, pin }: ToolReport): ToolState {
  if (pin === undefined) return 'new';
  return pin.hash === toPin(live).hash ? 'accepted' : 'changed';
}
