import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

interface OwnPackage {
  readonly version: string;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** Of this package, as in the nearest package.json: the bench is compiled into a folder deeper than the build. */
export function packageVersion(): string {
  return ownPackage().version;
}

/** The range of a package that is installed beside this one where it is wanted; undefined for any other. */
export function peerRange(name: string): string | undefined {
  return ownPackage().peerDependencies?.[name];
}

function ownPackage(): OwnPackage {
  let dir = __dirname;
  while (!existsSync(join(dir, 'package.json'))) dir = dirname(dir);
  return JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8')) as OwnPackage;
}
