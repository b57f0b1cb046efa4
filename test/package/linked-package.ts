/**
 * Our package as somebody else has it: what `npm pack` puts into the tarball, in a folder far from our sources. Its dependencies are
 * links to ours, and only the ones that package.json names: one that is missing there is missing here. So are the optional ones, until
 * they are added.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { withLock } from '../../src/cli/lock.js';
import { PRODUCT } from '../support/worker-process.js';

export const EXAMPLES = join(__dirname, '..', '..', 'examples');

export interface Project {
  readonly dir: string;
  /** Where it is installed. */
  readonly perdura: string;
  readonly tarball: string;
  remove(): void;
}

/** The tarball, as `npm publish` would send it; the build is the one that is tested. */
function pack(to: string): string {
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', to];
  const said = execFileSync('npm', args, { cwd: PRODUCT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const file = /"filename":\s*"([^"]+)"/.exec(said)?.[1];
  if (file === undefined) throw new Error(`npm pack did not say what it made:\n${said}`);
  return join(to, file);
}

/** Made once in a run of jest, by the test file that wants it first. */
async function packed(): Promise<string> {
  const dir = process.env['PERDURA_TEST_DIR'];
  if (dir === undefined) throw new Error('PERDURA_TEST_DIR is not set: it is the folder of this run of jest (global-setup.ts)');
  const file = join(dir, 'perdura.tgz');
  await withLock(`${file}.lock`, async () => {
    if (!existsSync(file)) renameSync(pack(dir), file);
  });
  return file;
}

export function installInto(dir: string, tarball: string): string {
  const perdura = join(dir, 'node_modules', 'perdura');
  mkdirSync(perdura, { recursive: true });
  execFileSync('tar', ['-xzf', tarball, '-C', perdura, '--strip-components=1']);
  const { dependencies } = JSON.parse(readFileSync(join(perdura, 'package.json'), 'utf8')) as { dependencies: Record<string, string> };
  for (const name of Object.keys(dependencies)) addPackage(dir, name);
  return perdura;
}

/** As `npm install NAME` does. */
export function addPackage(dir: string, name: string): void {
  const link = join(dir, 'node_modules', name);
  if (existsSync(link)) return;
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(join(PRODUCT, 'node_modules', name), link);
}

/** A copy of an example with our package installed; `null`: an empty folder. */
export async function openProject(example: string | null = 'own-agent'): Promise<Project> {
  const dir = mkdtempSync(join(tmpdir(), 'perdura-own-'));
  if (example !== null) cpSync(join(EXAMPLES, example), dir, { recursive: true, filter: (path) => !path.includes('node_modules') });
  const tarball = await packed();
  const perdura = installInto(dir, tarball);
  // As npm does for `npx` and the scripts of package.json.
  mkdirSync(join(dir, 'node_modules', '.bin'));
  symlinkSync(join('..', 'perdura', 'bin', 'perdura'), join(dir, 'node_modules', '.bin', 'perdura'));
  // What `npx` has started ends after it, and writes into the folder until then.
  const remove = (): void => rmSync(dir, { recursive: true, force: true, maxRetries: 12, retryDelay: 200 });
  return { dir, perdura, tarball, remove };
}
