/** What a memory has to do, as a value: the rules of memory-queue.ts. */
import {
  addRequest,
  dropRequest,
  dropRequests,
  emptyQueue,
  finishRequest,
  isDropped,
  memoryStatusOf,
  nextRequest,
  nextRetryAt,
  noteWritten,
  postponeRequest,
  startRequest,
  type MemoryQueue,
} from '../../../src/conversation/memory-workflow/memory-queue.js';
import type { AskedConsolidation } from '../../../src/conversation/protocol/memory-contract.js';

const asked = (id: string): AskedConsolidation => ({
  ...{ id, requestId: id, conversation: `c-${id}`, life: 'l', session: 1, slots: [[1, 2]], messages: 2 },
  ...{ agent: 'default', model: 'a/b', why: 'reset', taskQueue: 'q' },
});
const queueOf = (...ids: string[]): MemoryQueue => ids.reduce((queue, id) => addRequest(queue, asked(id)), emptyQueue('default'));
const fail = (queue: MemoryQueue, id: string, at: number, transient = true): MemoryQueue =>
  postponeRequest(startRequest(queue, id), id, { type: transient ? 'overloaded' : 'auth', message: 'no', transient }, at);

test('a request is there once, and not again after it is done', () => {
  const queue = queueOf('a', 'b', 'a');
  expect(queue.requests.map(({ request }) => request.id)).toEqual(['a', 'b']);
  const done = finishRequest(queue, 'a', { consolidation: 'model', usage: null, at: 1 });
  expect(addRequest(done, asked('a'))).toBe(done);
  expect(memoryStatusOf(done, 0)).toMatchObject({ consolidated: 1, fallbacks: 0, queued: [{ conversation: 'c-b' }] });
});

test('they are done in the order of their arrival', () => {
  expect(nextRequest(queueOf('a', 'b'), 0)?.request.id).toBe('a');
});

test('what fails for long holds nobody up, however long each of its tries takes', () => {
  let queue = queueOf('a', 'b', 'c');
  queue = fail(queue, 'a', 0);
  // Each try has taken longer than the other one rests.
  queue = fail(queue, 'b', 120_000);
  expect(nextRequest(queue, 240_000)?.request.id).toBe('c');
});

test('what a person must see to rests for longer and longer; what may pass by itself is soon tried again', () => {
  expect(nextRetryAt(fail(queueOf('a'), 'a', 0))).toBeLessThanOrEqual(60_000);
  let queue = queueOf('a');
  for (let n = 0; n < 12; n++) queue = fail(queue, 'a', 0, false);
  expect(nextRetryAt(queue)).toBe(6 * 3_600_000);
  expect(memoryStatusOf(queue, 0)).toMatchObject({
    phase: 'waiting-to-retry',
    waitingFor: expect.stringMatching(/^auth: no; trying again at /) as unknown,
  });
});

test('what a store must have is what the last write left, and whether any left a summary', () => {
  const remembered = (queue: MemoryQueue, kind: 'summary' | 'raw-fallback' | null, version: string): MemoryQueue => {
    const history = kind === null ? null : { kind, text: 'Talked.' };
    return noteWritten(queue, { scope: 's', id: 'i', cause: 'consolidation', history, update: null, proposed: [] }, { version });
  };
  const unusable = remembered(emptyQueue('s'), 'raw-fallback', 'empty');
  expect([emptyQueue('s').written, unusable.written]).toEqual([undefined, { version: 'empty', summary: false }]);
  expect(remembered(remembered(unusable, 'summary', 'empty'), null, 'v1').written).toEqual({ version: 'v1', summary: true });
});

test('of a deleted conversation what waits or rests is dropped at once, what runs at its end, and other lives go on', () => {
  const other = { ...asked('d'), conversation: 'c-a', life: 'another' };
  const queue = addRequest(startRequest(fail(queueOf('a', 'b', 'c'), 'b', 0), 'c'), other);
  const of = (name: string) => ({ conversation: `c-${name}`, lives: ['l'] });
  const dropped = ['a', 'b', 'c'].reduce((now, name) => dropRequests(now, of(name), 7), queue);
  expect(dropped.requests.map(({ request }) => request.id)).toEqual(['c', 'd']);
  expect([isDropped(dropped, 'c'), isDropped(dropped, 'd')]).toEqual([true, false]);
  expect(memoryStatusOf(dropped, 0).last).toMatchObject([
    { at: 7, what: 'c-a: 2 messages (reset), dropped: the conversation was deleted' },
    { what: 'c-b: 2 messages (reset), dropped: the conversation was deleted' },
  ]);
  const ended = dropRequest(dropped, 'c', 8, { inputTokens: 3, cachedTokens: 0, outputTokens: 1, costUsd: 0 });
  expect(ended).toMatchObject({ requests: [{ request: { id: 'd' } }], consolidated: 0, usage: { inputTokens: 3 } });
  // Asked for again it is known.
  expect(addRequest(ended, asked('a')).requests).toHaveLength(1);
});
