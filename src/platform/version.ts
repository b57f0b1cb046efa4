import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Of this package, as in the nearest package.json: the bench is compiled into a folder deeper than the build. */
export function packageVersion(): string {
  let dir = __dirname;
  while (!existsSync(join(dir, 'package.json'))) dir = dirname(dir);
  const { version } = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8')) as { version: string };
  return version;
}
