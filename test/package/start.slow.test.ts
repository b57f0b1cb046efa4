/** A project that `perdura init` makes, from the tarball: written, type-checked, tested, and told what is wrong. */
import { execFile } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { temporalProgram } from '../support/temporal-server.js';
import { PRODUCT } from '../support/worker-process.js';
import { addPackage, openProject, type Project } from './linked-package.js';

const run = promisify(execFile);

/** An empty folder with our package installed, and what the made project has installed beside it. */
let place: Project;
let made: string;

beforeAll(async () => {
  place = await openProject(null);
  for (const name of ['typescript', '@types/node', 'undici-types']) addPackage(place.dir, name);
  made = join(place.dir, 'books');
});
afterAll(() => place.remove());

interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function say(program: string, args: readonly string[], cwd = place.dir): Promise<Said> {
  const env = { ...process.env, PATH: `${dirname(temporalProgram())}:${process.env['PATH']}`, HOME: place.dir };
  return run(program, args, { cwd, env, timeout: 240_000 }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }: Said) => ({ code, stdout, stderr }),
  );
}

const perdura = (...args: string[]): Promise<Said> => say(join(place.dir, 'node_modules', '.bin', 'perdura'), args);

const DOCUMENT = readFileSync(join(PRODUCT, 'docs', 'how-to', 'test-your-agent.md'), 'utf8');

test('a project is made, its types are right and its tests are green, and so is every test of the document', async () => {
  const { code, stdout, stderr } = await perdura('init', 'books', '--no-install', '-o', 'json');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toMatchObject({ folder: made, name: 'books', perdura: '^0.1.0', installed: false });
  const { files } = JSON.parse(stdout) as { readonly files: readonly string[] };
  expect(files).toEqual(expect.arrayContaining(['.gitignore', '.env.example', 'package.json', 'perdura.config.ts', 'test/ledger.test.ts']));
  expect(files.filter((path) => !existsSync(join(made, path)))).toEqual([]);
  expect(readFileSync(join(made, 'README.md'), 'utf8')).toMatch(/^# books\n/);
  expect(JSON.parse(readFileSync(join(made, 'package.json'), 'utf8'))).toMatchObject({
    name: 'books',
    dependencies: { perdura: '^0.1.0' },
  });

  const blocks = [...DOCUMENT.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code = '']) => code);
  expect(blocks).toHaveLength(3);
  blocks.forEach((block, i) => writeFileSync(join(made, 'test', `document-${i}.test.ts`), block));
  // Packages are looked for in the folder above, too.
  const tsc = join(place.dir, 'node_modules', 'typescript', 'bin', 'tsc');
  const [checked, tested] = await Promise.all([say(process.execPath, [tsc], made), say('npm', ['test'], made)]);
  expect(checked).toEqual({ code: 0, stdout: '', stderr: '' });
  expect(`${tested.stdout}${tested.stderr}`).toMatch(/# pass 6\n# fail 0\n/);
  const evaluated = await say('npm', ['run', 'eval'], made);
  expect([evaluated.code, evaluated.stderr]).toEqual([0, expect.stringContaining('1 of 1 run passed')]);
});

test('what is there is not overwritten unless --force says so, and a link is not followed then', async () => {
  const other = join(place.dir, 'other');
  mkdirSync(other);
  writeFileSync(join(other, 'package.json'), '{}');
  writeFileSync(join(place.dir, 'outside'), 'mine');
  symlinkSync(join('..', 'outside'), join(other, 'README.md'));
  const refused = await perdura('init', 'other', '--no-install');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(
    /other has 2 files already that a project would overwrite: README\.md, package\.json\. Nothing was written/,
  );
  expect(readdirSync(other).sort()).toEqual(['README.md', 'package.json']);
  const forced = await perdura('init', 'other', '--no-install', '--force');
  expect(forced.code).toBe(0);
  expect(forced.stdout).toMatch(/Made other: 11 files in .*\n\n {2}cd other\n {2}npm install\n {2}npm test +the agent/);
  expect(lstatSync(join(other, 'README.md')).isSymbolicLink()).toBe(false);
  expect(readFileSync(join(place.dir, 'outside'), 'utf8')).toBe('mine');
});

test.each<[what: string, args: string[], code: number, message: RegExp]>([
  ['a name that npm does not take', ['My Agent'], 2, /"My Agent" cannot be the name of a package: lower-case .*; try --name my-agent/],
  ['the name of Perdura itself', ['x', '--name', 'perdura'], 2, /a project cannot be called "perdura"; try --name my-agent/],
  ['a file in the place of the folder', ['outside-file'], 1, /cannot make the folder .*outside-file: a file of that name is there/],
])('%s is refused, and nothing is written', async (_what, args, code, message) => {
  writeFileSync(join(place.dir, 'outside-file'), '');
  const before = readdirSync(place.dir).sort();
  const said = await perdura('init', ...args, '--no-install');
  expect(said.code).toBe(code);
  expect(said.stderr).toMatch(message);
  expect(readdirSync(place.dir).sort()).toEqual(before);
});

test('packages that cannot be installed leave the project, and say what to do', async () => {
  const bin = join(place.dir, 'broken-bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'npm'), '#!/bin/sh\necho "npm error network is away" >&2\nexit 7\n', { mode: 0o755 });
  const program = join(place.dir, 'node_modules', '.bin', 'perdura');
  const said = await say('env', [`PATH=${bin}:${process.env['PATH']}`, program, 'init', 'offline']);
  expect(said.code).toBe(1);
  expect(said.stderr).toMatch(/network is away\n\nThe project is in .*offline, but its packages are not: `npm install` ended with code 7/);
  expect(existsSync(join(place.dir, 'offline', 'package.json'))).toBe(true);
});

test('`npm create perdura` is the same command, of the same version', async () => {
  const source = join(PRODUCT, 'packages', 'create-perdura');
  const { version, dependencies, bin } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')) as {
    readonly version: string;
    readonly dependencies: Readonly<Record<string, string>>;
    readonly bin: Readonly<Record<string, string>>;
  };
  const ours = JSON.parse(readFileSync(join(PRODUCT, 'package.json'), 'utf8')) as { readonly version: string };
  expect([version, dependencies['perdura']]).toEqual([ours.version, ours.version]);
  const installed = join(place.dir, 'node_modules', 'create-perdura');
  mkdirSync(join(installed, 'bin'), { recursive: true });
  for (const file of ['package.json', bin['create-perdura'] ?? '']) writeFileSync(join(installed, file), readFileSync(join(source, file)));
  const create = (...args: string[]): Promise<Said> => say(process.execPath, [join(installed, bin['create-perdura'] ?? ''), ...args]);
  expect((await create('--no-install')).stdout).toMatch(/^Made my-agent: 11 files/);
  expect((await create('created', '--no-install')).stdout).toMatch(/^Made created: 11 files/);
});
