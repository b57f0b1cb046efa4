/** Several pasts are looked into at once, as over HTTP: of two replays, the second begins once the SDK's runtime of the first is down. */
import { replayHere } from '../../src/heal/replay-here.js';
import { converterOf, workflowBundle } from '../support/temporal-worker.js';
import { readHistories, workflowIdOf } from './history-file.js';

test('replays wait for each other, also for one that fails', async () => {
  const bundle = await workflowBundle();
  const seen: string[] = [];
  const [run] = readHistories();
  const replay = async (name: string, workflowId: string): Promise<void> => {
    const code = {
      dataConverter: converterOf(undefined),
      // It is read when the replay begins.
      get workflowBundle() {
        seen.push(`${name} begins`);
        if (name === 'second') throw new Error('no code');
        return bundle;
      },
    };
    await replayHere(code, workflowId, [run!.history as never]).then(
      () => seen.push(`${name} ends`),
      (error: unknown) => seen.push(`${name} fails: ${String(error)}`),
    );
  };
  await Promise.all(['first', 'second', 'third'].map((name) => replay(name, workflowIdOf(run!))));
  expect(seen).toEqual(['first begins', 'first ends', 'second begins', 'second fails: Error: no code', 'third begins', 'third ends']);
}, 120_000);
