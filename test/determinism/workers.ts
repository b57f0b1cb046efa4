/**
 * The workers of a storm, as people run them. One stays and runs the activities. Beside it are one that forgets every conversation and
 * one that keeps many; these take workflow tasks alone, so that what is done to them shows in workflows and in nothing else: they are
 * stopped until their tasks have timed out, killed in the middle of one, and shut down in order.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkerOptions } from '@temporalio/worker';
import { LONG, type Scene } from '../support/scene.js';
import type { WorkerProcess } from '../support/worker-process.js';
import { pick, type Random } from './random.js';

export interface Weather {
  /** How often each thing was done to a worker. */
  readonly counts: { stopped: number; killed: number; shutDown: number; servers: number };
  /** Resolves when every worker works again. Rejects when something could not be done. */
  end(): Promise<void>;
}

const MANY = 1_000;
/** Longer than the task time-out of a conversation in a hurry. */
const STOPPED_MS = 2_600;
const BETWEEN_MS = LONG ? 3_000 : 900;
/** However soon all is said: stopped, killed, and both again. */
const MIN_ROUNDS = 4;
/** A dead worker's conversations wait this long for it; the product waits longer. */
const COMMON: Partial<WorkerOptions> = { stickyQueueScheduleToStartTimeout: '1s', shutdownGraceTime: '1s' };
const WORKFLOWS_ALONE: Partial<WorkerOptions> = { ...COMMON, enableNonLocalActivities: false };

/** `killsServer`: the scene's Temporal is killed as well, and comes back with what it has on disk. */
export async function startWeather(scene: Scene, random: Random, { killsServer = false } = {}): Promise<Weather> {
  const start = (options: Partial<WorkerOptions>): Promise<WorkerProcess> =>
    scene.startWorker({ preload: join(__dirname, 'worker-settings.cjs'), env: { STORM_WORKER: JSON.stringify(options) } });
  const caches = [pick(random, [0, 1]), MANY];
  const [, ...tossed] = await Promise.all([
    start({ ...COMMON, maxCachedWorkflows: pick(random, [2, MANY]) }),
    ...caches.map((maxCachedWorkflows) => start({ ...WORKFLOWS_ALONE, maxCachedWorkflows })),
  ]);
  const counts = { stopped: 0, killed: 0, shutDown: 0, servers: 0 };
  let over = false;

  const blow = async (): Promise<void> => {
    for (let n = 0; !over || n < MIN_ROUNDS; n++) {
      await sleep(BETWEEN_MS * (0.5 + random()));
      if (killsServer && n % 3 === 1) {
        counts.servers += 1;
        await scene.killTemporal();
        await scene.restartTemporal();
      }
      // The one that keeps many is hit twice as often: of the other, nothing is lost.
      const which = pick(random, [0, 1, 1]);
      const worker = tossed[which];
      if (!worker) continue;
      if (n % 2 === 0) {
        counts.stopped += 1;
        worker.pause();
        await sleep(STOPPED_MS);
        worker.resume();
        continue;
      }
      if (random() < 0.7) {
        counts.killed += 1;
        await worker.kill();
      } else {
        counts.shutDown += 1;
        await worker.stop();
      }
      tossed[which] = await start({ ...WORKFLOWS_ALONE, maxCachedWorkflows: caches[which] });
    }
  };
  const blowing = blow();
  // It is heard of at the end, at the latest.
  blowing.catch(() => undefined);
  const end = async (): Promise<void> => {
    over = true;
    await blowing;
  };
  scene.onClose(end);
  return { counts, end };
}
