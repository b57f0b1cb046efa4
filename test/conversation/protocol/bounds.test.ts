/** What comes in is bounded where it is read: too much, too deep, too large a number, or of a kind that would throw further in. */
import { readBreakpoints } from '../../../src/conversation/protocol/stepping.js';
import { LIMITS } from '../../../src/conversation/protocol/contract.js';
import { isDeeperThan, reader, type Checked } from '../../../src/conversation/protocol/schema.js';
import { delegationSchema, readBudget, readChildNews } from '../../../src/conversation/protocol/human-input.js';
import { readMessage } from '../../../src/conversation/protocol/message.js';
import { readStart, readTitle } from '../../../src/conversation/protocol/input.js';
import { readConsolidationNews, readConsolidationRequest, readMemoryStart } from '../../../src/conversation/protocol/memory-contract.js';
import { isoTime } from '../../../src/records/text.js';

const request = {
  id: 'c/life/1/1-9',
  requestId: 's1/1-9',
  conversation: 'c-1',
  life: 'a-life',
  agent: 'default',
  model: '',
  why: 'reset',
  taskQueue: 'perdura',
  session: 1,
  messages: 3,
  slots: [[1, 9]],
};
const usage = { inputTokens: 1, cachedTokens: 0, outputTokens: 1, costUsd: null };
const report = { text: 'done', stopReason: 'end', usage };
const ended = { callId: 'turn_0001/c1', kind: 'ended', report };
const ask = {
  conversation: 'c-1:turn_0001:1',
  callId: 'turn_0001/c1',
  turnId: 'turn_0001',
  kind: 'approval',
  tool: 'pay',
  target: '',
  hash: 'h',
  askedIn: 2,
  askedAt: 1,
  expiresAt: 2,
};
const asks = { callId: 'turn_0001/c1', kind: 'asks', asks: [ask] };
const parent = { conversation: 'c-1', life: 'a-life', callId: 'turn_0001/c1', depth: 1 };
const delegation = { parent, task: 'do it' };
const readDelegation = reader(delegationSchema, 'start.delegation');

const TAKEN: readonly [what: string, read: () => Checked<unknown>][] = [
  ['a consolidation', () => readConsolidationRequest(request)],
  ['as many slots as may be', () => readConsolidationRequest({ ...request, slots: [[1, LIMITS.slots]] })],
  ['how a consolidation ended', () => readConsolidationNews({ requestId: 's1/1-9', life: 'a', consolidation: 'model', usage })],
  ['a report', () => readChildNews(ended)],
  ['what a sub-agent asks', () => readChildNews(asks)],
  ['a delegation', () => readDelegation({ ...delegation, appContext: { ref: 'sha256:0', changes: [{ ref: 'sha256:1' }] } })],
  ['a budget', () => readBudget({ maxCostUsd: 0.5, maxTokens: Number.MAX_SAFE_INTEGER })],
  ['a message', () => readMessage({ text: 'hi', payload: Array.from({ length: 1_000 }, () => 0) })],
];

test.each(TAKEN)('%s is taken', (_, read) => expect(read()).toMatchObject({ ok: true }));

const nested = (levels: number): unknown => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);
const hostile = { toString: 1, valueOf: 1 };

const REFUSED: readonly [what: string, read: () => Checked<unknown>, why: string][] = [
  ['two hundred million slots', () => readConsolidationRequest({ ...request, slots: [[0, 200_000_000]] }), 'the limit is 1000000'],
  ['a slot too many', () => readConsolidationRequest({ ...request, slots: [[0, LIMITS.slots]] }), 'are 1000001 entries'],
  ['ranges that add up', () => readConsolidationRequest({ ...request, slots: Array(3).fill([0, 500_000]) }), 'are 1500003 entries'],
  ['a slot beyond all', () => readConsolidationRequest({ ...request, slots: [[1e15, 1e15]] }), 'none beyond'],
  ['half a slot', () => readConsolidationRequest({ ...request, slots: [[0.5, 1]] }), 'pairs of slots'],
  ['a session of no end', () => readConsolidationRequest({ ...request, session: 1e300 }), 'session must be a whole number'],
  ['a task queue of the server’s own', () => readConsolidationRequest({ ...request, taskQueue: '/_sys/perdura/1' }), 'taskQueue'],
  ['half a character in an id', () => readConsolidationRequest({ ...request, conversation: 'c\ud800' }), 'conversation'],
  ['half a character in a task queue', () => readConsolidationRequest({ ...request, taskQueue: 'c\ud800' }), 'taskQueue'],
  ['a hand-over of never', () => readMemoryStart({ scope: 'a', handOver: 1e300 }), 'handOver'],
  ['an ask that never ends', () => readChildNews({ ...asks, asks: [{ ...ask, expiresAt: 9e15 }] }), 'child.asks[0].expiresAt must be'],
  [
    'an ask of a turn without end',
    () => readChildNews({ ...asks, asks: [{ ...ask, askedIn: Infinity }] }),
    'child.asks[0].askedIn must be',
  ],
  [
    'an error that is no text',
    () => readChildNews({ ...ended, report: { ...report, error: { type: hostile, message: 'x' } } }),
    'child.report.error.type must be a text',
  ],
  [
    'a stop reason of one’s own',
    () => readChildNews({ ...ended, report: { ...report, stopReason: 'x'.repeat(1e6) } }),
    'child.report.stopReason must be',
  ],
  [
    'infinite costs',
    () => readChildNews({ ...ended, report: { ...report, usage: { ...usage, costUsd: Infinity } } }),
    'child.report.usage.costUsd must be',
  ],
  [
    'tokens without end',
    () => readChildNews({ ...ended, report: { ...report, usage: { ...usage, inputTokens: 1e300 } } }),
    'child.report.usage.inputTokens',
  ],
  ['a call of any name', () => readChildNews({ ...ended, callId: 'x'.repeat(1e6) }), 'child.callId'],
  ['a task of a megabyte', () => readDelegation({ ...delegation, task: 'x'.repeat(1e6) }), 'task'],
  ['levels without end', () => readDelegation({ ...delegation, parent: { ...parent, depth: 1e9 } }), 'parent'],
  ['a memory of any shape', () => readDelegation({ ...delegation, parent: { ...parent, memory: { session: {}, until: 1 } } }), 'parent'],
  ['values of any shape', () => readDelegation({ ...delegation, appContext: { ref: hostile } }), 'appContext'],
  ['an infinite budget', () => readBudget({ maxTokens: Infinity }), 'maxTokens'],
  ['an infinite breakpoint', () => readBreakpoints({ costUsd: Infinity }), 'costUsd'],
  ['a message of many values', () => readMessage({ text: 'hi', payload: Array(LIMITS.values).fill(0) }), 'more than 50000 values'],
  ['a message that is too deep', () => readMessage({ text: 'hi', payload: nested(100_000) }), 'deeper than 64 levels'],
  [
    'an address without end',
    () => readMessage({ text: 'hi', images: [{ mediaType: 'image/png', url: `http://${'x'.repeat(1e5)}` }] }),
    'url',
  ],
  ['bytes', () => readStart(new Uint8Array(2_000_000)), 'not be bytes'],
  [
    'what says of itself that it is unreadable',
    () => readMessage({ text: 'hi', 'perdura/unreadable': hostile }),
    'message.perdura/unreadable',
  ],
];

test.each(REFUSED)('%s: refused in a short sentence', (_, read, why) => {
  const refused = read();
  expect(refused).toEqual({ ok: false, reason: expect.stringContaining(why) });
  expect(refused.ok || refused.reason.length).toBeLessThan(500);
});

test('a key of a megabyte and a text of a megabyte are cut where they are repeated', () => {
  expect(readMessage({ text: 'hi', ['k'.repeat(1e6)]: 1 })).toEqual({ ok: false, reason: expect.stringMatching(/^.{1,300}$/) });
  expect(readMessage({ 'perdura/unreadable': 'k'.repeat(1e6) })).toEqual({ ok: false, reason: expect.stringMatching(/^.{1,300}$/) });
});

test('fields that nobody knows do not come along', () => {
  const more = { extra: 'x'.repeat(1e6) };
  const image = { mediaType: 'image/png', url: 'https://example.com/a.png' };
  expect(readMessage({ text: 'hi', images: [{ ...image, ...more }] })).toMatchObject({ value: { images: [image] } });
  expect(JSON.stringify(readChildNews({ ...asks, asks: [{ ...ask, ...more }] })).length).toBeLessThan(1_000);
  expect(JSON.stringify(readChildNews({ ...ended, report: { ...report, ...more } })).length).toBeLessThan(1_000);
  expect(JSON.stringify(readDelegation({ ...delegation, parent: { ...parent, ...more } })).length).toBeLessThan(1_000);
});

test('a title is cut between characters', () => {
  const title = `${'x'.repeat(199)}😀`;
  expect(readTitle({ title })).toEqual({ ok: true, value: 'x'.repeat(199) });
  expect(readStart({ title })).toMatchObject({ value: { title: 'x'.repeat(199) } });
});

test('depth is looked at without a stack, and no further than to the first value too many', () => {
  expect([isDeeperThan(nested(64), 64), isDeeperThan(nested(65), 64), isDeeperThan(nested(64), 63)]).toEqual([false, false, false]);
  expect([isDeeperThan(nested(66), 64), isDeeperThan(nested(200_000), 64)]).toEqual([true, true]);
});

test('a time is shown whatever number stands for it', () => {
  expect(isoTime(0)).toBe('1970-01-01T00:00:00.000Z');
  for (const ms of [8.64e15, -8.64e15, 9e15, -9e15, NaN, Infinity, -Infinity]) expect(isoTime(ms)).toMatch(/./);
});
