/**
 * `npm run storm`: people talk to conversations while worker, gateway, Redis and Temporal are killed, stopped and lied to; then what was
 * said is checked against what came back. On servers that it starts itself, on loopback, in a namespace of processes and mounts of its own
 * where the system allows that: nothing is left of it.
 */
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { prepare, root } from './prepare.mjs';
import { findRedisServer } from './redis-server.mjs';
import { report, run } from './report.mjs';
import { findClusterPrograms } from './temporal-cluster.mjs';

const HELP = `npm run storm -- [options]

  --minutes N        how long people talk (2; what is published: 60)
  --seed N           what is said and done (by chance; it is told at the end)
  --store NAME       redis or files (redis)
  --redis-cluster    a Redis Cluster of six processes, whose masters are killed, and nothing else: 50 at a time, every 20 s
  --cluster          Temporal as a cluster on PostgreSQL, whose processes are killed; it is compiled first, in minutes
  --builds           workers of two builds, v1 and v2 (Worker Versioning), and deploys and roll-backs among the faults
  --again            then each conversation is played again (\`perdura whatif\`), which must be the same
  --bad-week         no chance: the drill of a bad week, day by day, on a Temporal cluster and a Redis Cluster (5 minutes, 6 people)
  --at-once N        conversations at a time (12)
  --every-ms N       milliseconds between two faults, on average (3000)
  --keep             leave everything that it made where it is, and say where
  -o, --output json  the figures as JSON; text otherwise
  --help             this

Exit codes: 0 everything held; 1 something did not, which is told with the seed, and kept; 2 it could not be run; 3 a program is missing.
What is checked: docs/security.md, "The storm".
`;

await run(async () => {
  const options = read(process.argv.slice(2));
  if (options === undefined) return void process.stdout.write(HELP);
  await prepare({ types: false });
  const { findTemporalBinary } = createRequire(import.meta.url)(join(root, 'dist', 'cli', 'services', 'temporal-binary.js'));
  const temporal = await findTemporalBinary((text) => report('Temporal', text));
  report('Temporal', `${temporal.path} (${temporal.reason})`);
  const redis = await findRedisServer();
  report('Redis', `${redis.path} (${redis.reason})`);
  const cluster = options.cluster ? await findClusterPrograms(temporal.path) : {};
  // PostgreSQL runs as another user than root, whom the namespace of a user does not know.
  const namespace = options.cluster && process.getuid?.() !== 0 ? undefined : ownNamespace();
  report(
    'Processes',
    namespace ? 'in a namespace of their own' : 'not in a namespace of their own, which this system does not allow: no disk is filled',
  );
  report(options.badWeek ? 'Bad week' : 'Storm', `${options.minutes} minutes${options.badWeek ? '' : `, seed ${options.seed}`}`);
  const folder = mkdtempSync(join(tmpdir(), 'perdura-storm-'));
  // The user of PostgreSQL passes through it.
  if (options.cluster) chmodSync(folder, 0o711);
  try {
    return await blow({ ...options, mayMount: namespace !== undefined, keepIn: tmpdir() }, { namespace, folder, temporal, redis, cluster });
  } finally {
    if (options.keep) report('Kept', folder);
    else rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
});

async function blow(options, { namespace = [], folder, temporal, redis, cluster }) {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(TEMPORAL_|PERDURA_|REDIS_URL$|ANTHROPIC_)/.test(name));
  const env = {
    ...Object.fromEntries(inherited),
    TMPDIR: folder,
    PERDURA_TEST_TEMPORAL: temporal.path,
    PERDURA_TEST_REDIS: redis.path,
    ...cluster,
    PERDURA_TEST_BUNDLE: join(root, 'dist', 'workflow-bundle.js'),
  };
  const program = ['--require', join(root, 'test', 'stores', 'register-swc.cjs'), join(root, 'test', 'storm', 'main.ts')];
  const [command, ...args] = [...namespace, process.execPath, ...program, JSON.stringify(options)];
  return await new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, env, stdio: 'inherit' });
    // Ctrl+C in a terminal is for all of us: it ends in order, and then we do.
    process.on('SIGINT', () => undefined);
    process.on('SIGTERM', () => child.kill('SIGKILL'));
    child.on('error', reject).on('close', (code) => resolve(code ?? 2));
  });
}

/** Undefined: only help is wanted. */
function read(args) {
  const options = {
    ...{ minutes: { type: 'string' }, seed: { type: 'string' }, store: { type: 'string' }, 'at-once': { type: 'string' } },
    ...{
      'every-ms': { type: 'string' },
      'redis-cluster': { type: 'boolean' },
      keep: { type: 'boolean' },
      cluster: { type: 'boolean' },
      builds: { type: 'boolean' },
      again: { type: 'boolean' },
      'bad-week': { type: 'boolean' },
      output: { type: 'string', short: 'o' },
      help: { type: 'boolean' },
    },
  };
  let values;
  try {
    ({ values } = parseArgs({ args, options }));
  } catch (error) {
    throw usage(error.message);
  }
  if (values.help) return undefined;
  const number = (name, otherwise, { least, most }) => {
    const value = values[name] === undefined ? otherwise : Number(values[name]);
    if (!(value >= least && value <= most)) throw usage(`--${name} takes a number from ${least} to ${most}, and not ${values[name]}`);
    return value;
  };
  const oneOf = (name, known, otherwise) => {
    const value = values[name] ?? otherwise;
    if (!known.includes(value)) throw usage(`--${name} takes ${known.join(' or ')}, and not ${value}`);
    return value;
  };
  const badWeek = values['bad-week'] ?? false;
  if (badWeek && ['store', 'redis-cluster', 'cluster', 'builds', 'again', 'seed', 'every-ms'].some((name) => values[name] !== undefined))
    throw usage('--bad-week has its own servers and its own order: leave out all but --minutes, --at-once, --keep and --output');
  const isCluster = values['redis-cluster'] ?? false;
  if (isCluster && (values.store !== undefined || values.builds))
    throw usage('--redis-cluster is a store of its own, in which masters alone are killed: leave out --store and --builds');
  return {
    minutes: number('minutes', badWeek ? 5 : 2, { least: 0.1, most: 10_000 }),
    seed: number('seed', Math.floor(Math.random() * 2 ** 31), { least: 0, most: 2 ** 31 - 1 }),
    store: isCluster ? 'redis-cluster' : oneOf('store', ['redis', 'files'], 'redis'),
    atOnce: number('at-once', badWeek ? 6 : isCluster ? 50 : 12, { least: 1, most: 200 }),
    betweenFaultsMs: number('every-ms', isCluster ? 20_000 : 3_000, { least: 50, most: 3_600_000 }),
    keep: values.keep ?? false,
    cluster: badWeek || (values.cluster ?? false),
    builds: values.builds ?? false,
    again: values.again ?? false,
    badWeek,
    json: oneOf('output', ['json', 'text'], 'text') === 'json',
  };
}

function usage(message) {
  return Object.assign(new Error(`${message}\n\n${HELP}`), { exitCode: 2 });
}

/** The words before the command that it is to run; undefined where the system does not allow it. */
function ownNamespace() {
  const words = ['unshare', ...(process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'])];
  const full = [...words, '--pid', '--fork', '--kill-child', '--mount', '--mount-proc'];
  return spawnSync(full[0], [...full.slice(1), 'true'], { stdio: 'ignore' }).status === 0 ? full : undefined;
}
