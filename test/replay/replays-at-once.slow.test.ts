/** Several pasts are looked into at once, as over HTTP: of two replays, the second begins once the SDK's runtime of the first is down. */
import { replayHere } from '../../src/heal/replay-here.js';
import type { Payload } from '@temporalio/common';
import { converterOf, workflowBundle as readBundle } from '../support/temporal-worker.js';
import { readHistories, workflowIdOf } from './history-file.js';

test('replays wait for each other, also for one that fails', async () => {
  const bundle = await readBundle();
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

test('a replay that does not end holds no other back for ever', async () => {
  const workflowBundle = await readBundle();
  const [run] = readHistories();
  const replay = (decode: (payloads: Payload[]) => Promise<Payload[]>) =>
    replayHere(
      { workflowBundle, dataConverter: { ...converterOf(undefined), payloadCodecs: [{ decode, encode: async (payloads) => payloads }] } },
      workflowIdOf(run!),
      [run!.history as never],
      1_000,
    );
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  let hasEnded = false;
  const hanging = replay(async (payloads) => {
    await released;
    return payloads;
  }).finally(() => (hasEnded = true));
  expect(await replay(async (payloads) => payloads)).toMatchObject({ problems: [] });
  expect(hasEnded).toBe(false);
  release();
  expect(await hanging).toMatchObject({ problems: [] });
}, 120_000);
