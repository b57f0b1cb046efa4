/**
 * For an image that has every feature: makes the optional packages ordinary ones in package.json, so that `npm prune --omit=dev` leaves
 * them where they are, in the versions of package-lock.json.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './prepare.mjs';

const file = join(root, 'package.json');
const own = JSON.parse(readFileSync(file, 'utf8'));
for (const name of Object.keys(own.peerDependencies)) {
  own.dependencies[name] = own.devDependencies[name];
  delete own.devDependencies[name];
}
delete own.peerDependencies;
delete own.peerDependenciesMeta;
writeFileSync(file, `${JSON.stringify(own, null, 2)}\n`);
