/** What the client finds and how it asks: lists page by page, whose conversations, descriptions, workers, what waits for people. */
import type { ClientError } from '../../src/client.js';
import { answeredWith, described, execution, grpcError, pollers, refused, updated, type Heard } from '../support/scripted-temporal.js';
import { failureOf, onScript } from './client-on-script.js';

const LIST = 'listWorkflowExecutions';
const page = (executions: readonly object[], nextPageToken = ''): object => ({ executions, nextPageToken: Buffer.from(nextPageToken) });
const queriesIn = (heard: readonly Heard[]): unknown[] =>
  heard.filter(({ method }) => method === LIST).map(({ request }) => request['query']);
const CONVERSATIONS = "WorkflowType = 'conversation' AND ExecutionStatus != 'ContinuedAsNew'";

describe('a list', () => {
  test('is read page by page, no further than it is wanted, and has each conversation once: the life that runs', async () => {
    const { temporal, client } = onScript();
    temporal.on(
      LIST,
      page([execution({ id: 'a', status: 'FAILED' }), execution({ id: 'b' })], 'p2'),
      page([execution({ id: 'a' }), execution({ id: 'b', status: 'TERMINATED' }), execution({ id: 'c' })], 'p3'),
      page([execution({ id: 'd' })]),
    );
    expect((await client.list({ limit: 3 })).map(({ id, state }) => [id, state])).toEqual([
      ['a', 'running'],
      ['b', 'running'],
      ['c', 'running'],
    ]);
    expect(temporal.heard.map(({ request }) => String(request['nextPageToken']))).toEqual(['', 'p2']);
    temporal.on(LIST, page([execution({ id: 'a' }), execution({ id: 'b' }), execution({ id: 'c' })]));
    expect(await client.list({ scan: 2 })).toHaveLength(2);
    expect((await client.list({ where: ({ id }) => id === 'c' })).map(({ id }) => id)).toEqual(['c']);
  });

  test.each<[options: object, query: string]>([
    [{}, CONVERSATIONS],
    [{ idPrefix: "o'neil-" }, `${CONVERSATIONS} AND WorkflowId STARTS_WITH 'o''neil-'`],
    [{ query: "AgentName = 'a' OR 1 = 1" }, `${CONVERSATIONS} AND (AgentName = 'a' OR 1 = 1)`],
    [{ tenant: "o'neil" }, `${CONVERSATIONS} AND (AgentTenant = 'o''neil' OR AgentTenant IS NULL)`],
    [{ tenant: null }, `${CONVERSATIONS} AND (AgentTenant IS NULL)`],
  ])('asks for %j by a query that a name cannot leave', async (options, query) => {
    const { temporal, client } = onScript();
    temporal.on(LIST, page([]));
    await client.list(options);
    expect(queriesIn(temporal.heard)).toEqual([query]);
  });

  test.each<[whose: string | null | undefined, ids: string[]]>([
    ['acme', ['acme-1']],
    ['other', ['other-1']],
    [null, ['nobodys']],
    [undefined, ['acme-1', 'other-1', 'nobodys']],
  ])('of tenant %j has only what the memo says is theirs, whatever the server answers', async (tenant, ids) => {
    const { temporal, client } = onScript();
    const all = [
      execution({ id: 'acme-1', memo: { tenant: 'acme' } }),
      execution({ id: 'other-1', memo: { tenant: 'other' }, attributes: { AgentTenant: ['Keyword', ['acme']] } }),
      execution({ id: 'nobodys' }),
    ];
    temporal.on(LIST, page(all));
    expect((await client.list({ tenant })).map(({ id }) => id)).toEqual(ids);
    expect((await client.list({ tenant, idPrefix: 'acme-' })).map(({ id }) => id)).toEqual(ids.filter((id) => id === 'acme-1'));
  });

  test('where the attribute is not registered, all are looked at; another failure is a failure', async () => {
    const { temporal, client } = onScript();
    temporal.on(
      LIST,
      grpcError('INVALID_ARGUMENT', 'invalid search attribute: AgentTenant'),
      page([execution({ id: 'a', memo: { tenant: 'acme' } })]),
    );
    expect(await client.list({ tenant: 'acme' })).toHaveLength(1);
    expect(queriesIn(temporal.heard)[1]).toBe(CONVERSATIONS);
    temporal.on(LIST, grpcError('UNAVAILABLE'));
    expect(await failureOf(client.list({ tenant: 'acme' }))).toMatchObject({
      kind: 'unreachable',
      message: expect.stringContaining('cannot list conversations'),
    });
  });

  test('has what memo and search attributes say, null where they do not', async () => {
    const { temporal, client } = onScript();
    const attributes = {
      AgentStatus: ['Keyword', ['waiting']],
      AgentModel: ['Keyword', ['x/y']],
      AgentTurns: ['Int', [3]],
      AgentCostUsd: ['Double', [0.5]],
      AgentName: ['Keyword', ['from-attribute']],
    } as const;
    temporal.on(
      LIST,
      page([
        execution({ id: 'a', memo: { title: 'T', publicId: 'p', agent: 7 }, attributes }),
        execution({ id: 'b', status: 'TIMED_OUT' }),
      ]),
    );
    expect(await client.list()).toMatchObject([
      {
        id: 'a',
        agent: 'from-attribute',
        title: 'T',
        publicId: 'p',
        status: 'waiting',
        model: 'x/y',
        turns: 3,
        costUsd: 0.5,
        running: true,
      },
      { id: 'b', agent: null, title: null, tenant: null, status: null, turns: null, costUsd: null, running: false, state: 'timed-out' },
    ]);
  });
});

test('a description has what Temporal knows without a worker: the first run’s id as its life, and what is under way', async () => {
  const { temporal, client } = onScript();
  const activity = {
    activityId: 'a1',
    activityType: { name: 'run-tool' },
    state: 2,
    attempt: 3,
    lastFailure: { message: 'busy' },
    lastWorkerIdentity: 'w',
    activityOptions: { taskQueue: { name: 'gpu' } },
  };
  const told = { id: 'c', runId: 'r2', memo: { agent: 'baker', scope: 'acme.shop', tenant: 'acme' }, more: { firstRunId: 'r1' } };
  temporal.on('describeWorkflowExecution', described(told, { pendingActivities: [activity, { state: 99 }] }));
  expect(await client.describe('c')).toMatchObject({
    ...{
      id: 'c',
      runId: 'r2',
      life: 'r1',
      state: 'running',
      agent: 'baker',
      scope: 'acme.shop',
      tenant: 'acme',
      title: null,
      historyEvents: 12,
      historyBytes: 3_000,
    },
    pendingActivities: [
      { id: 'a1', type: 'run-tool', state: 'started', attempt: 3, lastFailure: 'busy', worker: 'w', startedAt: null, taskQueue: 'gpu' },
      { id: '', state: 'unknown', attempt: 1, lastFailure: null, worker: null, taskQueue: null },
    ],
  });
  expect(await client.key('c')).toEqual({ namespace: 'default', scope: 'acme.shop', conversation: 'c', life: 'r1' });
  temporal.on('describeWorkflowExecution', grpcError('NOT_FOUND', 'workflow not found for ID: c'));
  expect(await failureOf(client.describe('c'))).toMatchObject({ kind: 'not-found', message: expect.stringContaining('cannot look up c') });
});

test('a conversation waits for a worker of a tool’s queue only until Temporal has one that took the call', async () => {
  const waiting = { kind: 'worker', tool: 'render', taskQueue: 'gpu', since: '2026-11-21T10:00:00.000Z' };
  const standing = { phase: 'running-tools', waiting, waitingFor: 'a worker' };
  const call = (state: number, name = 'gpu') => ({ activityId: 'a', state, activityOptions: { taskQueue: { name } } });
  const statusWith = async (pendingActivities: object[]) => {
    const { temporal, client } = onScript();
    temporal.on('queryWorkflow', answeredWith(standing)).on('describeWorkflowExecution', described({ id: 'c' }, { pendingActivities }));
    return client.status('c');
  };
  expect(await statusWith([call(1)])).toEqual(standing);
  expect(await statusWith([call(1), call(2)])).toEqual(standing);
  // Between two tries there is none, and a call of another queue says nothing.
  expect(await statusWith([call(2, 'perdura')])).toEqual(standing);
  expect(await statusWith([call(2), call(1, 'perdura')])).toEqual({ phase: 'running-tools' });
});

test('of one that was started by somebody else, without a memo, the worker is asked whose memory it has', async () => {
  const { temporal, client } = onScript();
  temporal.on('describeWorkflowExecution', described({ id: 'c' })).on('queryWorkflow', answeredWith({ scope: 'default' }));
  expect((await client.key('c')).scope).toBe('default');
});

test('a question that meets the moment between two runs is asked again; one that no worker answers is not', async () => {
  const { temporal, client } = onScript();
  temporal.on('queryWorkflow', grpcError('FAILED_PRECONDITION', 'Workflow task is not scheduled yet.'), answeredWith({ phase: 'idle' }));
  expect(await client.status('c')).toEqual({ phase: 'idle' });
  temporal.on('queryWorkflow', { queryRejected: { status: 2 } });
  expect(await failureOf(client.queue('c'))).toMatchObject({
    kind: 'failed',
    message: expect.stringContaining('cannot read the queue of c'),
  });
  expect(temporal.heard).toHaveLength(3);
});

test('the workers of a task queue: each once, with what it takes and when it was seen; a server that says no more is no failure', async () => {
  const { temporal, client } = onScript();
  const seen = pollers(['2@b'], ['1@a']);
  temporal.on('describeTaskQueue', seen, pollers(['1@a'])).on('listWorkers', grpcError('INTERNAL', 'unknown method'));
  const { workers, queues } = await client.workers();
  expect(workers.map(({ identity, takes, version, load }) => [identity, takes, version, load])).toEqual([
    ['1@a', ['decisions', 'activities'], null, null],
    ['2@b', ['decisions'], null, null],
  ]);
  expect(queues.map(({ of, backlog }) => [of, backlog])).toEqual([
    ['decisions', 0],
    ['activities', 0],
  ]);
});

test('failures are grouped by kind, most first; who does not answer is counted, and what ended from outside is said', async () => {
  const { temporal, client } = onScript();
  const failed = { phase: 'idle', lastError: { type: 'auth', message: 'export\na key' } };
  const retrying = { phase: 'thinking', waiting: { kind: 'retry', reason: 'rate-limit', message: 'later' } };
  const answers: Record<string, unknown> = { a: failed, b: failed, c: retrying, d: { phase: 'idle' } };
  temporal
    .on(
      LIST,
      page(
        [...'abcde']
          .map((id) => execution({ id }))
          .concat(execution({ id: 'f', status: 'TERMINATED' }), execution({ id: 'g', status: 'COMPLETED' })),
      ),
    )
    .on('describeTaskQueue', pollers(['1@elsewhere']))
    .on('queryWorkflow', ({ workflowId = '' }: Heard) =>
      answers[workflowId] ? answeredWith(answers[workflowId]) : Promise.reject(grpcError('INTERNAL')),
    );
  expect(await client.failures()).toEqual({
    failures: [
      { kind: 'auth', count: 2, message: 'export a key', isRetried: false, conversations: ['a', 'b'] },
      { kind: 'rate-limit', count: 1, message: 'later', isRetried: true, conversations: ['c'] },
      { kind: 'terminated', count: 1, message: 'the workflow was terminated from outside', isRetried: false, conversations: ['f'] },
    ],
    ...{ looked: 7, silent: 1, more: false },
  });
});

describe('what waits for people', () => {
  const approval = (conversation: string, callId: string, expiresAt = 9): object => ({
    conversation,
    callId,
    tool: 'pay',
    hash: 'h',
    askedAt: 1,
    expiresAt,
  });
  const asked = (on: ReturnType<typeof onScript>, waiting: Readonly<Record<string, readonly object[] | Error>>) =>
    on.temporal
      .on(LIST, page(Object.keys(waiting).map((id) => execution({ id }))))
      .on('describeWorkflowExecution', described({ id: 'c', memo: { scope: 's' } }))
      .on('queryWorkflow', ({ workflowId = '' }: Heard) => {
        const found = waiting[workflowId] ?? [];
        return found instanceof Error ? Promise.reject(found) : answeredWith(found);
      });

  test('in all conversations: what expires first comes first, a sub-agent’s once, and who does not answer is named', async () => {
    const on = onScript();
    asked(on, {
      a: [approval('a', 'turn_0001/c1', 20), approval('a:turn_0001:1', 'turn_0001/c2', 5)],
      'a:turn_0001:1': [approval('a:turn_0001:1', 'turn_0001/c2', 5)],
      gone: grpcError('NOT_FOUND', 'workflow execution already completed'),
      broken: grpcError('INTERNAL', 'oops'),
    });
    const { approvals, silent, more } = await on.client.allApprovals();
    expect(approvals.map(({ via, callId }) => [via, callId])).toEqual([
      ['a', 'turn_0001/c2'],
      ['a', 'turn_0001/c1'],
    ]);
    expect([silent.map(({ id }) => id), more]).toEqual([['broken'], false]);
    expect(queriesIn(on.temporal.heard)[0]).toContain("ExecutionStatus = 'Running' AND TaskQueue = 'perdura'");
  });

  test('a decision on what does not wait, or was asked with other arguments, is sent to nobody', async () => {
    const on = onScript();
    asked(on, { c: [approval('c', 'turn_0001/c1')] });
    for (const decision of [{ callId: 'turn_0001/c9' }, { callId: 'turn_0001/c1', hash: 'f'.repeat(64) }]) {
      const failure = await failureOf(on.client.decide('c', { ...decision, decision: 'approve' }));
      expect(['not-waiting', 'invalid']).toContain(failure.kind);
    }
    expect(on.temporal.said()).not.toContain('signalWorkflowExecution decide');
  });

  test('a decision is a signal, and is done once the conversation no longer waits', async () => {
    const on = onScript();
    const waiting: { c: readonly object[] } = { c: [approval('c', 'turn_0001/c1')] };
    on.temporal
      .on('queryWorkflow', ({ name }: Heard) => answeredWith(name === 'status' ? { rejectedInputs: { last: [] } } : waiting.c))
      .on('signalWorkflowExecution', () => ((waiting.c = []), {}));
    expect(await on.client.decide('c', { callId: 'turn_0001/c1', decision: 'deny' })).toEqual({ callId: 'turn_0001/c1', decision: 'deny' });
    expect(on.temporal.heard.filter(({ name }) => name === 'decide')).toHaveLength(1);
  });

  test('one that somebody else has decided meanwhile says so: the first decision counts', async () => {
    const on = onScript();
    let refusals: object[] = [];
    on.temporal
      .on('queryWorkflow', ({ name }: Heard) =>
        answeredWith(name === 'status' ? { rejectedInputs: { last: refusals } } : [approval('c', 'turn_0001/c1')]),
      )
      .on('signalWorkflowExecution', () => ((refusals = [{ name: 'decide', at: 5, reason: 'turn_0001/c1 was decided before' }]), {}));
    expect(await failureOf(on.client.decide('c', { callId: 'turn_0001/c1', decision: 'deny' }))).toMatchObject({
      kind: 'not-waiting',
      message: expect.stringContaining('the first decision counts'),
    });
  });
});

test('a fork or a resume of what nobody knows is refused, and nothing is started', async () => {
  const lives = { list: async () => [], deleted: async () => [] };
  const { temporal, client } = onScript({ store: async () => ({ lives, close: async () => undefined }) as never });
  temporal.on('describeWorkflowExecution', grpcError('NOT_FOUND'));
  for (const doing of [client.fork('c', { at: 'turn_0001' }), client.resume('c')]) {
    expect(await failureOf(doing)).toMatchObject({
      kind: 'not-found',
      message: expect.stringContaining('neither Temporal nor the store has a conversation'),
    });
  }
  temporal
    .on('describeWorkflowExecution', described({ id: 'c', memo: { scope: 's' } }))
    .on('getWorkflowExecutionHistory', grpcError('NOT_FOUND'))
    .on('queryWorkflow', grpcError('INTERNAL'));
  expect(await failureOf(client.resume('c'))).toMatchObject({
    kind: 'conflict',
    message: expect.stringContaining('conversation c is running'),
  });
  expect(await failureOf(client.deleteConversation('c'))).toMatchObject({
    kind: 'conflict',
    message: expect.stringContaining('it is running'),
  });
  expect(temporal.said().filter((said) => /^(start|update|signal|delete|terminate)/.test(said))).toEqual([]);
});

test('a rewind is asked for once, however often it is said', async () => {
  const { temporal, client } = onScript();
  temporal.on('updateWorkflowExecution', grpcError('UNAVAILABLE'), updated({ cut: 1, branch: 1 }));
  await client.rewind('c', 'turn_0001');
  expect(new Set(temporal.heard.map(({ updateId, args }) => `${updateId} ${JSON.stringify(args)}`)).size).toBe(1);
  temporal.on('updateWorkflowExecution', refused('UnknownTurn', 'there is no turn_0009'));
  await expect(client.rewind('c', 'turn_0009')).rejects.toMatchObject({ kind: 'not-found' } satisfies Partial<ClientError>);
});

test('without the workflow’s own code nothing is said of the past, and a conversation that is not there is not found all the same', async () => {
  const { temporal, client } = onScript();
  temporal.on('describeWorkflowExecution', described({ id: 'c' }));
  expect(await failureOf(client.moments('c'))).toMatchObject({ kind: 'unavailable', message: expect.stringContaining('no workflow code') });
  temporal.on('describeWorkflowExecution', grpcError('NOT_FOUND'));
  expect(await failureOf(client.moments('c'))).toMatchObject({ kind: 'not-found' });
});
