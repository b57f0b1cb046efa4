/** What agents are made of, for those who look at them over HTTP: read as a worker of this folder reads them; nothing is started. */
import { agentsFolder } from '../../agents/agents-folder.js';
import { AgentConfigError, loadAgent } from '../../agents/load-agent.js';
import type { Config } from '../../config.js';
import { loadUserConfig, sharedServers } from '../../extensions/user-config.js';
import type { AgentDescription } from '../../gateway/context.js';
import { countOf } from '../../records/quantities.js';
import { qualifiedScope } from '../../records/scope.js';
import type { Store } from '../../stores/store.js';
import type { McpServer } from '../../tools/mcp/server-config.js';
import { toolOf } from '../../tools/mcp/pins.js';

export interface KnownAgents {
  readonly config: Config;
  readonly namespace: string;
  readonly store: () => Promise<Store>;
}

/** Undefined where there is no such agent, or the tenant may not use it. */
export async function describeAgent(
  { config, namespace, store }: KnownAgents,
  name: string,
  tenant?: string,
): Promise<AgentDescription | undefined> {
  const own = await loadUserConfig(config.cwd);
  const scope = tenant === undefined ? name : qualifiedScope(tenant, name);
  const folder = agentsFolder(config, own.agentsDir);
  const agent = await loadAgent(folder, name, scope, sharedServers(own, config.cwd)).catch((error: unknown) => {
    if (error instanceof AgentConfigError && error.kind !== 'bad-config') return undefined;
    throw error;
  });
  if (agent === undefined) return undefined;
  const [{ builtinToolsWith }, { toolSettings }, { createToolRegistry }] = await Promise.all([
    import('../../tools/builtin/index.js'),
    import('../../worker.js'),
    import('../../tools/registry.js'),
  ]);
  const ownTools = own.tools ?? [];
  const registry = createToolRegistry([...builtinToolsWith(toolSettings(config, folder)), ...ownTools]);
  const wanted = agent.config.tools?.filter((one) => registry.find(one) !== undefined);
  const named = new Set(ownTools.map((tool) => tool.name));
  const pins = await (await store()).pins.list({ namespace, agent: name }).catch(() => []);
  const servers = agent.servers.map((server) => {
    const accepted = pins.filter((pin) => pin.server === server.name);
    return {
      ...shownServer(server),
      pins: accepted.map((pin) => ({
        tool: pin.tool,
        hash: pin.hash,
        description: toolOf(pin)?.description ?? null,
        inputSchema: toolOf(pin)?.inputSchema ?? null,
      })),
    };
  });
  return {
    name,
    config: agent.config,
    tools: registry.describe(wanted).map((tool) => ({ ...tool, from: named.has(tool.name) ? 'perdura.config' : 'built in' })),
    servers,
    system: agent.system,
  };
}

/** With the names of variables; what a file gives as a value or an argument may be a secret, and is not shown. */
function shownServer(server: McpServer): {
  readonly name: string;
  readonly type: string;
  readonly place: string;
  readonly variables: readonly string[];
} {
  const { name, type } = server;
  if (server.type === 'http') {
    const place = server.url.replace(/\/\/[^/@]*@/, '//***@').replace(/\?.*$/, '?***');
    return { name, type, place, variables: Object.keys(server.headers ?? {}) };
  }
  const place = server.args.length === 0 ? server.command : `${server.command} … (${countOf(server.args.length, 'argument')})`;
  return { name, type, place, variables: Object.keys(server.env ?? {}) };
}
