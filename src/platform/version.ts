import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

interface PackageInfo {
  readonly version: string;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** Of this package, as in the nearest package.json: the bench is compiled into a folder deeper than the build. */
export function packageVersion(): string {
  return readPackage().version;
}

/** The range of a package that is installed beside this one where it is wanted; undefined for any other. */
export function peerRange(name: string): string | undefined {
  return readPackage().peerDependencies?.[name];
}

function readPackage(): PackageInfo {
  let dir = __dirname;
  while (!existsSync(join(dir, 'package.json'))) dir = dirname(dir);
  return JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8')) as PackageInfo;
}
