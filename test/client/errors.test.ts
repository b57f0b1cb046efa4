/** What Temporal says, in the words that decide what a program or a person does next: through the SDK's own conversion of errors. */
import { ApplicationFailure } from '@temporalio/common';
import { NamespaceNotFoundError } from '@temporalio/common';
import { ClientError, isAway, isBetweenRuns, isWorthAnotherTry, toClientError, type ClientErrorKind } from '../../src/client/errors.js';
import { answeredWith, grpcError, refused, scriptedTemporal, updated, type Answer } from '../support/scripted-temporal.js';
import { failureOf, onScript } from './client-on-script.js';

/** What the SDK throws for these. */
const thrownBy = async (kind: 'update' | 'query' | 'signal', answer: Answer): Promise<unknown> => {
  const method = { update: 'updateWorkflowExecution', query: 'queryWorkflow', signal: 'signalWorkflowExecution' }[kind];
  const handle = scriptedTemporal().on(method, answer).client.workflow.getHandle('c');
  const doing = kind === 'update' ? handle.executeUpdate('send') : kind === 'query' ? handle.query('status') : handle.signal('message');
  return Promise.resolve(doing).then(
    () => undefined,
    (error: unknown) => error,
  );
};

test.each<[type: string, kind: ClientErrorKind]>([
  ['InvalidMessage', 'invalid'],
  ['InvalidStart', 'invalid'],
  ['UnknownTurn', 'not-found'],
  ['UnknownProposal', 'not-found'],
  ['ConversationClosing', 'closed'],
  ['CannotStep', 'cannot-step'],
  ['QueueFull', 'queue-full'],
  ['NotWaiting', 'not-waiting'],
  ['SomethingOfALaterVersion', 'failed'],
])('an update that the workflow refuses with %s is %s, in the workflow’s own words, and is not said again', async (type, kind) => {
  const { temporal, client } = onScript();
  temporal.on('updateWorkflowExecution', refused(type, 'text is too long: 9 of 5'));
  expect(await failureOf(client.compact('c'))).toEqual({ kind, message: 'cannot compact c: text is too long: 9 of 5' });
  expect(temporal.heard).toHaveLength(1);
});

type Row = readonly [
  what: string,
  kind: 'update' | 'query' | 'signal',
  answer: Answer,
  expected: ClientErrorKind,
  words: string,
  again: boolean,
];
const ROWS: readonly Row[] = [
  [
    'no such conversation',
    'update',
    grpcError('NOT_FOUND', 'workflow not found for ID: c'),
    'not-found',
    'no such conversation is running',
    false,
  ],
  [
    'no such conversation, asked',
    'query',
    grpcError('NOT_FOUND', 'sql: no rows in result set'),
    'not-found',
    'no such conversation is running',
    false,
  ],
  [
    'it has ended',
    'signal',
    grpcError('NOT_FOUND', 'workflow execution already completed'),
    'not-found',
    'no such conversation is running',
    false,
  ],
  [
    'an update that a run forgot when it handed over',
    'update',
    grpcError('NOT_FOUND', 'update "send-m1" not found'),
    'not-found',
    '',
    true,
  ],
  [
    'ten thousand signals',
    'signal',
    grpcError('INVALID_ARGUMENT', 'exceeded workflow execution limit for signal events'),
    'queue-full',
    'Start a worker',
    false,
  ],
  [
    'too many updates',
    'update',
    grpcError('RESOURCE_EXHAUSTED', 'limit on number of concurrent in-flight updates has been reached (10)'),
    'queue-full',
    'history.maxInFlightUpdates',
    true,
  ],
  [
    'an argument that the server refuses',
    'signal',
    grpcError('INVALID_ARGUMENT', 'WorkflowId length exceeds limit'),
    'invalid',
    'WorkflowId length exceeds limit',
    false,
  ],
  ['the server is away', 'query', grpcError('UNAVAILABLE', 'No connection established'), 'unreachable', 'does not answer', true],
  ['the server is away, for an update', 'update', grpcError('UNAVAILABLE'), 'unreachable', 'does not answer', true],
  ['an update that took too long to be heard', 'update', grpcError('DEADLINE_EXCEEDED'), 'unreachable', 'does not answer', true],
  ['a query that took too long', 'query', grpcError('DEADLINE_EXCEEDED'), 'unreachable', 'does not answer', true],
  ['a caller that gave up', 'update', grpcError('CANCELLED'), 'unreachable', 'does not answer', false],
  [
    'an update that raced a hand-over',
    'update',
    grpcError('FAILED_PRECONDITION', 'workflow is closing'),
    'failed',
    'workflow is closing',
    true,
  ],
  ['a race inside the server', 'update', grpcError('ABORTED'), 'failed', 'ABORTED', true],
  [
    'no worker polls',
    'query',
    grpcError('FAILED_PRECONDITION', 'no poller seen for task queue recently'),
    'no-worker',
    'perdura worker',
    true,
  ],
  ['a right that is missing', 'update', grpcError('PERMISSION_DENIED', 'Request unauthorized.'), 'failed', 'Request unauthorized.', false],
  ['a fault of the server', 'query', grpcError('INTERNAL', 'oops'), 'failed', 'oops', false],
  [
    'a run that handed over before it was done',
    'update',
    refused('AcceptedUpdateCompletedWorkflow'),
    'failed',
    'AcceptedUpdateCompletedWorkflow',
    true,
  ],
  ['a reset that somebody took out of the queue', 'update', refused('Withdrawn'), 'conflict', 'Withdrawn', false],
  ['a run that is handing over', 'update', refused('Continues'), 'failed', 'Continues', true],
  [
    'a task that was done without it',
    'update',
    refused('', "Workflow Update is rejected because it wasn't processed by worker."),
    'failed',
    'processed',
    false,
  ],
];

test.each(ROWS)('%s (%s)', async (_what, kind, answer, expected, words, again) => {
  const error = await thrownBy(kind, answer);
  const known = toClientError(error, 'cannot do it');
  expect(known).toBeInstanceOf(ClientError);
  expect(known).toMatchObject({ kind: expected, message: expect.stringMatching(/^cannot do it: /), cause: error });
  expect(known.message).toContain(words);
  expect(isWorthAnotherTry(error)).toBe(again);
});

test('what a task was done without is said again: nothing has happened to it', () => {
  const unprocessed = new Error(
    "Workflow Update is rejected because it wasn't processed by worker. Probably, Workflow Update is not supported",
  );
  expect(isWorthAnotherTry(unprocessed)).toBe(true);
  expect(isWorthAnotherTry(new Error('outer', { cause: unprocessed }))).toBe(true);
});

test('a question is asked again where no task has begun, or came before its task, and for no other reason', async () => {
  const between = [
    grpcError('FAILED_PRECONDITION', 'Workflow task is not scheduled yet.'),
    grpcError('INVALID_ARGUMENT', 'the conversation has not begun here yet: ask again'),
  ];
  const others = [
    grpcError('FAILED_PRECONDITION', 'no poller seen'),
    grpcError('INVALID_ARGUMENT', 'no handler'),
    grpcError('UNAVAILABLE'),
  ];
  for (const error of between) expect(isBetweenRuns(await thrownBy('query', error))).toBe(true);
  for (const error of others) expect(isBetweenRuns(await thrownBy('query', error))).toBe(false);
});

test('only a server that is away is away', async () => {
  expect(isAway(await thrownBy('query', grpcError('UNAVAILABLE')))).toBe(true);
  for (const code of ['DEADLINE_EXCEEDED', 'NOT_FOUND', 'CANCELLED'] as const)
    expect(isAway(await thrownBy('update', grpcError(code)))).toBe(false);
});

test('an error of ours stays what it is, and what is thrown that is no error has words too', () => {
  const own = new ClientError('closed', 'it is closing');
  expect(toClientError(own, 'cannot send')).toBe(own);
  expect(toClientError('no', 'cannot send')).toMatchObject({ kind: 'failed', message: 'cannot send: no' });
  expect(toClientError(new Error('outer', { cause: new Error('inner') }), 'x').message).toBe('x: outer: inner');
  expect(toClientError(ApplicationFailure.create({ type: 'QueueFull', message: 'm' }), 'x')).toMatchObject({ kind: 'queue-full' });
});

test.each<[string, (on: ReturnType<typeof onScript>) => Promise<unknown>]>([
  ['an id with a blank', ({ client }) => client.status('a b')],
  ['an id that is empty', ({ client }) => client.message('', 'hi')],
  ['a start with a sub-agent’s id', ({ client }) => client.start('conv:turn_0001:1')],
  ['a start with a title that is no text', ({ client }) => client.start('c', { title: 7 } as never)],
  ['an empty message', ({ client }) => client.send('c', '')],
  ['a message with a field of another type', ({ client }) => client.enqueue('c', { text: 7 } as never)],
  ['a decision that is none', ({ client }) => client.decide('c', { callId: 'c1', decision: 'perhaps' } as never)],
  ['a budget below nothing', ({ client }) => client.raiseBudget('c', { maxTokens: -1 })],
  ['a model without a provider', ({ client }) => client.setModel('c', 'claude')],
  ['a message to withdraw without an id', ({ client }) => client.withdraw('c', '')],
  ['a mode that there is not', ({ client }) => client.setMode('c', 'fast' as never)],
  ['breakpoints that are none', ({ client }) => client.setBreakpoints('c', { tools: 7 } as never)],
  ['an edit that is none', ({ client }) => client.editQueue('c', { op: 'shuffle' } as never)],
  ['chunks that are none', ({ client }) => client.executeTruncation('c', [])],
  ['an event without a type', ({ client }) => client.dispatch('c', { type: '' })],
  ['a scope that is none', async ({ client }) => client.scope('a b').text()],
  ['a fork at no turn', ({ client }) => client.fork('c', { at: '7' })],
])('%s is refused as invalid before anything reaches Temporal or the store', async (_what, doing) => {
  const on = onScript();
  const { kind } = await failureOf((async () => doing(on))());
  expect([kind, on.temporal.said()]).toEqual(['invalid', []]);
});

test('a refusal shows so much of a hostile id as a line can hold', async () => {
  const { client } = onScript();
  const { message } = await failureOf((async () => client.status(`\u001b[2J${'x'.repeat(100_000)}`))());
  expect(message.length).toBeLessThan(300);
  expect(message).not.toContain('\u001b');
});

test('a sub-agent’s id can be spoken of', async () => {
  const { temporal, client } = onScript();
  temporal.on('queryWorkflow', answeredWith({ phase: 'idle' })).on('updateWorkflowExecution', updated({ kind: 'nothing-to-compact' }));
  await expect(client.status('conv:turn_0001:1')).resolves.toEqual({ phase: 'idle' });
});

test('a namespace that is not there, or not yet, is no fault of the gateway', () => {
  const known = toClientError(new NamespaceNotFoundError('default'), 'cannot start');
  expect(known).toMatchObject({ kind: 'unreachable', message: expect.stringMatching(/^cannot start: .*TEMPORAL_NAMESPACE/) });
});
