/** Where a new project is to get Perdura from: where this one came from. A tarball or a clone is not on any registry. */
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { packageVersion } from '../../platform/version.js';

const ROOT = join(__dirname, '..', '..', '..');

/** As it stands in the dependencies of package.json: `^0.1.0`, or `file:…` from the project's folder. */
export function perduraSource(project: string, root = ROOT): string {
  const from = (place: string): string => `file:${relative(project, place).split(sep).join('/') || '.'}`;
  const modules = dirname(root);
  // A clone has no node_modules above it.
  if (basename(modules) !== 'node_modules') return from(root);
  const tarball = installedFrom(modules);
  return tarball === undefined ? `^${packageVersion()}` : from(tarball);
}

/** The file or folder that npm has installed it from; undefined for a registry. */
function installedFrom(modules: string): string | undefined {
  try {
    const lock = JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8')) as {
      readonly packages?: Readonly<Record<string, { readonly resolved?: string } | undefined>>;
    };
    const resolved = lock.packages?.['node_modules/perdura']?.resolved;
    if (!resolved?.startsWith('file:')) return undefined;
    const file = resolve(dirname(modules), decodeURIComponent(resolved.slice('file:'.length)));
    return existsSync(file) ? file : undefined;
  } catch {
    return undefined;
  }
}
