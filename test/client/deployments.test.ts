/** Which build a run belongs on, what workers are told of it, and what operators see and change. */
import { createDeployments, isElsewhere, watchRouting, type Routing } from '../../src/client/temporal/deployments.js';
import { waitFor } from '../support/wait-for.js';

const build = (buildId: string) => ({ deploymentName: 'd', buildId });
const [v1, v2, v3] = ['v1', 'v2', 'v3'].map(build) as [ReturnType<typeof build>, ReturnType<typeof build>, ReturnType<typeof build>];
const [BEFORE, CHANGED, SEEN, AFTER] = [1_000, 2_000, 3_000, 4_000];

describe('a run is elsewhere', () => {
  const routing = (current: Routing['current'], ramping: Routing['ramping'] = null, percentage = 0): Routing => {
    return { current, ramping, percentage, changedAt: CHANGED };
  };
  test.each<[string, Routing, number, boolean]>([
    ['on the current build: never', routing(v1), BEFORE, false],
    ['where another is current: if it began before that was seen', routing(v2), BEFORE, true],
    ['one that began later began by newer knowledge than the worker has', routing(v2), AFTER, false],
    ['where workers without a build take all', routing(null), BEFORE, true],
    ['the same build id of another deployment', routing({ deploymentName: 'e', buildId: 'v1' }), BEFORE, true],
    ['a ramp of nothing is none', routing(v1, v2, 0), BEFORE, false],
    ['a ramp of all is the current build', routing(v1, v2, 100), BEFORE, true],
    ['while another is ramped: once after each change', routing(v1, v2, 5), BEFORE, true],
    ['and not again', routing(v1, v2, 5), SEEN, false],
    ['on the ramping build the same', routing(v2, v1, 5), BEFORE, true],
    ['on the ramping build, not again', routing(v2, v1, 5), SEEN, false],
    ['on neither', routing(v2, v3, 5), BEFORE, true],
  ])('%s', (_what, now, startedAt, expected) => {
    expect(isElsewhere(v1, now, SEEN, startedAt)).toBe(expected);
  });
});

test('a worker says no until it knows, yes for runs that began before a change, and always yes for the marks of code', async () => {
  let current: string | undefined;
  let fails = true;
  let asked = 0;
  const service = {
    async describeTaskQueue() {
      asked += 1;
      if (fails) throw new Error('no server');
      return { versioningInfo: { currentDeploymentVersion: current === undefined ? null : build(current) } };
    },
  };
  const warned: string[] = [];
  const watch = watchRouting(service as never, { namespace: 'n', taskQueue: 'q', build: v1, warn: (line) => warned.push(line), pollMs: 1 });
  const old = { runStartTime: new Date(BEFORE) };
  const decide = (workflowInfo = old) => watch.decide({ patchId: 'upgrade-before-3', workflowInfo });
  const looks = (more: number) =>
    waitFor(
      () => asked,
      (now) => now > more,
    );
  try {
    await looks(3);
    expect(decide()).toBe(false);
    expect(watch.decide({ patchId: 'rules-2', workflowInfo: old })).toBe(true);
    // Said once, however often it fails.
    expect(warned).toEqual([expect.stringMatching(/^cannot see which build takes new runs of task queue q.*no server$/)]);
    [fails, current] = [false, 'v1'];
    await looks(asked + 2);
    expect(decide()).toBe(false);
    current = 'v2';
    await waitFor(decide, (isElse) => isElse);
    expect(decide({ runStartTime: new Date(Date.now() + 60_000) })).toBe(false);
    current = 'v1';
    await waitFor(decide, (isElse) => !isElse);
  } finally {
    watch.close();
  }
  const last = asked;
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(asked - last).toBeLessThanOrEqual(1);
});

test('a build that takes no conversations yet says so once, and how it comes to take them', async () => {
  let asked = 0;
  const service = {
    describeTaskQueue: async () => {
      asked += 1;
      return { versioningInfo: { currentDeploymentVersion: asked % 2 === 0 ? null : build('v9') } };
    },
  };
  const warned: string[] = [];
  const watch = watchRouting(service as never, { namespace: 'n', taskQueue: 'q', build: v1, warn: (line) => warned.push(line), pollMs: 1 });
  await waitFor(
    () => asked,
    (now) => now > 5,
  );
  watch.close();
  expect(warned).toEqual(['build v1 of d takes no new conversations yet: build v9 does; `perdura upgrade current v1` changes that']);
});

interface Signal {
  readonly workflowExecution: { readonly workflowId: string };
  readonly signalName: string;
  readonly input: { readonly payloads: readonly { readonly data: Uint8Array }[] };
}

test('waking goes through all pages, tells each workflow once, and passes over those that have ended', async () => {
  const queries: string[] = [];
  const told: unknown[] = [];
  const service = {
    async listWorkflowExecutions({ query, nextPageToken }: { query: string; nextPageToken?: Uint8Array }) {
      queries.push(query);
      const page = nextPageToken?.[0] ?? 0;
      const executions = [0, 1].map((n) => ({ execution: { workflowId: `c${page * 2 + n}` } }));
      return { executions, nextPageToken: page < 2 ? Uint8Array.of(page + 1) : new Uint8Array() };
    },
    async signalWorkflowExecution({ workflowExecution: { workflowId }, signalName, input }: Signal) {
      if (workflowId === 'c1') throw Object.assign(new Error('not found'), { code: 5, details: '', metadata: {} });
      told.push([workflowId, signalName, JSON.parse(new TextDecoder().decode(input.payloads[0]!.data))]);
    },
  };
  const deployments = createDeployments(service as never, { namespace: 'n', taskQueue: 'q' });
  expect(await deployments.wake("o'd", ['v2', 'v3'], { parked: true })).toBe(5);
  expect(told).toEqual(['c0', 'c2', 'c3', 'c4', 'c5'].map((id) => [id, 'upgrade', { parked: true }]));
  expect(new Set(queries).size).toBe(1);
  expect(queries[0]).toContain("TemporalWorkerDeployment = 'o''d' AND NOT (TemporalWorkerDeploymentVersion = 'o''d:v2') AND NOT (");
});

test('a deployment that is not there is no conversation that is not there', async () => {
  const missing = () => Promise.reject(Object.assign(new Error('5 NOT_FOUND'), { code: 5, details: '', metadata: {} }));
  const service = { describeWorkerDeployment: missing, describeTaskQueue: missing, setWorkerDeploymentCurrentVersion: missing };
  const deployments = createDeployments(service as never, { namespace: 'n', taskQueue: 'q' });
  for (const failing of [deployments.standing('d'), deployments.setCurrent(v1)])
    await expect(failing).rejects.toMatchObject({ kind: 'not-found', message: expect.stringContaining('TEMPORAL_WORKER_BUILD_ID') });
  const refusing = (details: string) => {
    const setWorkerDeploymentCurrentVersion = () => Promise.reject(Object.assign(new Error('9'), { code: 9, details, metadata: {} }));
    return createDeployments({ setWorkerDeploymentCurrentVersion } as never, { namespace: 'n', taskQueue: 'q' }).setCurrent(v1);
  };
  await expect(refusing('no Worker Deployment found with name d; does it have pollers?')).rejects.toMatchObject({ kind: 'not-found' });
  await expect(refusing('v1 has no pollers')).rejects.toMatchObject({
    kind: 'conflict',
    message: 'cannot make build v1 of d the current one: v1 has no pollers; --force does it all the same',
  });
});
