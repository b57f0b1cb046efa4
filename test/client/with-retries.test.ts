import { WorkflowNotFoundError } from '@temporalio/client';
import { isBetweenRuns, type ClientError } from '../../src/client/errors.js';
import { withRetries } from '../../src/client/temporal/patience.js';

/** As grpc-js throws it. */
function grpcError(code: number, details: string): Error {
  return Object.assign(new Error(`${code} ${details}`), { code, details, metadata: {} });
}

/** Fails with these, one after the other, and then answers. */
function failingWith(...errors: readonly Error[]): { say: () => Promise<string>; said: () => number } {
  let said = 0;
  const say = (): Promise<string> => {
    const error = errors[said++];
    return error ? Promise.reject(error) : Promise.resolve('answer');
  };
  return { say, said: () => said };
}

test.each([
  ['FAILED_PRECONDITION, as an update gets that meets a hand-over', 9],
  ['UNAVAILABLE', 14],
  ['RESOURCE_EXHAUSTED', 8],
  ['DEADLINE_EXCEEDED', 4],
])('%s is said again', async (name, code) => {
  const { say, said } = failingWith(grpcError(code, name), grpcError(code, name));
  expect(await withRetries({ attempt: 'cannot send' }, say)).toBe('answer');
  expect(said()).toBe(3);
});

test('an update that a run had not taken when it handed over is said again', async () => {
  const { say, said } = failingWith(new WorkflowNotFoundError('update "send-m1" not found', 'c-1', undefined));
  expect(await withRetries({ attempt: 'cannot send' }, say)).toBe('answer');
  expect(said()).toBe(2);
  const gone = failingWith(new WorkflowNotFoundError('workflow not found for ID: c-1', 'c-1', undefined));
  await expect(withRetries({ attempt: 'cannot send' }, gone.say)).rejects.toMatchObject({ kind: 'not-found' });
});

test('what another try cannot help is reported at once, with what was attempted', async () => {
  const { say, said } = failingWith(grpcError(5, 'NOT_FOUND'));
  const failure = withRetries({ attempt: 'cannot send to c-1' }, say);
  await expect(failure).rejects.toMatchObject({ kind: 'not-found', message: expect.stringContaining('cannot send to c-1') } as ClientError);
  expect(said()).toBe(1);
});

test('a conversation that has as many signals as Temporal keeps for nobody says so, and what to do', async () => {
  const { say } = failingWith(grpcError(3, 'exceeded workflow execution limit for signal events'));
  const failure = withRetries({ attempt: 'cannot send to c-1' }, say);
  await expect(failure).rejects.toMatchObject({ kind: 'queue-full', message: expect.stringContaining('Start a worker') });
});

test('a conversation with as many waiting calls as the server allows says so, and what to do', async () => {
  const full = 'limit on number of concurrent in-flight updates has been reached (10)';
  const always = (): Promise<never> => Promise.reject(grpcError(8, full));
  const failure = withRetries({ attempt: 'cannot step c-1', patienceMs: 50 }, always);
  await expect(failure).rejects.toMatchObject({ kind: 'queue-full', message: expect.stringContaining('history.maxInFlightUpdates') });
});

test('a question that meets the moment between two runs is asked again, and no other is', async () => {
  const between = failingWith(grpcError(9, 'Workflow task is not scheduled yet.'));
  expect(await withRetries({ attempt: 'cannot ask', isWorthAnother: isBetweenRuns }, between.say)).toBe('answer');
  const alone = failingWith(grpcError(9, 'no poller seen for task queue recently, worker may be down'));
  await expect(withRetries({ attempt: 'cannot ask', isWorthAnother: isBetweenRuns }, alone.say)).rejects.toMatchObject({
    kind: 'no-worker',
  });
  expect([between.said(), alone.said()]).toEqual([2, 1]);
});

test('the patience ends, and so does the wait of who gives up', async () => {
  const always = (): Promise<never> => Promise.reject(grpcError(14, 'UNAVAILABLE'));
  await expect(withRetries({ attempt: 'cannot send', patienceMs: 50 }, always)).rejects.toMatchObject({ kind: 'unreachable' });
  const stop = new AbortController();
  const waiting = withRetries({ attempt: 'cannot send', signal: stop.signal }, always);
  stop.abort();
  await expect(waiting).rejects.toMatchObject({ kind: 'aborted' });
});

describe('with a clock of its own', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  /** Fails after so many seconds, always. */
  const failingAfter = (seconds: number, error: Error) => () =>
    new Promise<never>((_, fail) => setTimeout(() => fail(error), seconds * 1000));

  test('a server that is away is given up, though Temporal’s client itself tries for 20 s before it says so', async () => {
    const trying = withRetries({ attempt: 'cannot close', patienceMs: 10_000 }, failingAfter(20, grpcError(14, 'UNAVAILABLE')));
    const failure = expect(trying).rejects.toMatchObject({ kind: 'unreachable' });
    await jest.advanceTimersByTimeAsync(60_000);
    await failure;
  });

  test('a long wait that the server ends now and then is no trouble, however often', async () => {
    let ended = false;
    const trying = withRetries({ attempt: 'cannot wait' }, failingAfter(60, grpcError(4, 'DEADLINE_EXCEEDED'))).finally(
      () => (ended = true),
    );
    trying.catch(() => undefined);
    await jest.advanceTimersByTimeAsync(3_600_000);
    expect(ended).toBe(false);
  });
});
