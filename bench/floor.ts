import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger, Worker, type NativeConnection, type WorkerOptions } from '@temporalio/worker';
import type { Activities } from '../src/activities/index.js';
import { workerOptions } from '../src/worker.js';
import { ANSWER } from './bodies.js';
import { floorActivities } from './floor-activities.js';
import { floor, turnUpdate, type FloorKind } from './floors.js';
import { checkAnswer, type Talk } from './talk.js';

export interface Floor {
  readonly options: WorkerOptions;
  start(kind: FloorKind): Promise<Talk>;
  close(): Promise<void>;
}

/** On Temporal's own worker, with the settings of ours. */
export async function startFloor(temporal: Client, connection: NativeConnection): Promise<Floor> {
  const taskQueue = 'floor';
  const code = await bundleWorkflowCode({
    workflowsPath: require.resolve('./floors'),
    payloadConverterPath: require.resolve('../src/workflows/payload-converter'),
    logger: new DefaultLogger('ERROR'),
  });
  // Their names differ from the product's; the settings are what is wanted.
  const activities = floorActivities as unknown as Activities;
  const { workflowsPath: _, ...settings } = workerOptions({ connection, namespace: 'default', taskQueue, activities });
  const options: WorkerOptions = { ...settings, workflowBundle: code };
  const worker = await Worker.create(options);
  const running = worker.run();
  return {
    options,
    async start(kind) {
      const handle = await temporal.workflow.start(floor, { workflowId: `floor-${randomUUID()}`, taskQueue, args: [kind] });
      return {
        id: handle.workflowId,
        say: async (text) => checkAnswer(await handle.executeUpdate(turnUpdate, { args: [text], updateId: randomUUID() }), ANSWER),
      };
    },
    async close() {
      worker.shutdown();
      await running;
    },
  };
}
