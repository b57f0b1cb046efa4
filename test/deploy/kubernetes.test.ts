/** What can be read in the manifests is checked against what they name: each other, the image, settings and commands. Their schemas: schemas.slow.test.ts. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { RUN } from '../../src/cli/commands/run.js';
import { SETTINGS } from '../../src/config/settings.js';
import { podOf, readResources, ROOT, type Resource } from './pods.js';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const FILES = ['perdura.yaml', 'worker-controller.yaml'];
const all: readonly (readonly [string, Resource[]])[] = FILES.map((name) => [name, readResources(read(`deploy/kubernetes/${name}`))]);
const COMPONENTS = ['worker', 'gateway'];
const COMPONENT = 'app.kubernetes.io/component';

const kindsIn = (resources: readonly Resource[]): string[] => resources.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort();
const settingNames: readonly string[] = SETTINGS.map(({ name }) => name);
const isVariable = (name: string): boolean => settingNames.includes(name) || /^TEMPORAL_(ADDRESS|NAMESPACE|API_KEY|TLS(_\w+)?)$/.test(name);

test('there is all that an installation needs, and the worker controller takes the place of the Deployment', () => {
  const common = ['ConfigMap perdura', 'Deployment perdura-gateway', 'NetworkPolicy perdura-gateway', 'NetworkPolicy perdura-worker'];
  const shared = [...common, 'PodDisruptionBudget perdura-gateway', 'Service perdura-gateway'];
  const [plain, controlled] = all.map(([, resources]) => kindsIn(resources));
  expect(plain).toEqual(
    [...shared, 'Deployment perdura-worker', 'HorizontalPodAutoscaler perdura-worker', 'PodDisruptionBudget perdura-worker'].sort(),
  );
  const versions = [
    'WorkerDeployment perdura-worker',
    'WorkerResourceTemplate perdura-worker-hpa',
    'WorkerResourceTemplate perdura-worker-pdb',
  ];
  expect(controlled).toEqual([...shared, 'Connection perdura', ...versions].sort());
});

test('no secret is in a manifest: the Secret that they name is made before', () => {
  for (const [file] of all) expect(read(`deploy/kubernetes/${file}`)).not.toMatch(/kind: Secret$|stringData|password/m);
  for (const [, resources] of all) {
    for (const component of COMPONENTS) {
      const [container] = podOf(resources, component).spec.containers;
      expect(container!.envFrom).toEqual([{ configMapRef: { name: 'perdura' } }, { secretRef: { name: 'perdura' } }]);
    }
  }
});

describe.each(all)('%s', (_, resources) => {
  const pods = COMPONENTS.map((component) => [component, podOf(resources, component)] as const);

  test('every variable is a setting of ours or one of Temporal’s', () => {
    const names = pods.flatMap(([, { spec }]) => spec.containers.flatMap(({ env }) => env.map(({ name }) => name)));
    const configured = resources.flatMap(({ kind, data }) => (kind === 'ConfigMap' ? Object.keys(data ?? {}) : []));
    expect([...names, ...configured].filter((name) => !isVariable(name))).toEqual([]);
    expect(names.length).toBeGreaterThan(7);
  });

  test('what a container is told to do is a command of ours, with options that it has', () => {
    for (const [, { spec }] of pods) {
      const [command, ...rest] = spec.containers[0]!.args;
      const row = RUN.find(({ name }) => name === command);
      const known = (row?.options ?? []).flatMap((option) => (Array.isArray(option) ? [String(option[0]).split(' ')[0]] : []));
      expect([command, row === undefined]).toEqual([command, false]);
      expect(rest.filter((word) => word.startsWith('--') && !known.includes(word))).toEqual([]);
    }
  });

  test('probes and policies ask at ports that the container has, where the product is told to listen', () => {
    for (const [component, { spec }] of pods) {
      const [{ ports, env, args, startupProbe, livenessProbe, readinessProbe }] = spec.containers as [(typeof spec.containers)[number]];
      for (const probe of [startupProbe, livenessProbe, readinessProbe])
        expect(ports.map(({ name }) => name)).toContain(probe.httpGet.port);
      expect([startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet.path)).toEqual(['/healthz', '/healthz', '/readyz']);
      const listened = [
        ...env.flatMap(({ value = '' }) => /^0\.0\.0\.0:(\d+)$/.exec(value)?.[1] ?? []),
        ...args.filter((word) => /^\d+$/.test(word)),
      ];
      expect(listened.map(Number).sort()).toEqual(ports.map(({ containerPort }) => containerPort).sort());
      const policy = resources.find(({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.labels[COMPONENT] === component)!;
      const opened = (policy.spec as { ingress: { ports: { port: string }[] }[] }).ingress.flatMap((rule) =>
        rule.ports.map(({ port }) => port),
      );
      expect(opened.filter((name) => !ports.some((port) => port.name === name))).toEqual([]);
    }
  });

  test('a worker has more time to end than it takes, and more to answer than one that stands still has before it ends itself', () => {
    const source = read('src/worker.ts');
    const grace = Number(/SHUTDOWN_GRACE = '(\d+)s'/.exec(source)?.[1]);
    const [, worker] = pods[0]!;
    expect(worker.spec.terminationGracePeriodSeconds).toBeGreaterThan(grace + 5);
    const { periodSeconds = 10, failureThreshold = 3 } = worker.spec.containers[0]!.livenessProbe;
    const blocked = Number(SETTINGS.find(({ name }) => name === 'PERDURA_BLOCKED_END_MS')?.default);
    expect(periodSeconds * failureThreshold * 1000).toBeGreaterThan(2 * blocked);
  });

  test('nothing runs as root, writes to the image or speaks to the cluster, and what the image has is the user of it', () => {
    expect(read('Dockerfile')).toMatch(/^USER node$/m);
    for (const [, { spec }] of pods) {
      // `node` in Node's own images.
      expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000 });
      expect(spec.automountServiceAccountToken).toBe(false);
      for (const { securityContext, volumeMounts, resources } of spec.containers) {
        expect(securityContext).toEqual({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } });
        // What the Dockerfile makes for what is written; conversations are in Redis.
        expect(volumeMounts.map(({ mountPath }) => mountPath).sort()).toEqual(['/app/.perdura', '/app/workspace', '/tmp']);
        expect(spec.volumes.map(({ name }) => name).sort()).toEqual(volumeMounts.map(({ name }) => name).sort());
        expect(resources).toMatchObject({
          requests: { cpu: expect.any(String), memory: expect.any(String) },
          limits: { memory: expect.any(String) },
        });
      }
    }
  });

  test('each name leads to something: what is scaled, kept available, reached and let through', () => {
    const labels = pods.map(([, { metadata }]) => metadata.labels);
    const matches = (selector: Readonly<Record<string, string>>): boolean =>
      labels.some((of) => Object.entries(selector).every(([name, value]) => of[name] === value));
    for (const { kind, spec, metadata } of resources) {
      if (kind === 'Service') expect([metadata.name, matches(spec.selector)]).toEqual([metadata.name, true]);
      if (['PodDisruptionBudget', 'NetworkPolicy', 'Deployment'].includes(kind)) {
        const selector = (spec.selector ?? spec.podSelector) as {
          matchLabels: Record<string, string>;
          matchExpressions?: { key: string; values: string[] }[];
        };
        expect([metadata.name, matches(selector.matchLabels)]).toEqual([metadata.name, true]);
        for (const { key, values } of selector.matchExpressions ?? [])
          for (const value of values) expect(labels.map((of) => of[key])).toContain(value);
      }
      if (kind === 'HorizontalPodAutoscaler') expect(kindsIn(resources)).toContain(`Deployment ${spec.scaleTargetRef.name}`);
      if (kind === 'WorkerResourceTemplate') expect(kindsIn(resources)).toContain(`WorkerDeployment ${spec.workerDeploymentRef.name}`);
      if (kind === 'WorkerDeployment') expect(kindsIn(resources)).toContain(`Connection ${spec.workerOptions.connectionRef.name}`);
    }
  });

  test('the autoscaler counts the queue of the workers, and CPU', () => {
    const queue = podOf(resources, 'worker').spec.containers[0]!.env.find(({ name }) => name === 'PERDURA_TASK_QUEUE')?.value;
    const found = resources.flatMap(({ kind, spec }) =>
      kind === 'HorizontalPodAutoscaler' ? [spec] : spec?.template?.kind === 'HorizontalPodAutoscaler' ? [spec.template.spec] : [],
    ) as { metrics: { external?: { metric: { name: string; selector: { matchLabels: object } } }; resource?: { name: string } }[] }[];
    expect(found).toHaveLength(1);
    const [backlog, cpu] = found[0]!.metrics;
    expect(backlog?.external?.metric).toEqual({ name: 'approximate_backlog_count', selector: { matchLabels: { taskqueue: queue } } });
    expect(cpu?.resource?.name).toBe('cpu');
  });
});

test('the worker controller says itself where Temporal is, and a Deployment is told', () => {
  const names = (resources: readonly Resource[]) => podOf(resources, 'worker').spec.containers[0]!.env.map(({ name }) => name);
  const [plain, controlled] = all.map(([, resources]) => names(resources));
  expect(plain).toEqual(expect.arrayContaining(['TEMPORAL_ADDRESS', 'TEMPORAL_NAMESPACE']));
  expect(controlled!.filter((name) => name.startsWith('TEMPORAL_'))).toEqual([]);
});

test('the chart is of this version, and its image the one that docker-compose builds', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string };
  expect(parse(read('deploy/helm/perdura/Chart.yaml'))).toMatchObject({ version, appVersion: version });
  const compose = parse(read('docker-compose.yml'), { merge: true }) as { services: { worker: { image: string } } };
  expect(podOf(all[0]![1], 'worker').spec.containers[0]!.image).toBe(`${compose.services.worker.image}:${version}`);
});
