/** Clients that other people's programs make of the document of the native API, and what is done with them. */
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installPackages, named } from './npm-packages.js';
import { environment, onPypi, outcomesIn, PROGRAMS } from './python.js';
import { runProgram } from './run-program.js';
import type { ClientPlace, Outcome, Suite } from './suite.js';

const IN_PYTHON = 'openapi-python-client==0.29.1';
const TYPES = 'openapi-typescript@7.13.0';
const FETCH = 'openapi-fetch@0.17.0';
/** The newest that openapi-typescript takes. */
const TYPESCRIPT = 'typescript@5.9.3';
const OWN = ['typed-by-document.mjs', 'checks.mjs'];

export const GENERATED_CLIENTS: readonly Suite[] = [
  { name: 'OpenAPI, client made for Python', client: onPypi(IN_PYTHON), run: inPython },
  { name: 'OpenAPI, types made for TypeScript', client: `${named(TYPES)} with ${named(FETCH)} (npm)`, run: inTypescript },
];

async function inPython({ cacheDir, url, token }: ClientPlace): Promise<readonly Outcome[]> {
  const python = await environment(cacheDir, [IN_PYTHON]);
  return inNewDir(async (dir) => {
    const made = await runProgram(
      join(python, '..', 'openapi-python-client'),
      ['generate', '--url', `${url}/openapi.json`, '--output-path', join(dir, 'perdura_client'), '--meta', 'none'],
      { cwd: dir },
    );
    const said = `${made.stdout}${made.stderr}`;
    // A file may be of any type, for which it makes no parser.
    const missing = [...said.matchAll(/^(?:Unable to process|WARNING parsing) (.*)$/gm)].map(([, what = '']) => what);
    const isWhole = made.code === 0 && missing.every((what) => what.startsWith('GET /v1/attachments/{ref}/content'));
    if (!isWhole) return [{ check: 'it is made', result: 'failed', why: said.slice(-2_000) }];
    const env = { PERDURA_URL: url, PERDURA_TOKEN: token, PYTHONPATH: dir, PYTHONDONTWRITEBYTECODE: '1' };
    return outcomesIn(await runProgram(python, [join(PROGRAMS, 'generated_client.py')], { cwd: dir, env }));
  });
}

async function inTypescript({ cacheDir, url, token }: ClientPlace): Promise<readonly Outcome[]> {
  const packages = await installPackages(cacheDir, [TYPES, FETCH, TYPESCRIPT]);
  // A module finds packages beside itself.
  const dir = join(packages.dir, 'typed');
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir);
  for (const file of OWN) await copyFile(join(__dirname, 'js', file), join(dir, file));
  const [program = ''] = OWN.map((file) => join(dir, file));
  const types = join(dir, 'perdura.d.ts');
  const made = await packages.run({ bin: 'openapi-typescript' }, [`${url}/openapi.json`, '--output', types]);
  const compiled = await packages.run({ bin: 'tsc' }, [
    ...['--strict', '--noUncheckedIndexedAccess', '--noEmit', '--allowJs', '--target', 'es2022', '--module', 'nodenext'],
    ...[types, program],
  ]);
  const check = 'its types compile, with a program of them';
  if (made.code !== 0 || compiled.code !== 0) {
    return [{ check, result: 'failed', why: `${made.stderr}${compiled.stdout}`.slice(0, 2_000) }];
  }
  const ran = await packages.run({ file: program }, [], { PERDURA_URL: url, PERDURA_TOKEN: token });
  return [{ check, result: 'passed' }, ...outcomesIn(ran)];
}

async function inNewDir<T>(act: (dir: string) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-openapi-'));
  try {
    return await act(dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
