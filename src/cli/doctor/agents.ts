/** Every folder of the agents folder, read as a worker reads it. */
import { readdir } from 'node:fs/promises';
import { loadAgent, type LoadedAgent } from '../../agents/load-agent.js';
import type { Environment } from '../../config.js';
import { expandServer } from '../../tools/mcp/server-config.js';
import { messageOf } from '../terminal/exit.js';
import type { Finding } from './finding.js';
import { broken, ok, warning } from './finding.js';

export async function checkAgents(agentsDir: string, variables: Environment): Promise<Finding[]> {
  let names: string[];
  try {
    const entries = await readdir(agentsDir, { withFileTypes: true });
    names = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.')).map(({ name }) => name);
  } catch (error) {
    return [broken('Agents', `cannot read ${agentsDir}: ${messageOf(error)}`, 'create it with an agent inside, or set PERDURA_AGENTS_DIR')];
  }
  const failed: Finding[] = [];
  const servers: Finding[] = [];
  const good: string[] = [];
  for (const name of names.sort()) {
    try {
      const agent = await loadAgent(agentsDir, name);
      good.push(agent.id);
      servers.push(...checkServers(agent, variables));
    } catch (error) {
      failed.push(broken(`Agent ${name}`, messageOf(error), `edit ${agentsDir}/${name}/agent.json`));
    }
  }
  if (good.length === 0 && failed.length === 0) {
    return [
      broken('Agents', `there is none in ${agentsDir}`, `mkdir -p '${agentsDir}/default' && echo '{}' > '${agentsDir}/default/agent.json'`),
    ];
  }
  const found = good.length === 0 ? [] : [ok('Agents', good.join(', '))];
  const noDefault = names.includes('default')
    ? []
    : [warning('Agents', 'there is none called default', 'name one with --agent, or create it')];
  return [...found, ...noDefault, ...failed, ...servers];
}

/** Not started from here: `perdura mcp tools` does that. */
function checkServers({ id, servers }: LoadedAgent, variables: Environment): Finding[] {
  if (servers.length === 0) return [];
  const what = `MCP of ${id}`;
  const missing = servers.flatMap((server) => {
    try {
      expandServer(server, variables);
      return [];
    } catch (error) {
      return [warning(what, messageOf(error), 'set it in the environment or in .env, or write ${NAME:-default}')];
    }
  });
  return [ok(what, `${servers.map(({ name }) => name).join(', ')}; perdura mcp tools ${id} asks them`), ...missing];
}
