/** Every folder of the agents folder, read as a worker reads it. */
import { readdir } from 'node:fs/promises';
import { loadAgent } from '../../agents/load-agent.js';
import { messageOf } from '../exit.js';
import type { Finding } from './finding.js';
import { broken, ok, warning } from './finding.js';

export async function checkAgents(agentsDir: string): Promise<Finding[]> {
  let names: string[];
  try {
    const entries = await readdir(agentsDir, { withFileTypes: true });
    names = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.')).map(({ name }) => name);
  } catch (error) {
    return [broken('Agents', `cannot read ${agentsDir}: ${messageOf(error)}`, 'create it with an agent inside, or set PERDURA_AGENTS_DIR')];
  }
  const failed: Finding[] = [];
  const good: string[] = [];
  for (const name of names.sort()) {
    try {
      good.push((await loadAgent(agentsDir, name)).id);
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
  return [...found, ...noDefault, ...failed];
}
