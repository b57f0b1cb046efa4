/** `list`, `serve` and `worker` as programs, for each way in which Temporal is not there or does not let them in. Keys without permission: test/cluster. */
import { startPerdura } from '../../support/run-perdura.js';
import { figure, seconds } from '../../support/scene.js';
import { startUnreachable, type Unreachable } from '../../support/unreachable-temporal.js';

let unreachable: Unreachable;
beforeAll(async () => void (unreachable = await startUnreachable()));
afterAll(() => unreachable.close());

test('each says it in the same words, and ends with exit code 3', async () => {
  for (const { what, settings, message } of unreachable.cases) {
    const env = { ...settings, PERDURA_LOG_LEVEL: 'error' };
    const all = [['list'], ['serve', '--port', '0'], ['worker']].map(async (args) => {
      const begin = Date.now();
      const { code, stderr } = await startPerdura({ dir: unreachable.dir, taskQueue: 'none' }, args, { env }).ended;
      expect([what, args[0], code, stderr]).toEqual([what, args[0], 3, expect.stringMatching(message)]);
      return `${args[0]} ${seconds(Date.now() - begin)}`;
    });
    figure(`${what}: ${(await Promise.all(all)).join(', ')}`);
  }
});
