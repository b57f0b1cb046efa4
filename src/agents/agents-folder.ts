/** Where agents are, as the worker of a folder finds them. */
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ID_PATTERN } from '../conversation/protocol/contract.js';

/** A folder without agents has the one that we ship, unless a setting names another place; `own` is that of a `perdura.config`. */
export function agentsFolder({ cwd, agentsDir }: { readonly cwd: string; readonly agentsDir: string }, own?: string): string {
  if (own !== undefined) return resolve(cwd, own);
  const shipped = join(__dirname, '..', '..', 'agents');
  return agentsDir === join(cwd, 'agents') && !existsSync(agentsDir) && existsSync(shipped) ? shipped : agentsDir;
}

/** Of the agents that are there; none where the folder cannot be read. */
export async function agentNames(config: { readonly cwd: string; readonly agentsDir: string }): Promise<readonly string[]> {
  const entries = await readdir(agentsFolder(config), { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => !entry.isFile() && ID_PATTERN.test(entry.name)).map(({ name }) => name);
}
