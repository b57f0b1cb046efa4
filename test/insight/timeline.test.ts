/** What happened in a turn and when (src/insight/timeline/timeline.ts), from histories made by hand and from those recorded. */
import { historyFromJSON } from '@temporalio/common/lib/proto-utils';
import { turnsNamedIn } from '../../src/insight/timeline/read-run.js';
import { LANES, type RunHistory, type TimelineBar, type TurnTimeline, type UnderWay } from '../../src/insight/timeline/shape.js';
import { buildTimeline } from '../../src/insight/timeline/timeline.js';
import { turnId } from '../../src/records/identity.js';
import { LEASE_ENDED, WORKER_ENDED } from '../../src/records/turn-end.js';
import { readHistories } from '../replay/history-file.js';
import {
  answered,
  completed,
  ended,
  failed,
  payloads,
  runOf,
  scheduled,
  signalled,
  started,
  step,
  tool,
  updated,
  USAGE,
} from './timeline-builder.js';

interface More {
  readonly pending?: readonly UnderWay[];
  readonly ended?: boolean;
  readonly complete?: boolean;
  readonly turn?: number;
}

function timeline(events: readonly object[], { pending = [], ended: isEnded = true, complete = true, turn = 1 }: More = {}): TurnTimeline {
  return buildTimeline(turnId(turn), [runOf('r1', events).run], { pending, ended: isEnded, complete });
}

/** One line a bar: enough to compare a whole timeline by. */
const lines = ({ bars }: TurnTimeline): string[] =>
  bars.map(({ lane, label, detail, from, to, outcome }) => {
    const second = (ms: number | null): string => (ms === null ? '…' : String(ms / 1000 - 1000.5 + 1));
    return `${second(from)}–${second(to)} ${lane} ${label}${detail === '' ? '' : `: ${detail}`} (${outcome})`;
  });

const markKinds = ({ marks }: TurnTimeline): string[] => marks.map(({ kind }) => kind);

test('a turn with a tool: each step on its lane, with who worked it, what it cost, and where to find it in history', () => {
  const found = timeline([
    scheduled('model-step', step(1)),
    started(1, 'w1'),
    completed(1, answered([['c1', 'look']])),
    scheduled('run-tool', tool(1, 'c1')),
    started(4, 'w2'),
    completed(4, { outcome: 'ok' }),
    scheduled('model-step', step(1, 2)),
    started(7, 'w1'),
    completed(7, answered()),
    scheduled('store-step', {}),
    started(10),
    completed(10, {}),
  ]);
  // The store's work after the end of the turn is not of it (timeline/lane-of-its-time).
  expect(lines(found)).toEqual(['1–3 model call 1: asks for look (ok)', '4–6 tool look: at c1 (ok)', '7–9 model call 2: end (ok)']);
  expect(found).toMatchObject({
    turn: 'turn_0001',
    from: 1_000_500,
    to: 1_008_500,
    workers: ['w1', 'w2'],
    usage: { inputTokens: 20, cachedTokens: 4, outputTokens: 10, costUsd: 1 },
    complete: true,
    marks: [],
  });
  expect(found.bars[1]).toMatchObject({ id: 'r1/4', event: 4, endEvent: 6, started: 1_004_500, worker: 'w2', callId: 'c1', run: 'r1' });
});

test.each<[name: string, lane: string]>([
  ['compact', 'memory'],
  ['truncate', 'memory'],
  ['uncompact', 'memory'],
  ['evict', 'memory'],
  ['ask-memory', 'memory'],
  ['heal', 'healing'],
  ['look-after', 'healing'],
  ['store-step', 'store'],
  ['something-of-a-later-version', 'store'],
])('(timeline/lane-of-its-time) %s is of no turn, and is shown on the lane %s of the one in whose time it was', (name, lane) => {
  const events = [
    scheduled('model-step', step(1)),
    completed(1, answered([['c1', 'look']])),
    scheduled(name, {}),
    completed(3, { usage: USAGE }),
    scheduled('run-tool', tool(1, 'c1')),
    completed(5, { outcome: 'ok' }),
  ];
  const found = timeline(events);
  expect(found.bars.map((bar) => bar.lane)).toEqual(['model', lane, 'tool']);
  expect(found.usage).toMatchObject({ inputTokens: 20 });
  expect(timeline([...events, scheduled('model-step', step(2))], { turn: 2 }).bars).toHaveLength(1);
});

test.each<[what: string, end: object, outcome: string, failure: string | null]>([
  ['its failure is said with its causes', failed(1, 'activity failed', 'redis closed'), 'failed', 'activity failed: redis closed'],
  ['a failure without words says so', failed(1), 'failed', 'no reason was given'],
  ['out of time', ended('TimedOut', 1), 'timed-out', 'activity timed out'],
  ['cancelled', ended('Canceled', 1), 'canceled', null],
  [
    'a tool that ended badly has failed, whatever Temporal says',
    completed(1, { outcome: 'error' }),
    'failed',
    'the tool ended with: error',
  ],
  ['a tool that may have run', completed(1, { outcome: 'unknown' }), 'failed', 'the tool ended with: unknown'],
  [
    'a tool whose result is no JSON',
    { activityTaskCompletedEventAttributes: { scheduledEventId: 1, result: { payloads: [{ data: Buffer.from('{') }] } } },
    'ok',
    null,
  ],
])('an activity ends: %s', (_what, end, outcome, failure) => {
  expect(timeline([scheduled('run-tool', tool(1, 'c1')), end]).bars).toMatchObject([{ outcome, failure, to: 1_001_500 }]);
});

test.each<[what: string, output: object, expected: object]>([
  ['an answer', answered([], { model: 'a/b' }), { model: 'a/b', usage: USAGE, detail: 'end', outcome: 'ok' }],
  [
    'a refusal of the provider',
    { kind: 'failed', failure: { type: 'auth', message: 'no key' } },
    { outcome: 'failed', failure: 'auth: no key' },
  ],
  ['nothing asked', { kind: 'deferred', reason: 'tools-first' }, { detail: 'not asked: tools-first', outcome: 'ok', usage: null }],
])('a model step comes back with %s', (_what, output, expected) => {
  expect(timeline([scheduled('model-step', step(1)), completed(1, output)]).bars).toMatchObject([{ label: 'call 1', ...expected }]);
});

test('(timeline/lost-or-waiting) what is under way has its attempt and its worker from Temporal, not from an event, and the turn goes on', () => {
  const way = { id: 'a7', attempt: 3, startedAt: new Date(1_500_000), lastFailure: 'activity Heartbeat timeout', worker: 'w9' };
  const found = timeline([scheduled('model-step', step(1), 'a7')], { pending: [way], ended: false });
  expect(found.bars).toMatchObject([
    { outcome: 'running', to: null, attempt: 3, started: 1_500_000, worker: 'w9', failure: 'activity Heartbeat timeout' },
  ]);
  expect(found).toMatchObject({ to: null, marks: [{ kind: 'worker-died', at: 1_500_000 }] });
  const waiting = timeline([scheduled('model-step', step(1), 'a7')], { pending: [{ ...way, startedAt: null }], ended: false });
  expect(waiting.bars).toMatchObject([{ started: null, attempt: 3, failure: 'activity Heartbeat timeout', worker: null }]);
});

test.each<[what: string, attempt: number, failure: string | undefined, marks: string[]]>([
  ['the second attempt after a time-out', 2, 'activity StartToClose timeout', ['worker-died']],
  ['the second attempt after another worker took over', 2, WORKER_ENDED, ['worker-died']],
  ['the second attempt after its worker had lost its lease', 2, LEASE_ENDED, ['worker-died']],
  ['a second attempt after a failure that is none', 2, 'provider is overloaded', []],
  ['the first attempt', 1, undefined, []],
])('an attempt without an end was a worker’s death: %s', (_what, attempt, failure, marks) => {
  const found = timeline([scheduled('model-step', step(1)), started(1, 'w2', attempt, failure), completed(1, answered())]);
  expect(markKinds(found)).toEqual(marks);
  expect(found.bars).toMatchObject([{ attempt, failure: failure ?? null }]);
});

describe('(timeline/wait-between-steps) who is waited for', () => {
  const ask = (plan: object, ...then: readonly object[]): object[] => [
    scheduled('model-step', step(1)),
    completed(1, answered([['c1', 'pay', plan]])),
    ...then,
  ];
  const approval = { approval: { policy: 'ask' } };
  const deny = { callId: 'c1', decision: 'deny' };
  const allow = { callId: 'c1', decision: 'approve' };

  test.each<[what: string, events: object[], expected: object | undefined]>([
    ['an approval that nobody has decided yet', ask(approval), { lane: 'person', to: null, outcome: 'running' }],
    ['allowed by a signal', ask(approval, signalled('decide', allow)), { to: 1_002_500, outcome: 'ok', endEvent: 3 }],
    ['refused by an update', ask(approval, updated('decide', deny)), { to: 1_002_500, outcome: 'denied', endEvent: 3 }],
    [
      'the first decision counts',
      ask(approval, signalled('decide', deny), signalled('decide', allow)),
      { to: 1_002_500, outcome: 'denied' },
    ],
    [
      'of another call: nothing is decided',
      ask(approval, signalled('decide', { ...allow, callId: 'c2' })),
      { to: null, outcome: 'running' },
    ],
    ['what is no decision', ask(approval, signalled('decide', 'yes')), { to: null, outcome: 'running' }],
    ['expired: the model goes on without it', ask(approval, scheduled('model-step', step(1, 2))), { to: 1_002_500, outcome: 'expired' }],
    ['it ran: somebody must have allowed it', ask(approval, scheduled('run-tool', tool(1, 'c1'))), { to: 1_002_500, outcome: 'ok' }],
    ['a question', ask({ workflowAction: { kind: 'ask-person' } }), { lane: 'person', detail: 'a question waits for its answer' }],
    ['a client’s tool', ask({ workflowAction: { kind: 'ask-client' } }), { lane: 'person', detail: 'waits for its client' }],
    [
      'a wait is nobody’s: no decision ends it',
      ask({ workflowAction: { kind: 'wait-for' } }, signalled('decide', allow), scheduled('model-step', step(1, 2))),
      { lane: 'retry', to: 1_003_500, outcome: 'ok' },
    ],
    ['what is denied by its policy asks nobody', ask({ approval: { policy: 'deny' } }), undefined],
    ['what needs no approval asks nobody', ask({}), undefined],
  ])('%s', (_what, events, expected) => {
    const waits = timeline(events, { ended: false }).bars.filter(({ id }) => id.endsWith('/c1'));
    expect(waits).toHaveLength(expected === undefined ? 0 : 1);
    if (expected !== undefined) expect(waits[0]).toMatchObject({ label: 'pay', from: 1_001_500, callId: 'c1', ...expected });
  });

  test('a decision is found in a later run than the one that asked', () => {
    const first = runOf('r1', ask(approval)).run;
    const second = runOf('r2', [signalled('decide', deny)], 2_000).run;
    const found = buildTimeline('turn_0001', [first, second], { pending: [], ended: false, complete: true });
    expect(found.bars[1]).toMatchObject({ outcome: 'denied', to: 2_000_500 });
  });
});

test('between a model step that failed and the next one it waits to try again; where there is no time between them it does not', () => {
  const fails = { kind: 'failed', failure: { type: 'overloaded', message: 'busy' } };
  const events = [scheduled('model-step', step(1)), completed(1, fails), scheduled('model-step', step(1, 2)), completed(3, answered())];
  expect(lines(timeline(events))).toEqual([
    '1–2 model call 1 (failed)',
    '2–3 retry waits to try again: overloaded: busy (ok)',
    '3–4 model call 2: end (ok)',
  ]);
  const atOnce = runOf('r1', events).run;
  const moved = {
    run: 'r1',
    events: atOnce.events.map((event) => ({ ...event, eventTime: { seconds: 1, nanos: 0 } })),
  } as unknown as RunHistory;
  expect(buildTimeline('turn_0001', [moved], { pending: [], ended: true, complete: true }).bars.map(({ lane }) => lane)).toEqual([
    'model',
    'model',
  ]);
});

test.each<[what: string, end: object | undefined, outcome: string]>([
  ['goes on', undefined, 'running'],
  ['ended', { childWorkflowExecutionCompletedEventAttributes: { initiatedEventId: 2 } }, 'ok'],
  ['failed', { childWorkflowExecutionFailedEventAttributes: { initiatedEventId: 2, failure: { message: 'no' } } }, 'failed'],
  ['was cancelled', { childWorkflowExecutionCanceledEventAttributes: { initiatedEventId: 2 } }, 'canceled'],
  ['was terminated', { childWorkflowExecutionTerminatedEventAttributes: { initiatedEventId: 2 } }, 'canceled'],
  ['ran out of time', { childWorkflowExecutionTimedOutEventAttributes: { initiatedEventId: 2 } }, 'timed-out'],
])('a sub-agent that %s is a bar of the turn in its name', (_what, end, outcome) => {
  const child = { workflowId: 'conv:turn_0001:1', input: payloads({ title: 'Look it up' }) };
  const found = timeline([
    scheduled('model-step', step(1)),
    { startChildWorkflowExecutionInitiatedEventAttributes: child },
    ...(end === undefined ? [] : [end]),
  ]);
  expect(found.bars.find(({ lane }) => lane === 'sub-agent')).toMatchObject({
    label: 'Look it up',
    conversation: 'conv:turn_0001:1',
    outcome,
    to: end === undefined ? null : 1_002_500,
    failure: outcome === 'failed' ? 'no' : null,
  });
  expect(timeline([{ startChildWorkflowExecutionInitiatedEventAttributes: { ...child, workflowId: 'conv:turn_0002:1' } }]).bars).toEqual(
    [],
  );
});

test('marks: what people sent, that a worker died or another took over, and that the run handed over', () => {
  const found = timeline(
    [
      scheduled('model-step', step(1)),
      signalled('message', { id: 'm1' }),
      updated('send', { id: 'm2' }),
      updated('enqueue', { id: 'm3' }),
      signalled('interrupt', {}),
      signalled('decide', { callId: 'c1', decision: 'deny' }),
      { workflowTaskStartedEventAttributes: { identity: 'w1' } },
      { workflowTaskStartedEventAttributes: { identity: 'w1' } },
      { workflowTaskTimedOutEventAttributes: {} },
      { workflowTaskStartedEventAttributes: { identity: 'w2' } },
      { workflowExecutionContinuedAsNewEventAttributes: {} },
      signalled('rename', { title: 'x' }),
    ],
    { ended: false },
  );
  expect(found.marks.map(({ kind, words, event }) => [event, kind, words])).toEqual([
    [2, 'message', 'by the signal message'],
    [3, 'message', 'by the update send'],
    [4, 'message', 'by the update enqueue'],
    [5, 'interrupted', 'a person asked it to stop'],
    [6, 'decided', 'denied: c1'],
    [9, 'worker-died', 'a worker did not answer for a decision: another one took over'],
    [10, 'worker-changed', 'w1 → w2'],
    [11, 'handed-over', 'the run ended, and the next one went on where it was'],
  ]);
});

test('a turn begins when its message was said, where that is known, and ends where its last bar does', () => {
  const said = { turn: 'turn_0001', ts: 990.25 };
  const events = [
    scheduled('store-step', { write: { messages: [said] } }),
    completed(1),
    scheduled('model-step', step(1)),
    completed(3, answered()),
  ];
  expect(timeline(events)).toMatchObject({ from: 990_250, to: 1_003_500, complete: true });
  expect(timeline(events).bars.map(({ lane }) => lane)).toEqual(['store', 'model']);
});

test('what history has nothing of has no beginning; whether that is all is said', () => {
  const events = [scheduled('model-step', step(1)), completed(1, answered())];
  expect(timeline(events, { turn: 7 })).toMatchObject({ from: null, to: null, bars: [], usage: null, workers: [], complete: true });
  expect(timeline(events, { turn: 7, complete: false }).complete).toBe(false);
  // The message was taken in what is still there: earlier runs had nothing of it.
  const taken = [scheduled('model-step', step(1, 1, { turn: 'turn_0001', ts: 1 })), completed(1, answered())];
  expect(timeline(taken, { complete: false }).complete).toBe(true);
  expect(timeline(events, { complete: false }).complete).toBe(false);
});

test('a cost that is not known for one call is not known for the turn', () => {
  const unknown = answered([], { usage: { ...USAGE, costUsd: null } });
  const found = timeline([
    scheduled('model-step', step(1)),
    completed(1, answered()),
    scheduled('model-step', step(1, 2)),
    completed(3, unknown),
  ]);
  expect(found.usage).toEqual({ inputTokens: 20, cachedTokens: 4, outputTokens: 10, costUsd: null });
});

test('by which turns a run names a reader knows when to stop going back', () => {
  const events = [scheduled('model-step', step(3)), scheduled('run-tool', tool(5, 'c1')), scheduled('heal', {})];
  expect(turnsNamedIn(runOf('r1', events).run)).toEqual({ lowest: 3, highest: 5 });
  expect(turnsNamedIn(runOf('r1', [scheduled('heal', {})]).run)).toBeUndefined();
});

test('a turn of more bars than a person can read is cut, and a hostile text is one short line', () => {
  const many = Array.from({ length: 2_100 }, (_, at) => scheduled('run-tool', tool(1, `c${at}`)));
  expect(timeline(many).bars).toHaveLength(2_000);
  const loud = timeline([
    scheduled('run-tool', { turn: 'turn_0001', callId: 'c1', name: `a\nb${'x'.repeat(999)}`, target: 't\n'.repeat(999) }),
  ]);
  for (const { label, detail } of loud.bars) {
    expect(`${label}${detail}`).not.toContain('\n');
    expect(Math.max(label.length, detail.length)).toBeLessThanOrEqual(301);
  }
});

describe('of every history that was ever recorded', () => {
  /** As many turns of one run as show whether they mix; a timeline reads the whole run. */
  const MOST = 3;
  const recorded = readHistories().map(({ name, history }) => ({ run: name, events: historyFromJSON(history).events ?? [] }));
  const timelines = recorded.flatMap((run) => {
    const { lowest, highest } = turnsNamedIn(run) ?? { lowest: 1, highest: 0 };
    const turns = Array.from({ length: Math.min(highest - lowest + 1, MOST) }, (_, n) => turnId(lowest + n));
    return turns.map((turn) => ({ run, ...buildTimeline(turn, [run], { pending: [], ended: true, complete: true }) }));
  });

  test('the turns that it names have timelines: in order, on lanes, each bar within the history and of one turn, each call once', () => {
    expect(timelines.length).toBeGreaterThan(100);
    const turnOf = new Map<string, string>();
    for (const { run, turn, bars } of timelines) {
      const where = `${run.run} ${turn}`;
      expect([where, bars.map(({ from }) => from)]).toEqual([where, bars.map(({ from }) => from).sort((a, b) => a - b)]);
      for (const bar of bars) checkBar(bar, run);
      const ids = bars.map(({ id }) => id);
      const calls = bars.flatMap(({ lane, callId }) => (lane === 'tool' && callId !== null ? [callId] : []));
      expect([where, ids.length, calls.length]).toEqual([where, new Set(ids).size, new Set(calls).size]);
      for (const { id } of bars.filter(({ lane }) => lane === 'model' || lane === 'tool')) {
        expect([id, turnOf.get(id) ?? turn]).toEqual([id, turn]);
        turnOf.set(id, turn);
      }
    }
  });

  function checkBar({ lane, from, to, event, outcome, label }: TimelineBar, run: RunHistory): void {
    expect(LANES).toContain(lane);
    expect(label).not.toBe('');
    expect(event).toBeLessThanOrEqual(run.events.length);
    if (to === null) expect(outcome).toBe('running');
    else expect(to).toBeGreaterThanOrEqual(from);
  }
});
