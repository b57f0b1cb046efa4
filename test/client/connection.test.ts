import { Client, defaultGrpcRetryOptions } from '@temporalio/client';
import { createClient, createClientWith } from '../../src/client.js';
import { loadConfig } from '../../src/config.js';
import { openConnection } from '../../src/client/temporal/connection.js';
import { startCuttingProxy } from '../support/cutting-proxy.js';
import { portOf } from '../support/scene.js';
import { waitFor } from '../support/wait-for.js';

test('a call that waits to be said again when its connection is closed ends there, and throws nowhere else', async () => {
  const proxy = await startCuttingProxy(portOf(process.env['PERDURA_TEST_ADDRESS'] ?? ''));
  let pauses = 0;
  const delayFunction = (): number => {
    pauses += 1;
    return 200;
  };
  const connection = await openConnection({ address: `127.0.0.1:${proxy.port}` }, { ...defaultGrpcRetryOptions(), delayFunction });
  const client = createClientWith({
    client: new Client({ connection }),
    namespace: 'default',
    taskQueue: 'nobody',
    store: () => {
      throw new Error('no store is needed');
    },
    close: () => connection.close(),
  });
  await proxy.close();
  const asked = client.describe('nothing').catch((error: unknown) => error);
  await waitFor(
    () => pauses,
    (count) => count > 0,
  );
  await client.close();
  expect(await asked).toMatchObject({ kind: 'unreachable', message: expect.stringContaining('the connection was closed') });
});

test('where no Temporal server answers, creating a client says where it looked and what starts one', async () => {
  const proxy = await startCuttingProxy(1);
  await proxy.close();
  const error = await createClient(loadConfig({ TEMPORAL_ADDRESS: `127.0.0.1:${proxy.port}` })).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ kind: 'unreachable', message: expect.stringContaining(`127.0.0.1:${proxy.port}: `) });
  expect(error).toMatchObject({ message: expect.stringContaining('`perdura up` starts one') });
});
