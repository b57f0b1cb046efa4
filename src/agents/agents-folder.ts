/** Where agents are, as the worker of a folder finds them. */
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ID_PATTERN } from '../conversation/protocol/contract.js';
import { qualifiedScope } from '../records/identity.js';
import { loadAgent } from './load-agent.js';

/** A folder without agents has the one that we ship, unless a setting names another place; `configured` is that of a `perdura.config`. */
export function agentsFolder({ cwd, agentsDir }: { readonly cwd: string; readonly agentsDir: string }, configured?: string): string {
  if (configured !== undefined) return resolve(cwd, configured);
  const shipped = join(__dirname, '..', '..', 'agents');
  return agentsDir === join(cwd, 'agents') && !existsSync(agentsDir) && existsSync(shipped) ? shipped : agentsDir;
}

/** Of the agents that are there, and that the tenant may use; none where the folder cannot be read. */
export async function agentNames(
  config: { readonly cwd: string; readonly agentsDir: string },
  tenant?: string,
): Promise<readonly string[]> {
  const folder = agentsFolder(config);
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const names = entries.filter((entry) => !entry.isFile() && ID_PATTERN.test(entry.name)).map(({ name }) => name);
  if (tenant === undefined) return names;
  const isVisible = (name: string): Promise<boolean> =>
    loadAgent(folder, name, qualifiedScope(tenant, name)).then(
      () => true,
      () => false,
    );
  const visible = await Promise.all(names.map(isVisible));
  return names.filter((_, at) => visible[at]);
}
