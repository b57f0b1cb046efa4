/** There is no docker where the tests run: what can be read in the two files is checked against what they name. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { SETTINGS } from '../../src/config/settings.js';

const root = join(__dirname, '..', '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

interface Service {
  readonly image?: string;
  readonly build?: string;
  readonly command?: string | readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly profiles?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly stop_grace_period?: string;
}

const compose = parse(read('docker-compose.yml'), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
};
const services = Object.entries(compose.services);
const ours = services.filter(([, { image }]) => image === 'perdura');

/** One instruction a line, with what continues it. */
function dockerfile(): { readonly instruction: string; readonly words: readonly string[] }[] {
  return read('Dockerfile')
    .replace(/^\s*#.*$/gm, '')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .flatMap((line) => {
      const [instruction = '', ...words] = line.trim().split(/\s+/);
      return instruction === '' ? [] : [{ instruction, words }];
    });
}

test('the services are the ones that the README names; only the demo is behind a profile', () => {
  expect(services.map(([name]) => name).sort()).toEqual(['demo', 'demo-worker', 'gateway', 'redis', 'temporal', 'worker']);
  expect(services.filter(([, { profiles }]) => profiles).map(([name]) => name)).toEqual(['demo-worker', 'demo']);
});

test('every variable is a setting of ours or one of Temporal’s, and every default comes from the environment of that name', () => {
  const known: readonly string[] = SETTINGS.map(({ name }) => name);
  for (const [service, { environment = {} }] of services) {
    for (const [name, value] of Object.entries(environment)) {
      const isKnown = known.includes(name) || /^TEMPORAL_(ADDRESS|NAMESPACE|API_KEY|TLS.*|PROFILE)$/.test(name);
      expect({ service, name, isKnown }).toEqual({ service, name, isKnown: true });
      const taken = /\$\{(\w+)/.exec(value)?.[1];
      if (taken !== undefined) expect(taken).toBe(name);
    }
  }
  expect(ours).toHaveLength(4);
});

test('no secret stands in the file, and the demo has no key', () => {
  for (const name of ['demo', 'demo-worker']) expect(compose.services[name]?.environment?.['ANTHROPIC_API_KEY']).toBe('');
  expect(compose.services['worker']?.environment?.['ANTHROPIC_API_KEY']).toBe('${ANTHROPIC_API_KEY:-}');
});

test('every address in a variable is a service of this file', () => {
  for (const [, { environment = {} }] of ours) {
    expect(environment['TEMPORAL_ADDRESS']).toBe('temporal:7233');
    expect(environment['REDIS_URL']).toBe('redis://redis:6379');
  }
});

test('the token and the keys that worker and gateway make are kept', () => {
  for (const name of ['worker', 'gateway']) expect(compose.services[name]?.volumes).toContain('perdura:/app/.perdura');
});

test('every port is bound to this machine', () => {
  const ports = services.flatMap(([, service]) => service.ports ?? []);
  expect(ports.length).toBeGreaterThan(0);
  expect(ports.filter((port) => !/^127\.0\.0\.1:\d+:\d+$/.test(port))).toEqual([]);
});

test('Temporal is started with the flags that our own server is started with, and keeps its database', () => {
  const wanted = [.../'([a-zA-Z]+\.[a-zA-Z]+=[^']+)'/g[Symbol.matchAll](read('src/cli/services/temporal-binary.ts'))].map(
    ([, flag]) => flag,
  );
  expect(wanted).toHaveLength(6);
  const { command = [], volumes = [] } = compose.services['temporal'] ?? {};
  const given = [...command].flatMap((word) => (word.startsWith('--dynamic-config-value=') ? [word.split('=').slice(1).join('=')] : []));
  expect(given).toEqual(wanted);
  const folder = volumes[0]?.split(':')[1] ?? '?';
  expect(command).toContain(`--db-filename=${folder}/temporal.db`);
});

test('Redis appends to disk and evicts nothing', () => {
  const { command, volumes } = compose.services['redis'] ?? {};
  expect(command).toMatch(/--appendonly yes .*--maxmemory-policy noeviction/);
  expect(volumes).toEqual(['redis:/data']);
});

test('every volume is declared, and what is waited for has a healthcheck', () => {
  for (const [, { volumes = [], depends_on = {} }] of services) {
    for (const volume of volumes) expect(Object.keys(compose.volumes)).toContain(volume.split(':')[0]);
    for (const [name, { condition }] of Object.entries(depends_on)) {
      expect(condition).toBe('service_healthy');
      expect(compose.services[name]?.healthcheck?.test[0]).toBe('CMD');
    }
  }
});

test('the worker has more time to end than it takes itself, and its health is asked where it serves its metrics', () => {
  const grace = Number(/SHUTDOWN_GRACE = '(\d+)s'/.exec(read('src/worker.ts'))?.[1]);
  for (const [, { build, stop_grace_period, healthcheck, environment = {} }] of ours) {
    if (build === undefined) continue;
    expect(Number.parseInt(stop_grace_period ?? '0', 10)).toBeGreaterThan(grace);
    const port = environment['PERDURA_METRICS_ADDRESS']?.split(':')[1];
    expect(healthcheck?.test.join(' ')).toContain(`http://127.0.0.1:${port}/metrics`);
  }
});

test('the image runs as nobody special, from what its first stage has built', () => {
  const lines = dockerfile();
  const stages = lines.filter(({ instruction }) => instruction === 'FROM');
  expect(stages.map(({ words }) => words.join(' '))).toEqual(['node:22-slim AS build', 'node:22-slim']);
  const user = lines.findLastIndex(({ instruction }) => instruction === 'USER');
  expect(lines[user]?.words).toEqual(['node']);
  const after = lines.slice(user + 1).map(({ instruction, words }) => `${instruction} ${words.join(' ')}`);
  expect(after).toEqual(['ENTRYPOINT ["node", "dist/cli/main.js"]', 'CMD ["worker"]']);
});

test('every path that is copied is there, and the build is sent it', () => {
  const allowed = read('.dockerignore').trim().split('\n');
  expect(allowed[0]).toBe('*');
  const sources = dockerfile()
    .filter(({ instruction, words }) => instruction === 'COPY' && !words.some((word) => word.startsWith('--from=')))
    .flatMap(({ words }) => words.filter((word) => !word.startsWith('--')).slice(0, -1));
  expect(sources.length).toBeGreaterThan(8);
  for (const source of sources) {
    expect({ source, isThere: existsSync(join(root, source)), isSent: allowed.includes(`!${source}`) }).toEqual({
      source,
      isThere: true,
      isSent: true,
    });
  }
  // What is sent is needed.
  expect(
    allowed
      .slice(1)
      .map((line) => line.slice(1))
      .sort(),
  ).toEqual([...sources].sort());
});

test('what the first stage leaves behind is what the build makes and the package ships', () => {
  const built = dockerfile().flatMap(({ instruction, words }) =>
    instruction === 'COPY' && words.includes('--from=build') ? [words.at(-2)?.replace('/app/', '')] : [],
  );
  expect(built).toEqual(['package.json', 'node_modules', 'dist']);
  const { files } = JSON.parse(read('package.json')) as { files: string[] };
  // Pages, manifests, examples and types are for people.
  const forReaders = /^(?:types|docs|deploy|examples|bench|\w+\.md)(?:\/|$)/;
  const shipped = files.filter((path) => !path.startsWith('!') && path !== 'dist' && !forReaders.test(path));
  for (const path of shipped) expect(statSync(join(root, path)).isDirectory()).toBe(true);
  const copied = dockerfile().flatMap(({ instruction, words }) => (instruction === 'COPY' ? [words.at(-1)] : []));
  for (const path of shipped) expect(copied).toContain(path);
});

test('the image keeps the optional packages, in the versions of the lock file', () => {
  const builds = dockerfile().filter(({ instruction }) => instruction === 'RUN');
  expect(builds[1]?.words.join(' ')).toMatch(/node scripts\/keep-optional\.mjs && npm prune --omit=dev$/);
  const dir = mkdtempSync(join(tmpdir(), 'perdura-image-'));
  try {
    cpSync(join(root, 'scripts'), join(dir, 'scripts'), { recursive: true });
    cpSync(join(root, 'package.json'), join(dir, 'package.json'));
    execFileSync(process.execPath, [join(dir, 'scripts', 'keep-optional.mjs')]);
    type Own = Readonly<Record<'dependencies' | 'devDependencies' | 'peerDependencies', Readonly<Record<string, string>> | undefined>>;
    const own = JSON.parse(read('package.json')) as Own;
    const kept = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8')) as Own;
    const optional = Object.keys(own.peerDependencies ?? {});
    expect(optional.length).toBeGreaterThan(5);
    const moved = Object.fromEntries(optional.map((name) => [name, own.devDependencies?.[name]]));
    expect(kept.dependencies).toEqual({ ...own.dependencies, ...moved });
    expect([kept.peerDependencies, optional.filter((name) => name in (kept.devDependencies ?? {}))]).toEqual([undefined, []]);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
