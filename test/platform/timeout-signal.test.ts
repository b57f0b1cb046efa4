/** A time limit ends, also when only a signal made of it is kept. */
import { setTimeout } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { timeoutSignal } from '../../src/platform/promises.js';

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
