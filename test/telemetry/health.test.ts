/** What a worker answers over HTTP to those who ask whether it is well. */
import { freePort } from '../../src/testing/temporal-server.js';
import { serveHealth } from '../../src/telemetry/worker-health.js';

const closing: (() => void)[] = [];
afterEach(() => closing.splice(0).forEach((close) => close()));

async function served(checks: Readonly<Record<string, () => Promise<unknown>>>): Promise<(path: string) => Promise<[number, unknown]>> {
  const address = `127.0.0.1:${await freePort()}`;
  const { close } = await serveHealth({ address, checks });
  closing.push(close);
  return async (path) => {
    const response = await fetch(`http://${address}${path}`);
    return [response.status, await response.json()];
  };
}

test('it is alive as long as it answers, and ready when each check passes', async () => {
  const ask = await served({ worker: () => Promise.resolve(), store: () => Promise.resolve('k3f9a1') });
  expect(await ask('/healthz')).toEqual([200, { status: 'ok' }]);
  expect(await ask('/readyz?verbose')).toEqual([200, { status: 'ready', worker: true, store: true }]);
  expect(await ask('/')).toEqual([404, { status: 'not-found', paths: ['/healthz', '/readyz'] }]);
});

test('what is not there is named; it is alive all the same', async () => {
  const throws = (): Promise<never> => {
    throw new Error('closed');
  };
  const ask = await served({
    worker: () => Promise.reject(new Error('it does not poll')),
    store: throws,
    temporal: () => Promise.resolve(),
  });
  expect(await ask('/readyz')).toEqual([503, { status: 'not-ready', worker: false, store: false, temporal: true }]);
  expect(await ask('/healthz')).toEqual([200, { status: 'ok' }]);
});

test('what does not answer is waited for a while, once for all that ask meanwhile', async () => {
  let asked = 0;
  const ask = await served({ store: () => ((asked += 1), new Promise(() => undefined)) });
  const answers = await Promise.all([ask('/readyz'), ask('/readyz'), ask('/readyz')]);
  expect(answers).toEqual(Array(3).fill([503, { status: 'not-ready', store: false }]));
  expect(asked).toBe(1);
});

test('an address where nothing can listen is a setting that cannot be used; without one nothing listens', async () => {
  const address = `127.0.0.1:${await freePort()}`;
  const { close } = await serveHealth({ address, checks: {} });
  closing.push(close);
  await expect(serveHealth({ address, checks: {} })).rejects.toThrow(
    `PERDURA_HEALTH_ADDRESS is ${address}, where nothing can listen (listen EADDRINUSE`,
  );
  expect(() => serveHealth({ address: undefined, checks: {} })).not.toThrow();
});
