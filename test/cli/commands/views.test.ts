import { describeHealed } from '../../../src/cli/commands/admin.js';
import { type StyledLine, textOfDrawn } from '../../../src/cli/terminal/terminal-text.js';
import { nearestSlip, parseDuration } from '../../../src/cli/args/values.js';
import { temporalCommand } from '../../../src/cli/session/connect.js';
import { fit, pad, wrap } from '../../../src/cli/views/table.js';
import { renderList, renderProblems, shortIds } from '../../../src/cli/commands/list.js';
import { inspectTurns } from '../../../src/insight/turns.js';
import { renderInspection, type Inspection } from '../../../src/cli/commands/inspect.js';
import { createEventLines, createLookNews } from '../../../src/cli/commands/show.js';
import { formatDuration, formatTime } from '../../../src/cli/views/quantities.js';
import { renderControl } from '../../../src/cli/views/state.js';
import { renderTraces, renderTranscript, withTurnEnds } from '../../../src/cli/views/transcript.js';
import type { Standing } from '../../../src/client/listing.js';
import type { PendingActivity } from '../../../src/client/describe.js';
import type { Description } from '../../../src/client.js';
import type { FeedEvent, Status, TurnResult } from '../../../src/conversation/protocol/contract.js';
import type { ConversationMessage, Entry } from '../../../src/records/message.js';
import { measure } from './measure.js';

const NOW = Date.parse('2026-11-21T12:00:00Z');

function drawn(lines: readonly StyledLine[]): string {
  return lines.map((line) => `|${textOfDrawn(line)}|`).join('\n');
}

function widest(lines: readonly StyledLine[]): number {
  return Math.max(...lines.map((line) => measure(textOfDrawn(line))));
}

function listed(id: string, minutes: number, more: Partial<Standing> = {}): Standing {
  return {
    id,
    taskQueue: 'perdura',
    isCurrent: true,
    running: true,
    state: 'running',
    agent: 'default',
    scope: 'default',
    tenant: null,
    publicId: null,
    title: null,
    startedAt: new Date(NOW - minutes * 60_000),
    closedAt: null,
    status: 'running',
    model: 'anthropic/claude',
    turns: 12,
    costUsd: 0.0321,
    ...more,
  };
}

const CONVERSATIONS = [
  listed('conv-3f2a9c1e-aaaa-4bbb-8ccc-000000000001', 3, { title: 'Fix the test that fails on Mondays only, and say why' }),
  listed('conv-3f2a9c1e-aaaa-4bbb-8ccc-000000000002', 200, { title: '週報を書く 漢字', agent: '研究員' }),
  listed('support', 9000, { running: false, state: 'terminated', turns: null, costUsd: null }),
];

describe('a list', () => {
  const look = { timeFormat: 'relative', now: NOW, measure } as const;

  test('at 80 columns: columns stand below each other, wide characters too, and long titles are cut', () => {
    const lines = renderList(CONVERSATIONS, { ...look, width: 80 });
    expect(drawn(lines)).toMatchInlineSnapshot(`
     "|ID                                         STATUS      STARTED    TITLE|
     |conv-3f2a9c1e-aaaa-4bbb-8ccc-000000000001  running     3 min ago  Fix the test…|
     |conv-3f2a9c1e-aaaa-4bbb-8ccc-000000000002  running     3 h ago    週報を書く 漢…|
     |support                                    terminated  6 d ago    |"
    `);
    expect(widest(lines)).toBeLessThanOrEqual(80);
  });

  test('numbers that are not as of now have a plus, and what went wrong stands below with the way out', () => {
    const lastError = {
      turnId: 'turn_0001',
      stopReason: 'failed',
      type: 'unknown-agent',
      message: 'there is no agent nope: /home/jo/agents/nope/agent.json does not exist. There are: default.',
    } as const;
    const conversations = [
      listed('conv-one', 3, { isCurrent: false, turns: 10, costUsd: 0.5 }),
      listed('conv-two', 9, { status: 'failed', turns: 1, costUsd: 0, lastError }),
    ];
    expect(drawn(renderList(conversations, { ...look, width: 80 }))).toMatchInlineSnapshot(`
     "|ID        STATUS   AGENT    TURNS      COST  STARTED    TITLE|
     |conv-one  running  default    10+  $0.5000+  3 min ago  |
     |conv-two  failed   default      1            9 min ago  |"
    `);
    expect(drawn(renderProblems(conversations, { ...look, width: 60 }))).toMatchInlineSnapshot(`
     "||
     |conv-two  there is no agent nope:|
     |          /home/jo/agents/nope/agent.json does not exist.|
     |          There are: default.|"
    `);
    expect(renderProblems([listed('conv-one', 1)], look)).toEqual([]);
    const many = Array.from({ length: 9 }, (_, at) => listed(`c${at}`, at, { lastError }));
    expect(textOfDrawn(renderProblems(many, look).at(-1) ?? [])).toBe('… and 4 more: `perdura show ID` says why');
  });

  test('at 20 columns each conversation is a few lines', () => {
    expect(drawn(renderList(CONVERSATIONS, { ...look, width: 20 }))).toMatchInlineSnapshot(`
     "|conv-3f2a9c1e-aaaa-4bbb-8ccc-000000000001|
     |  status running|
     |  agent default|
     |  turns 12|
     |  cost $0.0321|
     |  started 3 min ago|
     |  title Fix the tes…|
     |conv-3f2a9c1e-aaaa-4bbb-8ccc-000000000002|
     |  status running|
     |  agent 研究員|
     |  turns 12|
     |  cost $0.0321|
     |  started 3 h ago|
     |  title 週報を書く…|
     |support|
     |  status terminated|
     |  agent default|
     |  started 6 d ago|"
    `);
  });

  test('at no width between 20 and 120 does a line of it pass the edge, save ids', () => {
    for (let width = 20; width <= 120; width++) {
      const lines = renderList(CONVERSATIONS, { ...look, width }).filter((line) => !/^\S+…?$/.test(textOfDrawn(line)));
      expect([width, widest(lines) <= width]).toEqual([width, true]);
    }
  });

  test('without a screen nothing is cut', () => {
    expect(textOfDrawn(renderList(CONVERSATIONS, look)[1] ?? [])).toContain('conv-3f2a9c1e-aaaa-4bbb-8ccc-000000000001');
  });

  test('ids are as short as they can be and still be different', () => {
    expect([...shortIds(['conv-aaaaaaaa-1', 'conv-bbbbbbbb-1', 'conv-bbbbbbbb-23', 'x']).values()]).toEqual([
      'conv-aaaaaaaa…',
      'conv-bbbbbbbb-1',
      'conv-bbbbbbbb-23',
      'x',
    ]);
  });
});

const DESCRIPTION: Description = {
  id: 'conv-3f2a9c1e',
  runId: 'run',
  life: 'life',
  state: 'running',
  taskQueue: 'perdura',
  agent: 'default',
  scope: 'default',
  tenant: null,
  publicId: null,
  owner: null,
  title: 'Fix the test 漢字',
  startedAt: new Date(NOW - 7_200_000),
  closedAt: null,
  historyEvents: 1311,
  historyBytes: 250_000,
  pendingActivities: [
    {
      id: '7',
      type: 'model-step',
      state: 'started',
      attempt: 3,
      scheduledAt: new Date(NOW - 9000),
      startedAt: new Date(NOW - 4000),
      nextAttemptAt: null,
      lastFailure: 'activity Heartbeat timeout',
      worker: '4711@host',
      taskQueue: 'perdura',
    },
  ],
};

const STATUS: Status = {
  phase: 'waiting-to-retry',
  waitingFor: 'rate-limit: 429 slow down; trying again at 2026-11-21T12:00:10.000Z',
  session: 1,
  turn: 13,
  turns: 12,
  epoch: 0,
  mode: 'auto',
  stepLock: null,
  queued: 1,
  context: { tokens: 24_600, budget: 60_000, chunks: 40, prefixHash: null, prefixChanges: 0, prefixCause: null, compactions: 0 },
  window: { since: NOW - 3_600_000, messages: 24, consolidated: 40, limit: 50, consolidating: 0, owed: 0 },
  pendingApprovals: 0,
  budget: null,
  pausedBy: null,
  nextStep: null,
  usage: { inputTokens: 120_311, cachedTokens: 98_000, outputTokens: 4011, costUsd: 0.0321 },
  historyEvents: 1311,
  agent: 'default',
  scope: 'default',
  model: 'anthropic/claude-sonnet-5-5',
  title: 'Fix the test 漢字',
  life: 'life',
  rejectedInputs: { count: 1, last: [{ name: 'message', reason: 'text is missing', at: NOW }] },
};

function entry(slot: number, turn: string, seconds: number, message: ConversationMessage): Entry {
  return { v: 1, slot, session: 1, turn, seq: slot, ts: NOW / 1000 - 600 + seconds, message };
}

const ENTRIES: readonly Entry[] = [
  entry(1, 'turn_0001', 0, { role: 'user', text: 'fix the test' }),
  entry(2, 'turn_0001', 2, {
    role: 'assistant',
    model: 'anthropic/claude',
    stop: 'tool-calls',
    blocks: [
      { kind: 'text', text: 'Let me see.\u001b[2J' },
      { kind: 'tool-call', callId: 'turn_0001/c1', name: 'read_file', input: { path: 'a.txt' } },
    ],
  }),
  entry(3, 'turn_0001', 3, { role: 'tool', callId: 'turn_0001/c1', name: 'read_file', outcome: 'ok', text: 'line 1\nline 2' }),
  entry(4, 'turn_0001', 8, { role: 'assistant', model: 'anthropic/claude', stop: 'end', blocks: [{ kind: 'text', text: 'Done.' }] }),
  entry(5, 'turn_0002', 60, { role: 'user', text: '漢字はどう？' }),
  entry(6, 'turn_0002', 62, { role: 'assistant', model: 'anthropic/claude', stop: 'end', blocks: [{ kind: 'text', text: '良い。' }] }),
];

describe('a turn without a whole answer', () => {
  const end = {
    v: 1,
    turn: ENTRIES[0]?.turn ?? '',
    stopReason: 'failed',
    error: { type: 'auth', message: 'the key was refused\u001b[2J: export one that is valid' },
  } as const;

  test('says why behind what was said in it, for people and for programs', () => {
    const own = ENTRIES.filter(({ turn }) => turn === end.turn);
    const shown = withTurnEnds(ENTRIES, [end, { ...end, turn: 'turn_9999' }]);
    expect(shown.indexOf(end)).toBe(ENTRIES.indexOf(own.at(-1) as Entry) + 1);
    expect(shown).toHaveLength(ENTRIES.length + 1);
    const [line] = renderTranscript(shown, { timeFormat: 'relative', now: NOW }).filter((one) => one[0]?.style === 'red');
    expect(textOfDrawn(line ?? [])).toBe('  ✘ the key was refused␛[2J: export one that is valid');
  });

  test('an inspection has it below the turn', () => {
    expect(inspectTurns(ENTRIES, [end], 5).find(({ turn }) => turn === end.turn)).toMatchObject({ problem: end.error.message });
  });
});

describe('an inspection', () => {
  const inspection: Inspection = {
    description: DESCRIPTION,
    status: STATUS,
    queue: [
      {
        id: 'qevt_000014',
        event: { kind: 'message', messageId: 'm', turnId: 'turn_0014', bytes: 2048, delivery: 'queue' },
        queuedAt: NOW - 3000,
      },
    ],
    approvals: [],
    children: [],
    turns: inspectTurns(ENTRIES, [], 5),
    link: 'http://127.0.0.1:8233/namespaces/default/workflows/conv-3f2a9c1e',
  };
  const look = { timeFormat: 'relative', now: NOW, measure } as const;

  test('at 80 columns', () => {
    expect(drawn(renderInspection(inspection, { ...look, width: 80 }))).toMatchInlineSnapshot(`
     "|conv-3f2a9c1e|
     ||
     |title     Fix the test 漢字|
     |status    waiting-to-retry · turn 13 · session 1|
     |agent     default|
     |started   2 h ago|
     |history   1,311 events, 244 KiB|
     |waiting   rate-limit: 429 slow down; trying again at 2026-11-21T12:00:10.000Z|
     |model     anthropic/claude-sonnet-5-5|
     |context   24,600 of 60,000 tokens, 41 %|
     |usage     120,311 in (98,000 cached, 22,311 not), 4,011 out · $0.0321|
     |window    24 of 50 messages since 60 min ago · 40 more are consolidated|
     |refused   1 input, last: message: text is missing|
     ||
     |queue|
     |qevt_000014  turn_0014 message of 2 KiB  3.0 s ago|
     ||
     |last turns|
     |TURN        TOOK  TOOLS  STARTED     MESSAGE|
     |turn_0001  8.0 s      1  10 min ago  fix the test|
     |turn_0002  2.0 s         9 min ago   漢字はどう？|
     ||
     |running activities|
     |TYPE        STATE    ATTEMPT  SINCE      WORKER     LAST FAILURE|
     |model-step  started        3  4.0 s ago  4711@host  activity Heartbeat timeout|
     ||
     |http://127.0.0.1:8233/namespaces/default/workflows/conv-3f2a9c1e|"
    `);
  });

  test('at no width between 20 and 120 does a line of it pass the edge, save the queue and the link', () => {
    for (let width = 20; width <= 120; width++) {
      const lines = renderInspection({ ...inspection, queue: [], link: null }, { ...look, width });
      expect([width, widest(lines) <= width]).toEqual([width, true]);
    }
  });

  test('without a worker it says what Temporal knows', () => {
    const text = drawn(renderInspection({ ...inspection, status: null, queue: [], turns: [], link: null }, { ...look, width: 80 }));
    expect(text).toContain('status    running; no worker answers for it');
    expect(text).toMatch(/model-step +started +3 /);
  });
});

describe('live events', () => {
  const RESULT: TurnResult = {
    turnId: 'turn_0001',
    text: 'Done.',
    stopReason: 'end',
    usage: { inputTokens: 1000, cachedTokens: 0, outputTokens: 40, costUsd: 0.01 },
    toolCalls: 2,
  };
  const call = { turn: 'turn_0001', attempt: 'a' } as const;
  const EVENTS: readonly (readonly [number, FeedEvent])[] = [
    [0, { kind: 'message', turn: 'turn_0001', messageId: 'm', preview: 'fix the 漢字 test', ts: NOW }],
    [900, { kind: 'text', ...call, call: 'c0', text: 'Let me' }],
    [1000, { kind: 'reset', ...call, call: 'c0', attempt: 'b' }],
    [1500, { kind: 'text', ...call, call: 'c0', attempt: 'b', text: 'Let me see' }],
    [2000, { kind: 'tool-started', turn: 'turn_0001', callId: 'x', name: 'bash', input: '{"command":"npm test"}' }],
    [2010, { kind: 'tool-started', turn: 'turn_0001', callId: 'y', name: 'read_file', input: '{"path":"a.txt"}' }],
    [3000, { kind: 'tool-finished', turn: 'turn_0001', callId: 'y', name: 'read_file', outcome: 'ok', preview: 'text' }],
    [6000, { kind: 'tool-finished', turn: 'turn_0001', callId: 'x', name: 'bash', outcome: 'error', preview: 'exit 1' }],
    [6100, { kind: 'waiting', turn: 'turn_0001', for: 'rate-limit: 429', until: NOW + 8000 }],
    [9000, { kind: 'text', ...call, call: 'c1', text: 'Done.' }],
    [10_000, { kind: 'turn-finished', turn: 'turn_0001', result: RESULT }],
  ];

  test('each event is a line, and the words of a model call are one', () => {
    const toLine = createEventLines();
    const lines = EVENTS.map(([, event]) => toLine(event)).filter((line) => line !== undefined);
    expect(drawn(lines)).toMatchInlineSnapshot(`
     "|turn_0001  ›  fix the 漢字 test|
     |turn_0001  model  writes|
     |turn_0001  model  starts again: the attempt before was cut off|
     |turn_0001  → bash  {"command":"npm test"}|
     |turn_0001  → read_file  {"path":"a.txt"}|
     |turn_0001  ← read_file  ok text|
     |turn_0001  ← bash  error exit 1|
     |turn_0001  waiting  rate-limit: 429; until 2026-11-21T12:00:08.000Z|
     |turn_0001  model  writes|
     |turn_0001  end  1,000 in, 40 out · $0.0100 · Done.|"
    `);
  });
});

test('a look reports a retry once, each later attempt again, and how it is stepped when that changes', () => {
  const toNews = createLookNews();
  const auto = { mode: 'auto', stepLock: null, pausedBy: null, nextStep: null } as const;
  const stepping = { ...auto, mode: 'stepping', nextStep: 'model' } as const;
  const activity: PendingActivity = {
    ...{ id: '1', type: 'modelStep', attempt: 2, state: 'started', lastFailure: 'overloaded' },
    ...{ scheduledAt: null, startedAt: null, nextAttemptAt: null, worker: null, taskQueue: null },
  };
  const later = { ...activity, attempt: 3 };
  expect(toNews([], auto)).toEqual([]);
  expect(toNews([activity], auto)).toEqual(['modelStep, attempt 2: overloaded']);
  expect(toNews([activity], undefined)).toEqual([]);
  expect(toNews([later], stepping)).toEqual(['modelStep, attempt 3: overloaded', 'stepping · next: model']);
  expect(toNews([later], stepping)).toEqual([]);
  expect(toNews([], auto)).toEqual(['auto · it runs by itself']);
});

describe('a transcript', () => {
  test('names each turn once, and goes on in the turn that was drawn last', () => {
    expect(drawn(renderTranscript(ENTRIES, { timeFormat: 'iso', now: NOW }))).toMatchInlineSnapshot(`
     "||
     |turn_0001  2026-11-21T11:50:00.000Z|
     |› fix the test|
     |Let me see.[2J|
     |  → read_file {"path":"a.txt"}|
     |  ← read_file ok: line 1 line 2|
     |Done.|
     ||
     |turn_0002  2026-11-21T11:51:00.000Z|
     |› 漢字はどう？|
     |良い。|"
    `);
    expect(drawn(renderTranscript(ENTRIES.slice(3, 4), { timeFormat: 'iso', now: NOW, before: 'turn_0001' }))).toBe('|Done.|');
  });

  test('as raw traces: one JSON a line, in the format of the seed', () => {
    const traces = renderTraces(ENTRIES, 'conv_1').map((line) => JSON.parse(line) as { id: string; trace_type: string; turn_id: string });
    expect(traces.map(({ id, trace_type }) => `${id} ${trace_type}`)).toEqual([
      'rt_001 user',
      'rt_002 assistant',
      'rt_002_1 tool_call',
      'rt_003 tool_result',
      'rt_004 assistant',
      'rt_005 user',
      'rt_006 assistant',
    ]);
  });
});

test('healing is reported in words', () => {
  const healed = { runs: 2, events: 30, known: 12, missing: 0, restored: 0, lostBodies: [], complete: true, problems: [] };
  expect(describeHealed('c', healed)).toEqual(['c: history has 12 entries in 2 runs; the store has them all']);
  expect(describeHealed('c', { ...healed, missing: 3, restored: 3 })[0]).toContain('3 were missing in the store and are back');
  expect(describeHealed('c', { ...healed, missing: 3, restored: 1, complete: false, lostBodies: ['b'] })).toHaveLength(3);
});

test('texts are cut between characters as people see them', () => {
  expect(fit('漢字漢字', 5, measure)).toBe('漢字…');
  expect(fit('e\u0301e\u0301e\u0301', 2, measure)).toBe('e\u0301…');
  expect(pad('漢', 4, measure)).toBe('漢  ');
  expect(pad('漢', 4, measure, 'right')).toBe('  漢');
  expect(wrap('one two three 漢字漢字漢字', 9, measure)).toEqual(['one two', 'three', '漢字漢字', '漢字']);
});

test('times and durations', () => {
  expect([50, 1234, 12_345, 720_000, 7_200_000, 300_000_000].map(formatDuration)).toEqual([
    '50 ms',
    '1.2 s',
    '12 s',
    '12 min',
    '2 h',
    '3 d',
  ]);
  expect(formatTime(NOW - 7_200_000, 'relative', NOW)).toBe('2 h ago');
  expect(formatTime(NOW, 'iso', NOW)).toBe('2026-11-21T12:00:00.000Z');
  expect(formatTime(NOW, 'raw', NOW)).toBe(String(NOW));
  expect(['30s', '500ms', '2m', '1.5h', '7'].map(parseDuration)).toEqual([30_000, 500, 120_000, 5_400_000, 7000]);
  for (const wrong of ['', '0', '-1s', '1 week', '99999h']) expect(() => parseDuration(wrong)).toThrow('write a duration');
});

test('a slip of the fingers has a nearest word, another word has none', () => {
  const words = ['show', 'send', 'list', 'inspect'];
  expect(['shwo', 'lits', 'inspekt', 'hello', 'x'].map((word) => nearestSlip(word, words))).toEqual([
    'show',
    'list',
    'inspect',
    undefined,
    undefined,
  ]);
});

test('the equivalent command names the server where it is not the usual one, and is safe to paste', () => {
  const at = (address: string, namespace: string) => ({ connectionOptions: { address }, namespace, named: true });
  expect(temporalCommand(at('127.0.0.1:7233', 'default'), ['workflow', 'show', '-w', 'c'])).toBe('temporal workflow show -w c');
  expect(temporalCommand(at('host:1', 'ns'), ['x', "it's $HOME"])).toBe(`temporal x 'it'\\''s $HOME' --address host:1 -n ns`);
  expect(temporalCommand(at('127.0.0.1:7233', 'default'), ['-q', `a = 'b'`])).toBe(`temporal -q "a = 'b'"`);
});

test('sub-agents stand under the conversation that started them, and which of them hold is said', () => {
  const of = 'plan:turn_0001:1';
  const lines = renderControl({
    ...{ mode: 'stepping', stepLock: null, pausedBy: 'tool: write_file (turn_0001/c1) in plan:turn_0001:1:turn_0001:1', next: 'go on' },
    subAgents: [
      { conversation: of, mode: 'stepping', next: null, pausedBy: null },
      {
        conversation: `${of}:turn_0001:1`,
        mode: 'stepping',
        next: 'run write_file (turn_0001/c1)',
        pausedBy: 'tool: write_file (turn_0001/c1)',
      },
      { conversation: 'plan:turn_0001:2', mode: 'auto', next: null, pausedBy: null },
    ],
  });
  expect(lines.slice(-3).map(textOfDrawn)).toEqual([
    '└ plan:turn_0001:1  stepping: waits for what is under way, or for a person',
    '  └ plan:turn_0001:1:turn_0001:1  holds: run write_file (turn_0001/c1) (stopped by tool: write_file (turn_0001/c1))',
    '└ plan:turn_0001:2  goes on by itself',
  ]);
});
