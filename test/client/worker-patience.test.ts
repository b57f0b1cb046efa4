/** When a call is given up where no worker seems to be. */
import { unlessNoWorker } from '../../src/client/temporal/patience.js';
import { ClientError } from '../../src/client/errors.js';

const PATIENCE_MS = 40;

/** Each look finds what comes next, the last for ever. */
async function lookedFor(...finds: readonly (boolean | Error)[]): Promise<{ looks: number; end: unknown }> {
  let looks = 0;
  const patience = {
    attempt: 'cannot send to c-1',
    signal: undefined,
    patienceMs: PATIENCE_MS,
    hasWorker: () => {
      const find = finds[Math.min(looks++, finds.length - 1)];
      return find instanceof Error ? Promise.reject(find) : Promise.resolve(find === true);
    },
    giveUp: () => Promise.resolve(new ClientError('no-worker', 'no worker takes work')),
  };
  const answered = (): Promise<string> => new Promise((resolve) => setTimeout(resolve, 8 * PATIENCE_MS, 'answered'));
  const end = await unlessNoWorker(patience, answered).catch((error: unknown) => (error as ClientError).kind);
  return { looks, end };
}

test('where no worker is, twice in a row, it is given up', async () => {
  expect(await lookedFor(false)).toEqual({ looks: 2, end: 'no-worker' });
  expect(await lookedFor(true, true, false)).toEqual({ looks: 4, end: 'no-worker' });
});

test('a server that has just come back knows no worker for a moment, and one that is away none: neither ends a call', async () => {
  const away = new Error('14 UNAVAILABLE');
  expect(await lookedFor(true, false, true)).toMatchObject({ end: 'answered' });
  expect(await lookedFor(away, false, true)).toMatchObject({ end: 'answered' });
  expect(await lookedFor(false, away, false, true)).toMatchObject({ end: 'answered' });
  expect(await lookedFor(away)).toMatchObject({ end: 'answered' });
});

test('where the workflow task fails again and again, its words end the call; one that failed once does not', async () => {
  const waited = async (...finds: readonly (string | undefined)[]): Promise<unknown> => {
    let looks = 0;
    const patience = {
      ...{ attempt: 'cannot send to c-1', signal: undefined, patienceMs: PATIENCE_MS, hasWorker: () => Promise.resolve(true) },
      whyFailing: () => Promise.resolve(finds[Math.min(looks++, finds.length - 1)]),
      giveUp: (why?: string) => Promise.resolve(new ClientError('failed', `it fails: ${why}`)),
    };
    const answered = (): Promise<string> => new Promise((resolve) => setTimeout(resolve, 8 * PATIENCE_MS, 'answered'));
    return unlessNoWorker(patience, answered).catch((error: unknown) => (error as ClientError).message);
  };
  expect(await waited('the reducer was stopped')).toBe('it fails: the reducer was stopped');
  expect(await waited('the reducer was stopped', undefined)).toBe('answered');
});
