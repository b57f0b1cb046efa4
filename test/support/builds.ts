/** Two builds of the workflows whose steps differ in order: what one of them has begun the other cannot replay. */
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createDeployments, type Deployments, type WorkerBuild } from '../../src/client/temporal/deployments.js';
import { bundleCustomWorkflows } from '../../src/extensions/custom-workflows.js';
import { createReplays } from '../../src/heal/replay-here.js';
import { converterOf, workflowBundle } from './temporal-worker.js';
import { runsOf } from './run-chain.js';
import { waitFor } from './wait-for.js';
import { PRODUCT } from './worker-process.js';
import type { World } from './world.js';

export interface Builds {
  readonly v1: { readonly code: string };
  /** Sets a timer before each turn. */
  readonly v2: { readonly code: string };
  /** The same, by rules that only new runs pin. */
  readonly byRules: { readonly code: string };
}

export async function twoBuilds(): Promise<Builds> {
  const { code } = await workflowBundle();
  const breath = (condition: string): string =>
    changed(
      code,
      /for \(;;\) \{(?=\s*const due = )/,
      (loop) => `${loop} if (${condition}) await host.condition(() => false, 1, { summary: 'a breath' });`,
    );
  const rules = changed(breath('state.rules >= 2 && state.queue.length > 0'), /LATEST_RULES = 1;/, () => 'LATEST_RULES = 2;');
  return { v1: { code }, v2: { code: breath('state.queue.length > 0') }, byRules: { code: rules } };
}

/** Its conversations never return. */
export async function standingBuild(): Promise<{ readonly code: string }> {
  const { code } = await workflowBundle();
  return { code: changed(code, /for \(;;\) \{(?=\s*const due = )/, (loop) => `for (;;) {} ${loop}`) };
}

function changed(code: string, place: RegExp, to: (found: string) => string): string {
  const found = code.split(new RegExp(place.source)).length - 1;
  if (found !== 1) throw new Error(`the other build finds its place ${found} times, not once: adapt it`);
  return code.replace(place, to);
}

/** Workflow code with these reducers, by their types; its entry is `workflows.js` in the folder. */
export async function bundleReducers(dir: string, reducers: Readonly<Record<string, string>>): Promise<{ readonly code: string }> {
  const entry = join(dir, 'workflows.js');
  const ours = JSON.stringify(join(__dirname, '..', '..', 'src', 'workflows', 'index'));
  const listed = Object.entries(reducers).map(([type, code]) => `${JSON.stringify(type)}: ${code}`);
  await writeFile(
    entry,
    `import { createConversation } from ${ours};
export { memory, webhook } from ${ours};
export const conversation = createConversation({ reducers: { ${listed.join(', ')} } });
`,
  );
  return bundleCustomWorkflows(entry, { cwd: dir, log: { warn: () => undefined } });
}

/** A build as a deployment installs it: the product in a folder of its own, with this workflow code. */
export async function installBuild(folder: string, { code }: { readonly code: string }): Promise<string> {
  await mkdir(folder, { recursive: true });
  await cp(join(PRODUCT, 'dist'), join(folder, 'dist'), { recursive: true });
  await writeFile(join(folder, 'dist', 'workflow-bundle.js'), code);
  for (const name of ['package.json', 'node_modules', 'data', 'agents']) await symlink(join(PRODUCT, name), join(folder, name));
  return folder;
}

export interface Rollout {
  readonly deployments: Deployments;
  readonly build: (buildId: string) => WorkerBuild;
  /** Once a worker of it has asked for work. */
  makeCurrent(buildId: string): Promise<void>;
  /** How many open conversations are on each build, as visibility has it. */
  conversations(): Promise<Readonly<Record<string, number>>>;
}

/** A deployment of this world's task queue. */
export function createRollout({ temporal, taskQueue }: Pick<World, 'temporal' | 'taskQueue'>): Rollout {
  const deploymentName = `of-${taskQueue}`;
  const deployments = createDeployments(temporal.workflowService, { namespace: 'default', taskQueue });
  return {
    deployments,
    build: (buildId) => ({ deploymentName, buildId }),
    async makeCurrent(buildId) {
      await waitFor(
        () =>
          deployments.setCurrent({ deploymentName, buildId }).then(
            () => undefined,
            (error: unknown) => error,
          ),
        (error) => error === undefined,
      );
    },
    async conversations() {
      const { builds } = await deployments.standing(deploymentName);
      return Object.fromEntries(builds.map(({ build, conversations }) => [build, conversations]));
    },
  };
}

/** The build that has worked each run, oldest first. Throws where one has worked a part. */
export async function buildsOf(world: World, id: string): Promise<string[]> {
  return (await runsOf(world, id)).map((events) => {
    const seen = new Set(
      events.flatMap(({ workflowTaskCompletedEventAttributes: done }) => (done ? [done.deploymentVersion?.buildId ?? ''] : [])),
    );
    if (seen.size !== 1) throw new Error(`a run of ${id} was worked by ${[...seen].join(' and ') || 'none'}`);
    return [...seen][0] ?? '';
  });
}

/** Why the code does not go on with the present run of a conversation; undefined where it does. */
export async function replayProblem(world: World, id: string, code: { readonly code: string }): Promise<string | undefined> {
  const history = await world.temporal.workflow.getHandle(id).fetchHistory();
  const replay = createReplays(async () => ({ workflowBundle: code, dataConverter: converterOf(undefined) }));
  return (await replay(id, [history])).problems[0];
}
