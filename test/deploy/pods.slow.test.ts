/** What deploy/kubernetes starts, as processes with the same environment, read-only root and probes: it starts, is truthful, talks and ends. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { answerTo, echo } from '../support/echo-model.js';
import { startMessagesApi, type MessagesApi } from '../support/provider-apis/messages-api.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { waitFor } from '../support/wait-for.js';
import { hasReadOnlyRoot, podOf, readResources, ROOT, startPod, type Pod, type PodTemplate, type Resource } from './pods.js';

const TOKEN = 'a-token-that-only-tests-have-0123';
const resources = readResources(readFileSync(join(ROOT, 'deploy', 'kubernetes', 'perdura.yaml'), 'utf8'));

let dir: string;
let api: MessagesApi;
let redis: RedisServer;
const pods: Pod[] = [];

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'perdura-pods-'));
  api = await startMessagesApi({ answer: (request) => echo(request) });
  redis = await startRedis({ dir, appendonly: true });
});
afterAll(async () => {
  for (const pod of pods) pod.kill();
  await redis.kill();
  await api.close();
  rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
});

const taskQueue = `pods-${randomUUID()}`;

async function start(component: string, manifests: readonly Resource[] = resources): Promise<{ pod: Pod; template: PodTemplate }> {
  const template = podOf(manifests, component);
  const pod = await startPod({
    ...{ resources: manifests, template, dir: mkdtempSync(join(dir, `${component}-`)) },
    secret: {
      REDIS_URL: redis.url,
      PERDURA_SECRET: 'a-secret-of-an-installation-0123456789',
      PERDURA_GATEWAY_TOKEN: TOKEN,
      ANTHROPIC_API_KEY: 'test',
      ANTHROPIC_BASE_URL: api.url,
    },
    instead: { TEMPORAL_ADDRESS: process.env['PERDURA_TEST_ADDRESS'] ?? '', PERDURA_TASK_QUEUE: taskQueue },
  });
  pods.push(pod);
  return { pod, template };
}

test(`workers and gateway ${hasReadOnlyRoot ? 'with a read-only root ' : ''}start, answer their probes truthfully, talk, and end within their grace`, async () => {
  const gateway = await start('gateway');
  await gateway.pod.started();
  const [ofGateway] = gateway.template.spec.containers;
  // Without a worker no conversation gets an answer: no request comes here yet.
  const early = await gateway.pod.probe(ofGateway!.readinessProbe);
  expect([early.passes, JSON.parse(early.body)]).toEqual([false, { status: 'not-ready', temporal: true, store: true, worker: false }]);
  expect((await gateway.pod.probe(ofGateway!.livenessProbe)).passes).toBe(true);

  const worker = await start('worker');
  await worker.pod.started();
  const [ofWorker] = worker.template.spec.containers;
  await waitFor(
    () => worker.pod.probe(ofWorker!.readinessProbe),
    ({ passes }) => passes,
  );
  await waitFor(
    () => gateway.pod.probe(ofGateway!.readinessProbe),
    ({ passes }) => passes,
  );
  const metrics = await fetch(`http://127.0.0.1:${worker.pod.port('metrics')}/metrics`);
  expect(await metrics.text()).toContain('temporal_');

  const sent = await fetch(`http://127.0.0.1:${gateway.pod.port('http')}/v1/conversations/in-a-pod/messages?wait=60`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ text: 'hello', start: {} }),
  });
  expect([sent.status, await sent.json()]).toMatchObject([200, { text: answerTo('hello') }]);

  // A store that is away is no reason to be started again, and one not to be asked.
  await redis.kill();
  for (const { pod, template } of [worker, gateway]) {
    const [container] = template.spec.containers;
    const { body } = await waitFor(
      () => pod.probe(container!.readinessProbe),
      ({ passes, body }) => !passes && body.startsWith('{'),
    );
    expect(JSON.parse(body)).toMatchObject({ status: 'not-ready', store: false, temporal: true });
    expect((await pod.probe(container!.livenessProbe)).passes).toBe(true);
  }
  redis = await startRedis({ dir, appendonly: true, port: redis.port });
  await waitFor(
    () => worker.pod.probe(ofWorker!.readinessProbe),
    ({ passes }) => passes,
  );

  expect(await gateway.pod.end()).toEqual({ code: 0, signal: null });
  expect(await worker.pod.end()).toEqual({ code: 0, signal: null });
  expect(worker.pod.log()).not.toMatch(/EROFS|read-only file system/i);
  expect(gateway.pod.log()).not.toMatch(/EROFS|read-only file system/i);
}, 300_000);

test('a pod without REDIS_URL in its Secret does not start: none keeps conversations in files of its own', () => {
  for (const component of ['worker', 'gateway']) {
    const [container] = podOf(resources, component).spec.containers;
    expect(container!.env.find(({ name }) => name === 'REDIS_URL')?.valueFrom?.secretKeyRef).toEqual({ name: 'perdura', key: 'REDIS_URL' });
  }
});
