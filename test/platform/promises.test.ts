import { orAborted, orUndefinedAfter, orUndefinedOnAbort, withTimeout } from '../../src/platform/promises.js';

const never = new Promise<string>(() => undefined);
const late = (ms: number): Error => new Error(`later than ${ms} ms`);
const failed = (): Promise<string> => Promise.reject(new Error('failed'));

test('work that takes too long is undefined or an error; what ends in time, and how, is what it is', async () => {
  expect(await orUndefinedAfter(1, never)).toBeUndefined();
  expect(await orUndefinedAfter(60_000, Promise.resolve('done'))).toBe('done');
  await expect(orUndefinedAfter(60_000, failed())).rejects.toThrow('failed');
  expect(await withTimeout(60_000, Promise.resolve('done'), late)).toBe('done');
  await expect(withTimeout(60_000, failed(), late)).rejects.toThrow('failed');
});

test('work that takes too long rejects with the error it is given', async () => {
  // Its timer keeps no process alive, this one does.
  const awake = setInterval(() => undefined, 1_000);
  await expect(withTimeout(1, never, late)).rejects.toThrow('later than 1 ms');
  clearInterval(awake);
});

test('an abort ends the wait: with its reason, or with undefined; a failure before it stays one', async () => {
  const stop = new AbortController();
  const waits = [orAborted(stop.signal, never), orUndefinedOnAbort(stop.signal, never)] as const;
  await expect(orUndefinedOnAbort(stop.signal, failed())).rejects.toThrow('failed');
  stop.abort(new Error('stopped'));
  await expect(waits[0]).rejects.toThrow('stopped');
  expect(await waits[1]).toBeUndefined();
  await expect(orAborted(stop.signal, Promise.resolve('done'))).rejects.toThrow('stopped');
});

test('a failure after an abort is nobody’s unhandled rejection', async () => {
  const unhandled: unknown[] = [];
  const listener = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', listener);
  let fail!: (error: Error) => void;
  const work = new Promise<never>((_resolve, reject) => (fail = reject));
  expect(await orUndefinedOnAbort(AbortSignal.abort(), work)).toBeUndefined();
  fail(new Error('too late'));
  await new Promise((resolve) => setImmediate(resolve));
  process.off('unhandledRejection', listener);
  expect(unhandled).toEqual([]);
});
