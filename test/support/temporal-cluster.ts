/**
 * A Temporal cluster as people run it: PostgreSQL with Temporal's schema, 128 shards, and frontend, history, matching and worker as
 * processes of their own, two of each; behind one address, as a load balancer gives it. Programs: scripts/temporal-cluster.mjs.
 */
import { spawn, spawnSync, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection, type ConnectionOptions } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { SERVER_FLAGS } from '../../src/cli/services/temporal-binary.js';
import { isListening } from '../../src/cli/services/temporal-connection.js';
import { dieWithUs } from './reaper.js';

/** Two processes of each but the database. */
export const SERVICES = ['frontend', 'history', 'matching', 'worker', 'database'] as const;
export type ServiceName = (typeof SERVICES)[number];

export interface ClusterOptions {
  /** Processes of each service; default two. */
  readonly each?: number;
  /** Beside the cluster's defaults. */
  readonly dynamicConfig?: DynamicConfig;
  /** `global.tls` of the server's configuration. */
  readonly tls?: object;
  /** `global.authorization`. The cluster then has internal frontends for its worker service, which has no token. */
  readonly authorization?: object;
  /** How its namespace is made, where not everyone may: as an administrator. */
  readonly admin?: Pick<ConnectionOptions, 'tls' | 'apiKey'>;
}

export type DynamicConfig = Readonly<Record<string, unknown>>;

export interface Cluster {
  /** `host:port` of whichever frontend lives. */
  readonly address: string;
  /** SIGKILL; of all processes of a service, or of those with these numbers. */
  kill(service: ServiceName, ...numbers: readonly number[]): Promise<void>;
  /** Those that do not run, on the ports that they had. */
  start(service: ServiceName): void;
  /** In place of what `dynamicConfig` was; servers read it every five seconds. */
  setDynamicConfig(values: DynamicConfig): Promise<void>;
  /** Processes that ended by themselves, with the end of their logs. */
  deaths(): string[];
  stop(): Promise<void>;
}

/** What docs/operations tells people to set. */
export const RECOMMENDED: DynamicConfig = Object.fromEntries(
  SERVER_FLAGS.dynamicConfig.flatMap((flag) => {
    const [, name, value] = /^([\w.]+)=(.*)$/.exec(flag) ?? [];
    return name === undefined ? [] : [[name, JSON.parse(value ?? '') as unknown]];
  }),
);

/** Why tests of a cluster are skipped; undefined where they run. */
export const NO_CLUSTER =
  process.env['PERDURA_CLUSTER'] === '1'
    ? undefined
    : 'skipped, since a cluster is compiled first (minutes): PERDURA_CLUSTER=1 npm run test:slow -- test/cluster';

const SHARDS = 128;
const HOST = '127.0.0.1';
const READY_WITHIN_MS = 120_000;
const DATABASES = { temporal: 'postgresql/v12/temporal', temporal_visibility: 'postgresql/v12/visibility' };
const USER = 'temporal';

export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-cluster-'));
  const ends: (() => unknown)[] = [() => rm(dir, { recursive: true, force: true, maxRetries: 3 })];
  const stop = async (): Promise<void> => {
    for (let end = ends.pop(); end; end = ends.pop()) await end();
  };
  try {
    return await build(options, dir, ends, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

async function build(
  { each = 2, dynamicConfig = {}, tls, authorization, admin }: ClusterOptions,
  dir: string,
  ends: (() => unknown)[],
  stop: () => Promise<void>,
): Promise<Cluster> {
  const database = await makeDatabase(ends);
  const posts: Post[] = [{ name: 'database', service: 'database', n: 0, port: database.port, log: database.log, start: database.start }];
  const isGone = ({ process: child }: Post): boolean => child === undefined || child.exitCode !== null || child.signalCode !== null;
  const deaths = (): string[] =>
    posts.flatMap((post) =>
      post.process && isGone(post) ? [`${post.name} ended by itself: ${readFileSync(post.log, 'utf8').slice(-2_000)}`] : [],
    );
  const startOne = (post: Post): void => {
    const child = post.start();
    const spare = dieWithUs(child.pid ?? 0);
    child.once('exit', spare).once('error', () => undefined);
    post.process = child;
  };
  const killOne = async (post: Post, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    const child = post.process;
    delete post.process;
    // Else some of PostgreSQL's processes outlive the first one for a moment, and a new one refuses to start beside them.
    const children = post.service === 'database' && signal === 'SIGKILL' ? childrenOf(child) : [];
    if (child) await end(child, signal);
    children.forEach(killIfThere);
  };
  // At that, PostgreSQL ends its own processes at once.
  ends.push(() => Promise.all(posts.map((post) => killOne(post, post.service === 'database' ? 'SIGQUIT' : 'SIGKILL'))));

  const file = join(dir, 'dynamic.yaml');
  const setDynamicConfig = async (values: DynamicConfig): Promise<void> => {
    const rows = Object.entries(values).map(([name, value]) => [name, [{ value }]]);
    await writeFile(file, JSON.stringify(Object.fromEntries(rows)));
  };
  await setDynamicConfig(dynamicConfig);
  const names: readonly string[] = [...SERVICES.filter((name) => name !== 'database'), ...(authorization ? ['internal-frontend'] : [])];
  const places: Place[] = [];
  for (const service of names)
    for (let n = 0; n < each; n += 1) places.push({ service, n, port: await steadyPort(), membershipPort: await steadyPort() });
  const balancer = await startBalancer(places.flatMap(({ service, port }) => (service === 'frontend' ? [port] : [])));
  ends.push(
    () => new Promise((resolve) => balancer.close(resolve)),
    () => balancer.cut(),
  );
  for (const place of places) {
    const name = `${place.service}-${place.n}`;
    await mkdir(join(dir, name));
    const known = { places, database: database.port, balancer: balancer.port, dynamicConfig: file, tls, authorization };
    // JSON is YAML.
    await writeFile(join(dir, name, 'cluster.yaml'), JSON.stringify(serverConfig(place, known)));
    const log = join(dir, `${name}.log`);
    const args = ['--root', dir, '--config', name, '--env', 'cluster', '--allow-no-auth', 'start', '--service', place.service];
    posts.push({ ...place, name, log, start: () => intoLog(log, program('temporal-server'), args) });
  }

  const [store, first, ...others] = posts as [Post, Post, ...Post[]];
  startOne(store);
  await listening(store.port, deaths);
  await makeSchema(store.port);
  // The first one writes down what cluster this is; two that do so at once end.
  startOne(first);
  await listening(first.port, deaths);
  others.forEach(startOne);
  const address = `${HOST}:${balancer.port}`;
  await untilReady(address, admin, deaths);
  return {
    address,
    async kill(service, ...numbers) {
      const those = posts.filter((post) => post.service === service && (numbers.length === 0 || numbers.includes(post.n)));
      await Promise.all(those.map((post) => killOne(post)));
    },
    start: (service) => posts.filter((post) => post.service === service && isGone(post)).forEach(startOne),
    setDynamicConfig,
    deaths,
    stop,
  };
}

/** Where one process of a service is. */
interface Place {
  readonly service: string;
  readonly n: number;
  readonly port: number;
  readonly membershipPort: number;
}

interface Post extends Omit<Place, 'membershipPort'> {
  readonly name: string;
  readonly log: string;
  readonly start: () => ChildProcess;
  /** While it is meant to run. */
  process?: ChildProcess;
}

function intoLog(file: string, path: string, args: readonly string[], options: SpawnOptions = {}): ChildProcess {
  const log = openSync(file, 'a');
  const child = spawn(path, args, { ...options, stdio: ['ignore', log, log] });
  closeSync(log);
  return child;
}

interface Surroundings extends Pick<ClusterOptions, 'tls' | 'authorization'> {
  readonly places: readonly Place[];
  readonly database: number;
  readonly balancer: number;
  readonly dynamicConfig: string;
}

/** What Temporal's own images make of their variables, for one process of one service. */
function serverConfig(place: Place, { places, database, balancer, dynamicConfig, tls, authorization }: Surroundings): object {
  const store = (databaseName: string, maxConns: number): object => ({
    sql: {
      ...{ pluginName: 'postgres12', databaseName, connectAddr: `${HOST}:${database}`, connectProtocol: 'tcp', user: USER, password: USER },
      ...{ maxConns, maxIdleConns: maxConns, maxConnLifetime: '1h' },
    },
  });
  const toRpc = ({ port: grpcPort, membershipPort }: Place): object => ({ rpc: { grpcPort, membershipPort, bindOnIP: HOST } });
  return {
    log: { stdout: true, level: 'warn' },
    persistence: {
      ...{ numHistoryShards: SHARDS, defaultStore: 'default', visibilityStore: 'visibility' },
      datastores: { default: store('temporal', 20), visibility: store('temporal_visibility', 10) },
    },
    global: {
      membership: { maxJoinDuration: '30s', broadcastAddress: HOST },
      ...(tls && { tls }),
      ...(authorization && { authorization }),
    },
    // It must know of every service, and finds the processes of the others by itself.
    services: Object.fromEntries([...places, place].map((one) => [one.service, toRpc(one)])),
    clusterMetadata: {
      ...{ enableGlobalNamespace: false, failoverVersionIncrement: 10, masterClusterName: 'active', currentClusterName: 'active' },
      clusterInformation: {
        active: { enabled: true, initialFailoverVersion: 1, rpcName: 'frontend', rpcAddress: `${HOST}:${balancer}` },
      },
    },
    dcRedirectionPolicy: { policy: 'noop' },
    archival: { history: { state: 'disabled' }, visibility: { state: 'disabled' } },
    namespaceDefaults: { archival: { history: { state: 'disabled' }, visibility: { state: 'disabled' } } },
    dynamicConfigClient: { filepath: dynamicConfig, pollInterval: '5s' },
  };
}

function program(name: string): string {
  const folder = process.env['PERDURA_TEST_CLUSTER'];
  if (folder === undefined) throw new Error('PERDURA_TEST_CLUSTER names no folder: start these tests with npm test, which sets it');
  return join(folder, name);
}

/** PostgreSQL in a folder of its own; it refuses to run as root. `ends` gets what removes it. */
async function makeDatabase(ends: (() => unknown)[]): Promise<Pick<Post, 'port' | 'log' | 'start'>> {
  const bin = process.env['PERDURA_TEST_POSTGRES'] ?? '';
  const user = process.getuid?.() === 0 ? unprivileged() : undefined;
  const dir = await mkdtemp(join(tmpdir(), 'perdura-postgres-'));
  ends.push(() => rm(dir, { recursive: true, force: true, maxRetries: 3 }));
  if (user) await chown(dir, user.uid, user.gid);
  const [data, log] = [join(dir, 'data'), join(dir, 'log')];
  const options = { ...user, cwd: dir };
  await run(join(bin, 'initdb'), ['-D', data, '-U', USER, '--auth=trust', '-E', 'UTF8', '--no-locale', '--no-sync'], options);
  const port = await steadyPort();
  const settings = { listen_addresses: HOST, port, unix_socket_directories: '', max_connections: 300 };
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  return { port, log, start: () => intoLog(log, join(bin, 'postgres'), ['-D', data, ...args], options) };
}

async function makeSchema(port: number): Promise<void> {
  for (const [database, schema] of Object.entries(DATABASES)) {
    const at = ['--plugin', 'postgres12', '--ep', HOST, '-p', String(port), '-u', USER, '--pw', USER, '--db', database];
    const tool = (...args: readonly string[]): Promise<void> => run(program('temporal-sql-tool'), [...at, ...args]);
    await tool('create');
    await tool('setup-schema', '-v', '0.0');
    await tool('update-schema', '--schema-name', schema);
  }
}

function unprivileged(): { readonly uid: number; readonly gid: number } {
  const rows = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const [, , uid, gid] = rows.find(([name]) => name === 'postgres') ?? rows.find(([name]) => name === 'nobody') ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

async function run(path: string, args: readonly string[], options: SpawnOptions = {}): Promise<void> {
  const child = spawn(path, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-2_000)));
  const code = await new Promise((resolve) => child.once('error', (error) => resolve(error.message)).once('close', resolve));
  if (code !== 0) throw new Error(`${path} ${args.join(' ')} ended with ${String(code)}:\n${output}`);
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  await ended;
}

function childrenOf(child: ChildProcess | undefined): number[] {
  const { stdout } = spawnSync('pgrep', ['-P', String(child?.pid)], { encoding: 'utf8' });
  return stdout.split('\n').filter(Boolean).map(Number);
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Below those that the system gives to connections: while its process is dead no other takes it. */
export async function steadyPort(): Promise<number> {
  for (;;) {
    const port = randomInt(12_000, 32_000);
    if (!(await isListening(`${HOST}:${port}`))) return port;
  }
}

async function listening(port: number, deaths: () => readonly string[]): Promise<void> {
  for (const deadline = Date.now() + READY_WITHIN_MS; !(await isListening(`${HOST}:${port}`)); await sleep(50)) {
    const [death] = deaths();
    if (death) throw new Error(death);
    // clock: a bound that only a hang meets
    if (Date.now() > deadline) throw new Error(`nothing listened on ${port} within ${READY_WITHIN_MS / 1000} s`);
  }
}

/** Makes the namespace `default`, as `temporal operator namespace create` does, once frontend and history work together. */
async function untilReady(address: string, admin: ClusterOptions['admin'], deaths: () => string[]): Promise<void> {
  let trouble: unknown;
  for (const deadline = Date.now() + READY_WITHIN_MS; ; await sleep(200)) {
    const [death] = deaths();
    if (death) throw new Error(death);
    // clock: a bound that only a hang meets
    if (Date.now() > deadline)
      throw new Error(`the cluster did not answer on ${address} within ${READY_WITHIN_MS / 1000} s`, { cause: trouble });
    const connection = await Connection.connect({ ...admin, address, connectTimeout: 2_000 }).catch(
      (error: unknown) => void (trouble = error),
    );
    try {
      if (connection && (await serves(connection))) return;
    } catch (error) {
      trouble = error;
    } finally {
      await connection?.close();
    }
  }
}

const ALREADY_EXISTS = 6;

/** A new namespace is known everywhere after a while: a workflow must start. */
async function serves({ workflowService }: Connection): Promise<boolean> {
  const namespace = 'default';
  await workflowService
    .registerNamespace({ namespace, workflowExecutionRetentionPeriod: msToTs('1 day') })
    .catch((error: { code?: unknown }) => {
      if (error.code !== ALREADY_EXISTS) throw error;
    });
  const id = `ready-${randomInt(1e9)}`;
  await workflowService.startWorkflowExecution({
    ...{ namespace, workflowId: id, requestId: id, workflowType: { name: 'ready' }, taskQueue: { name: id } },
  });
  await workflowService.terminateWorkflowExecution({ namespace, workflowExecution: { workflowId: id }, reason: 'it works' });
  await workflowService.listWorkflowExecutions({ namespace, pageSize: 1 });
  return true;
}

interface Balancer extends Pick<Server, 'close'> {
  readonly port: number;
  cut(): void;
}

/** One address before those of the frontends that live, as a service of Kubernetes: each connection goes to the next one. */
async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const sockets = new Set<Socket>();
  let turn = 0;
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
  };
  const server = createServer((client) => {
    keep(client);
    const tryNext = (left: number): void => {
      turn += 1;
      const upstream = connect(ports[turn % ports.length]!, HOST);
      keep(upstream);
      const again = (): void => void (left > 0 ? tryNext(left - 1) : client.destroy());
      upstream.once('error', again).once('connect', () => {
        upstream.off('error', again).once('close', () => client.destroy());
        client.once('close', () => upstream.destroy());
        client.pipe(upstream).pipe(client);
      });
    };
    tryNext(ports.length - 1);
  });
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close: server.close.bind(server),
    cut: () => sockets.forEach((socket) => socket.destroy()),
  };
}
