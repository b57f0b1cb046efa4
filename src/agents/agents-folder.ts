/** Where agents are, as the worker of a folder finds them. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** A folder without agents has the one that we ship, unless a setting names another place; `own` is that of a `perdura.config`. */
export function agentsFolder({ cwd, agentsDir }: { readonly cwd: string; readonly agentsDir: string }, own?: string): string {
  if (own !== undefined) return resolve(cwd, own);
  const shipped = join(__dirname, '..', '..', 'agents');
  return agentsDir === join(cwd, 'agents') && !existsSync(agentsDir) && existsSync(shipped) ? shipped : agentsDir;
}
