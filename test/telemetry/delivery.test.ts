/** Observers that throw, hang or are slow, and what that does to others: nothing. */
import { createDelivery, type DeliveryOptions } from '../../src/telemetry/observer.js';
import { waitFor } from '../support/wait-for.js';

let said: { message: string; meta?: Readonly<Record<string, unknown>> }[] = [];
beforeEach(() => (said = []));

function open<T>(options: Pick<DeliveryOptions<T>, 'deliver'> & Partial<DeliveryOptions<T>>) {
  return createDelivery<T>({ to: 'observers[0]', log: () => ({ warn: (message, meta) => void said.push({ message, meta }) }), ...options });
}

test('takes without waiting, and delivers in order, one after the other', async () => {
  const heard: number[] = [];
  let running = 0;
  const delivery = open<number>({
    deliver: async ([n = 0]) => {
      expect(++running).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, n === 1 ? 20 : 0));
      heard.push(n);
      running--;
    },
  });
  for (const n of [1, 2, 3]) delivery.take(n);
  expect(heard).toEqual([]);
  await delivery.close(5_000);
  expect(heard).toEqual([1, 2, 3]);
  expect(delivery.lost()).toBe(0);
});

test('one that throws, at once or later, still gets events; the failure is logged once in a row', async () => {
  const heard: number[] = [];
  const delivery = open<number>({
    deliver: ([n = 0]) => {
      heard.push(n);
      if (n === 1) throw new Error('at once');
      return n < 4 ? Promise.reject(new Error('later')) : undefined;
    },
  });
  for (const n of [1, 2, 3, 4]) delivery.take(n);
  await delivery.close(5_000);
  expect(heard).toEqual([1, 2, 3, 4]);
  expect(said.map(({ message }) => message)).toEqual([expect.stringMatching(/^observers\[0\] failed/)]);
});

test('one that hangs is given up after a while, and gets the next event', async () => {
  const heard: number[] = [];
  const delivery = open<number>({
    patienceMs: 20,
    deliver: ([n = 0]) => {
      heard.push(n);
      return n === 1 ? new Promise(() => undefined) : Promise.resolve();
    },
  });
  delivery.take(1);
  delivery.take(2);
  await waitFor(
    () => heard,
    (all) => all.length === 2,
  );
  expect(delivery.lost()).toBe(1);
});

test('what does not fit is dropped, the oldest first, counted and said; memory is bounded in characters too', async () => {
  let lostToCounter = 0;
  const heard: string[] = [];
  let letGo!: () => void;
  const delivery = open<string>({
    limit: 3,
    sizeOf: (text) => text.length,
    sizeLimit: 10,
    onLost: (count) => (lostToCounter += count),
    deliver: async ([text = '']) => {
      heard.push(text);
      if (text === 'first') await new Promise<void>((resolve) => (letGo = resolve));
    },
  });
  delivery.take('first');
  await waitFor(
    () => heard.length,
    (n) => n === 1,
  );
  for (const text of ['a', 'b', 'c', 'd']) delivery.take(text);
  expect(delivery.lost()).toBe(1);
  delivery.take('eight ch');
  delivery.take('nine char');
  letGo();
  await delivery.close(5_000);
  expect(heard).toEqual(['first', 'nine char']);
  expect(delivery.lost()).toBe(5);
  expect(lostToCounter).toBe(5);
  expect(said.reduce((sum, { meta }) => sum + Number(meta?.['lost'] ?? 0), 0)).toBe(5);
});

test('closing does not wait for ever, says what was left, and takes nothing more', async () => {
  const delivery = open<number>({ deliver: () => new Promise(() => undefined) });
  for (const n of [1, 2, 3]) delivery.take(n);
  await delivery.close(20);
  delivery.take(4);
  expect(delivery.lost()).toBe(2);
  expect(said.at(-1)?.meta).toEqual({ lost: 2, inAll: 2 });
});
