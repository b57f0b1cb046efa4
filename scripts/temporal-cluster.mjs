/**
 * What a Temporal cluster is made of: Temporal's own server and its tool for SQL, compiled from their Go module in the version that the
 * dev server contains, and PostgreSQL. What is compiled is kept in the cache, beside the dev server.
 */
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { findOnPath, installWithApt, runProgram } from './programs.mjs';
import { root } from './prepare.mjs';
import { Missing, report } from './report.mjs';

const MODULE = 'go.temporal.io/server';
/** As Go names what it compiles, and as we keep it. */
const PROGRAMS = { server: 'temporal-server', sql: 'temporal-sql-tool' };
const DEBIAN = '/usr/lib/postgresql';

const POSTGRES_WAYS = `Ways to get PostgreSQL:
  Debian, Ubuntu   sudo apt-get install postgresql
  macOS            brew install postgresql@17
then run the command again.`;

/** `temporal`: the dev server's program. Answers what test/support/temporal-cluster.ts reads from the environment. */
export async function findClusterPrograms(temporal) {
  const postgres = await findPostgres();
  const version = await serverVersion(temporal);
  const { loadMachine } = createRequire(import.meta.url)(join(root, 'dist', 'config.js'));
  const folder = join(loadMachine().cacheDir, 'cluster', version);
  const reason = await compileOnce(folder, version);
  report('Cluster', `${folder} (${reason}), PostgreSQL in ${postgres}`);
  return { PERDURA_TEST_CLUSTER: folder, PERDURA_TEST_POSTGRES: postgres };
}

async function serverVersion(temporal) {
  const { output } = await runProgram(temporal, ['--version']);
  const [, version] = /Server (\d+\.\d+\.\d+)/.exec(output) ?? [];
  if (version === undefined) throw new Missing(`${temporal} --version does not say which server it contains: ${output.trim()}`);
  return `v${version}`;
}

/** A folder is complete or not there: it is filled elsewhere, and then renamed. */
async function compileOnce(folder, version) {
  const isThere = () => Object.values(PROGRAMS).every((name) => findOnPath(name, folder) !== undefined);
  if (isThere()) return 'compiled earlier';
  const go = findOnPath('go');
  const what = `Temporal's server ${version}`;
  if (go === undefined)
    throw new Missing(`The tests need ${what}, which Go compiles, and Go is not on PATH: install it (https://go.dev/dl/).`);
  mkdirSync(dirname(folder), { recursive: true });
  const incoming = mkdtempSync(join(dirname(folder), 'incoming-'));
  const begin = Date.now();
  const minutes = () => `${Math.round((Date.now() - begin) / 6_000) / 10} minutes`;
  report('Cluster', `compiling ${what} and its SQL tool from ${MODULE}: about four minutes on two cores, once …`);
  const timer = setInterval(() => report('Cluster', `still compiling, ${minutes()}`), 60_000);
  try {
    const sources = [`${MODULE}/cmd/server@${version}`, `${MODULE}/cmd/tools/sql@${version}`];
    const { code, output } = await runProgram(go, ['install', ...sources], { env: { ...process.env, GOBIN: incoming } });
    if (code !== 0) throw new Missing(`\`go install ${sources.join(' ')}\` failed:\n${output.split('\n').slice(-5).join('\n')}`);
    for (const [from, to] of Object.entries(PROGRAMS)) renameSync(join(incoming, from), join(incoming, to));
    rmSync(folder, { recursive: true, force: true });
    renameSync(incoming, folder);
  } finally {
    clearInterval(timer);
    rmSync(incoming, { recursive: true, force: true });
  }
  return `compiled in ${minutes()}`;
}

/** The folder of its programs. Debian has them beside PATH, by version. */
async function findPostgres() {
  const look = () => {
    const onPath = ['initdb', 'postgres'].map((name) => findOnPath(name));
    if (onPath.every((found) => found !== undefined)) return dirname(onPath[0]);
    return versionsOfDebian().find((bin) => findOnPath('initdb', bin) !== undefined);
  };
  return look() ?? (await installWithApt('postgresql', { title: 'Postgres', ways: POSTGRES_WAYS, look }));
}

/** The newest first. */
function versionsOfDebian() {
  try {
    return readdirSync(DEBIAN)
      .sort((a, b) => Number(b) - Number(a))
      .map((version) => join(DEBIAN, version, 'bin'));
  } catch {
    return [];
  }
}
