/** An application may have workflows of its own in the bundle: what our interceptors do for ours must leave those as they are. */
import { randomUUID } from 'node:crypto';
import { Client } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { openConnection } from '../../src/client/temporal/connection.js';
import { bundleOptions } from '../../src/extensions/custom-workflows.js';

const address = process.env['PERDURA_TEST_ADDRESS'] ?? '';

test('it gets all of its arguments, and no more', async () => {
  Runtime.install({ logger: new DefaultLogger('ERROR'), telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } } });
  const workflowBundle = await bundleWorkflowCode({
    ...bundleOptions(),
    workflowsPath: require.resolve('./adds'),
    logger: new DefaultLogger('ERROR'),
  });
  const [native, connection] = await Promise.all([NativeConnection.connect({ address }), openConnection({ address })]);
  const taskQueue = `own-${randomUUID()}`;
  const worker = await Worker.create({ connection: native, taskQueue, workflowBundle });
  const running = worker.run();
  try {
    const { workflow } = new Client({ connection });
    expect(await workflow.execute('adds', { taskQueue, workflowId: taskQueue, args: [1, 20, 300] })).toBe(321);
  } finally {
    worker.shutdown();
    await running;
    await Promise.all([native.close(), connection.close()]);
  }
});
