/** What `npm start` installs in a fresh clone is enough for the program, its build and its page: the packages of the tests stay away. */
import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';

const { FOR_BUILD } = jest.requireActual<{ readonly FOR_BUILD: readonly string[] }>('../../scripts/prepare.mjs');
const ROOT = join(__dirname, '..', '..');
const SCRIPTS = ['start', 'prepare', 'programs', 'report', 'lock', 'transpile', 'bundle-workflows'].map((name) => `scripts/${name}.mjs`);
/** Of the SDK's own bundler, and of types alone. */
const BROUGHT_ALONG = ['@swc/core', 'webpack', 'source-map'];

function filesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(ts|tsx|mjs)$/.test(entry.name) && !entry.name.endsWith('.d.ts'))
    .map((entry) => join(entry.parentPath, entry.name));
}

/** Packages that a file loads as it runs. */
function packagesIn(file: string): string[] {
  const code = readFileSync(file, 'utf8').replace(/^(?:import|export) type [^;]*;/gm, '');
  const names = [...code.matchAll(/(?:^(?:import|export)[^;'"]*from |^import |\bimport\(|\brequire\()'([^'.][^']*)'/gm)];
  return names
    .map(([, name = '']) => (name.startsWith('@') ? name.split('/').slice(0, 2).join('/') : (name.split('/')[0] ?? '')))
    .filter((name) => !isBuiltin(name));
}

test('every package that the program, its build and its page load is among them', () => {
  const own = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<string, Record<string, string>>;
  const installed = new Set([
    ...Object.keys(own['dependencies'] ?? {}),
    ...Object.keys(own['peerDependencies'] ?? {}),
    ...FOR_BUILD,
    ...BROUGHT_ALONG,
  ]);
  const files = [...filesBelow('src'), ...filesBelow('web'), ...SCRIPTS.map((file) => join(ROOT, file))];
  const loaded = new Set(files.flatMap(packagesIn));
  expect(loaded).toContain('preact');
  expect([...loaded].filter((name) => !installed.has(name))).toEqual([]);
  expect(FOR_BUILD.filter((name) => own['devDependencies']?.[name] === undefined)).toEqual([]);
});
