/** Workers of a storm in two builds whose steps differ (Worker Versioning), and a rollout that changes its mind. */
import { join } from 'node:path';
import { createRollout, installBuild, twoBuilds } from '../support/builds.js';
import type { Scene } from '../support/scene.js';
import { pick, type Random } from './random.js';

export type BuildId = 'v1' | 'v2';

export interface StormBuilds {
  /** For the replays. */
  readonly codes: Readonly<Record<BuildId, { readonly code: string }>>;
  /** What a worker of it is started with. */
  readonly start: (build: BuildId) => { readonly env: Readonly<Record<string, string>>; readonly product?: string };
  /** Once a worker of v1 asks for work. */
  begin(): Promise<void>;
  /** The other build takes what is new, and in half of the cases what is idle; answers with what that is called. */
  change(random: Random): Promise<string>;
}

export async function openBuilds(scene: Scene): Promise<StormBuilds> {
  const codes = await twoBuilds();
  const product = await installBuild(join(scene.dir, 'v2'), codes.v2);
  const { build, deployments, makeCurrent } = createRollout(scene);
  const { deploymentName } = build('v1');
  let current: BuildId = 'v1';
  return {
    codes,
    start: (id) => ({
      env: { TEMPORAL_DEPLOYMENT_NAME: deploymentName, TEMPORAL_WORKER_BUILD_ID: id },
      ...(id === 'v2' && { product }),
    }),
    begin: () => makeCurrent('v1'),
    async change(random) {
      const next = current === 'v1' ? 'v2' : 'v1';
      // All of its workers may be dead just now.
      await deployments.setCurrent(build(next), { force: true });
      current = next;
      if (pick(random, [true, false])) await deployments.wake(deploymentName, [next]);
      return next === 'v2' ? 'a deploy of v2' : 'a roll-back to v1';
    },
  };
}
