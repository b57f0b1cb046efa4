import { footRow } from '../../../src/cli/chat/chat-foot.js';
import { toWords, trouble, waitingAfter, waitingForWorker, waitingOfStatus, type Waiting } from '../../../src/cli/session/with-progress.js';
import type { FeedEvent, Status } from '../../../src/conversation/protocol/contract.js';
import { explainWaiting } from '../../../src/conversation/views/view.js';

const turn = 'turn_0001';
const words = (waiting: Waiting | undefined, now: number): string | undefined => waiting && toWords(waiting, now);
const localTime = (at: number): string => new Date(at).toLocaleTimeString('en-GB');

test('a model that thinks is told with its seconds, counted from the beginning', () => {
  const first = waitingAfter({ kind: 'message', turn, messageId: 'm', preview: 'hi', ts: 0 }, undefined, 1000);
  const later = waitingAfter({ kind: 'thinking', turn, call: 'c', attempt: 'a', text: '…' }, first, 3000);
  expect(words(later, 8400)).toBe('model thinking 7 s');
});

test.each([
  ['{"path":"src/main.ts","limit":3}', 'read_file src/main.ts 2 s'],
  ['{"path":"src/ma', 'read_file src/ma 2 s'],
  ['{}', 'read_file 2 s'],
])('a tool is told with its target: %s', (input, expected) => {
  const event: FeedEvent = { kind: 'tool-started', turn, callId: 'x', name: 'read_file', input };
  expect(words(waitingAfter(event, undefined, 0), 2000)).toBe(expected);
});

test('a wait is reported with its reason and the time when it ends', () => {
  const until = Date.UTC(2026, 10, 21, 12, 0, 5);
  const event: FeedEvent = { kind: 'waiting', turn, reason: 'rate-limit', for: 'rate-limit: 429 too many', until };
  expect(words(waitingAfter(event, undefined, 0), 0)).toBe(`waiting: rate limited until ${localTime(until)}`);
});

test('a status shows it where the feed is silent', () => {
  const waits = { kind: 'retry', reason: 'overloaded', message: '529', until: '2026-11-21T12:00:05.000Z' } as const;
  const status = { phase: 'waiting-to-retry', waiting: waits, waitingFor: explainWaiting(waits) } as Status;
  expect(words(waitingOfStatus(status, undefined, 0), 0)).toBe(
    `waiting: overloaded until ${localTime(Date.parse('2026-11-21T12:00:05Z'))}`,
  );
  const before = { text: 'read_file a 1 s', since: 0 };
  expect(waitingOfStatus({ phase: 'running-tools' } as Status, before, 5)).toBe(before);
});

test('the end of a session shows whose memory it waits for, with the seconds since it began', () => {
  const status = {
    phase: 'resetting',
    waiting: { kind: 'memory', scope: 'my-notes', until: '2026-11-21T12:00:30.000Z' },
  };
  const before = { text: 'clearing the session {s}', since: 1000 };
  const waiting = waitingOfStatus(status as Status, before, 5000);
  expect(words(waiting, 8000)).toBe('waiting for the memory of my-notes 7 s');
  expect(waitingOfStatus(status as Status, waiting, 9000)).toBe(waiting);
  expect(words(waitingOfStatus(status as Status, trouble('store unreachable', undefined, 0), 5000), 8000)).toBe(
    'waiting for the memory of my-notes 3 s',
  );
});

test('a person is told what to allow, whatever the call has for a target, and until which day', () => {
  const until = '2026-11-21T12:00:05.000Z';
  const call = { conversation: 'c', callId: 'k', tool: 'shell', target: 'a person: an answer to x; until y', others: 2, until };
  const status = { phase: 'waiting-for-person', waiting: { kind: 'approval', ...call } } as Status;
  expect(words(waitingOfStatus(status, undefined, 0), 0)).toBe('waiting: your approval of shell until 21 Nov');
  const asked = { ...status, waiting: { kind: 'question', ...call } } as Status;
  expect(words(waitingOfStatus(asked, undefined, 0), 0)).toBe('waiting: your answer until 21 Nov');
});

test('a worker of another version is shown in its own words', () => {
  const waitingFor = 'overloaded: 529; trying again at 2026-11-21T12:00:05.000Z';
  expect(words(waitingOfStatus({ phase: 'waiting-to-retry', waitingFor } as Status, undefined, 0), 0)).toBe(`waiting: ${waitingFor}`);
  const waiting = { kind: 'not-known-yet' } as unknown as Status['waiting'];
  expect(words(waitingOfStatus({ phase: 'thinking', waiting, waitingFor } as Status, undefined, 0), 0)).toBe(`waiting: ${waitingFor}`);
  expect(words(waitingAfter({ kind: 'waiting', turn, for: 'overloaded: 529', until: 0 }, undefined, 0), 0)).toBe(
    `waiting: overloaded: 529 until ${localTime(0)}`,
  );
});

test('trouble is reported until an answer comes', () => {
  const waiting = trouble('store unreachable', undefined, 0);
  expect(words(trouble('store unreachable', waiting, 4000), 5000)).toBe('store unreachable, trying again 5 s');
  expect(words(waitingOfStatus({ phase: 'thinking' } as Status, waiting, 6000), 6000)).toBe('model thinking 0 s');
});

test.each([79, 19])('the row that moves fits into %d columns, whatever is typed', (columns) => {
  const widthOf = (text: string): number => text.length;
  const row = footRow('⠋ read_file a/very/long/path/to/some/file.ts 12 s', 'a long question\nof several rows', columns, widthOf);
  expect(row.length).toBeLessThanOrEqual(columns);
  expect(row).toContain('rows');
});

test('a worker that died: what is happening, since when, and what will be', () => {
  const away = waitingForWorker({ kind: 'away', at: 1000, how: 'by SIGKILL', pauseMs: 0, logFile: 'log' });
  expect(toWords(away, 4000)).toBe('worker ended by SIGKILL 3 s ago; another starts and goes on');
  const back = waitingForWorker({ kind: 'back', at: 5000, afterMs: 4000 });
  expect(toWords(back, 7000)).toBe('new worker there for 2 s; what was cut off begins again within 10 s');
  const told = waitingAfter({ kind: 'text', turn, call: 'c', attempt: 'b', text: 'x' }, back, 8000);
  expect(words(told, 8000)).toBe('model writing 0 s');
});
