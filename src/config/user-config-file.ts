/** Where a folder has custom code for the CLI. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from './settings.js';

const NAMES = ['ts', 'js', 'mjs', 'cjs'].map((extension) => `perdura.config.${extension}`);

/** Undefined where there is none. Throws `ConfigError` for two of them: it would be unclear which one counts. */
export function findUserConfig(cwd: string): string | undefined {
  const found = NAMES.filter((name) => existsSync(join(cwd, name)));
  if (found.length > 1) throw new ConfigError(`there are ${found.join(' and ')} in ${cwd}: keep one of them`);
  return found[0] === undefined ? undefined : join(cwd, found[0]);
}
