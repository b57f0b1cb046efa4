/**
 * The chart as Helm renders it, and the plain manifests, against the schemas of Kubernetes. Where Helm or kubernetes-validate (PyPI) is not
 * there and cannot be fetched, what needs it is skipped by name.
 */
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import Ajv from 'ajv';
import { stringify } from 'yaml';
import { environment } from '../clients/python.js';
import { shapeOf } from './custom-resources.js';
import { podOf, readResources, ROOT, type Resource } from './pods.js';

/** The oldest that the chart is for, and the newest that there is a schema of. */
const KUBERNETES = ['1.30.0', '1.37.0'];
const VALIDATOR = 'kubernetes-validate==1.37.0';
const MANIFESTS = ['perdura.yaml', 'worker-controller.yaml'];
const CHART = join(ROOT, 'deploy', 'helm', 'perdura');
const SCRIPT = join(ROOT, 'scripts', 'manifests.mjs');
const helm = spawnSync(process.execPath, [SCRIPT, '--which'], { encoding: 'utf8' }).stdout;

let dir: string;
let python: string | undefined;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'perdura-manifests-'));
  python = await environment(join(homedir(), '.cache', 'perdura', 'clients'), [VALIDATOR]).catch((error: unknown) => {
    process.stderr.write(`  ∎ the schemas of Kubernetes are not asked: ${String(error).slice(0, 300)}\n`);
    return undefined;
  });
}, 300_000);
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function run(program: string, args: readonly string[]): Promise<{ readonly code: number; readonly output: string }> {
  return new Promise((resolve) =>
    execFile(program, args, { maxBuffer: 32 * 1024 * 1024 }, (error, stdout, stderr) =>
      resolve({ code: error ? 1 : 0, output: `${stdout}${stderr}` }),
    ),
  );
}

/** As Kubernetes would see them: what a resource of the worker controller holds is one of its own by then. */
function asKubernetes(resources: readonly Resource[]): object[] {
  return resources.flatMap((one): object[] => {
    const { kind, metadata, spec } = one;
    if (kind === 'WorkerDeployment') {
      const { labels } = metadata;
      return [
        { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: { selector: { matchLabels: labels }, template: spec.template } },
      ];
    }
    if (kind === 'WorkerResourceTemplate') {
      const { template } = spec as { template: { kind: string; spec: object } };
      const target = { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'one-build' } };
      return [{ ...template, metadata, spec: { ...template.spec, ...('scaleTargetRef' in template.spec && target) } }];
    }
    return shapeOf(kind) ? [] : [one];
  });
}

/** All that is wrong with them. */
async function problemsIn(resources: readonly Resource[]): Promise<string[]> {
  const ajv = new Ajv({ strict: false });
  const custom = resources.flatMap((one) => {
    const shape = shapeOf(one.kind);
    const fits: boolean = shape === undefined || ajv.validate(shape as object, one as unknown);
    return fits ? [] : [`${one.kind} ${one.metadata.name}: ${ajv.errorsText()}`];
  });
  if (python === undefined) return custom;
  const file = join(dir, 'rendered.yaml');
  const own = asKubernetes(resources);
  writeFileSync(file, own.map((one) => stringify(one)).join('---\n'));
  const found: string[] = [];
  for (const version of KUBERNETES) {
    const { code, output } = await run(python, ['-m', 'kubernetes_validate', '--strict', '-k', version, file]);
    const passed = [...output.matchAll(/^INFO .* passed/gm)].length;
    if (code !== 0 || passed !== own.length) found.push(`${version}: ${output}`);
  }
  return [...custom, ...found];
}

const TOOLS = ['toolWorkers[0].name=gpu', 'toolWorkers[0].tools={render,sketch}', 'toolWorkers[0].atOnce=2'];
const INGRESS = ['ingress.enabled=true', 'ingress.className=nginx', 'ingress.tlsSecret=tls', 'gateway.hosts={agents.example}'];

test.each(MANIFESTS)('deploy/kubernetes/%s fits the schemas', async (name) => {
  expect(await problemsIn(readResources(readFileSync(join(ROOT, 'deploy', 'kubernetes', name), 'utf8')))).toEqual([]);
});

test('a field that does not exist, a wrong type and a missing part are seen', async () => {
  if (python === undefined) return;
  const [name = ''] = MANIFESTS;
  const text = readFileSync(join(ROOT, 'deploy', 'kubernetes', name), 'utf8');
  const broken: readonly (readonly [string, string])[] = [
    ['readinessProbe:', 'readynessProbe:'],
    ['periodSeconds: 2\n', 'periodSeconds: often\n'],
    ['  maxReplicas: 20\n', ''],
  ];
  for (const [from, to] of broken) {
    expect(text).toContain(from);
    expect([to, (await problemsIn(readResources(text.replace(from, to)))).length > 0]).toEqual([to, true]);
  }
}, 120_000);

/** Skipped, by name, where there is no Helm: `go install helm.sh/helm/v4/cmd/helm@v4.3.2` makes one. */
const withHelm = helm === '' ? test.skip : test;

async function renderChart(set: readonly string[]): Promise<Resource[]> {
  const { code, output } = await run(helm, ['template', 'perdura', CHART, ...set.flatMap((one) => ['--set', one])]);
  if (code !== 0) throw new Error(output);
  return readResources(output);
}

withHelm('Helm finds nothing wrong with the chart, and makes the plain manifests of it', async () => {
  const { code, output } = await run(helm, ['lint', CHART, '--strict']);
  expect([code, output]).toEqual([0, expect.stringContaining('0 chart(s) failed')]);
  expect(await run(process.execPath, [SCRIPT])).toEqual({ code: 0, output: '' });
});

withHelm.each<[what: string, set: string[], kinds: string[]]>([
  ['KEDA with an API key', ['autoscaling.by=keda', 'temporal.apiKey=true'], ['ScaledObject', 'TriggerAuthentication']],
  ['KEDA with a certificate', ['autoscaling.by=keda', 'temporal.clientCertificate=client'], ['ScaledObject', 'TriggerAuthentication']],
  ['KEDA', ['autoscaling.by=keda'], ['ScaledObject']],
  ['fixed numbers, an ingress and no policies', ['autoscaling.by=none', 'networkPolicy.enabled=false', ...INGRESS], ['Ingress']],
  ['workers of tools, a claim and a pull secret', [...TOOLS, 'workspaceClaim=files', 'imagePullSecrets[0].name=pull'], ['Deployment']],
  [
    'the worker controller with an API key',
    ['workerController.enabled=true', 'temporal.apiKey=true', 'temporal.address=x.tmprl.cloud:7233'],
    ['Connection', 'WorkerDeployment', 'WorkerResourceTemplate'],
  ],
  [
    'the worker controller with a certificate, all at once',
    [
      'workerController.enabled=true',
      'temporal.clientCertificate=client',
      'workerController.rollout.strategy=AllAtOnce',
      'workerController.rollout.steps=null',
    ],
    ['WorkerDeployment'],
  ],
])(
  '%s: what comes out fits the schemas',
  async (_, set, kinds) => {
    const resources = await renderChart(set);
    expect(resources.map(({ kind }) => kind)).toEqual(expect.arrayContaining(kinds));
    expect(await problemsIn(resources)).toEqual([]);
  },
  120_000,
);

withHelm('workers of tools are started with their names, apart from those of conversations', async () => {
  const resources = await renderChart(TOOLS);
  expect(podOf(resources, 'gpu').spec.containers[0]?.args).toEqual(['worker', '--tools', 'render', 'sketch', '--at-once', '2']);
  expect(podOf(resources, 'worker').spec.containers[0]?.args).toEqual(['worker']);
});

withHelm.each<[what: string, set: string[], words: RegExp]>([
  ['another autoscaler', ['autoscaling.by=magic'], /autoscaling.*by/s],
  ['a value that there is not', ['gatway.replicas=3'], /gatway/],
  ['an ingress without a name', ['ingress.enabled=true'], /ingress\.enabled needs gateway\.hosts/],
  ['an address without a port', ['temporal.address=temporal'], /address/],
  ['KEDA with the worker controller', ['workerController.enabled=true', 'autoscaling.by=keda'], /write prometheus or none/],
  ['less time to end than a worker takes', ['worker.terminationGracePeriodSeconds=5'], /terminationGracePeriodSeconds/],
])('%s is refused in words', async (_, set, words) => {
  await expect(renderChart(set)).rejects.toThrow(words);
});
