/** Several pasts are looked into at once, as over HTTP: all by one worker of the SDK's, or by one after the other. */
import type { Payload } from '@temporalio/common';
import { createReplays } from '../../src/heal/replay-here.js';
import { converterOf, workflowBundle as readBundle } from '../support/temporal-worker.js';
import { readHistories, workflowIdOf } from './history-file.js';

const [run] = readHistories();
const dataConverter = converterOf(undefined);

test('replays at once and one after the other have one worker, which has its code read once', async () => {
  const workflowBundle = await readBundle();
  let read = 0;
  const replay = createReplays(async () => ({ dataConverter, workflowBundle, read: (read += 1) }), { restMs: 5_000 });
  const histories = readHistories().slice(0, 3);
  const once = () => Promise.all(histories.map((each) => replay(workflowIdOf(each), [each.history as never])));
  const first = await once();
  expect(await once()).toEqual(first);
  expect(first.map(({ problems, runs }) => [problems, runs.length])).toEqual(histories.map(() => [[], 1]));
  expect(read).toBe(1);
}, 120_000);

test('workers of different replays wait for each other, also for one that fails; what failed is tried again', async () => {
  const workflowBundle = await readBundle();
  const seen: string[] = [];
  let hasCode = false;
  const replays = ['first', 'second', 'third'].map((name) => {
    const replay = createReplays(async () => {
      if (name === 'second' && !hasCode) throw new Error('no code');
      return { dataConverter, workflowBundle };
    });
    return () =>
      replay(workflowIdOf(run!), [run!.history as never]).then(
        ({ problems }) => seen.push(`${name} ends${problems.join()}`),
        (error: unknown) => seen.push(`${name} fails: ${String(error)}`),
      );
  });
  await Promise.all(replays.map((replay) => replay()));
  expect(seen).toEqual(['first ends', 'second fails: Error: no code', 'third ends']);
  hasCode = true;
  await replays[1]!();
  expect(seen.at(-1)).toBe('second ends');
}, 120_000);

test('a replay that does not end is told so, and holds no other back', async () => {
  const workflowBundle = await readBundle();
  let release = (): void => undefined;
  let held: Promise<void> | undefined = new Promise<void>((resolve) => (release = resolve));
  const decode = async (payloads: Payload[]) => {
    const mine = held;
    held = undefined;
    await mine;
    return payloads;
  };
  const codec = { decode, encode: async (payloads: Payload[]) => payloads };
  const replay = createReplays(async () => ({ workflowBundle, dataConverter: { ...dataConverter, payloadCodecs: [codec] } }), {
    maxMs: 5_000,
  });
  const [hung, next] = await Promise.all([1, 2].map(() => replay(workflowIdOf(run!), [run!.history as never])));
  expect(hung).toEqual({ runs: [undefined], problems: ['its replay did not end within 5000 ms'] });
  expect(next?.problems).toEqual([]);
  release();
}, 120_000);
