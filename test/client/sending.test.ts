/** A message is sent once and answered once, however often it has to be said: what leaves the client, call by call. */
import { hostname } from 'node:os';
import type { Message } from '../../src/conversation/protocol/contract.js';
import {
  accepted,
  answeredWith,
  described,
  grpcError,
  pollers,
  refused,
  startedWith,
  updated,
  type Heard,
} from '../support/scripted-temporal.js';
import { failureOf, onScript, turnResult } from './client-on-script.js';

/** A try is said again after a pause, which here takes no time. */
beforeEach(() => jest.useFakeTimers({ advanceTimers: 20, doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] }));
afterEach(() => jest.useRealTimers());

const UPDATE = 'updateWorkflowExecution';
const END = turnResult('end');
const idsIn = (heard: readonly Heard[]): string[] => heard.map(({ args }) => (args[0] as Message).id ?? '');

const ONCE_MORE = [
  ['a server that was away', grpcError('UNAVAILABLE')],
  ['a lost answer', grpcError('DEADLINE_EXCEEDED')],
  ['a hand-over', grpcError('FAILED_PRECONDITION', 'workflow is closing')],
  ['a run that forgot it', grpcError('NOT_FOUND', 'update "send-m1" not found')],
  ['a run that handed over before it was done', refused('AcceptedUpdateCompletedWorkflow')],
  ['a run that hands over', refused('Continues')],
] as const;

test.each(ONCE_MORE)('after %s the same message is said again, under the same ids, and answered once', async (_what, trouble) => {
  const { temporal, client } = onScript();
  temporal.on(UPDATE, trouble, trouble, updated(END));
  expect(await client.send('c', 'hello')).toEqual(END);
  expect(temporal.said()).toEqual([`${UPDATE} send`, `${UPDATE} send`, `${UPDATE} send`]);
  const [id, ...others] = new Set(idsIn(temporal.heard));
  expect(others).toEqual([]);
  expect(new Set(temporal.heard.map(({ updateId }) => updateId))).toEqual(new Set([`send-${id}`]));
});

test('two messages have ids of their own, unless their sender gave them one', async () => {
  const { temporal, client } = onScript();
  temporal.on(UPDATE, updated(END));
  await client.send('c', 'one');
  await client.send('c', 'one');
  await client.send('c', { text: 'mine', id: 'm7' });
  const ids = idsIn(temporal.heard);
  expect(new Set(ids).size).toBe(3);
  expect(ids[2]).toBe('m7');
});

test('an answer that is not there yet is polled for, by the id under which the message was sent', async () => {
  const { temporal, client } = onScript();
  temporal.on(UPDATE, accepted).on('pollWorkflowExecutionUpdate', {}, updated(END));
  expect(await client.send('c', { text: 'x', id: 'm1' })).toEqual(END);
  expect([...new Set(temporal.said())]).toEqual([`${UPDATE} send`, 'pollWorkflowExecutionUpdate']);
  expect(temporal.heard.filter(({ method }) => method === UPDATE)).toHaveLength(1);
  expect(temporal.heard[1]?.request).toMatchObject({ updateRef: { updateId: 'send-m1' } });
});

test.each(['continues', 'queued'] as const)(
  'an answer that says `%s` is followed by `turn`, until the turn has ended',
  async (stopReason) => {
    const { temporal, client } = onScript();
    temporal.on(
      UPDATE,
      updated(turnResult(stopReason)),
      updated(turnResult('continues', 'turn_0002')),
      grpcError('UNAVAILABLE'),
      updated(END),
    );
    expect(await client.send('c', 'hello')).toEqual(END);
    expect(temporal.heard.map(({ name }) => name)).toEqual(['send', 'turn', 'turn', 'turn']);
    expect(temporal.heard.slice(1).map(({ args }) => args[0])).toEqual(
      ['turn_0001', 'turn_0002', 'turn_0002'].map((turnId) => ({ turnId })),
    );
  },
);

test('a reset that met a hand-over has no turn to ask for: it is said again to the next run, as the same message', async () => {
  const { temporal, client } = onScript();
  temporal.on(UPDATE, updated(turnResult('continues', null)), updated(turnResult('reset', null)));
  expect(await client.send('c', { text: '/new', id: 'm1' })).toMatchObject({ stopReason: 'reset' });
  expect(temporal.heard.map(({ name, updateId }) => [name, updateId])).toEqual([
    ['send', 'send-m1'],
    ['send', 'send-m1'],
  ]);
});

test('`turn` asks for a turn that was sent before, and not for more', async () => {
  const { temporal, client } = onScript();
  temporal.on(UPDATE, updated(END));
  expect(await client.turn('c', 'turn_0001')).toEqual(END);
  expect(temporal.heard.map(({ name, args }) => [name, args])).toEqual([['turn', [{ turnId: 'turn_0001' }]]]);
});

test('with `start` the start and the message are one round trip, which attaches to what runs; said again it is the same one', async () => {
  const { temporal, client } = onScript();
  temporal.on('executeMultiOperation', grpcError('UNAVAILABLE'), startedWith(updated(END)));
  expect(await client.send('c', { text: 'x', id: 'm1' }, { start: { agent: 'baker', tenant: 'acme', title: 'Rain' } })).toEqual(END);
  expect(temporal.heard.map(({ name, updateId, args }) => [name, updateId, args])).toEqual([
    ['send', 'send-m1', [{ text: 'x', id: 'm1' }]],
    ['send', 'send-m1', [{ text: 'x', id: 'm1' }]],
  ]);
  const [first] = (temporal.heard[1]?.request as { operations: { startWorkflow: object }[] }).operations;
  expect(first?.startWorkflow).toMatchObject({
    ...{ workflowId: 'c', taskQueue: { name: 'perdura' }, workflowType: { name: 'conversation' } },
    workflowIdConflictPolicy: 2, // USE_EXISTING
  });
});

test('a server that stays away is given up after two minutes, in words', async () => {
  const { temporal, client } = onScript();
  temporal.on(UPDATE, grpcError('UNAVAILABLE', 'No connection established'));
  const failure = failureOf(client.send('c', 'hello'));
  await jest.advanceTimersByTimeAsync(150_000);
  expect(await failure).toEqual({
    kind: 'unreachable',
    message:
      'cannot send to c: Temporal, or a worker for it, does not answer (Workflow Update failed: 14 UNAVAILABLE: No connection established)',
  });
  expect(temporal.heard.length).toBeLessThan(100);
});

describe('the caller’s signal', () => {
  test('ends the wait at once, says so, and leaves nothing on the signal; what was sent stays sent', async () => {
    const { temporal, client } = onScript();
    const stop = new AbortController();
    temporal.on(UPDATE, () => new Promise(() => undefined));
    const failure = failureOf(client.send('c', 'hello', { signal: stop.signal }));
    await jest.advanceTimersByTimeAsync(10);
    stop.abort();
    expect(await failure).toMatchObject({ kind: 'aborted', message: expect.stringContaining('cannot send to c: stopped waiting') });
    expect(temporal.heard).toHaveLength(1);
  });

  test('aborted before, nothing is sent', async () => {
    const { temporal, client } = onScript();
    expect(await failureOf(client.send('c', 'hello', { signal: AbortSignal.abort() }))).toMatchObject({ kind: 'aborted' });
    expect(temporal.heard).toEqual([]);
  });
});

describe('where no worker is', () => {
  const NOBODY = pollers();
  const never = (): Promise<never> => new Promise(() => undefined);
  const patient = () => onScript({ workerPatienceMs: 1_000 });

  test('a message is kept by a signal under the same id, and its sender is told how its answer is had', async () => {
    const { temporal, client } = patient();
    temporal.on(UPDATE, never).on('describeTaskQueue', NOBODY).on('signalWorkflowExecution', {});
    temporal.on('describeWorkflowExecution', described({ id: 'c' }));
    const failure = failureOf(client.send('c', { text: 'x', id: 'm1' }));
    await jest.advanceTimersByTimeAsync(1_500);
    expect(await failure).toEqual({
      kind: 'no-worker',
      message:
        'cannot send to c: no worker takes work from task queue perdura: start one (`perdura worker`); message m1 is kept and answered once one does; sent again with that id it is this one, and has its answer',
    });
    expect(temporal.heard.filter(({ method }) => method === 'signalWorkflowExecution')).toMatchObject([
      { name: 'message', workflowId: 'c', args: [{ text: 'x', id: 'm1' }] },
    ]);
  });

  test('with `start` it is kept by a start with a signal, on our own task queue', async () => {
    const { temporal, client } = patient();
    temporal.on('executeMultiOperation', never).on('describeTaskQueue', NOBODY).on('signalWithStartWorkflowExecution', { runId: 'r' });
    const failure = failureOf(client.send('c', { text: 'x', id: 'm1' }, { start: {} }));
    await jest.advanceTimersByTimeAsync(1_500);
    expect(await failure).toMatchObject({ kind: 'no-worker' });
    expect(temporal.said()).not.toContain('describeWorkflowExecution');
    expect(temporal.heard.at(-1)).toMatchObject({ name: 'message', workflowId: 'c' });
  });

  test('and where it cannot be kept either, that is said', async () => {
    const { temporal, client } = patient();
    temporal
      .on(UPDATE, never)
      .on('describeTaskQueue', NOBODY)
      .on('describeWorkflowExecution', described({ id: 'c' }));
    temporal.on('signalWorkflowExecution', grpcError('NOT_FOUND', 'workflow execution already completed'));
    const failure = failureOf(client.send('c', 'x'));
    await jest.advanceTimersByTimeAsync(1_500);
    expect((await failure).message).toContain('the message could not be kept either (WorkflowNotFoundError');
  });

  test.each<[what: string, doing: (client: ReturnType<typeof onScript>['client']) => Promise<unknown>, words: string]>([
    ['a reset', (client) => client.reset('c'), 'a worker that comes may still do it, or never hear of it'],
    ['a compaction', (client) => client.compact('c'), 'look how the conversation stands'],
    ['a step', (client) => client.step('c', { id: 's1' }), 'a step with the same id (s1) is this one'],
    ['an event', (client) => client.dispatch('c', { type: 'RAIN', id: 'e1' }), 'dispatch it again with the same id (e1)'],
    ['a turn', (client) => client.turn('c', 'turn_0001'), 'the turn goes on once one does'],
    [
      'a decision that waits',
      (client) => client.decide('c', { callId: 'turn_0001/c1', decision: 'approve' }, { awaited: true }),
      'look how',
    ],
  ])('of %s is said what becomes of it', async (_what, doing, words) => {
    const { temporal, client } = patient();
    temporal
      .on(UPDATE, never)
      .on('describeTaskQueue', NOBODY)
      .on('describeWorkflowExecution', described({ id: 'c' }));
    const failure = failureOf(doing(client));
    await jest.advanceTimersByTimeAsync(1_500);
    expect(await failure).toMatchObject({ kind: 'no-worker', message: expect.stringContaining(words) });
  });

  test.each<[what: string, answer: object | Error]>([
    ['a worker polls from another machine', pollers(['4711@elsewhere'])],
    ['somebody else’s worker polls', pollers(['not-one-of-ours'])],
    ['Temporal cannot be asked', grpcError('UNAVAILABLE')],
  ])('%s: the turn is waited for, however long it takes', async (_what, answer) => {
    const { temporal, client } = patient();
    let end: (answer: object) => void = () => undefined;
    temporal.on(UPDATE, () => new Promise((resolve) => (end = resolve)));
    temporal.on('describeTaskQueue', answer).on('describeWorkflowExecution', described({ id: 'c' }));
    const sent = client.send('c', 'x');
    await jest.advanceTimersByTimeAsync(60_000);
    end(updated(END));
    expect(await sent).toEqual(END);
  });

  test.each<[what: string, answer: object]>([
    ['one that asked last more than 75 s ago', pollers(['4711@elsewhere', 80_000])],
    ['one of this machine whose process is gone', pollers([`999999999@${hostname()}`])],
  ])('%s is no worker', async (_what, answer) => {
    const { temporal, client } = patient();
    temporal
      .on(UPDATE, never)
      .on('describeTaskQueue', answer)
      .on('describeWorkflowExecution', described({ id: 'c' }));
    const failure = failureOf(client.reset('c'));
    await jest.advanceTimersByTimeAsync(1_500);
    expect(await failure).toMatchObject({ kind: 'no-worker' });
  });
});

describe('a start', () => {
  const START = 'startWorkflowExecution';

  test('attaches to what runs, and says so', async () => {
    const { temporal, client } = onScript();
    temporal.on(START, { runId: 'r' }, grpcError('ALREADY_EXISTS', 'Workflow execution is already running.'));
    expect(await client.start('c')).toEqual({ id: 'c', attached: false });
    expect(await client.start('c')).toEqual({ id: 'c', attached: true });
    expect((await client.start(undefined)).id).toMatch(/^conv-[0-9a-f-]{36}$/);
  });

  test('keeps in its memo by what lists find it: agent, scope, tenant, title and the id that its tenant knows', async () => {
    const { temporal, client } = onScript();
    temporal.on(START, { runId: 'r' });
    const memoOf = (at: number): Record<string, unknown> =>
      Object.fromEntries(
        Object.entries((temporal.heard[at]?.request as { memo: { fields: Record<string, { data: Uint8Array }> } }).memo.fields).map(
          ([name, { data }]) => [name, JSON.parse(Buffer.from(data).toString())],
        ),
      );
    await client.start('c', { agent: 'baker', title: 'Rain' });
    await client.start('acme-1', { agent: 'baker', scope: 'shop', tenant: 'acme', publicId: 'c' });
    expect(memoOf(0)).toEqual({ agent: 'baker', scope: 'baker', title: 'Rain' });
    expect(memoOf(1)).toEqual({ agent: 'baker', scope: 'acme.shop', tenant: 'acme', publicId: 'c' });
    expect(temporal.heard[1]).toMatchObject({ args: [{ agent: 'baker', scope: 'shop', tenant: 'acme', publicId: 'c' }] });
  });

  test.each<[state: 'RUNNING' | 'COMPLETED', result: object]>([
    ['RUNNING', { id: 'c', attached: true }],
    ['COMPLETED', { kind: 'not-found', message: 'cannot start c: there is no agent "baekr"' }],
  ])('with an agent that there is not, where a conversation of that id is %s', async (status, result) => {
    const { temporal, client } = onScript({ agentRefusal: async (agent) => `there is no agent "${agent}"` });
    temporal.on('describeWorkflowExecution', described({ id: 'c', status })).on(START, grpcError('ALREADY_EXISTS'));
    const started = await client.start('c', { agent: 'baekr' }).catch(({ kind, message }: Error & { kind: string }) => ({ kind, message }));
    expect(started).toEqual(result);
    expect(temporal.said().includes(START)).toBe(status === 'RUNNING');
  });
});

test('signals are said again while the server is away, for ten seconds; what has ended takes none', async () => {
  const { temporal, client } = onScript();
  temporal.on('signalWorkflowExecution', grpcError('UNAVAILABLE'), {});
  expect(await client.message('c', { text: 'x', id: 'm1' })).toEqual({ messageId: 'm1' });
  expect(idsIn(temporal.heard)).toEqual(['m1', 'm1']);
  temporal.on('signalWorkflowExecution', grpcError('UNAVAILABLE'));
  const failure = failureOf(client.closeConversation('c', { memory: false }));
  await jest.advanceTimersByTimeAsync(15_000);
  expect(await failure).toMatchObject({ kind: 'unreachable' });
  temporal.on('signalWorkflowExecution', grpcError('NOT_FOUND', 'workflow execution already completed'));
  expect(await failureOf(client.interrupt('c'))).toMatchObject({
    kind: 'not-found',
    message: expect.stringContaining('cannot interrupt c'),
  });
});

test('what changes memory is asked for once, however often it is said', async () => {
  const { temporal, client } = onScript();
  temporal.on(UPDATE, grpcError('UNAVAILABLE'), grpcError('FAILED_PRECONDITION'), updated({ kind: 'undone', epoch: 2 }));
  await client.undoCompaction('c');
  const asked = temporal.heard.map(({ updateId, args }) => [updateId, (args[0] as { id: string }).id]);
  expect(new Set(asked.map(String)).size).toBe(1);
  expect(asked[0]?.[0]).toBe(`undoCompaction-${asked[0]?.[1]}`);
});

test('a step that was refused may be possible a moment later: the same step, under an update id of its own each time', async () => {
  const { temporal, client } = onScript();
  temporal.on(UPDATE, grpcError('UNAVAILABLE'), updated({ kind: 'stepped' }));
  await client.step('c', { id: 's1' });
  expect(temporal.heard.map(({ args }) => args[0])).toEqual([{ id: 's1' }, { id: 's1' }]);
  expect(new Set(temporal.heard.map(({ updateId }) => updateId)).size).toBe(2);
});

test('what was to be dropped from the queue and is gone was dropped by a try whose answer was lost', async () => {
  const { temporal, client } = onScript();
  temporal
    .on(UPDATE, grpcError('UNAVAILABLE'), refused('InvalidMessage', 'nothing of that id waits'))
    .on('queryWorkflow', answeredWith([{ id: 'qevt_000002' }]));
  expect(await client.editQueue('c', { op: 'drop', id: 'qevt_000001' })).toEqual([{ id: 'qevt_000002' }]);
  temporal.on(UPDATE, refused('InvalidMessage', 'nothing of that id waits'));
  expect(await failureOf(client.editQueue('c', { op: 'drop', id: 'qevt_000001' }))).toMatchObject({ kind: 'invalid' });
  temporal.on(UPDATE, grpcError('UNAVAILABLE'), refused('InvalidMessage', 'no')).on('queryWorkflow', answeredWith([{ id: 'qevt_000001' }]));
  expect(await failureOf(client.editQueue('c', { op: 'drop', id: 'qevt_000001' }))).toMatchObject({ kind: 'invalid' });
});

test('closing closes what was opened, once it was, and no conversation', async () => {
  const closed: string[] = [];
  const store = { close: async () => void closed.push('store'), spendings: { all: async function* () {} } };
  const make = () => onScript({ store: async () => store as never, close: async () => void closed.push('connection') });
  await make().client.close();
  expect(closed.splice(0)).toEqual(['connection']);
  const { temporal, client } = make();
  await client.usage();
  await client.close();
  expect([closed, temporal.heard]).toEqual([['store', 'connection'], []]);
});
