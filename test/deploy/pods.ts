/**
 * Pods without a cluster: what a manifest starts, as the kubelet would start it. The image is this product, its root is read-only, only the
 * volumes are written, the environment is that of its ConfigMap and Secret, and probes come as a node sends them.
 */
import { spawn, spawnSync } from 'node:child_process';
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { freePort } from '../../src/testing/temporal-server.js';
import { dieWithUs } from '../support/reaper.js';
import { PRODUCT } from '../support/worker-process.js';

export const ROOT = join(__dirname, '..', '..');

export interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string; readonly httpHeaders?: readonly { name: string; value: string }[] };
  readonly periodSeconds?: number;
  readonly timeoutSeconds?: number;
  readonly failureThreshold?: number;
}

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } };
}

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly args: readonly string[];
  readonly env: readonly Variable[];
  readonly envFrom: readonly { readonly configMapRef?: { readonly name: string }; readonly secretRef?: { readonly name: string } }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly lifecycle?: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
  readonly resources: { readonly requests?: object; readonly limits?: object };
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}

export interface PodTemplate {
  readonly metadata: { readonly labels: Readonly<Record<string, string>>; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly securityContext: Readonly<Record<string, unknown>>;
    readonly terminationGracePeriodSeconds: number;
    readonly containers: readonly Container[];
    readonly volumes: readonly { readonly name: string }[];
    readonly automountServiceAccountToken: boolean;
  };
}

/** Any of them; what a test looks at, it knows. */
export interface Resource {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly data?: Readonly<Record<string, string>>;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as different as the kinds are
  readonly spec?: any;
}

export function readResources(yaml: string): Resource[] {
  return parseAllDocuments(yaml).flatMap((document) => {
    const [error] = document.errors;
    if (error) throw error;
    return document.contents === null ? [] : [document.toJS() as Resource];
  });
}

export function podOf(resources: readonly Resource[], component: string): PodTemplate {
  const found = resources.find(
    ({ kind, metadata }) => /Deployment$/.test(kind) && metadata.labels['app.kubernetes.io/component'] === component,
  );
  if (!found) throw new Error(`no manifest starts ${component}`);
  return (found.spec as { readonly template: PodTemplate }).template;
}

/** What the Dockerfile says of every container. */
export function imageSettings(): { readonly entrypoint: readonly string[]; readonly env: Readonly<Record<string, string>> } {
  const text = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
  const [, entrypoint = '[]'] = /^ENTRYPOINT (.*)$/m.exec(text) ?? [];
  const [, env = ''] = /^ENV (.*)$/m.exec(text) ?? [];
  const pairs = env.split(' ').map((pair) => pair.split('=') as [string, string]);
  return { entrypoint: JSON.parse(entrypoint) as string[], env: Object.fromEntries(pairs) };
}

/** Whether this machine can make a root that is read-only. */
export const hasReadOnlyRoot =
  spawnSync('bwrap', ['--unshare-user', '--uid', '1000', '--gid', '1000', '--ro-bind', '/', '/', 'true']).status === 0;

export interface PodOptions {
  readonly resources: readonly Resource[];
  readonly template: PodTemplate;
  /** Of the Secret that the manifests name. */
  readonly secret: Readonly<Record<string, string>>;
  /** What a name leads to in the cluster leads elsewhere here. */
  readonly instead: Readonly<Record<string, string>>;
  /** For its volumes. */
  readonly dir: string;
}

export interface Pod {
  readonly probe: (probe: Probe) => Promise<{ readonly passes: boolean; readonly body: string }>;
  /** As the kubelet waits for a container that starts. */
  readonly started: () => Promise<void>;
  readonly port: (name: string) => number;
  /** What it was told to do before, then SIGTERM; SIGKILL after its grace. */
  readonly end: () => Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  readonly kill: () => void;
  readonly log: () => string;
}

const KEPT_LOG = 16_000;

export async function startPod({ resources, template, secret, instead, dir }: PodOptions): Promise<Pod> {
  const [container] = template.spec.containers;
  if (!container) throw new Error('a pod without a container');
  const { entrypoint, env: ofImage } = imageSettings();
  // Another port for each that it listens at: this machine may have them in use.
  const ports = new Map<number, number>();
  for (const { containerPort } of container.ports) ports.set(containerPort, await freePort());
  const here = (text: string): string =>
    [...ports].reduce((now, [from, to]) => (now === String(from) ? String(to) : now.replace(new RegExp(`:${from}$`), `:${to}`)), text);
  const env = { ...environmentOf(container, resources, secret), ...instead };
  const variables = { ...ofImage, ...Object.fromEntries(Object.entries(env).map(([name, value]) => [name, here(value)])) };
  const command = [...entrypoint, ...container.args.map(here)].map((word, at) => (at === 0 && word === 'node' ? process.execPath : word));
  const child = spawnContained(command, { container, dir, env: { PATH: process.env['PATH'] ?? '', HOME: '/home/node', ...variables } });
  const spare = dieWithUs(child.pid ?? 0);
  let log = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => (log = (log + text).slice(-KEPT_LOG)));
  const main = new Promise<number>((resolve) => {
    const info = child.stdio[3];
    if (!hasReadOnlyRoot || info === null || info === undefined) return resolve(child.pid ?? 0);
    info.once('data', (text: Buffer) => resolve((JSON.parse(text.toString()) as { 'child-pid': number })['child-pid']));
  });
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) =>
    child.once('close', (code, signal) => {
      spare();
      resolve({ code, signal });
    }),
  );
  const port = (name: string): number => ports.get(container.ports.find((one) => one.name === name)?.containerPort ?? 0) ?? 0;
  const probe = (one: Probe) => ask(one, { port: port(one.httpGet.port), host: `10.244.1.7:${portOf(container, one.httpGet.port)}` });
  return {
    probe,
    port,
    async started() {
      const { periodSeconds = 10, failureThreshold = 3 } = container.startupProbe;
      for (let tries = 0; tries < failureThreshold; tries++) {
        if ((await probe(container.startupProbe)).passes) return;
        const isOver = await Promise.race([ended.then(() => true), new Promise((resolve) => setTimeout(resolve, periodSeconds * 1000))]);
        if (isOver === true) break;
      }
      throw new Error(`the kubelet would have given up ${container.name}:\n${log}`);
    },
    async end() {
      const { seconds = 0 } = container.lifecycle?.preStop.sleep ?? {};
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
      const pid = await main;
      process.kill(pid, 'SIGTERM');
      const grace = setTimeout(() => process.kill(pid, 'SIGKILL'), (template.spec.terminationGracePeriodSeconds - seconds) * 1000);
      const result = await ended;
      clearTimeout(grace);
      return result;
    },
    kill: () => void child.kill('SIGKILL'),
    log: () => log,
  };
}

function portOf({ ports }: Container, name: string): number {
  return ports.find((one) => one.name === name)?.containerPort ?? 0;
}

function environmentOf({ env, envFrom }: Container, resources: readonly Resource[], secret: Readonly<Record<string, string>>) {
  const from = envFrom.flatMap(({ configMapRef, secretRef }) => {
    if (secretRef) return Object.entries(secret);
    const map = resources.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === configMapRef?.name);
    if (!map) throw new Error(`there is no ConfigMap ${configMapRef?.name ?? ''}`);
    return Object.entries(map.data ?? {});
  });
  const named = env.map(({ name, value, valueFrom }): [string, string] => {
    const found = valueFrom ? secret[valueFrom.secretKeyRef.key] : value;
    if (found === undefined) throw new Error(`${name} has no value`);
    return [name, found];
  });
  return Object.fromEntries<string>([...from, ...named]);
}

/** In a root of this machine's programs and the image's folders, all of it read-only but the volumes. */
function spawnContained(
  command: readonly string[],
  { container, dir, env }: { readonly container: Container; readonly dir: string; readonly env: Record<string, string> },
) {
  const volumes = container.volumeMounts.map(({ name, mountPath }) => {
    const place = hasReadOnlyRoot ? join(dir, name) : join(dir, mountPath.replace('/app/', ''));
    mkdirSync(place, { recursive: true });
    return ['--bind', place, mountPath];
  });
  if (!hasReadOnlyRoot) {
    const [program = '', ...args] = command.map((word) => (word.startsWith('dist/') ? join(PRODUCT, word) : word));
    return spawn(program, args, {
      cwd: dir,
      env: { ...env, PERDURA_AGENTS_DIR: join(PRODUCT, 'agents') },
      stdio: ['ignore', 'pipe', 'pipe', 'ignore'],
    });
  }
  const system = readdirSync('/').flatMap((name) => {
    const path = `/${name}`;
    if (['app', 'tmp', 'home', 'proc', 'dev'].includes(name)) return [];
    return lstatSync(path).isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind-try', path, path];
  });
  const image = ['package.json', 'node_modules', 'dist', 'bin', 'agents', 'templates', 'data'];
  const app = image.flatMap((name) => ['--ro-bind', join(PRODUCT, name), `/app/${name}`]);
  const root = ['--tmpfs', '/', ...system, '--ro-bind', '/proc', '/proc', '--dev-bind', '/dev', '/dev', '--dir', '/home/node', ...app];
  const sandbox = ['--unshare-user', '--uid', '1000', '--gid', '1000', '--die-with-parent', '--info-fd', '3'];
  const args = [...sandbox, ...root, ...volumes.flat(), '--remount-ro', '/', '--chdir', '/app', ...command];
  return spawn('bwrap', args, { env, stdio: ['ignore', 'pipe', 'pipe', 'pipe'] });
}

/** From the node: to the pod's address, which is also the host that it names unless the manifest has another one. */
function ask({ httpGet, timeoutSeconds = 1 }: Probe, { port, host }: { readonly port: number; readonly host: string }) {
  const headers = { host, ...Object.fromEntries((httpGet.httpHeaders ?? []).map(({ name, value }) => [name.toLowerCase(), value])) };
  return new Promise<{ passes: boolean; body: string }>((resolve) => {
    const asked = request(
      { host: '127.0.0.1', port, path: httpGet.path, headers, timeout: timeoutSeconds * 1000, agent: false },
      (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (text: string) => (body += text));
        response.on('end', () => resolve({ passes: (response.statusCode ?? 0) >= 200 && (response.statusCode ?? 0) < 400, body }));
      },
    );
    asked.on('timeout', () => asked.destroy(new Error('no answer in time')));
    asked.on('error', (error) => resolve({ passes: false, body: error.message }));
    asked.end();
  });
}
