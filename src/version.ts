import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Of this package, as in its package.json. */
export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(join(__dirname, '..', 'package.json'), 'utf8')) as { version: string };
  return version;
}
