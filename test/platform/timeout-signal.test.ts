/** A time limit ends, also when only a signal made of it is kept. */
import { setTimeout } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { timeoutSignal, withTimeoutSignal } from '../../src/platform/promises.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

test('a limit inside AbortSignal.any outlives a garbage collection', async () => {
  const stop = new AbortController();
  const signal = AbortSignal.any([stop.signal, timeoutSignal(100)]);
  const ended = new Promise<unknown>((resolve) => signal.addEventListener('abort', () => resolve(signal.reason)));
  await setTimeout(20);
  for (let i = 0; i < 5; i++) collectGarbage();
  expect(await ended).toMatchObject({ name: 'TimeoutError' });
});

test('a limit of work aborts while the work goes on, and never once it has ended', async () => {
  const aborted = (timeout: AbortSignal): Promise<unknown> =>
    new Promise((resolve) => timeout.addEventListener('abort', () => resolve(timeout.reason)));
  // Its timer keeps no process alive, this one does.
  const awake = setInterval(() => undefined, 1_000);
  expect(await withTimeoutSignal(1, aborted)).toMatchObject({ name: 'TimeoutError' });
  clearInterval(awake);
  const ended = await withTimeoutSignal(10, (timeout) => Promise.resolve(timeout));
  await setTimeout(50);
  expect(ended.aborted).toBe(false);
});
